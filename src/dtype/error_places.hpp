// SPDX-License-Identifier: Apache-2.0
// What adds to errors, or to those of Results, where they happened.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tensorcast/error.hpp"

namespace tensorcast {

// Puts `where` and a colon in front of the message.
[[nodiscard]] inline Error at(std::string_view where, Error error) {
  error.message.insert(0, std::string(where) + ": ");
  return error;
}
template <class T>
[[nodiscard]] Result<T> at(std::string_view where, Result<T> result) {
  if (!result) result.error() = at(where, std::move(result).error());
  return result;
}

// Names the file, unless the error names one.
[[nodiscard]] inline Error in_file(const std::string& path, Error error) {
  if (error.file.empty()) error.file = path;
  return error;
}
template <class T>
[[nodiscard]] Result<T> in_file(const std::string& path, Result<T> result) {
  if (!result && result.error().file.empty()) result.error().file = path;
  return result;
}

// Names the tensor, unless the error names one.
[[nodiscard]] inline Error at_tensor(const std::string& name, Error error) {
  if (error.tensor.empty()) error.tensor = name;
  return error;
}
template <class T>
[[nodiscard]] Result<T> at_tensor(const std::string& name, Result<T> result) {
  if (!result && result.error().tensor.empty()) result.error().tensor = name;
  return result;
}

// Names the tensor in any case.
[[nodiscard]] inline Error of_tensor(const std::string& name, Error error) {
  error.tensor = name;
  return error;
}
template <class T>
[[nodiscard]] Result<T> of_tensor(const std::string& name, Result<T> result) {
  if (!result) result.error().tensor = name;
  return result;
}

// Names the element.
template <class T>
[[nodiscard]] Result<T> of_element(std::uint64_t index, Result<T> result) {
  if (!result) result.error().element = index;
  return result;
}

// Counts the element that is named from the beginning of a whole, of which these are the elements from `first` on.
[[nodiscard]] inline Error counted_from(std::uint64_t first, Error error) {
  if (error.element) *error.element += first;
  return error;
}
template <class T>
[[nodiscard]] Result<T> counted_from(std::uint64_t first, Result<T> result) {
  if (!result) result.error() = counted_from(first, std::move(result).error());
  return result;
}

}  // namespace tensorcast
