// The tree of maps, lists and scalars that JSON, BSON and YAML all are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::models::mdf {

struct TreeEntry;

struct Tree {
  using List = std::vector<Tree>;
  using Map = std::vector<TreeEntry>;  // in the file's order, keys unique
  // uint64_t only for what int64_t cannot hold.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Map> value;

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&value);
  }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  // The value under a key; null pointer when there is none, or when this is no map.
  [[nodiscard]] const Tree* find(std::string_view key) const;
  [[nodiscard]] std::string_view kind() const;  // "a list", for messages
};

struct TreeEntry {
  std::string key;
  Tree tree;
};

// Everything that an attacker may choose is bounded: how deep, and how many values, those that an alias repeats
// included.
inline constexpr std::size_t max_depth = 64;
inline constexpr std::size_t max_values = std::size_t{8} << 20;
inline constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

enum class Syntax { json, bson, yaml };

// Errors: parse: text that breaks its grammar, a key twice, bounds exceeded; unsupported: YAML with tags of its own.
[[nodiscard]] Result<Tree> parse_tree(Syntax syntax, std::string_view text);

// Puts a tree together from what a parser meets. Each function returns false, with error() set, when it is too much.
class TreeBuilder {
 public:
  [[nodiscard]] bool scalar(Tree tree);
  [[nodiscard]] bool start_list();
  [[nodiscard]] bool start_map();
  [[nodiscard]] bool key(std::string name);
  [[nodiscard]] bool end();
  [[nodiscard]] bool repeat(const Tree& tree);  // a copy, of which every value counts
  [[nodiscard]] bool fail(ErrorCode code, std::string message);

  [[nodiscard]] bool expects_key() const;
  // The value that was completed last; valid until the next call.
  [[nodiscard]] const Tree* last() const { return last_; }
  [[nodiscard]] bool count(const Tree& tree);  // charges for keeping a copy
  [[nodiscard]] const Error* error() const { return error_.message.empty() ? nullptr : &error_; }
  [[nodiscard]] Result<Tree> take();

 private:
  [[nodiscard]] bool charge(std::size_t values);
  [[nodiscard]] bool put(Tree tree);

  Tree root_;
  bool complete_ = false;
  struct Open {
    Tree tree;
    std::string key;  // maps: of the value that comes next
    bool has_key = false;
  };
  std::vector<Open> open_;
  const Tree* last_ = nullptr;
  std::size_t values_ = 0;
  Error error_;
};

}  // namespace tensorcast::models::mdf
