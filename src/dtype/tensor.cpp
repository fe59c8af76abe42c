#include "tensorcast/tensor.hpp"

#include <fmt/format.h>

namespace tensorcast {

Result<std::size_t> element_count(std::span<const std::int64_t> shape) {
  std::size_t count = 1;
  bool empty = false;
  bool overflow = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) {
      return Error{.code = ErrorCode::invalid_argument, .message = fmt::format("dimension {} is negative", dimension)};
    }
    empty = empty || dimension == 0;
    overflow = __builtin_mul_overflow(count, static_cast<std::size_t>(dimension), &count) || overflow;
  }
  if (empty) return std::size_t{0};  // whatever the other dimensions say
  if (overflow) return Error{.code = ErrorCode::out_of_range, .message = "the shape has more than 2^64 elements"};
  return count;
}

}  // namespace tensorcast
