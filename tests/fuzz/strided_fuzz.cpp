// SPDX-License-Identifier: Apache-2.0
// cast_strided() and tc_cast_strided() against cast(): any types, layouts, sizes and threads, in buffers of exact size.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "cast/strided_testing.hpp"
#include "tensorcast/c_api.h"

namespace {

namespace tc = tensorcast;

tc::Result<void> cast_in_cpp(const tc::StridedView& src, const tc::MutableStridedView& dst,
                             const tc::CastOptions& options, const tc::Execution& execution) {
  tc::CastReport report;
  return tc::cast_strided(src, dst, options, report, execution);
}

// C has neither codes of a byte each nor other byte orders.
tc::Result<void> cast_in_c(const tc::StridedView& src, const tc::MutableStridedView& dst,
                           const tc::CastOptions& options, const tc::Execution& execution) {
  if (src.one_per_byte || dst.one_per_byte || src.swapped || dst.swapped) {
    return tc::cast_strided(src, dst, options, execution);
  }
  tc_cast_options in_c;
  tc_cast_options_init(&in_c);
  in_c.out_of_range = static_cast<std::int32_t>(options.out_of_range);
  in_c.invalid = static_cast<std::int32_t>(options.invalid);
  in_c.scale = options.scale;
  in_c.threads = execution.threads;
  const auto strides_of = [](const tc::Shape& strides) { return strides.empty() ? nullptr : strides.data(); };
  const tc_status status = tc_cast_strided(src.data, static_cast<tc_dtype>(src.dtype), strides_of(src.strides),
                                           dst.data, static_cast<tc_dtype>(dst.dtype), strides_of(dst.strides),
                                           src.shape.data(), src.shape.size(), &in_c);
  if (status == TC_OK) return {};
  tc::Error error{.code = static_cast<tc::ErrorCode>(status), .message = tc_last_error_message()};
  if (tc_last_error_element() >= 0) error.element = static_cast<std::uint64_t>(tc_last_error_element());
  return error;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  for (const auto call : {cast_in_cpp, cast_in_c}) {
    const std::string wrong = tc::strided_testing::check({bytes, size}, call);
    if (wrong.empty()) continue;
    std::fprintf(stderr, "%s\n", wrong.c_str());
    __builtin_trap();
  }
  return 0;
}
