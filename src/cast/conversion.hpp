// SPDX-License-Identifier: Apache-2.0
// One conversion of one buffer. Every public interface turns its request into a Conversion, checks it and runs it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/policy.hpp"
#include "dtype/dtype_table.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct Conversion {
  const std::byte* src = nullptr;
  DType from = DType::undefined;
  std::byte* dst = nullptr;
  DType to = DType::undefined;
  std::size_t count = 0;
  std::uint64_t first = 0;  // the place of the first element in its tensor

  [[nodiscard]] bool is_in_place() const noexcept { return src == dst; }
  // Precondition: both types start at whole bytes at `first`; multiples of piece_granule do.
  [[nodiscard]] Conversion slice(std::size_t begin, std::size_t elements) const noexcept {
    return {src + storage_bytes(from, begin), from, dst + storage_bytes(to, begin), to, elements, first + begin};
  }
};

// Elements of every type take whole bytes in multiples of this, and whole cache lines from 8 bits on.
inline constexpr std::size_t piece_granule = 64;

// A conversion of up to this many elements that needs one kernel only calls it, as starting the stages of others would
// take longer.
inline constexpr std::size_t small_elements = 4096;

// Checks types, options and buffers, in this order. A conversion that passes has a policy: codec::policy_of().
// Errors: those of cast(), except of shapes and sizes, which a Conversion does not have.
[[nodiscard]] Result<void> check(const Conversion& conversion, const CastOptions& options);

// The last of these checks: null buffers, sizes that no memory has, overlaps.
[[nodiscard]] Result<void> check_buffers(const Conversion& conversion);

// Errors: invalid_argument: a number of threads below zero.
[[gnu::cold]] Error wrong_threads(const Execution& execution);
[[nodiscard]] inline Result<void> check_execution(const Execution& execution) {
  if (execution.threads < 0) return wrong_threads(execution);
  return {};
}

// Checks that both types are numeric or bool. Errors: invalid_argument, unsupported.
[[nodiscard]] Result<void> check_numeric(DType from, DType to);

// Checks that the options may be those of a promotion, which has no word of rounding (D16). Errors: invalid_argument.
[[nodiscard]] Result<void> check_promotion(const CastOptions& options);

// Precondition: `dtype` is castable. Errors: invalid_argument unless `count` elements of `dtype` take `bytes`. `which`
// is "source" or "target".
[[gnu::cold]] Error wrong_size(const char* which, DType dtype, std::size_t count, std::size_t bytes);
[[nodiscard]] inline Result<void> check_size(const char* which, DType dtype, std::size_t count, std::size_t bytes) {
  if (bytes != storage_bytes(row(dtype), count)) return wrong_size(which, dtype, count, bytes);
  return {};
}

// Converts a few elements by the options' defaults, whose policy is Policy{}, without the checks of others. Returns
// false, and does nothing, if the request is another or is wrong: check() and run() do it then, or tell what is wrong.
// `src_bytes`, `dst_bytes`: the sizes of the buffers.
[[nodiscard]] bool run_small(const Conversion& conversion, std::size_t src_bytes, std::size_t dst_bytes) noexcept;
[[nodiscard]] bool run_small(const Conversion& conversion) noexcept;  // whose buffers are as large as need be

// Converts all elements and adds the counts and errors to `report`, unless it is null.
// Precondition: check() accepted it.
// Errors: out_of_range with the first element that fails.
[[nodiscard]] Result<void> run(const Conversion& conversion, const codec::Policy& policy, const Execution& execution,
                               CastReport* report = nullptr);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
