// SPDX-License-Identifier: Apache-2.0
// tensorcast_strings_bench [JSON-FILE [ROUNDS]]: numbers to text and back, against std::to_chars and std::from_chars.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands/measure.hpp"
#include "tensorcast/cast.hpp"

namespace {

using namespace tensorcast;
using Json = nlohmann::ordered_json;

constexpr std::size_t count = std::size_t{1} << 14;
constexpr std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(count)};

struct Numbers {
  std::string_view name;
  double deviation;
};
// As weights have them, and as measurements do.
constexpr std::array<Numbers, 2> kinds_of_numbers = {{{"weights", 0.05}, {"large", 1e6}}};

std::vector<double> draw(const Numbers& numbers) {
  std::mt19937_64 random(1);  // the same numbers in every run
  std::normal_distribution<double> normal(0.0, numbers.deviation);
  std::vector<double> drawn(count);
  std::generate(drawn.begin(), drawn.end(), [&] { return normal(random); });
  return drawn;
}

// The standard library prints and parses every value. Value: double, float, std::int64_t.
template <class Value>
class StandardLibrary {
 public:
  explicit StandardLibrary(const std::vector<std::byte>& bytes)
      : values_(reinterpret_cast<const Value*>(bytes.data())), text_(count * 32, '\0'), parsed_(count) {}

  void print() {
    char* end = text_.data();
    for (std::size_t i = 0; i < count; ++i) {
      end = std::to_chars(end, text_.data() + text_.size(), values_[i]).ptr;
      offsets_[i + 1] = static_cast<std::size_t>(end - text_.data());
    }
  }
  void parse() {
    for (std::size_t i = 0; i < count; ++i) {
      std::from_chars(text_.data() + offsets_[i], text_.data() + offsets_[i + 1], parsed_[i]);
    }
  }

 private:
  const Value* values_;
  std::string text_;
  std::vector<std::size_t> offsets_ = std::vector<std::size_t>(count + 1);
  std::vector<Value> parsed_;
};

using Work = std::function<void()>;

// How the standard library prints and parses; nothing for types that it does not have.
struct Rival {
  Work print, parse;
};
template <class Value>
Rival rival_of(const std::vector<std::byte>& bytes) {
  const auto standard = std::make_shared<StandardLibrary<Value>>(bytes);
  return {[=] { standard->print(); }, [=] { standard->parse(); }};
}
Rival rival_of(DType dtype, const std::vector<std::byte>& bytes) {
  switch (dtype) {
    case DType::float64:
      return rival_of<double>(bytes);
    case DType::float32:
      return rival_of<float>(bytes);
    case DType::int64:
      return rival_of<std::int64_t>(bytes);
    default:
      return {};
  }
}

// Million elements a second.
Json speed(const std::vector<double>& ns) {
  std::vector<double> speeds;
  for (const double sample : ns) speeds.push_back(count * 1e3 / sample);
  const bench::Spread spread = bench::spread_of(std::move(speeds));
  return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

Json timed(const char* work, const Numbers& numbers, DType dtype, int rounds, const Work& ours, const Work& rival) {
  std::vector<Work> works = {ours};
  if (rival) works.push_back(rival);
  const bench::Samples samples = bench::time_in_turns(works, {.rounds = rounds});
  Json row = {{"work", work}, {"numbers", numbers.name}, {"dtype", name(dtype)}, {"tensorcast", speed(samples[0])}};
  if (rival) row["standard library"] = speed(samples[1]);
  fmt::print("{}\n", row.dump());
  std::fflush(stdout);
  return row;
}

void measure(DType dtype, const Numbers& numbers, int rounds, Json& rows) {
  const std::vector<double> drawn = draw(numbers);
  std::vector<std::byte> bytes(storage_bytes(dtype, count));
  const MutableTensorView target{dtype, shape, bytes};
  if (!cast({DType::float64, shape, std::as_bytes(std::span(drawn))}, target)) throw std::runtime_error("cast failed");
  Result<StringBuffer> text = cast_to_strings({dtype, shape, bytes});
  const StringBuffer printed = text.value();
  Result<void> parsed;
  const Rival rival = rival_of(dtype, bytes);
  const Work print = [&] { text = cast_to_strings({dtype, shape, bytes}); };
  const Work parse = [&] { parsed = cast_from_strings(printed.view(), target); };
  rows.push_back(timed("print", numbers, dtype, rounds, print, rival.print));
  rows.push_back(timed("parse", numbers, dtype, rounds, parse, rival.parse));
  if (!text || !parsed) throw std::runtime_error("a number was not printed or read");
}

void run(const char* json_path, int rounds) {
  Json rows = Json::array();
  for (const Numbers& numbers : kinds_of_numbers) {
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16, DType::float8_e4m3fn,
                              DType::int64, DType::int32, DType::int8}) {
      measure(dtype, numbers, rounds, rows);
    }
  }
  if (json_path == nullptr) return;
  std::ofstream out(json_path);
  out << rows.dump() << '\n';
  if (!out.flush()) throw std::runtime_error(fmt::format("cannot write {}", json_path));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : nullptr, argc > 2 ? std::atoi(argv[2]) : 5);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tensorcast_strings_bench: {}\n", error.what());
    return 1;
  }
}
