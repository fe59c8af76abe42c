// SPDX-License-Identifier: Apache-2.0
// arguments.hpp for functions that nanobind binds: errors leave as nanobind's exceptions.
#pragma once

#include "arguments.hpp"

#include <nanobind/nanobind.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "option_values.hpp"
#include "options/value_text.hpp"
#include "path_argument.hpp"

namespace tensorcast::python {

namespace nb = nanobind;

inline DType dtype_of(nb::handle argument) {
  const DType dtype = dtype_argument(argument.ptr());
  if (dtype == DType::undefined) throw nb::python_error();
  return dtype;
}
inline DType dtype_or_undefined(nb::handle argument) {
  return argument.is_none() ? DType::undefined : dtype_of(argument);
}

// Throws the error as Python's exception.
[[noreturn]] inline void throw_error(const Error& error) {
  raise_error(error);
  throw nb::python_error();
}

// Returns the value, or throws the error as Python's exception.
template <class T>
T checked(Result<T>&& result) {
  if (!result) throw_error(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

// Returns what `work` returns. Other threads of Python run meanwhile.
template <class Work>
auto without_gil(Work&& work) -> decltype(work()) {
  const nb::gil_scoped_release released;
  return work();
}

// A value that one thread uses at a time: Python may call from several while the GIL is released.
template <class Value>
class Guarded {
 public:
  explicit Guarded(Value made) : value_(std::move(made)) {}

  [[nodiscard]] const Value& operator*() const noexcept { return value_; }
  [[nodiscard]] const Value* operator->() const noexcept { return &value_; }

  // Returns work(value), which runs without the GIL.
  template <class Work>
  auto use(Work&& work) -> decltype(work(std::declval<Value&>())) {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(mutex_);
    return work(value_);
  }

 private:
  std::mutex mutex_;
  Value value_;
};

// Reads the keywords of a call. TypeError for one that is not an option.
inline CastOptions options_of(const nb::dict& keywords) {
  CastOptions options;
  for (const auto& [key, value] : keywords) {
    const int taken = option_argument(key.ptr(), value.ptr(), options);
    if (taken == 0) raise_unknown_option(key.ptr());
    if (taken != 1) throw nb::python_error();
  }
  return options;
}

// Returns the content of a str, in its memory. Throws CastError for half of a surrogate pair.
inline std::string_view text_of(nb::handle text) {
  const std::optional<std::string_view> content = text_argument(text.ptr());
  if (!content) throw nb::python_error();
  return *content;
}

// Calls take(item) for each item of an iterable, or for a single text or an object that is none.
template <class Take>
void each_item(nb::handle given, Take&& take) {
  if (PyUnicode_Check(given.ptr()) || PyObject_HasAttrString(given.ptr(), "__iter__") == 0) {
    take(given);
  } else {
    for (const nb::handle item : given) take(item);
  }
}

// Reads a size that is a number or a text, by one of the functions of options/value_text.hpp. `needed`: what the error
// says of another.
template <class Value, class Parse>
Value read_size(nb::handle given, const char* name, const char* needed, Parse parse) {
  const nb::str text(nb::object(nb::str(given).attr("strip")()));
  const std::optional<Value> size = parse(text_of(text));
  if (size) return *size;
  throw_error(invalid(std::string(name) + "=" + std::string(text_of(nb::repr(given))) + " is not a size" + needed));
}

template <class Option>
void read_bound_option(nb::handle value, const Option& option, typename Option::Type& result) {
  using Value = typename Option::Type;
  if constexpr (std::is_same_v<Value, std::uint64_t>) {
    if (option.kind == options::ValueKind::size) {
      result =
          read_size<Value>(value, option.name, "; write \"5GB\", \"512MiB\" or a number of bytes", options::parse_size);
      return;
    }
  } else if constexpr (std::is_same_v<Value, double>) {
    if (option.kind == options::ValueKind::bits) {
      if (value.equal(nb::int_(0))) return;
      result = read_size<Value>(value, option.name, " from 1 to 32 bits, such as 4.5", options::parse_bits);
      return;
    }
  }
  if constexpr (std::is_same_v<Value, DType>) {
    result = dtype_or_undefined(value);
  } else if constexpr (std::is_same_v<Value, std::string> || std::is_same_v<Value, std::string_view>) {
    if (!PyUnicode_Check(value.ptr())) {
      PyErr_Format(PyExc_TypeError, "%s= is a text, not %R", option.name, value.ptr());
      throw nb::python_error();
    }
    if constexpr (std::is_same_v<Value, std::string>) {
      if (option.kind == options::ValueKind::file) {
        result = nb::cast<PathText>(value).text;
        return;
      }
    }
    result = text_of(value);
  } else if constexpr (std::is_same_v<Value, std::vector<DType>>) {
    result.clear();
    each_item(value, [&](nb::handle item) { result.push_back(dtype_of(item)); });
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    result.clear();
    each_item(value, [&](nb::handle item) {
      if (!PyUnicode_Check(item.ptr())) {
        PyErr_Format(PyExc_TypeError, "%s= takes texts, not %R", option.name, item.ptr());
        throw nb::python_error();
      }
      result.emplace_back(text_of(item));
    });
  } else {
    if (read_option(nb::str(option.name).ptr(), value.ptr(), option, result) != 1) throw nb::python_error();
  }
}

}  // namespace tensorcast::python
