#include <functional>
#include <limits>

#include <fmt/format.h>

#include "cast/conversion.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast {
namespace {

Error invalid(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::invalid_argument, .message = std::move(message), .hint = std::move(hint)};
}

Result<void> check_buffers(const Conversion& c) {
  if (c.count == 0) return {};
  if (c.src == nullptr || c.dst == nullptr) {
    return invalid(fmt::format("the {} buffer is null", c.src == nullptr ? "source" : "target"));
  }
  const std::size_t src_bytes = storage_bytes(c.from, c.count);
  const std::size_t dst_bytes = storage_bytes(c.to, c.count);
  if (src_bytes == std::numeric_limits<std::size_t>::max() || dst_bytes == std::numeric_limits<std::size_t>::max()) {
    return invalid(fmt::format("{} elements do not fit memory", c.count));
  }
  if (c.is_in_place()) {
    if (bit_width(c.to) <= bit_width(c.from)) return {};
    return invalid(fmt::format("{} cannot become the wider {} in place", name(c.from), name(c.to)),
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
    if (is_castable(dtype)) continue;
    if (dtype == DType::uint1) {
      return Error{.code = ErrorCode::unsupported, .message = "u1 can be promoted but not cast"};
    }
    return invalid(fmt::format("dtype number {} does not exist", static_cast<std::int32_t>(dtype)));
  }
  if (from == DType::string || to == DType::string) {
    return Error{.code = ErrorCode::unsupported,
                 .message = "strings are not dense numbers",
                 .hint = from == DType::string ? "use cast_from_strings" : "use cast_to_strings"};
  }
  return {};
}

Result<codec::Policy> check(const Conversion& conversion, const CastOptions& options) {
  if (Result<void> numeric = check_numeric(conversion.from, conversion.to); !numeric) {
    return std::move(numeric).error();
  }
  Result<codec::Policy> policy = codec::resolve_policy(options, conversion.from, conversion.to);
  if (!policy) return policy;
  if (Result<void> buffers = check_buffers(conversion); !buffers) return std::move(buffers).error();
  return policy;
}

}  // namespace tensorcast
