// SPDX-License-Identifier: Apache-2.0
// What every function of the C interface needs: the thread's last error, and options and structs that grow.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/platform.hpp"
#include "dtype/try.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/version.hpp"
#include "tensorcast/view.hpp"

#if TENSORCAST_HAS_EXCEPTIONS && defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

namespace tensorcast::c_api {

// Keeps the error for tc_last_error() and returns its status.
tc_status status_of(const Result<void>& outcome) noexcept;

// Keeps the error of a callback that threw what is no std::exception.
tc_status status_of_unknown() noexcept;

#if TENSORCAST_HAS_EXCEPTIONS
#if defined(__GLIBCXX__)
using ForcedUnwind = abi::__forced_unwind;  // pthread_exit(), which must not be caught
#else
struct ForcedUnwind {};  // catch (...) does not catch it
#endif

// Runs a call that returns Result<void> and may throw: only its status crosses the C interface. If a callback ends its
// thread, its frames are left as they are in C++.
template <class Call>
tc_status run(Call&& call) {
  try {
    return status_of(guarded(std::forward<Call>(call)));
  } catch (const ForcedUnwind&) {
    throw;
  } catch (...) {
    return status_of_unknown();
  }
}

#else

template <class Call>
tc_status run(Call&& call) noexcept {
  return status_of(guarded(std::forward<Call>(call)));
}

#endif

using tensorcast::invalid;

// 0 or 1, as tc_quantize_options::clip has it.
inline Result<tensorcast::Clip> clip_of(std::int32_t clip) {
  if (clip != 0 && clip != 1) return invalid("clip is 0 or 1");
  return clip == 0 ? tensorcast::Clip::none : tensorcast::Clip::mse;
}

inline constexpr std::size_t largest_struct = 4096;  // more is a size that was never set

// A struct that grows: its name, and the sizes that it had before fields were added, the first release's first. A
// field is added at the end, by a size here that is its offset, never in the padding of an earlier size.
template <class Struct>
struct Growth;

template <>
struct Growth<tc_cast_options> {
  static constexpr const char* name = "tc_cast_options";
  static constexpr std::array sizes = {offsetof(tc_cast_options, executor), offsetof(tc_cast_options, seed),
                                       offsetof(tc_cast_options, first_element)};
};
template <>
struct Growth<tc_promote_options> {
  static constexpr const char* name = "tc_promote_options";
  static constexpr std::array sizes = {offsetof(tc_promote_options, rules)};
};
template <>
struct Growth<tc_cast_report> {
  static constexpr const char* name = "tc_cast_report";
  static constexpr std::array sizes = {offsetof(tc_cast_report, snr_db) + sizeof(tc_cast_report::snr_db)};
};
template <>
struct Growth<tc_dtype_facts> {
  static constexpr const char* name = "tc_dtype_facts";
  static constexpr std::array sizes = {offsetof(tc_dtype_facts, special_codes) + sizeof(tc_dtype_facts::special_codes)};
};
template <>
struct Growth<tc_block_tensor> {
  static constexpr const char* name = "tc_block_tensor";
  static constexpr std::array sizes = {offsetof(tc_block_tensor, is_plain)};
};
template <>
struct Growth<tc_quantize_options> {
  static constexpr const char* name = "tc_quantize_options";
  static constexpr std::array sizes = {offsetof(tc_quantize_options, clip), offsetof(tc_quantize_options, maximum)};
};
template <>
struct Growth<tc_quantized_layout> {
  static constexpr const char* name = "tc_quantized_layout";
  static constexpr std::array sizes = {offsetof(tc_quantized_layout, spelling)};
};
template <>
struct Growth<tc_quantized_buffers> {
  static constexpr const char* name = "tc_quantized_buffers";
  static constexpr std::array sizes = {sizeof(tc_quantized_buffers)};
};
template <>
struct Growth<tc_quantized_parts> {
  static constexpr const char* name = "tc_quantized_parts";
  static constexpr std::array sizes = {offsetof(tc_quantized_parts, scheme)};
};

// Bytes of a caller's struct of `size` bytes that are whole fields of this version's.
template <class Struct>
[[nodiscard]] constexpr std::size_t known_size(std::size_t size) noexcept {
  if (size >= sizeof(Struct)) return sizeof(Struct);
  std::size_t known = 0;
  for (const std::size_t release : Growth<Struct>::sizes) {
    if (release <= size) known = release;
  }
  return known;
}

// Errors: invalid_argument: a struct_size that no release had.
[[nodiscard]] Result<void> check_size(std::size_t size, std::size_t first_size, const char* name);
template <class Struct>
[[nodiscard]] Result<void> check_size(const Struct& caller) {
  return check_size(caller.struct_size, Growth<Struct>::sizes.front(), Growth<Struct>::name);
}

// Copies `values` to a caller's struct of `size` bytes; bytes that this version does not know become 0. The caller's
// struct_size becomes `size`. Does nothing if `size` is below that of the first release.
template <class Struct>
void write_struct(Struct* caller, std::size_t size, Struct values) {
  if (caller == nullptr || size < Growth<Struct>::sizes.front()) return;
  values.struct_size = size;
  std::memset(static_cast<void*>(caller), 0, size);
  std::memcpy(static_cast<void*>(caller), &values, known_size<Struct>(size));
}
// The same of a struct whose struct_size is set. Errors: as check_size().
template <class Struct>
[[nodiscard]] Result<void> fill_struct(Struct* caller, const Struct& values) {
  TRY(check_size(*caller));
  write_struct(caller, caller->struct_size, values);
  return {};
}

// The caller's fields over the defaults. Errors: invalid_argument: as check_size(), or fields that this release does
// not know and that are set.
template <class Struct>
[[nodiscard]] Result<Struct> read_struct(const Struct& defaults, const Struct* caller) {
  TRY(check_size(*caller));
  Struct read = defaults;
  const std::size_t size = caller->struct_size, known = known_size<Struct>(size);
  std::memcpy(static_cast<void*>(&read), caller, known);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(caller);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return invalid(
        formatted("{} has a field, at byte {}, that tensorcast {} does not know", Growth<Struct>::name, i, version()),
        "leave it zero, or install the version whose header was compiled");
  }
  return read;
}

