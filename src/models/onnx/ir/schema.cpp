// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/ir/schema.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace tensorcast::models::onnx {
namespace {

// Removes and returns the next word, up to a space.
std::string_view next_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

template <class Number>
Number take_number(std::string_view& text, int base) {
  Number number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

TypeSet parse_set(std::string_view word) {
  TypeSet set;
  while (!word.empty()) {
    const char kind = word.front();
    word.remove_prefix(1);
    if (kind == 'x') {
      set.others = true;
      continue;
    }
    const auto mask = take_number<std::uint64_t>(word, 16);
    (kind == 't'   ? set.tensors
     : kind == 's' ? set.sequences
     : kind == 'o' ? set.optionals
                   : set.optional_sequences) = mask;
  }
  return set;
}

class Table {
 public:
  Table() {
    for (std::string_view text = schema_type_sets; !text.empty();) sets_.push_back(parse_set(next_word(text)));
    std::string_view domain;
    std::vector<Schema>* versions = nullptr;
    for (std::string_view text = schema_signatures; !text.empty();) {
      const std::string_view word = next_word(text);
      const std::size_t colon = word.find(':');
      if (word.starts_with('@')) {
        domain = word.substr(1);
      } else if (colon == std::string_view::npos) {
        versions = &operators_[{domain, word}];
      } else {
        versions->push_back(parse(word));
      }
    }
  }

  const Schema* find(std::string_view domain, std::string_view op_type, std::int64_t opset) const {
    const auto found = operators_.find({domain, op_type});
    if (found == operators_.end()) return nullptr;
    const Schema* newest = nullptr;
    for (const Schema& schema : found->second) {
      if (schema.since <= opset) newest = &schema;
    }
    return newest == nullptr || newest->removed ? nullptr : newest;
  }

  bool keeps_meaning(std::string_view domain, std::string_view op_type, std::int64_t from, std::int64_t to) const {
    const auto found = operators_.find({domain, op_type});
    if (found == operators_.end()) return true;
    return std::ranges::all_of(found->second, [&](const Schema& schema) {
      return schema.since <= from || schema.since > to || schema.keeps_meaning;
    });
  }

 private:
  Schema parse(std::string_view text) const {
    Schema schema;
    schema.since = take_number<int>(text, 10);
    schema.keeps_meaning = text.starts_with('+');
    text.remove_prefix(text.find(':') + 1);
    if (text == "!") {
      schema.removed = true;
      return schema;
    }
    std::vector<Parameter>* formal = &schema.inputs;
    while (!text.empty()) {
      const char letter = text.front();
      text.remove_prefix(1);
      if (letter == '>') {
        formal = &schema.outputs;
      } else if (letter == '?' || letter == '*' || letter == '#') {
        formal->back().arity = letter == '?' ? Arity::optional : letter == '*' ? Arity::variadic : Arity::heterogeneous;
      } else {
        const auto variable = static_cast<std::uint8_t>(letter - 'a');
        if (variable == schema.variables.size()) schema.variables.push_back(sets_[take_number<std::size_t>(text, 10)]);
        formal->push_back({.variable = variable});
      }
    }
    return schema;
  }

  std::vector<TypeSet> sets_;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<Schema>> operators_;
};

const Table& table() {
  static const Table made;
  return made;
}

}  // namespace

const Schema* find_schema(std::string_view domain, std::string_view op_type, std::int64_t opset) {
  return table().find(domain, op_type, opset);
}

bool keeps_meaning(std::string_view domain, std::string_view op_type, std::int64_t from, std::int64_t to) {
  return table().keeps_meaning(domain, op_type, from, to);
}

}  // namespace tensorcast::models::onnx
