// SPDX-License-Identifier: Apache-2.0
// How a list describes the members of a struct, so that every interface shows them from one place.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace tensorcast::options {

// Another spelling of a word, which texts may have and nothing prints.
struct Synonym {
  const char* word = nullptr;
  int number = 0;
};

// The words of an enum, in the order of its numbers, which begin at 0.
struct Words {
  std::array<const char*, 8> word = {};
  std::array<Synonym, 8> synonyms = {};

  constexpr Words() = default;
  constexpr Words(std::initializer_list<const char*> words, std::initializer_list<Synonym> others = {}) {
    std::copy(words.begin(), words.end(), word.begin());
    std::copy(others.begin(), others.end(), synonyms.begin());
  }

  [[nodiscard]] constexpr std::size_t size() const {
    std::size_t count = 0;
    while (count < word.size() && word[count] != nullptr) ++count;
    return count;
  }
  // The number of a word or a synonym; -1 if there is none.
  [[nodiscard]] constexpr int find(std::string_view text) const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (text == word[i]) return static_cast<int>(i);
    }
    for (const Synonym& synonym : synonyms) {
      if (synonym.word != nullptr && text == synonym.word) return synonym.number;
    }
    return -1;
  }
  [[nodiscard]] constexpr const char* const* begin() const { return word.data(); }
  [[nodiscard]] constexpr const char* const* end() const { return word.data() + size(); }
};

// How interfaces read the value of a member whose type does not say it.
enum class ValueKind : std::uint8_t {
  text,     // as it is
  pattern,  // a regular expression
  glob,
  list,   // texts, separated by commas
  size,   // bytes: 5GB, 512MiB
  bits,   // of an element: 4.5bits
  share,  // from 0 to 1
  file,   // a path
};

// The scheme that an option is of use with, if it is only one.
struct OneScheme {
  const char* name = "";  // empty: all
  const char* hint = "";  // of the error that there is no weight of this scheme

  [[nodiscard]] constexpr bool allows(std::string_view scheme) const { return *name == '\0' || scheme == name; }
};

// What is the same for members of all types.
struct Facts {
  Words words = {};  // of an enum
  double low = std::numeric_limits<double>::lowest();
  double high = std::numeric_limits<double>::max();
  int zero_means = 0;         // what 0, the default, stands for
  int since_opset = 0;        // the first opset whose Cast has this attribute; 0: ONNX has none
  bool may_be_array = false;  // in Python's cast(), whose arrays have it for each row or element
  bool for_strings = false;   // matters to conversions to strings only
  bool of_one_run = false;    // tensorcast.onnx.search() lacks it
  bool of_files = false;      // tensorcast.cast() of a mapping lacks it
  bool in_python = true;      // a keyword of Python's functions
  int c_flag = 0;             // its tc_convert_flag; 0: none
  bool c_is_truth = false;    // the field of C only says whether the option is not at its default
  OneScheme only_with = {};
  const char* help = "";  // one sentence; {} is the default
  const char* more = "";  // a second sentence, for pages that have room
  // The sentence in `tcast convert` and `tcast plan`, if their default is another, or what they convert.
  const char* convert_help = "";
  const char* flag = "";  // of the command, if it is not the name; null: the command has none, or one of its own
  ValueKind kind = ValueKind::text;
  const char* metavar = "";  // what the command's help calls the value; display only: see value_name()
};

template <class Value>
inline constexpr bool is_list = false;
template <class Element>
inline constexpr bool is_list<std::vector<Element>> = true;

// A member of `Struct` and of its counterpart in C.
template <class Struct, class Value, class CStruct, class CValue>
struct Option : Facts {
  using Owner = Struct;
  using Type = Value;
  static constexpr bool is_choice = std::is_enum_v<Value>;
  static constexpr bool is_in_c = !std::is_same_v<Struct, CStruct>;

  const char* name;  // in every interface; the command writes dashes for underscores
  Value Struct::*member;
  CValue CStruct::*c_member;

  [[nodiscard]] constexpr Value usual() const { return Struct{}.*member; }
  // Reports whether the option is not at its default.
  [[nodiscard]] constexpr bool is_given(const Struct& owner) const { return owner.*member != usual(); }
  [[nodiscard]] constexpr bool allows(Value value) const {
    if constexpr (is_choice) {
      return value >= Value{} && value <= static_cast<Value>(words.size() - 1);
    } else if constexpr (std::is_same_v<Value, bool> || is_list<Value>) {
      return true;
    } else {
      if constexpr (std::is_floating_point_v<Value>) {
        if (value - value != 0.0) return false;  // NaN, infinity
      }
      // A bound that is not given fits no integer.
      return (low == Facts{}.low || value >= static_cast<Value>(low)) &&
             (high == Facts{}.high || value <= static_cast<Value>(high));
    }
  }
  // Reports whether the opset has this attribute, or it is at its default.
  [[nodiscard]] constexpr bool known_to(int opset, Value value) const {
    return since_opset == 0 || opset >= since_opset || value == usual();
  }
  // The value that a default of 0 stands for.
  [[nodiscard]] constexpr Value actual(Value value) const {
    if constexpr (std::is_same_v<Value, int>) return value == 0 ? zero_means : value;
    return value;
  }
  // The largest number of a choice or a whole number.
  [[nodiscard]] constexpr int last() const {
    return is_choice ? static_cast<int>(words.size()) - 1 : static_cast<int>(high);
  }
  [[nodiscard]] constexpr const char* word(Value value) const { return words.word[static_cast<std::size_t>(value)]; }
};

template <class Struct, class Value, class CStruct, class CValue>
constexpr Option<Struct, Value, CStruct, CValue> option(const char* name, Value Struct::*member,
                                                        CValue CStruct::*c_member, const Facts& facts) {
  return {facts, name, member, c_member};
}

// Of a struct that C lacks.
template <class Struct, class Value>
constexpr Option<Struct, Value, Struct, Value> option(const char* name, Value Struct::*member,
                                                      const Facts& facts = {}) {
  return {facts, name, member, nullptr};
}

// Calls `visit` with each option of a list.
template <class List, class Visit>
constexpr void for_each(const List& list, Visit&& visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, list);
}

// Reports whether `holds` is true for each option of a list; stops at the first for which it is not.
template <class List, class Holds>
constexpr bool all_of(const List& list, Holds&& holds) {
  return std::apply([&](const auto&... each) { return (holds(each) && ...); }, list);
}

// The facts of a list's option of this name, for an option of another struct. No such option: does not compile.
template <class List>
consteval Facts facts_of(const List& list, std::string_view name) {
  const Facts* found = nullptr;
  for_each(list, [&](const auto& option) {
    if (option.name == name) found = &option;
  });
  return *found;
}

// What is wrong with a value that Option::allows() refuses.
[[nodiscard]] std::string complaint(const Facts& facts, std::string_view name, std::int64_t value);
[[nodiscard]] std::string complaint(const Facts& facts, std::string_view name, double value);

}  // namespace tensorcast::options