// The defaults if `options` is null. Errors: invalid_argument: as read_struct(), a scale of 0, threads below 0, and
// first_element, which is of calls that cannot know the places of their elements.
[[nodiscard]] Result<tc_cast_options> read_options(const tc_cast_options* options);
// The same of such a call: first_element may be any.
[[nodiscard]] Result<tc_cast_options> read_placed_options(const tc_cast_options* options);
// Does not check the values: the functions of the C++ interface do.
[[nodiscard]] CastOptions options_of(const tc_cast_options& options);

// The pool of a caller in C. Outlives the call.
class CallersPool final : public Executor {
 public:
  CallersPool() = default;
  explicit CallersPool(const tc_cast_options& options)
      : run_(options.executor),
        data_(options.executor_data),
        threads_(options.threads),
        first_element_(options.first_element) {}

  void run(std::size_t count, const Task& task) override;
  [[nodiscard]] Execution execution() {
    return {.threads = threads_, .executor = run_ == nullptr ? nullptr : this, .first_element = first_element_};
  }

 private:
  tc_executor run_ = nullptr;
  void* data_ = nullptr;
  int threads_ = 0;
  std::uint64_t first_element_ = 0;
};

inline constexpr std::size_t most_dimensions = 1024;

// A view of a caller's array; undefined if its data are null, unless it has a type and no elements. Errors:
// invalid_argument.
[[nodiscard]] Result<TensorView> view_of(const tc_array& array);

// A type that elements can have. Errors: invalid_argument.
[[nodiscard]] inline Result<DType> castable(tc_dtype number) {
  const auto dtype = static_cast<DType>(number);
  if (is_castable(dtype)) return dtype;
  return invalid(formatted("dtype number {} does not exist", number));
}

// Errors: as check_size().
[[nodiscard]] Result<CastReport> read_report(const tc_cast_report& report);
// Fills a caller's report. Errors: as check_size().
[[nodiscard]] Result<void> write_report(const CastReport& report, tc_cast_report* caller);

}  // namespace tensorcast::c_api
