// One conversion of one buffer: policy, kernel or reference, blocks, threads, report. Both interfaces end here.
#pragma once

#include <cstddef>

#include "codec/policy.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {

struct Conversion {
  const std::byte* src = nullptr;
  DType from = DType::undefined;
  std::byte* dst = nullptr;
  DType to = DType::undefined;
  std::size_t count = 0;
};

// Precondition: both types are numeric or bool, sizes and overlap are checked.
// Errors: out_of_range with the first element that is refused.
[[nodiscard]] Result<void> run_conversion(const Conversion& conversion, const codec::Policy& policy, int threads,
                                          CastReport* report);

// Tensors so small that checking costs as much as converting: converts where nothing is wrong. False: not such a case,
// or one that the checks must word. The policy is a plain one (codec/policy.hpp).
[[nodiscard]] bool convert_small(const Conversion& conversion, const codec::Policy& policy) noexcept;
inline constexpr std::size_t small_count = 4096;

// Errors: invalid_argument when the buffers overlap in a way that no conversion allows, or a pointer is null.
[[nodiscard]] Result<void> check_buffers(const Conversion& conversion);

// Errors: invalid_argument, unsupported for string and unknown types.
[[nodiscard]] Result<void> check_numeric(DType from, DType to);

}  // namespace tensorcast
