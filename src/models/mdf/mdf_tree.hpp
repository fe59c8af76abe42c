// SPDX-License-Identifier: Apache-2.0
// A tree of maps, lists and scalars: the content of JSON, BSON and YAML.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/memory_budget.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::models::mdf {

struct TreeEntry;
struct SharedTree;

// Prevents copies, which could take any amount of memory: aliases share the values that they repeat.
struct MoveOnly {
  MoveOnly() = default;
  MoveOnly(MoveOnly&&) noexcept = default;
  MoveOnly& operator=(MoveOnly&&) noexcept = default;
  ~MoveOnly() = default;
};

struct Tree {
  using List = std::vector<Tree>;
  using Map = std::vector<TreeEntry>;  // in the file's order, keys unique
  // uint64_t only for integers out of int64_t's range.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Map,
               std::shared_ptr<const SharedTree>>
      value;  // the last alternative: a value that an alias repeats
  [[no_unique_address]] MoveOnly not_copied = {};

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&behind_alias().value);
  }
  [[nodiscard]] bool is_null() const { return as<std::monostate>() != nullptr; }
  [[nodiscard]] const Tree& behind_alias() const;
  // Returns the value of a key; a null pointer if the key is missing, or if this is not a map.
  [[nodiscard]] const Tree* find(std::string_view key) const;
  [[nodiscard]] std::string_view kind() const;  // "a list", for messages
};

struct TreeEntry {
  std::string key;
  Tree tree;
};

// A value that occurs several times. The memory of a copy is stored, so that aliases of aliases are not walked.
struct SharedTree {
  Tree tree;  // not an alias itself
  std::uint64_t bytes = 0;
  std::size_t depth = 0;
};

// Limits for malicious files: nesting, and memory including that of values which aliases repeat.
inline constexpr std::size_t max_depth = 64;
inline constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

enum class Syntax { json, bson, yaml };

// Errors: parse: invalid syntax, a key twice, limits exceeded; unsupported: YAML with tags of its own.
[[nodiscard]] Result<Tree> parse_tree(Syntax syntax, std::string_view text);

// Builds a tree from a parser's events. Each function returns false, with error() set, if a limit is exceeded.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::size_t text_bytes) : budget_(text_bytes) {}

  [[nodiscard]] bool scalar(Tree tree);
  [[nodiscard]] bool start_list() { return start(Tree{Tree::List{}}); }
  [[nodiscard]] bool start_map() { return start(Tree{Tree::Map{}}); }
  [[nodiscard]] bool key(std::string name);
  [[nodiscard]] bool end();
  // Adds another occurrence of a shared value; it counts as much as a copy.
  [[nodiscard]] bool repeat(std::shared_ptr<const SharedTree> tree);
  [[nodiscard]] bool fail(ErrorCode code, std::string message);
  // Fails for bytes that are no UTF-8. JSON's parser refuses them itself, those of BSON and YAML do not.
  [[nodiscard]] bool check_text(std::string_view text);

  [[nodiscard]] bool expects_key() const;
  // Makes the last completed value shareable and returns it. Precondition: no call since it was completed.
  [[nodiscard]] std::shared_ptr<const SharedTree> share_last();
  [[nodiscard]] const Error* error() const { return error_.message.empty() ? nullptr : &error_; }
  [[nodiscard]] Result<Tree> take();

 private:
  [[nodiscard]] bool start(Tree empty);
  [[nodiscard]] bool too_deep();
  [[nodiscard]] bool charge(std::uint64_t bytes);
  [[nodiscard]] bool put(Tree tree);

  Tree root_;
  bool complete_ = false;
  struct Open {
    Tree tree;
    std::string key;  // maps: key of the next value
    bool has_key = false;
  };
  std::vector<Open> open_;
  Tree* last_ = nullptr;
  io::MemoryBudget budget_;
  Error error_;
};

}  // namespace tensorcast::models::mdf
