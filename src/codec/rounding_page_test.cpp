// SPDX-License-Identifier: Apache-2.0
// The tables of docs/rounding.md are what the reference gives; scripts/make/rounding-page writes them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
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
  if (real.kind == Real::Kind::zero) return 0.0;
  const double size =
      std::ldexp(static_cast<double>(static_cast<std::uint64_t>(real.significand >> 64)), real.exponent + 64);
  return real.negative ? -size : size;
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

// "127", or "127, -128" if wrapping gives another number than saturating.
std::string numbers_of(double x, DType to, Rounding word) {
  std::string numbers[2];
  for (const OutOfRange range : {OutOfRange::saturate, OutOfRange::wrap}) {
    const CastOptions options{.out_of_range = range, .rounding = word};
    const Encoded encoded =
        cast_code(DType::float64, std::bit_cast<std::uint64_t>(x), to, policy_of(options, DType::float64, to));
    numbers[range == OutOfRange::saturate ? 0 : 1] = formatted("{}", value_of_code(to, encoded.bits));
  }
  return numbers[0] == numbers[1] ? numbers[0] : numbers[0] + ", " + numbers[1];
}

std::string integer_table_of(DType to) {
  const double largest = std::ldexp(1.0, bit_width(to) - (row(to).is_signed ? 1 : 0)) - 1;
  const double lowest = row(to).is_signed ? -largest - 1 : 0.0;
  const double numbers[] = {0.5,
                            1.5,
                            -0.5,
                            0.25,
                            -0.25,
                            largest + 0.25,
                            largest + 0.5,
                            largest + 1,
                            lowest - 0.5,
                            lowest - 1,
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(),
                            std::nan("")};
  std::string text = formatted("\n## {}\n\n|", name(to));
  for (const double x : numbers) text += formatted(" | {}", x);
  text += " |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (int word = 1; word < static_cast<int>(Rounding::stochastic); ++word) {
    text += formatted("| {}", options::roundings.word[static_cast<std::size_t>(word)]);
    for (const double x : numbers) text += " | " + numbers_of(x, to, static_cast<Rounding>(word));
    text += " |\n";
  }
  return text;
}

// With TENSORCAST_WRITE_PAGE in the environment, writes the tables instead of comparing them.
TEST(RoundingPage, HasTheTablesOfTheReference) {
  std::string tables;
  for (const DType to : all_dtypes()) {
    if (bit_width(to) > 8) continue;
    if (family(to) == Family::floating) tables += table_of(to);
    if (family(to) == Family::integer) tables += integer_table_of(to);
  }
  const char* const path = TENSORCAST_SOURCE_DIR "/docs/rounding.md";
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  const std::string begin = tables.substr(0, tables.find("\n\n"));  // the heading of the first table
  const std::size_t start = page.str().find(begin);
  ASSERT_NE(start, std::string::npos) << path << " lacks" << begin;
  if (std::getenv("TENSORCAST_WRITE_PAGE") != nullptr) {
    const std::string text = page.str().substr(0, start) + tables;
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(page.str().substr(start), tables) << "scripts/make/rounding-page writes the tables";
}

}  // namespace
}  // namespace tensorcast::codec
