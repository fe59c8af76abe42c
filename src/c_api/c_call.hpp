// SPDX-License-Identifier: Apache-2.0
// What every function of the C interface needs: the thread's last error, and options and structs that grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast.hpp"
#include "tensorcast/version.hpp"

namespace tensorcast::c_api {

// Keeps the error for tc_last_error() and returns its status.
tc_status status_of(const Result<void>& outcome) noexcept;

// Runs a call that returns Result<void> and may throw: only its status crosses the C interface.
template <class Call>
tc_status run(Call&& call) noexcept {
  return status_of(guarded(std::forward<Call>(call)));
}

using tensorcast::invalid;

// 0 or 1, as tc_quantize_options::clip has it.
inline Result<tensorcast::Clip> clip_of(std::int32_t clip) {
  if (clip != 0 && clip != 1) return invalid("clip is 0 or 1");
  return clip == 0 ? tensorcast::Clip::none : tensorcast::Clip::mse;
}

// Sizes of the structs in the first release. Fields of later ones count only if they are wholly inside the caller's.
inline constexpr std::size_t first_cast_options = offsetof(tc_cast_options, executor);
inline constexpr std::size_t largest_struct = 4096;  // more is a size that was never set

// Copies `values` to a caller's struct of `size` bytes; bytes that this version does not know become 0. The caller's
// struct_size becomes `size`. Does nothing if `size` is below that of the first release.
template <class Struct>
void write_struct(Struct* caller, std::size_t size, std::size_t first_size, Struct values) {
  if (caller == nullptr || size < first_size) return;
  values.struct_size = size;
  const std::size_t known = size < sizeof(Struct) ? first_size : sizeof(Struct);
  std::memset(static_cast<void*>(caller), 0, size);
  std::memcpy(static_cast<void*>(caller), &values, known);
}

// Errors: invalid_argument: a struct_size that no release had.
[[nodiscard]] Result<void> check_size(std::size_t size, std::size_t first_size, const char* name);

// The caller's fields over the defaults. Errors: invalid_argument: as check_size(), or fields that this release does
// not know and that are set.
template <class Struct>
[[nodiscard]] Result<Struct> read_struct(const Struct& defaults, const Struct* caller, std::size_t first_size,
                                         const char* name) {
  Struct read = defaults;
  const std::size_t size = caller->struct_size;
  TRY(check_size(size, first_size, name));
  const std::size_t known = size < sizeof(Struct) ? first_size : sizeof(Struct);
  std::memcpy(static_cast<void*>(&read), caller, known);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(caller);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return invalid(formatted("{} has a field, at byte {}, that tensorcast {} does not know", name, i, version()),
                   "leave it zero, or install the version whose header was compiled");
  }
  return read;
}

// The defaults if `options` is null.
[[nodiscard]] Result<tc_cast_options> read_options(const tc_cast_options* options);
// Does not check the values: the functions of the C++ interface do.
[[nodiscard]] CastOptions options_of(const tc_cast_options& options);

// The pool of a caller in C. Outlives the call.
class CallersPool final : public Executor {
 public:
  CallersPool() = default;
  explicit CallersPool(const tc_cast_options& options)
      : run_(options.executor), data_(options.executor_data), threads_(options.threads) {}

  void run(std::size_t count, const Task& task) override;
  [[nodiscard]] Execution execution() { return {.threads = threads_, .executor = run_ == nullptr ? nullptr : this}; }

 private:
  tc_executor run_ = nullptr;
  void* data_ = nullptr;
  int threads_ = 0;
};

// Errors: as check_size().
[[nodiscard]] Result<CastReport> read_report(const tc_cast_report& report);
// Fills a caller's report. Errors: as check_size().
[[nodiscard]] Result<void> write_report(const CastReport& report, tc_cast_report* caller);

}  // namespace tensorcast::c_api
