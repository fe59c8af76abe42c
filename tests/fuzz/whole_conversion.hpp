// SPDX-License-Identifier: Apache-2.0
// Whole conversions with verification: arbitrary bytes as a file of any format, to any type and format. The output must
// pass verification and convert again without change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_folder.hpp"
#include "fuzzing.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::fuzzing {

// A failure of --verify is an internal error.
// The last four bytes choose the request, so that files are seeds as they are. Aborts where something is wrong.
inline void convert_and_verify(const Folder& folder, const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::string_view, 5> formats = {"npy", "npz", "safetensors", "tensor_proto", "raw"};
  if (size < 4) return;
  const std::uint8_t* choices = data + size - 4;
  const auto types = all_dtypes();
  ConvertRequest request;
  request.input = folder.put("in", data, size);
  request.output = folder.file("out");
  request.output_format = formats[choices[0] % formats.size()];
  if (choices[0] % 2 != 0) request.input_format = formats[choices[0] / 16 % 4];
  request.to = types[choices[1] % types.size()];
  if (choices[2] % 4 != 0) request.rules = {{"", types[choices[2] / 4 % types.size()]}};
  if (choices[3] % 4 == 1) request.from = types[choices[3] / 4 % types.size()];
  if (choices[3] % 4 == 2) request.options.out_of_range = OutOfRange::saturate;
  request.report = choices[3] % 8 == 3;
  request.execution.threads = 1;
  request.overwrite = true;
  request.verify = true;
  const Result<ConvertOutcome> outcome = tensorcast::convert_file(request);
  if (!succeeded(outcome) || request.output_format == "raw") return;

  ConvertRequest copy;
  copy.input = request.output;
  copy.output = folder.file("copy");
  copy.input_format = copy.output_format = request.output_format;
  copy.exclude = {""};
  copy.to = DType::float32;
  copy.from = outcome->tensors.size() == 1 ? outcome->tensors.front().to : DType::undefined;
  copy.execution.threads = 1;
  copy.overwrite = true;
  copy.verify = true;
  (void)succeeded(tensorcast::convert_file(copy));
}

}  // namespace tensorcast::fuzzing
