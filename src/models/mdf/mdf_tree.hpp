// The tree of maps, lists and scalars that JSON, BSON and YAML all are.
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

// Copying a tree could take any amount of memory: aliases share what they repeat.
struct MoveOnly {
  MoveOnly() = default;
  MoveOnly(MoveOnly&&) noexcept = default;
  MoveOnly& operator=(MoveOnly&&) noexcept = default;
  ~MoveOnly() = default;
};

struct Tree {
  using List = std::vector<Tree>;
  using Map = std::vector<TreeEntry>;  // in the file's order, keys unique
  // uint64_t only for what int64_t cannot hold.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Map,
               std::shared_ptr<const SharedTree>>
      value;  // the last: what an alias repeats
  [[no_unique_address]] MoveOnly not_copied = {};

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&behind_alias().value);
  }
  [[nodiscard]] bool is_null() const { return as<std::monostate>() != nullptr; }
  [[nodiscard]] const Tree& behind_alias() const;
  // The value under a key; null pointer when there is none, or when this is no map.
  [[nodiscard]] const Tree* find(std::string_view key) const;
  [[nodiscard]] std::string_view kind() const;  // "a list", for messages
};

struct TreeEntry {
  std::string key;
  Tree tree;
};

// What occurs several times. How much a copy would take is kept, so that nobody walks through aliases of aliases.
struct SharedTree {
  Tree tree;  // no alias itself
  std::uint64_t bytes = 0;
  std::size_t depth = 0;
};

// Everything that an attacker may choose is bounded: how deep, and how much memory, that of values which an alias
// repeats included.
inline constexpr std::size_t max_depth = 64;
inline constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

enum class Syntax { json, bson, yaml };

// Errors: parse: text that breaks its grammar, a key twice, bounds exceeded; unsupported: YAML with tags of its own.
[[nodiscard]] Result<Tree> parse_tree(Syntax syntax, std::string_view text);

// Puts a tree together from what a parser meets. Each function returns false, with error() set, when it is too much.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::size_t text_bytes) : budget_(text_bytes) {}

  [[nodiscard]] bool scalar(Tree tree);
  [[nodiscard]] bool start_list();
  [[nodiscard]] bool start_map();
  [[nodiscard]] bool key(std::string name);
  [[nodiscard]] bool end();
  // Another occurrence of a shared value; counts as a copy would.
  [[nodiscard]] bool repeat(std::shared_ptr<const SharedTree> tree);
  [[nodiscard]] bool fail(ErrorCode code, std::string message);

  [[nodiscard]] bool expects_key() const;
  // The value that was completed last, which from now on can be repeated. Precondition: nothing was called since.
  [[nodiscard]] std::shared_ptr<const SharedTree> share_last();
  [[nodiscard]] const Error* error() const { return error_.message.empty() ? nullptr : &error_; }
  [[nodiscard]] Result<Tree> take();

 private:
  [[nodiscard]] bool charge(std::uint64_t bytes);
  [[nodiscard]] bool put(Tree tree);

  Tree root_;
  bool complete_ = false;
  struct Open {
    Tree tree;
    std::string key;  // maps: of the value that comes next
    bool has_key = false;
  };
  std::vector<Open> open_;
  Tree* last_ = nullptr;
  io::MemoryBudget budget_;
  Error error_;
};

}  // namespace tensorcast::models::mdf
