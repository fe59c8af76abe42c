// SPDX-License-Identifier: Apache-2.0
// The tables of docs/rounding.md are what the reference gives.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/formatted.hpp"
#include "options/cast_options.hpp"

namespace tensorcast::codec {
namespace {

double value_of_code(DType dtype, std::uint64_t code) {
  const Real real = decode(dtype, code);
  return real.kind == Real::Kind::zero
             ? 0.0
             : std::ldexp(static_cast<double>(static_cast<std::uint64_t>(real.significand >> 64)), real.exponent + 64);
}

// "0x7E", or "0x7E, 0x7F" if saturate=0 gives another code.
std::string codes_of(double x, DType to, Rounding word) {
  std::string codes[2];
  for (const bool saturate : {true, false}) {
    const CastOptions options{.saturate = saturate, .rounding = word};
    const Encoded encoded =
        cast_code(DType::float64, std::bit_cast<std::uint64_t>(x), to, policy_of(options, DType::float64, to));
    codes[saturate ? 0 : 1] =
        bit_width(to) > 4 ? formatted("0x{:02X}", encoded.bits) : formatted("0x{:X}", encoded.bits);
  }
  return codes[0] == codes[1] ? codes[0] : codes[0] + ", " + codes[1];
}

std::string table_of(DType to) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const FloatFormat& format = row(to).format;
  const auto one = static_cast<std::uint64_t>(format.bias) << format.mantissa_bits;
  const double largest = value_of_code(to, format.largest_code());
  const double step = format.has_zero ? largest - value_of_code(to, format.largest_code() - 1) : largest;
  const auto middle = [&](std::uint64_t code) { return (value_of_code(to, code) + value_of_code(to, code + 1)) / 2; };
  const double least = value_of_code(to, format.has_zero ? 1 : 0);
  const double numbers[] = {middle(one),    middle(one + 1), -middle(one), least / 4, -least / 4,  largest + step / 4,
                            largest + step, -largest - step, infinity,     -infinity, std::nan("")};
  std::string text = formatted("\n## {}\n\n|", name(to));
  for (const double x : numbers) text += formatted(" | {}", x);
  text += " |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (int word = 1; word < static_cast<int>(Rounding::stochastic); ++word) {
    text += formatted("| {}", options::roundings.word[static_cast<std::size_t>(word)]);
    for (const double x : numbers) text += " | " + codes_of(x, to, static_cast<Rounding>(word));
    text += " |\n";
  }
  return text;
}

TEST(RoundingPage, HasTheTablesOfTheReference) {
  std::string tables;
  for (const DType to : all_dtypes()) {
    if (family(to) == Family::floating && bit_width(to) <= 8) tables += table_of(to);
  }
  std::ifstream file(TENSORCAST_SOURCE_DIR "/docs/rounding.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find(tables), std::string::npos) << "docs/rounding.md lacks these tables:\n" << tables;
}

}  // namespace
}  // namespace tensorcast::codec
