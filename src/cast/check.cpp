#include <functional>
#include <limits>

#include "cast/conversion.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/formatted.hpp"

namespace tensorcast {
namespace {

Error invalid(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::invalid_argument, .message = std::move(message), .hint = std::move(hint)};
}

Result<void> check_buffers(const Conversion& c) {
  if (c.count == 0) return {};
  if (c.src == nullptr || c.dst == nullptr) {
    return invalid(formatted("the {} buffer is null", c.src == nullptr ? "source" : "target"));
  }
  const std::size_t src_bytes = storage_bytes(c.from, c.count);
  const std::size_t dst_bytes = storage_bytes(c.to, c.count);
  if (src_bytes == std::numeric_limits<std::size_t>::max() || dst_bytes == std::numeric_limits<std::size_t>::max()) {
    return invalid(formatted("{} elements do not fit memory", c.count));
  }
  if (c.is_in_place()) {
    if (bit_width(c.to) <= bit_width(c.from)) return {};
    return invalid(formatted("{} cannot become the wider {} in place", name(c.from), name(c.to)),
                   "give the target a buffer of its own");
  }
  const std::less<const std::byte*> before;
  if (before(c.src, c.dst + dst_bytes) && before(c.dst, c.src + src_bytes)) {
    return invalid("source and target overlap", "use the same address for both, or disjoint buffers");
  }
  return {};
}

}  // namespace

Result<void> check_numeric(DType from, DType to) {
  for (const DType dtype : {from, to}) {
    if (find_row(dtype) != nullptr) continue;
    return check_castable(dtype);
  }
  if (from == DType::string || to == DType::string) {
    return Error{.code = ErrorCode::unsupported,
                 .message = "strings are not dense numbers",
                 .hint = from == DType::string ? "use cast_from_strings" : "use cast_to_strings"};
  }
  return {};
}

Result<void> check_size(const char* which, DType dtype, std::size_t count, std::size_t bytes) {
  const std::size_t needed = storage_bytes(dtype, count);
  if (bytes == needed) return {};
  return invalid(
      formatted("the {} has {} bytes, but {} elements of {} take {}", which, bytes, count, name(dtype), needed));
}

Result<void> check(const Conversion& conversion, const CastOptions& options) {
  if (Result<void> numeric = check_numeric(conversion.from, conversion.to); !numeric) return numeric;
  if (Result<void> fits = codec::check_options(options, conversion.from, conversion.to); !fits) return fits;
  return check_buffers(conversion);
}

}  // namespace tensorcast
