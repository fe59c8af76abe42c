// Text in and text out, over the codec's whole-buffer functions.
#include <fmt/format.h>

#include "cast/conversion.hpp"
#include "codec/fast_text.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {
namespace {

Result<void> check_offsets(const StringView& strings) {
  std::int64_t previous = 0;
  for (std::size_t i = 0; i < strings.offsets.size(); ++i) {
    if (strings.offsets[i] < previous || static_cast<std::uint64_t>(strings.offsets[i]) > strings.data.size()) {
      return Error{.code = ErrorCode::invalid_argument,
                   .message = fmt::format("offset {} is {}, but offsets ascend from 0 to the {} bytes of text", i,
                                          strings.offsets[i], strings.data.size())};
    }
    previous = strings.offsets[i];
  }
  return {};
}

}  // namespace

Result<void> cast_from_strings(const StringView& src, const MutableTensorView& dst, const CastOptions& options) {
  if (Result<void> numeric = check_numeric(DType::float32, dst.dtype); !numeric) return numeric;
  const Result<std::size_t> count = element_count(dst.shape);
  if (!count) return count.error();
  const std::size_t strings = src.offsets.empty() ? 0 : src.offsets.size() - 1;
  if (strings != *count) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{} strings do not fill a target of {} elements", strings, *count)};
  }
  if (dst.bytes.size() != storage_bytes(dst.dtype, *count)) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the target has {} bytes, but {} elements of {} take {}", dst.bytes.size(),
                                        *count, name(dst.dtype), storage_bytes(dst.dtype, *count))};
  }
  if (Result<void> offsets = check_offsets(src); !offsets) return offsets;
  const Result<codec::Policy> policy = codec::resolve_policy(options, DType::string, dst.dtype);
  if (!policy) return policy.error();
  return codec::parse_strings(src, dst.dtype, dst.bytes.data(), *count, *policy);
}

Result<StringBuffer> cast_to_strings(const TensorView& src, const CastOptions& options) {
  if (Result<void> numeric = check_numeric(src.dtype, DType::float32); !numeric) return std::move(numeric).error();
  const Result<std::size_t> count = element_count(src.shape);
  if (!count) return count.error();
  if (src.bytes.size() != storage_bytes(src.dtype, *count)) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the source has {} bytes, but {} elements of {} take {}", src.bytes.size(),
                                        *count, name(src.dtype), storage_bytes(src.dtype, *count))};
  }
  const Result<codec::Policy> policy = codec::resolve_policy(options, src.dtype, DType::string);
  if (!policy) return policy.error();
  return codec::print_strings(src.bytes.data(), src.dtype, *count, *policy);
}

}  // namespace tensorcast
