// SPDX-License-Identifier: Apache-2.0
// Component core. Errors without exceptions: a code, a message that tells the user what to do, and the place of the
// error.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Numbers are those of `tc_status` in c_api.h and never change.
enum class ErrorCode : std::int32_t {
  invalid_argument = 1,  // the request itself is wrong: null buffer, unknown option value
  unsupported = 2,       // the opset, format or pair of types lacks the type or attribute
  out_of_range = 3,      // the target cannot hold an element, and the options demand an error
  parse = 4,             // text or the content of a file breaks its grammar
  io = 5,                // the operating system failed: missing file, full disk, no permission
  internal = 6,          // out of memory, or a defect of tensorcast itself
  cancelled = 7,         // the caller's progress function asked for it
};

// The enumerator's name, such as "out_of_range"; "unknown" for other numbers.
[[nodiscard]] TENSORCAST_API std::string_view name(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message = {};                   // one sentence, no trailing period, no file or tensor prefix
  std::string hint = {};                      // what to do about it; may be empty. A word in backquotes, as in
                                              // `overwrite`, is a field of ConvertRequest, CastOptions or the like
  std::optional<std::uint64_t> element = {};  // index of the element at fault
  std::string tensor = {};                    // name of the tensor at fault; may be empty
  std::string file = {};                      // path of the file at fault; may be empty
  int system_error = 0;                       // errno if the operating system failed or a file exists already; else 0

  // `FILE: tensor "NAME": element 17: MESSAGE; HINT`, without the parts that are empty.
  [[nodiscard]] TENSORCAST_API std::string describe() const;
};

// Thrown by value() of a Result with an error, and by error() of one with a value: a mistake in the calling code.
// The library itself throws nothing.
class BadResultAccess : public std::exception {
 public:
  BadResultAccess(std::string message, Error error) : message_(std::move(message)), error_(std::move(error)) {}
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  // The Result's own; of a Result with a value, `internal` and what().
  [[nodiscard]] const Error& error() const noexcept TENSORCAST_LIFETIMEBOUND { return error_; }

 private:
  std::string message_;
  Error error_;
};

template <class T>
class Result;

