// SPDX-License-Identifier: Apache-2.0
// oracle_vectors FILE...: computes the expected codes of files of casts (docs/vectors.md) again, by the oracle alone.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "golden.hpp"
#include "oracle.hpp"

namespace {

using namespace oracle;

struct Case {
  Type from, to;
  std::string element, expected;
  tc_cast_options options = default_options();
  std::uint64_t index = 0;  // of the element in its tensor, for stochastic rounding
};

// The number of an option's word; nullopt: it is written as a number.
std::optional<int> number_of(const std::string& word) {
  static constexpr std::pair<std::string_view, int> numbers[] = {
      {"true", 1},
      {"false", 0},
      {"up", TC_ROUND_UP},
      {"down", TC_ROUND_DOWN},
      {"nearest", TC_ROUND_NEAREST},
      {"saturate", TC_RANGE_SATURATE},
      {"flt_max", TC_FNUZ_INF_FLT_MAX},
      {"nearest_even", TC_ROUNDING_NEAREST_EVEN},
      {"nearest_away", TC_ROUNDING_NEAREST_AWAY},
      {"toward_zero", TC_ROUNDING_TOWARD_ZERO},
      {"toward_positive", TC_ROUNDING_TOWARD_POSITIVE},
      {"toward_negative", TC_ROUNDING_TOWARD_NEGATIVE},
      {"to_odd", TC_ROUNDING_TO_ODD},
      {"stochastic", TC_ROUNDING_STOCHASTIC},
  };
  for (const auto& [known, number] : numbers) {
    if (word == known) return number;
  }
  return std::nullopt;
}

void set_word(Case& one, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  const std::string value = assignment.substr(equals + 1);
  if (name == "seed") {
    one.options.seed = std::stoull(value);
  } else if (name == "index") {
    one.index = std::stoull(value);
  } else if (name == "inexact") {
    one.options.inexact = 1;
  } else if (name == "invalid") {
    one.options.invalid = 1;
  } else if (name == "out_of_range" && value == "error") {
    one.options.out_of_range = TC_RANGE_ERROR;
  } else {
    const std::optional<int> number = number_of(value);
    set_option(one.options, name + "=" + (number ? std::to_string(*number) : value));
  }
}

Case read_case(const std::string& line) {
  std::istringstream fields(line);
  std::string from, to, options;
  Case one;
  std::getline(fields, from, '\t');
  std::getline(fields, one.element, '\t');
  std::getline(fields, to, '\t');
  std::getline(fields, options, '\t');
  std::getline(fields, one.expected, '\t');
  one.from = type_of(from);
  one.to = type_of(to);
  std::istringstream assignments(options == "-" ? "" : options);
  for (std::string assignment; std::getline(assignments, assignment, ',');) set_word(one, assignment);
  return one;
}

// A string of JSON without escapes other than these.
std::string unquoted(const std::string& quoted) {
  std::string result;
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      result += quoted[i];
    } else {
      ++i;
      result += quoted[i] == 't' ? '\t' : quoted[i];
    }
  }
  return result;
}

// Word index % 4 of Philox4x32-10 with the counter (index / 4, 0) and the key `seed` (D16).
std::uint32_t random_word(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t block = index / 4;
  std::uint32_t x[4] = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
  auto key_0 = static_cast<std::uint32_t>(seed), key_1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, key_0 += 0x9E3779B9, key_1 += 0xBB67AE85) {
    const std::uint64_t product_0 = std::uint64_t{0xD2511F53} * x[0], product_1 = std::uint64_t{0xCD9E8D57} * x[2];
    const std::uint32_t y[4] = {
        static_cast<std::uint32_t>(product_1 >> 32) ^ x[1] ^ key_0, static_cast<std::uint32_t>(product_1),
        static_cast<std::uint32_t>(product_0 >> 32) ^ x[3] ^ key_1, static_cast<std::uint32_t>(product_0)};
    std::copy(std::begin(y), std::end(y), x);
  }
  return x[index % 4];
}

// Of a number whose neighbours are numbers of the type.
std::uint64_t stochastic(const Case& one, std::uint64_t code) {
  tc_cast_options options = one.options;
  const auto by_word = [&](int word) {
    options.rounding = word;
    return convert(one.from, code, one.to, options).code;
  };
  const Exact x = decode(one.from, code);
  const std::uint64_t low = by_word(TC_ROUNDING_TOWARD_ZERO);
  const mpq_class low_size = abs(decode(one.to, low).value);
  const mpq_class size = abs(x.value);
  if (size == low_size) return low;
  const std::uint64_t high = by_word(x.negative ? TC_ROUNDING_TOWARD_NEGATIVE : TC_ROUNDING_TOWARD_POSITIVE);
  const mpq_class step = abs(decode(one.to, high).value) - low_size;
  const mpq_class place = (size - low_size) / step * power_of_two(32);
  const mpz_class whole = place.get_num() / place.get_den();
  return whole + random_word(one.options.seed, one.index) >= mpz_class(1) << 32 ? high : low;
}

// Returns the oracle's result as the files write it: "0x7f", "error", or for strings the expected one if it is right.
std::string result_of(const Case& one) {
  if (one.to == text) {
    const std::uint64_t code = parse_element(one.from, one.element);
    const std::string fault = fault_of_printed(one.from, code, unquoted(one.expected), false);
    return fault.empty() ? one.expected : fault;
  }
  Outcome outcome;
  if (one.from == text) {
    const std::optional<Exact> x = parse(unquoted(one.element), one.to);
    if (!x) return "error";
    outcome = Conversion(one.from, 0, *x, one.to).under(one.options);
  } else {
    const std::uint64_t code = parse_element(one.from, one.element);
    if (admission(one.from, one.to, one.options) != TC_OK) return "no such conversion";
    if (one.options.rounding == TC_ROUNDING_STOCHASTIC) {
      outcome.code = stochastic(one, code);
    } else {
      outcome = convert(one.from, code, one.to, one.options);
    }
  }
  if (outcome.refused || (one.options.inexact == 1 && outcome.events != no_event)) return "error";
  char digits[24];
  std::snprintf(digits, sizeof digits, "0x%0*llx", (info(one.to).bits + 3) / 4,
                static_cast<unsigned long long>(outcome.code));
  return digits;
}

struct Counts {
  unsigned long long cases = 0, wrong = 0;
};

void check_file(const char* path, Counts& counts) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const Case one = read_case(line);
    ++counts.cases;
    const std::string result = result_of(one);
    if (result == one.expected) continue;
    if (++counts.wrong <= 20) std::printf("%s\n  oracle: %s\n", line.c_str(), result.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Counts counts;
  try {
    for (int i = 1; i < argc; ++i) check_file(argv[i], counts);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oracle_vectors: %s\n", error.what());
    return 2;
  }
  std::printf("%llu cases, %llu wrong\n", counts.cases, counts.wrong);
  return counts.wrong == 0 && counts.cases != 0 ? 0 : 1;
}
