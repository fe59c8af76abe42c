// SPDX-License-Identifier: Apache-2.0
// Touches every header of the component files, so that each must be linkable from an installed library.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "check.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tc = tensorcast;

namespace {

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

  const tc::Result<tc::FileSummary> summary = tc::inspect({.input = output});
  check(summary.ok() && summary->tensors.size() == 1 && summary->tensors[0].dtype == tc::DType::float16, "inspect");
  if (!summary.ok()) return;
  const tc::Result<std::vector<tc::TensorStats>> stats =
      tc::tensor_stats({.input = output, .tensors = {summary->tensors[0].name}, .candidates = {tc::DType::int8}});
  check(stats.ok() && stats->front().count == 4 && stats->front().max == 4.0, "statistics");

  const tc::Result<tc::NamedTensor> read = tc::read_tensor(output);
  check(read.ok() && read->tensor.count() == 4, "read");
  check(read.ok() && tc::write_tensor(folder + "/again.npy", read->tensor).ok(), "write");
}

}  // namespace

int main() {
  check(!tc::file_formats_for(tc::DType::bfloat16).empty() && tc::file_formats().size() >= 4, "formats");
  std::string folder = (std::filesystem::temp_directory_path() / "tensorcast-consumer-XXXXXX").string();
  check(mkdtemp(folder.data()) != nullptr, "a folder to work in");
  files(folder);
  std::filesystem::remove_all(folder);
  return finish();
}
