// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include "cast/conversion.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

[[gnu::cold]] Error invalid(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::invalid_argument, .message = std::move(message), .hint = std::move(hint)};
}

[[gnu::cold]] Error null_buffer(const Conversion& c) {
  return invalid(formatted("the {} buffer is null", c.src == nullptr ? "source" : "target"));
}

[[gnu::cold]] Error too_many(const Conversion& c) {
  return invalid(formatted("{} elements do not fit memory", c.count));
}

[[gnu::cold]] Error overlap(const Conversion& c) {
  if (c.is_in_place()) {
    return invalid(formatted("{} cannot become the wider {} in place", name(c.from), name(c.to)),
                   "give the target a buffer of its own");
  }
  return invalid("source and target overlap", "use the same address for both, or disjoint buffers");
}

[[gnu::cold]] Error not_numeric(DType from, DType to) {
  for (const DType dtype : {from, to}) {
    TRY(check_castable(dtype));
  }
  return {.code = ErrorCode::unsupported,
          .message = "strings are not dense numbers",
          .hint = from == DType::string ? "use cast_from_strings" : "use cast_to_strings"};
}

}  // namespace

Result<void> check_numeric(DType from, DType to) {
  const bool exist = find_row(from) != nullptr && find_row(to) != nullptr;
  if (!exist || from == DType::string || to == DType::string) return not_numeric(from, to);
  return {};
}

Error wrong_threads(const Execution& execution) {
  return invalid(formatted("threads is 0 (all cores) or more, not {}", execution.threads));
}

Error wrong_size(const char* which, DType dtype, std::size_t count, std::size_t bytes) {
  return invalid(formatted("the {} has {} bytes, but {} elements of {} take {}", which, bytes, count, name(dtype),
                           storage_bytes(dtype, count)));
}

Result<void> check_buffers(const Conversion& c) {
  if (c.count == 0) return {};
  if (c.src == nullptr || c.dst == nullptr) return null_buffer(c);
  const DTypeRow &from = row(c.from), &to = row(c.to);
  const std::size_t src_bytes = storage_bytes(from, c.count), dst_bytes = storage_bytes(to, c.count);
  constexpr std::size_t overflow = std::numeric_limits<std::size_t>::max();
  if (src_bytes == overflow || dst_bytes == overflow) return too_many(c);
  // Numbers, as a pointer beyond the end of a buffer that is none may overflow.
  const auto src = reinterpret_cast<std::uintptr_t>(c.src), dst = reinterpret_cast<std::uintptr_t>(c.dst);
  const bool overlaps = src < dst ? dst - src < src_bytes : src - dst < dst_bytes;
  if (overlaps && !(c.is_in_place() && to.bits <= from.bits)) return overlap(c);
  return {};
}

Result<void> check(const Conversion& conversion, const CastOptions& options) {
  TRY(check_numeric(conversion.from, conversion.to));
  TRY(codec::check_options(options, conversion.from, conversion.to));
  return check_buffers(conversion);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
