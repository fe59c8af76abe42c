// tensorcast_strings_bench [JSON-FILE]: numbers to text and back, against std::to_chars and std::from_chars.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tensorcast/cast.hpp"
#include "throughput/measure.hpp"

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

struct Row {
  std::string work;
  std::string numbers;
  std::string dtype;
  double ns_per_element = 0.0;
  double text_megabytes_per_second = 0.0;
  double standard_ns_per_element = 0.0;  // 0: the C++ library has no such type
};

// What std::to_chars prints of each value, and how long it and std::from_chars take. Value: double, float,
// std::int64_t.
struct StandardLibrary {
  double print_ns = 0.0;
  double parse_ns = 0.0;
};

template <class Value>
StandardLibrary time_standard_library(const bench::Effort& effort, const std::vector<std::byte>& bytes) {
  const auto* values = reinterpret_cast<const Value*>(bytes.data());
  std::string text;
  std::vector<std::size_t> offsets(count + 1);
  const auto print = [&] {
    text.resize(count * 32);
    char* end = text.data();
    for (std::size_t i = 0; i < count; ++i) {
      end = std::to_chars(end, text.data() + text.size(), values[i]).ptr;
      offsets[i + 1] = static_cast<std::size_t>(end - text.data());
    }
  };
  std::vector<Value> parsed(count);
  const auto parse = [&] {
    for (std::size_t i = 0; i < count; ++i) {
      std::from_chars(text.data() + offsets[i], text.data() + offsets[i + 1], parsed[i]);
    }
  };
  StandardLibrary result;
  result.print_ns = bench::best_ns(effort, print) / count;
  result.parse_ns = bench::best_ns(effort, parse) / count;
  return result;
}

StandardLibrary standard_library(const bench::Effort& effort, DType dtype, const std::vector<std::byte>& bytes) {
  switch (dtype) {
    case DType::float64:
      return time_standard_library<double>(effort, bytes);
    case DType::float32:
      return time_standard_library<float>(effort, bytes);
    case DType::int64:
      return time_standard_library<std::int64_t>(effort, bytes);
    default:
      return {};
  }
}

Result<std::vector<Row>> measure(DType dtype, const Numbers& numbers, const bench::Effort& effort) {
  const std::vector<double> drawn = draw(numbers);
  std::vector<std::byte> bytes(storage_bytes(dtype, count));
  const TensorView source{DType::float64, shape, std::as_bytes(std::span<const double>(drawn))};
  if (Result<void> rounded = cast(source, MutableTensorView{dtype, shape, bytes}); !rounded) return rounded.error();

  const TensorView values{dtype, shape, bytes};
  Result<StringBuffer> text = cast_to_strings(values);
  if (!text) return text.error();
  const double print_ns = bench::best_ns(effort, [&] { text = cast_to_strings(values); }) / count;
  const StringView view{text->data, text->offsets};
  Result<void> parsed;
  const double parse_ns = bench::best_ns(effort,
                                         [&] {
                                           parsed = cast_from_strings(view, MutableTensorView{dtype, shape, bytes});
                                         }) /
                          count;
  if (!parsed) return parsed.error();

  const StandardLibrary standard = standard_library(effort, dtype, bytes);
  const auto row = [&](const char* work, double ns, double standard_ns) {
    const double characters = static_cast<double>(text->data.size()) / count;
    return Row{work, std::string(numbers.name), std::string(name(dtype)), ns, characters * 1e3 / ns, standard_ns};
  };
  return std::vector<Row>{row("print", print_ns, standard.print_ns), row("parse", parse_ns, standard.parse_ns)};
}

void print_row(const Row& row) {
  const std::string standard =
      row.standard_ns_per_element == 0.0 ? "-" : fmt::format("{:.1f}", row.standard_ns_per_element);
  fmt::print("{:<6} {:<8} {:<14} {:>10.1f} {:>9.0f} {:>11}\n", row.work, row.numbers, row.dtype, row.ns_per_element,
             row.text_megabytes_per_second, standard);
  std::fflush(stdout);
}

int run(const char* json_path) {
  fmt::print("{:<6} {:<8} {:<14} {:>10} {:>9} {:>11}\n", "work", "numbers", "dtype", "ns/element", "MB/s text",
             "std, ns");
  Json document = Json::array();
  for (const Numbers& numbers : kinds_of_numbers) {
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16, DType::float8_e4m3fn,
                              DType::int64, DType::int32, DType::int8}) {
      const Result<std::vector<Row>> rows = measure(dtype, numbers, bench::Effort{});
      if (!rows) {
        fmt::print(stderr, "tensorcast_strings_bench: {}\n", rows.error().describe());
        return 1;
      }
      for (const Row& row : *rows) {
        print_row(row);
        document.push_back({{"work", row.work},
                            {"numbers", row.numbers},
                            {"dtype", row.dtype},
                            {"count", count},
                            {"ns_per_element", row.ns_per_element},
                            {"text_megabytes_per_second", row.text_megabytes_per_second},
                            {"standard_ns_per_element", row.standard_ns_per_element}});
      }
    }
  }
  if (json_path == nullptr) return 0;
  std::ofstream out(json_path);
  out << document.dump(1) << '\n';
  if (!out.flush()) {
    fmt::print(stderr, "tensorcast_strings_bench: cannot write {}\n", json_path);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : nullptr);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tensorcast_strings_bench: {}\n", error.what());
    return 1;
  }
}
