// SPDX-License-Identifier: Apache-2.0
// tc_cast on every target of this CPU against the reference: any pair, options, bytes, alignment and count.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codec/reference_cast.hpp"
#include "fuzzing.hpp"
#include "kernels/kernel.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/prepared_cast.hpp"

namespace {

namespace tc = tensorcast;
using tc::fuzzing::require;

constexpr std::byte guard{0x5A};
constexpr std::size_t guard_bytes = 64;

// The first bytes of the input select the request, the rest are the elements.
struct Request {
  std::uint8_t from, to;
  std::uint8_t opset;
  std::uint8_t choices[2];
  std::uint8_t source_shift, target_shift;
  std::uint8_t scale;
};

tc::DType type_at(std::uint8_t index) {
  const auto types = tc::all_dtypes();
  return types[index % (types.size() - 1)];  // the last one is string
}

tc_cast_options options_of(const Request& request) {
  static constexpr double scales[] = {1, 1, 1, 1, 0.5, 3, -1.75, 0.1, 1e-40, 1e300, 0x1p-1074};
  tc_cast_options options;
  tc_cast_options_init(&options);
  options.opset = request.opset < 128 ? 0 : request.opset % 26;
  const unsigned choices = request.choices[0] | static_cast<unsigned>(request.choices[1]) << 8;
  options.saturate = (choices & 1) == 0;
  options.out_of_range = static_cast<int>(choices >> 3 & 3);
  options.rounding = static_cast<int>(choices >> 9 & 7);
  if (options.rounding == TC_ROUNDING_AUTO) options.round_mode = static_cast<int>(choices >> 1 & 3) % 3;
  if (options.rounding == TC_ROUNDING_STOCHASTIC) options.seed = request.scale;
  options.inexact = static_cast<int>(choices >> 12 & 1);
  options.invalid = static_cast<int>(choices >> 6 & 1);
  options.fnuz_inf = static_cast<int>(choices >> 7 & 1);
  options.threads = (choices >> 8 & 1) != 0 ? 0 : 1;
  options.scale = scales[request.scale % std::size(scales)];
  return options;
}

tc::CastOptions cpp_options(const tc_cast_options& options) {
  return {.opset = options.opset,
          .saturate = options.saturate != 0,
          .round_mode = static_cast<tc::RoundMode>(options.round_mode),
          .out_of_range = static_cast<tc::OutOfRange>(options.out_of_range),
          .rounding = static_cast<tc::Rounding>(options.rounding),
          .invalid = static_cast<tc::Invalid>(options.invalid),
          .fnuz_inf = static_cast<tc::FnuzInf>(options.fnuz_inf),
          .scale = options.scale,
          .seed = options.seed,
          .inexact = static_cast<tc::Inexact>(options.inexact)};
}

// A copy at `shift` bytes past an aligned address, with no spare byte after it.
class Shifted {
 public:
  Shifted(const std::byte* data, std::size_t size, std::size_t shift) : buffer_(shift + size), shift_(shift) {
    if (size != 0) std::memcpy(buffer_.data() + shift, data, size);
  }
  [[nodiscard]] const std::byte* data() const { return buffer_.data() + shift_; }

 private:
  std::vector<std::byte> buffer_;
  std::size_t shift_;
};

void check_kernels(const Shifted& source, tc::DType from, tc::DType to, std::size_t count,
                   const tc::codec::Policy& policy, const std::vector<std::byte>& expected) {
  for (const tc::Target target : tc::supported_targets()) {
    const tc::kernels::Kernel* kernel = tc::kernels::find_kernel(target, from, to);
    if (kernel == nullptr) continue;
    std::vector<std::byte> got(expected.size());
    kernel->run(source.data(), got.data(), count, policy);
    require(got == expected);
  }
}

// The same conversion, prepared, into a buffer without a spare byte: it has the same status and element, or bytes.
void check_prepared(const Shifted& source, tc::DType from, tc::DType to, std::size_t count,
                    const tc_cast_options& options, tc_status status, const std::byte* expected) {
  const std::int64_t element = tc_last_error_element();
  tc_prepared_cast prepared = TC_PREPARED_CAST_INIT;
  const tc_status made = tc_prepare_cast(static_cast<tc_dtype>(from), static_cast<tc_dtype>(to), &options, &prepared);
  std::vector<std::byte> target(tc::storage_bytes(to, count));
  const tc_status ran = tc_run_prepared(&prepared, source.data(), target.data(), count);
  if (made != TC_OK) {
    require(made == status && ran == TC_INVALID_ARGUMENT);
    return;
  }
  require(ran == status);
  if (ran == TC_OK) {
    require(target.empty() || std::memcmp(target.data(), expected, target.size()) == 0);
  } else {
    require(tc_last_error_element() == element);
  }
  const tc::Result<tc::PreparedCast> cast = tc::prepare_cast(from, to, cpp_options(options));
  require(cast && (*cast)(source.data(), target.data(), count).ok() == (status == TC_OK));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  Request request;
  if (size < sizeof request) return 0;
  std::memcpy(&request, bytes, sizeof request);
  const auto* data = reinterpret_cast<const std::byte*>(bytes + sizeof request);
  const std::size_t data_bytes = size - sizeof request;
  const tc::DType from = type_at(request.from);
  const tc::DType to = type_at(request.to);
  const std::size_t count = data_bytes * 8 / static_cast<std::size_t>(tc::bit_width(from));
  const tc_cast_options options = options_of(request);
  const Shifted source(data, tc::storage_bytes(from, count), request.source_shift % 64);

  const std::size_t target_bytes = tc::storage_bytes(to, count);
  const std::size_t lead = guard_bytes + request.target_shift % 64;
  std::vector<std::byte> target(lead + target_bytes + guard_bytes, guard);
  const tc_status status = tc_cast(source.data(), static_cast<tc_dtype>(from), target.data() + lead,
                                   static_cast<tc_dtype>(to), count, &options);
  check_prepared(source, from, to, count, options, status, target.data() + lead);
  const auto is_guard = [](std::byte byte) { return byte == guard; };
  const auto first = target.begin() + static_cast<std::ptrdiff_t>(lead);
  const auto last = first + static_cast<std::ptrdiff_t>(target_bytes);
  require(std::all_of(target.begin(), first, is_guard) && std::all_of(last, target.end(), is_guard));

  const tc::Result<tc::codec::Policy> policy = tc::codec::resolve_policy(cpp_options(options), from, to);
  if (!policy) {
    require(status == static_cast<tc_status>(policy.error().code));
    return 0;
  }
  std::vector<std::byte> expected(target_bytes);
  const tc::Result<void> done = tc::codec::reference_cast(source.data(), from, expected.data(), to, count, *policy);
  require(done.ok() == (status == TC_OK));
  if (!done) {
    require(status == TC_OUT_OF_RANGE &&
            tc_last_error_element() == static_cast<std::int64_t>(done.error().element.value()));
    return 0;
  }
  require(std::equal(first, last, expected.begin()));
  const bool has_kernels = !policy->demands_errors() && !policy->has_word(tc::row(to)) && policy->scale == 1.0;
  if (has_kernels) check_kernels(source, from, to, count, *policy, expected);
  return 0;
}
