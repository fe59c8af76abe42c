// Non-owning views of dense tensors in C order. Types under 8 bits are packed, low bits first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensorcast/dtype.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {

struct TensorView {
  DType dtype = DType::undefined;
  std::span<const std::int64_t> shape = {};  // empty: a scalar of one element
  std::span<const std::byte> bytes = {};     // storage_bytes(dtype, element count)
};

struct MutableTensorView {
  DType dtype = DType::undefined;
  std::span<const std::int64_t> shape = {};
  std::span<std::byte> bytes = {};
};

// Strings as one UTF-8 buffer with count + 1 ascending offsets (Arrow's large_utf8 layout).
struct StringView {
  std::span<const char> data = {};
  std::span<const std::int64_t> offsets = {};  // count + 1 entries; empty means no strings
};

// Product of the dimensions.
// Errors: invalid_argument on a negative dimension; out_of_range when the product overflows size_t.
[[nodiscard]] TENSORCAST_API Result<std::size_t> element_count(std::span<const std::int64_t> shape);

}  // namespace tensorcast
