// Touches every part of the public C++ interface, so that each must be linkable from an installed library.
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tensorcast/cast.hpp"
#include "tensorcast/explain.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/promote.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/version.hpp"

namespace tc = tensorcast;

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (!holds) {
    std::printf("FAILED: %s\n", what);
    ++failures;
  }
}

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
  check(!tc::cast(src, {tc::DType::uint8, shape, narrow}, tc::CastOptions::Safe()), "Safe refuses 1000 -> uint8");

  const tc::Result<tc::StringBuffer> text = tc::cast_to_strings(src);
  check(text.ok() && std::string(text->data.data(), 3) == "1.5", "cast to strings");
  std::array<float, 3> again = {};
  check(text.ok() && tc::cast_from_strings({text->data, text->offsets},
                                           {tc::DType::float32, shape, std::as_writable_bytes(std::span(again))})
                         .ok(),
        "cast from strings");
  check(again == source, "strings round trip");
}

void files(const std::string& folder) {
  const std::string input = folder + "/weights.raw", output = folder + "/weights.npy";
  const std::array<float, 4> numbers = {1, 2, 3, 4};
  std::FILE* file = std::fopen(input.c_str(), "wb");
  check(file != nullptr && std::fwrite(numbers.data(), sizeof(float), 4, file) == 4 && std::fclose(file) == 0, "input");

  tc::ConvertRequest request;
  request.input = input;
  request.output = output;
  request.to = tc::DType::float16;
  request.raw = tc::RawLayout{tc::DType::float32, {2, 2}};
  request.verify = true;
  request.overwrite = true;
  const tc::Result<tc::ConvertOutcome> outcome = tc::convert_file(request);
  if (!outcome) std::printf("%s\n", outcome.error().describe().c_str());
  check(outcome.ok() && outcome->verified, "convert");

  const tc::Result<tc::FileSummary> summary = tc::inspect_file(output);
  check(summary.ok() && summary->tensors.size() == 1 && summary->tensors[0].dtype == tc::DType::float16, "inspect");
  if (!summary.ok()) return;
  const std::array candidates = {tc::DType::int8};
  const tc::Result<tc::TensorStats> stats = tc::tensor_stats(output, summary->tensors[0].name, candidates);
  check(stats.ok() && stats->count == 4 && stats->max == 4.0, "statistics");
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "tensorcast-consumer-XXXXXX").string();
  check(mkdtemp(folder.data()) != nullptr, "a folder to work in");

  check(tc::all_dtypes().size() == 26, "26 types");
  check(tc::parse_dtype("e4m3fn").value() == tc::DType::float8_e4m3fn, "parse");
  check(tc::storage_bytes(tc::DType::int4, 3) == 2, "storage");
  check(tc::facts(tc::DType::float16).bits == tc::bit_width(tc::DType::float16), "facts");
  check(tc::promote_types({tc::DType::int8}, {tc::DType::int16}).value() == tc::DType::int16, "promote");
  check(tc::explain("0.1", tc::DType::undefined, tc::DType::float16).value().code == 0x2e66, "explain");
  check(!tc::file_formats_for(tc::DType::bfloat16).empty() && tc::file_formats().size() >= 4, "formats");
  check(!tc::supported_targets().empty() && !tc::name(tc::active_target()).empty(), "targets");
  casts();
  files(folder);
  std::filesystem::remove_all(folder);

  if (failures == 0) std::printf("tensorcast %s works\n", tc::version());
  return failures == 0 ? 0 : 1;
}
