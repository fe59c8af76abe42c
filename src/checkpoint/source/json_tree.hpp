// SPDX-License-Identifier: Apache-2.0
// Objects of JSON as a tree that knows where each member is in the text, so that members change and everything else
// stays byte for byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/source/json_text.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// The document is a node, and so is each member of an object that is a node. Arrays have no nodes inside. Members of
// the same name are nodes of their own.
class JsonTree {
 public:
  using Node = std::uint32_t;

  // `text` must outlive the tree. Memory: 24 bytes a member. Errors: parse, without a file.
  [[nodiscard]] static Result<JsonTree> parse(std::string_view text);

  [[nodiscard]] Node root() const noexcept { return static_cast<Node>(nodes_.size() - 1); }
  [[nodiscard]] JsonKind kind(Node node) const noexcept { return nodes_[node].kind; }
  [[nodiscard]] std::string_view text(Node node) const noexcept;  // of the value, as it was
  [[nodiscard]] std::string key(Node node) const;                 // as it was, without quotes and escapes
  [[nodiscard]] std::vector<Node> members(Node node) const;       // in the order of the text

  // Changes. They may overlap: one inside a value that is removed or replaced has no effect. `value`: JSON.
  void remove(Node node) { changes_[node].removed = true; }
  void replace(Node node, std::string value) { changes_[node].value = std::move(value); }
  void rename(Node node, std::string_view key) { changes_[node].key = json_quoted(key); }
  // Add a member to an object, as the first, on the line of the brace; or as the last, on a line of its own.
  void prepend(Node node, std::string_view key, std::string value);
  void append(Node node, std::string_view key, std::string value);

  // Returns the text with all changes. It was parsed again, and is the tree that the changes mean.
  // Errors: internal: it is not.
  [[nodiscard]] Result<std::string> changed() const;

 private:
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  // In the order of the text, an object after its members.
  struct NodeData {
    Range key;  // with its quotes
    Range value;
    Node first = 0;  // of the nodes inside, which end before this one; itself if there are none
    JsonKind kind = JsonKind::other;
  };
  struct NewMember {
    std::string key;  // with quotes
    std::string value;
  };
  struct Change {
    bool removed = false;
    std::optional<std::string> value = {};
    std::optional<std::string> key = {};  // with quotes
    std::vector<NewMember> prepended = {};
    std::vector<NewMember> appended = {};
  };

  [[nodiscard]] std::string_view text(Range range) const noexcept;
  [[nodiscard]] std::string_view key_text(Node node) const noexcept;  // with quotes, as it is to be
  [[nodiscard]] const Change* change(Node node) const noexcept;
  [[nodiscard]] bool changes_inside(Node node) const noexcept;
  [[nodiscard]] std::vector<Node> kept_members(Node node) const;
  void write(Node node, std::string& out) const;
  void write_object(Node node, std::string& out) const;
  [[nodiscard]] bool is_meant(Node node, const JsonTree& result, Node other) const;

  std::string_view text_;
  std::vector<NodeData> nodes_;
  std::map<Node, Change> changes_;
};

// Returns the values of an array. Precondition: the text is that of an array in a document that was parsed.
[[nodiscard]] Result<std::vector<std::string_view>> elements_of(std::string_view array);

// Returns the array with other elements in the places of its own, those of `elements[i]` in that of the i-th, and with
// `added` before them. Errors: internal: it would not have these elements.
[[nodiscard]] Result<std::string> with_elements(std::string_view array, std::span<const std::string> added,
                                                const std::map<std::size_t, std::vector<std::string>>& elements = {});

}  // namespace tensorcast::checkpoint
