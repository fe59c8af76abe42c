// SPDX-License-Identifier: Apache-2.0
// Reads the values of options as the lists of src/options describe them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arguments.hpp"
#include "options/option.hpp"

namespace tensorcast::python {

// Each returns 1, or -1 with a Python error set.

// Sets CastError for the value of an option.
int refuse(PyObject* keyword, const char* needed, PyObject* value);
// `or_else`: what an error also names as allowed.
int word_number(PyObject* keyword, PyObject* value, const options::Words& words, int& number, const char* or_else = "");
int whole_number(PyObject* keyword, PyObject* value, std::int64_t largest, std::int64_t& result);
// Takes bools, NumPy's too, and the 0 and 1 of ONNX's attributes. Anything else is a mistake that truth would hide:
// "no" is true.
int truth_value(PyObject* keyword, PyObject* value, bool& result);
int real_number(PyObject* keyword, PyObject* value, double& result);
int seed_number(PyObject* keyword, PyObject* value, std::uint64_t& result);  // of 64 bits

inline int read_int(PyObject* keyword, PyObject* value, int& result) {
  std::int64_t number = 0;
  const int read = whole_number(keyword, value, 1'000'000, number);
  result = static_cast<int>(number);
  return read;
}

template <class Option>
int read_option(PyObject* keyword, PyObject* value, const Option& option, typename Option::Type& result) {
  using Value = typename Option::Type;
  if constexpr (std::is_enum_v<Value>) {
    int number = 0;
    if (word_number(keyword, value, option.words, number) != 1) return -1;
    result = static_cast<Value>(number);
    return 1;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return truth_value(keyword, value, result);
  } else if constexpr (std::is_same_v<Value, int>) {
    return read_int(keyword, value, result);
  } else if constexpr (std::is_same_v<Value, double>) {
    return real_number(keyword, value, result);
  } else if constexpr (std::is_same_v<typename Option::Owner, tensorcast::CastOptions>) {
    return seed_number(keyword, value, result);
  } else {
    std::int64_t number = 0;
    if (option.words.size() != 0 && PyUnicode_Check(value)) {  // the words of 0, -1, ...
      int word = 0;
      if (word_number(keyword, value, option.words, word, ", or a number") != 1) return -1;
      result = static_cast<Value>(-word);
      return 1;
    }
    if (whole_number(keyword, value, INT64_MAX, number) != 1) return -1;
    result = static_cast<Value>(number);
    return 1;
  }
}

}  // namespace tensorcast::python
