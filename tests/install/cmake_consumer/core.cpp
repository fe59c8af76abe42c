// SPDX-License-Identifier: Apache-2.0
// Touches every header of the component core, so that each must be linkable from an installed library.
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

#include "check.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/explain.hpp"
#include "tensorcast/promote.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/version.hpp"

namespace tc = tensorcast;

namespace {

void casts() {
  const std::array<float, 3> source = {1.5f, 1000.0f, 1e-9f};
  std::array<std::byte, 3> narrow = {};
  const std::array<std::int64_t, 1> shape = {3};
  const tc::TensorView src{tc::DType::float32, shape, std::as_bytes(std::span(source))};
  tc::CastReport report;
  check(tc::cast(src, {tc::DType::float8_e4m3fn, shape, narrow}, {}, report).ok(), "cast with a report");
  check(narrow == std::array{std::byte{0x3c}, std::byte{0x7e}, std::byte{0x00}}, "float8 codes");
  check(report.count == 3 && report.saturated == 1 && report.underflowed_to_zero == 1, "report");

  tc::CastReport both;
  both.merge(report);
  check(both.count == 3 && both.snr_db() == report.snr_db(), "merge");
  check(!tc::cast(src, {tc::DType::uint8, shape, narrow}, tc::CastOptions::lossless_integers()),
        "lossless_integers() refuses 1000 -> uint8");

  const tc::Result<tc::StringBuffer> text = tc::cast_to_strings(src);
  check(text.ok() && std::string(text->data.data(), 3) == "1.5", "cast to strings");
  std::array<float, 3> again = {};
  check(text.ok() && tc::cast_from_strings({text->data, text->offsets},
                                           {tc::DType::float32, shape, std::as_writable_bytes(std::span(again))})
                         .ok(),
        "cast from strings");
  check(again == source, "strings round trip");
}

}  // namespace

int main() {
  check(tc::all_dtypes().size() == 32, "32 types");
  check(tc::parse_dtype("e4m3fn").value() == tc::DType::float8_e4m3fn, "parse");
  check(tc::storage_bytes(tc::DType::int4, 3) == 2, "storage");
  check(tc::facts(tc::DType::float16).bits == tc::bit_width(tc::DType::float16), "facts");
  check(tc::promote_types({tc::DType::int8}, {tc::DType::int16}).value() == tc::DType::int16, "promote");
  check(tc::explain("0.1", tc::DType::undefined, tc::DType::float16).value().code == 0x2e66, "explain");
  check(!tc::supported_targets().empty() && !tc::name(tc::active_target()).empty(), "targets");
  casts();
  return finish();
}
