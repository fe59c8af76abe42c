// SPDX-License-Identifier: Apache-2.0
// Compares a model with the one that it was converted from.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/source/source.hpp"
#include "checkpoint/source/tensor_set.hpp"
#include "convert/plan/conversion_record.hpp"
#include "convert/select/output_names.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast::checkpoint {

// Opens a file of tensors, or the model of a checkpoint that alone has tensors that are written. Errors: those of
// reading; unsupported: no model or several.
[[nodiscard]] Result<OpenedModel> open_only_model(const std::string& path, const OutputFilter& filter,
                                                  file_conversion::OutputNames& written);
// Reports whether a tensor of the model is written.
[[nodiscard]] bool has_tensors(const SourceCheckpoint& checkpoint, const SourceModel& model,
                               file_conversion::OutputNames& written);

struct ComparedModel {
  std::size_t tensors = 0;  // that are equal, and those of `quantized`
  std::uint64_t bytes_read = 0;
  std::set<std::string> quantized = {};  // weights that some recipe made; nobody has looked which
  std::vector<Error> differences = {};   // internal: the first of each file of the output
};

// Compares every tensor of `output` with what a conversion makes of `source`; `written` is told what was there.
// `scales`: of the output's tensors; null: that of the request's options, for all that are no integers.
// Errors: io, parse; internal: a tensor is missing or is too much; cancelled. They name the file of a tensor
// of `source` if it is at fault; else Error::file may be empty.
[[nodiscard]] Result<ComparedModel> compare_model(const VerifyRequest& request, OpenedModel& output,
                                                  OpenedModel& source, file_conversion::OutputNames& written,
                                                  const file_conversion::RecordedScales* scales);

}  // namespace tensorcast::checkpoint
