// SPDX-License-Identifier: Apache-2.0
// Text to every type: the block parser against the exact one; what is printed reads back as the same element.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "codec/reference_cast.hpp"
#include "fuzzing.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace {

namespace tc = tensorcast;
using tc::fuzzing::require;

struct Texts {
  std::vector<char> data;
  std::vector<std::int64_t> offsets = {0};

  [[nodiscard]] std::size_t count() const { return offsets.size() - 1; }
  [[nodiscard]] std::string_view at(std::size_t i) const {
    return {data.data() + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
  }
};

// Lines are the elements.
Texts split(std::string_view input) {
  Texts texts;
  while (true) {
    const std::size_t end = input.find('\n');
    const std::string_view line = input.substr(0, end);
    texts.data.insert(texts.data.end(), line.begin(), line.end());
    texts.offsets.push_back(static_cast<std::int64_t>(texts.data.size()));
    if (end == std::string_view::npos) return texts;
    input.remove_prefix(end + 1);
  }
}

void check_parsing(const Texts& texts, tc::DType to, const tc_cast_options& options, const tc::codec::Policy& policy) {
  std::vector<std::byte> expected(tc::storage_bytes(to, texts.count()));
  std::size_t good = 0;
  tc_status status = TC_OK;
  for (; good < texts.count(); ++good) {
    const tc::Result<std::uint64_t> code =
        tc::codec::cast_text(texts.at(good), to, policy, tc::codec::random_of(policy, good));
    if (!code) {
      status = static_cast<tc_status>(code.error().code);
      break;
    }
    tc::codec::store_code(to, expected.data(), good, *code);
  }
  std::vector<std::byte> got(expected.size());
  const tc_status outcome = tc_cast_from_strings(texts.data.data(), texts.offsets.data(), got.data(),
                                                 static_cast<tc_dtype>(to), texts.count(), &options);
  require(outcome == status);
  if (status == TC_OK) {
    require(got == expected);
  } else {
    const std::string element = "element " + std::to_string(good) + ":";
    require(std::strstr(tc_last_error(), element.c_str()) != nullptr);
  }
}

bool is_nan(tc::DType type, std::uint64_t code) {
  return tc::codec::decode(type, code).kind == tc::codec::Real::Kind::nan;
}

void check_printing(std::string_view bytes, tc::DType type, const tc_cast_options& options) {
  const std::size_t count = bytes.size() * 8 / static_cast<std::size_t>(tc::bit_width(type));
  const auto* source = reinterpret_cast<const std::byte*>(bytes.data());
  char* data = nullptr;
  std::int64_t* offsets = nullptr;
  require(tc_cast_to_strings(source, static_cast<tc_dtype>(type), count, &data, &offsets, &options) == TC_OK);
  std::vector<std::byte> back(tc::storage_bytes(type, count));
  require(tc_cast_from_strings(data, offsets, back.data(), static_cast<tc_dtype>(type), count, &options) == TC_OK);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t code = tc::codec::load_code(type, source, i);
    if (type == tc::DType::boolean || is_nan(type, code)) continue;
    require(tc::codec::load_code(type, back.data(), i) == code);
  }
  tc_free(data);
  tc_free(offsets);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  const auto types = tc::all_dtypes();
  const tc::DType type = types[bytes[0] % (types.size() - 1)];
  const unsigned choices = bytes[1];
  const std::string_view rest(reinterpret_cast<const char*>(bytes) + 2, size - 2);

  tc_cast_options options;
  tc_cast_options_init(&options);
  options.saturate = 0;    // keeps the infinities of float8_e5m2
  options.round_mode = 2;  // the shortest text of a float8_e8m0fnu may lie beside its power of two
  options.float_string = static_cast<int>(choices & 1);
  check_printing(rest, type, options);

  options.out_of_range = static_cast<int>(choices >> 1 & 3);
  options.rounding = static_cast<int>((choices >> 3 & 1) | (choices >> 5 & 6));
  if (options.rounding != TC_ROUNDING_AUTO) options.round_mode = 0;
  if (options.rounding == TC_ROUNDING_STOCHASTIC) options.seed = bytes[0];
  options.invalid = static_cast<int>(choices >> 4 & 1);
  options.scale = (choices >> 5 & 1) != 0 ? 0.3 : 1.0;
  tc::CastOptions cpp{.saturate = false, .scale = options.scale, .seed = options.seed};
  cpp.round_mode = static_cast<tc::RoundMode>(options.round_mode);
  cpp.out_of_range = static_cast<tc::OutOfRange>(options.out_of_range);
  cpp.rounding = static_cast<tc::Rounding>(options.rounding);
  cpp.invalid = static_cast<tc::Invalid>(options.invalid);
  const tc::Result<tc::codec::Policy> policy = tc::codec::resolve_policy(cpp, tc::DType::string, type);
  require(policy.ok());
  check_parsing(split(rest), type, options, *policy);
  return 0;
}