namespace detail {

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

#if defined(__cpp_exceptions)
[[noreturn, gnu::cold, gnu::noinline]] inline void no_value(const Error& error) {
  throw BadResultAccess("the Result has no value but an error: " + error.describe(), error);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void no_error() {
  const std::string message = "the Result has no error but a value";
  throw BadResultAccess(message, {.message = message});
}
#else
[[noreturn, gnu::cold]] inline void no_value(const Error&) { __builtin_trap(); }
[[noreturn, gnu::cold]] inline void no_error() { __builtin_trap(); }
#endif

}  // namespace detail

// A value or an Error. `Result<void>` is a success or an Error.
//
// value(), `*` and `->` of an error, and error() of a success, throw BadResultAccess, whose text has the error; without
// exceptions (-fno-exceptions) they end the program. Those of a temporary return the value itself, not a reference; it
// has no `->`, as what a member function returns may borrow from a value that ends with the statement.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : ok_(true), value_(std::move(value)) {}
  Result(Error error) : ok_(false), error_(std::move(error)) {}
  // From what converts to T, as "text" to std::string.
  template <class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error> && !detail::is_result<std::remove_cvref_t<U>>)
  Result(U&& value) : ok_(true), value_(std::forward<U>(value)) {}
  template <class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<U, T>)
  Result(Result<U> other) : ok_(other.ok()) {
    if (ok_) {
      ::new (static_cast<void*>(&value_)) T(std::move(other).value());
    } else {
      ::new (static_cast<void*>(&error_)) Error(std::move(other).error());
    }
  }

  Result(const Result& other)
    requires std::is_copy_constructible_v<T>
  {
    construct(other);
  }
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) { construct(std::move(other)); }
  Result& operator=(const Result& other)
    requires(std::is_copy_constructible_v<T> && std::is_nothrow_move_constructible_v<T>)
  {
    return *this = Result(other);
  }
  Result& operator=(Result&& other) noexcept
    requires std::is_nothrow_move_constructible_v<T>
  {
    if (this == &other) return *this;
    destroy();
    construct(std::move(other));
    return *this;
  }
  ~Result() { destroy(); }

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok(); }

  [[nodiscard]] T& value() & TENSORCAST_LIFETIMEBOUND { return checked(*this); }
  [[nodiscard]] const T& value() const& TENSORCAST_LIFETIMEBOUND { return checked(*this); }
  [[nodiscard]] T value() && { return std::move(checked(*this)); }
  [[nodiscard]] T& operator*() & TENSORCAST_LIFETIMEBOUND { return checked(*this); }
  [[nodiscard]] const T& operator*() const& TENSORCAST_LIFETIMEBOUND { return checked(*this); }
  [[nodiscard]] T operator*() && { return std::move(checked(*this)); }
  [[nodiscard]] T* operator->() & TENSORCAST_LIFETIMEBOUND { return &checked(*this); }
  [[nodiscard]] const T* operator->() const& TENSORCAST_LIFETIMEBOUND { return &checked(*this); }
  T* operator->() && = delete;
  const T* operator->() const&& = delete;

  // The value, or `other` in place of an error.
  template <class U>
  [[nodiscard]] T value_or(U&& other) const& {
    return ok() ? checked(*this) : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  [[nodiscard]] T value_or(U&& other) && {
    return ok() ? std::move(checked(*this)) : static_cast<T>(std::forward<U>(other));
  }

  // next(value), which returns a Result; or the error.
  template <class F>
  [[nodiscard]] auto and_then(F&& next) const& -> std::remove_cvref_t<std::invoke_result_t<F, const T&>> {
    if (!ok()) return error();
    return std::forward<F>(next)(checked(*this));
  }
  template <class F>
  [[nodiscard]] auto and_then(F&& next) && -> std::remove_cvref_t<std::invoke_result_t<F, T&&>> {
    if (!ok()) return std::move(*this).error();
    return std::forward<F>(next)(std::move(checked(*this)));
  }

  // A Result with change(value); or the error.
  template <class F>
  [[nodiscard]] auto transform(F&& change) const& -> Result<std::remove_cvref_t<std::invoke_result_t<F, const T&>>> {
    if (!ok()) return error();
    return called<std::invoke_result_t<F, const T&>>(std::forward<F>(change), checked(*this));
  }
  template <class F>
  [[nodiscard]] auto transform(F&& change) && -> Result<std::remove_cvref_t<std::invoke_result_t<F, T&&>>> {
    if (!ok()) return std::move(*this).error();
    return called<std::invoke_result_t<F, T&&>>(std::forward<F>(change), std::move(checked(*this)));
  }

  // The value; or what instead(error) returns: a Result of the same type.
  template <class F>
  [[nodiscard]] Result or_else(F&& instead) && {
    if (ok()) return std::move(*this);
    return std::forward<F>(instead)(std::move(*this).error());
  }

  [[nodiscard]] Error& error() & TENSORCAST_LIFETIMEBOUND { return checked_error(*this); }
  [[nodiscard]] const Error& error() const& TENSORCAST_LIFETIMEBOUND { return checked_error(*this); }
  [[nodiscard]] Error error() && { return std::move(checked_error(*this)); }

 private:
  template <class Other>
  void construct(Other&& other) {
    ok_ = other.ok_;
    if (ok_) {
      ::new (static_cast<void*>(&value_)) T(std::forward<Other>(other).value_);
    } else {
      ::new (static_cast<void*>(&error_)) Error(std::forward<Other>(other).error_);
    }
  }
  void destroy() noexcept {
    if (ok_) {
      value_.~T();
    } else {
      error_.~Error();
    }
  }
  template <class Self>
  static auto& checked(Self& self) {
    if (!self.ok_) [[unlikely]]
      detail::no_value(self.error_);
    return self.value_;
  }
  template <class Self>
  static auto& checked_error(Self& self) {
    if (self.ok_) [[unlikely]]
      detail::no_error();
    return self.error_;
  }
  template <class U, class F, class V>
  static Result<std::remove_cvref_t<U>> called(F&& change, V&& value) {
    if constexpr (std::is_void_v<U>) {
      std::forward<F>(change)(std::forward<V>(value));
      return {};
    } else {
      return std::forward<F>(change)(std::forward<V>(value));
    }
  }

  bool ok_;
  union {
    T value_;
    Error error_;
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept {}  // not defaulted: `return {}` would set the whole object to zero
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  void value() const {
    if (!ok()) [[unlikely]]
      detail::no_value(*error_);
  }
  void operator*() const { value(); }

  // next(), which returns a Result; or the error.
  template <class F>
  [[nodiscard]] auto and_then(F&& next) const -> std::remove_cvref_t<std::invoke_result_t<F>> {
    if (!ok()) return *error_;
    return std::forward<F>(next)();
  }
  // A Result with what make() returns; or the error.
  template <class F>
  [[nodiscard]] auto transform(F&& make) const -> Result<std::remove_cvref_t<std::invoke_result_t<F>>> {
    if (!ok()) return *error_;
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::forward<F>(make)();
      return {};
    } else {
      return std::forward<F>(make)();
    }
  }

  [[nodiscard]] Error& error() & TENSORCAST_LIFETIMEBOUND {
    check_error();
    return *error_;
  }
  [[nodiscard]] const Error& error() const& TENSORCAST_LIFETIMEBOUND {
    check_error();
    return *error_;
  }
  [[nodiscard]] Error error() && {
    check_error();
    return *std::move(error_);
  }

 private:
  void check_error() const {
    if (!error_) [[unlikely]]
      detail::no_error();
  }

  std::optional<Error> error_;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
