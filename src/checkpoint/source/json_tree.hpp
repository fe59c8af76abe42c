// SPDX-License-Identifier: Apache-2.0
// JSON as a tree that knows where each value is in the text, so that values change and everything else stays byte for
// byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

enum class JsonKind { object, array, string, other };

[[nodiscard]] std::string json_quoted(std::string_view text);  // precondition: UTF-8

// Every value is a node: the document, members of objects, elements of arrays. Members of the same name are nodes of
// their own.
class JsonTree {
 public:
  using Node = std::uint32_t;

  // `text` must outlive the tree. Memory: 24 bytes a value. Errors: parse, without a file, if it is not JSON or too
  // deep.
  [[nodiscard]] static Result<JsonTree> parse(std::string_view text);

  [[nodiscard]] Node root() const noexcept { return static_cast<Node>(nodes_.size() - 1); }
  [[nodiscard]] JsonKind kind(Node node) const noexcept { return nodes_[node].kind; }
  [[nodiscard]] std::string_view text(Node node) const noexcept { return text(nodes_[node].value); }  // as it was
  [[nodiscard]] std::string string(Node node) const;  // without quotes and escapes; precondition: it is one
  [[nodiscard]] std::string key(Node node) const;     // as it was, in the same way; "": of what is no member
  // The members of an object or elements of an array, in the order of the text.
  [[nodiscard]] std::vector<Node> members(Node node) const;
  // The last member of this name.
  [[nodiscard]] std::optional<Node> find(Node node, std::string_view key) const;

  // Changes of members and elements. They may overlap: one inside a value that is removed or replaced has no effect.
  // `value`: JSON.
  void remove(Node node) { changes_[node].values.emplace(); }
  void replace(Node node, std::string value) { changes_[node].values = {std::move(value)}; }
  void replace_element(Node node, std::vector<std::string> values) { changes_[node].values = std::move(values); }
  void rename(Node node, std::string_view key) { changes_[node].key = json_quoted(key); }
  // Add a member or element as the first, on the line of the bracket; or a member as the last, on a line of its own.
  void prepend(Node node, std::string_view key, std::string_view value);
  void prepend_element(Node node, std::string value) { changes_[node].prepended.push_back(std::move(value)); }
  void append(Node node, std::string_view key, std::string_view value);

  // Returns the text with all changes. It was parsed again, and is the tree that the changes mean.
  // Errors: internal: it is not.
  [[nodiscard]] Result<std::string> changed() const;

 private:
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  // In the order of the text, an object or array after what is inside.
  struct NodeData {
    Range key;  // with its quotes; nothing before the value if it has none
    Range value;
    Node first = 0;  // of the nodes inside, which end before this one; itself if there are none
    JsonKind kind = JsonKind::other;
  };
  struct Change {
    std::optional<std::vector<std::string>> values = {};  // in its place
    std::optional<std::string> key = {};                  // with quotes
    std::vector<std::string> prepended = {};              // members with their keys
    std::vector<std::string> appended = {};
  };

  [[nodiscard]] Result<void> add_value(Range key, std::size_t begin, int depth);
  [[nodiscard]] std::string_view text(Range range) const noexcept;
  [[nodiscard]] const Change& change(Node node) const noexcept;
  [[nodiscard]] bool changes_inside(Node node) const noexcept;
  [[nodiscard]] std::string new_head(Node node) const;
  void write(Node node, std::string& out) const;
  void write_members(Node node, std::string& out) const;
  [[nodiscard]] bool is_meant(Node node, const JsonTree& result, Node other) const;

  std::string_view text_;
  std::vector<NodeData> nodes_;
  std::map<Node, Change> changes_;
};

}  // namespace tensorcast::checkpoint
