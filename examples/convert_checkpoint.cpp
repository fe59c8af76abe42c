// SPDX-License-Identifier: Apache-2.0
// Converts a checkpoint to bfloat16, except its embeddings, which become float16, and lists the result for each tensor.
//   convert_checkpoint IN.safetensors OUT.safetensors
#include <cstdio>

#include <tensorcast/file.hpp>

namespace tc = tensorcast;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  tc::ConvertRequest request(argv[1], argv[2], tc::DType::bfloat16);
  request.rules = {{.pattern = "embedding", .to = tc::DType::float16}};
  request.report = true;
  request.verify = true;
  const tc::Result<tc::ConvertOutcome> outcome = tc::convert_file(request);
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().describe().c_str());
    return outcome.error().code == tc::ErrorCode::cancelled ? 130 : 1;
  }
  for (const tc::TensorOutcome& tensor : outcome->tensors) {
    std::printf("%-44s %s -> %s", tensor.name.c_str(), tc::name(tensor.from).data(), tc::name(tensor.to).data());
    if (tensor.report) std::printf("  %.1f dB", tensor.report->snr_db());
    std::printf("\n");
  }
  return 0;
}
