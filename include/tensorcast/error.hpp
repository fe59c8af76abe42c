// Errors without exceptions: a code, a message that tells the user what to do, and the place of the error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tensorcast/export.hpp"

namespace tensorcast {

// Numbers are those of `tc_status` in c_api.h and never change.
enum class ErrorCode : std::int32_t {
  invalid_argument = 1,  // the request itself is wrong: null buffer, unknown option value
  unsupported = 2,       // the opset, format or pair of types lacks the type or attribute
  out_of_range = 3,      // the target cannot hold an element, and the options demand an error
  parse = 4,             // text or the content of a file breaks its grammar
  io = 5,                // the operating system failed: missing file, full disk, no permission
  internal = 6,          // out of memory, or a defect of tensorcast itself
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;                        // one sentence, no trailing period, no file or tensor prefix
  std::string hint = {};                      // what to do about it; may be empty. A word in backquotes, as in
                                              // `overwrite`, is a field of ConvertRequest, CastOptions or the like
  std::optional<std::uint64_t> element = {};  // index of the element at fault
  std::string tensor = {};                    // name of the tensor at fault; may be empty
  std::string file = {};                      // path of the file at fault; may be empty
  int system_error = 0;                       // errno if the operating system failed or a file exists already; else 0

  // `FILE: tensor "NAME": element 17: MESSAGE; HINT`, without the parts that are empty.
  [[nodiscard]] TENSORCAST_API std::string describe() const;
};

// A value or an Error. `Result<void>` is a success or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // Precondition: ok().
  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  // Precondition: !ok().
  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept {}  // not defaulted: `return {}` would set the whole object to zero
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] Error& error() & { return *error_; }
  [[nodiscard]] const Error& error() const& { return *error_; }
  [[nodiscard]] Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace tensorcast
