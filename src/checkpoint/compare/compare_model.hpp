// SPDX-License-Identifier: Apache-2.0
// Compares a model with the one that it was converted from.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/source/shard_reader.hpp"
#include "checkpoint/source/source.hpp"
#include "convert/select/output_names.hpp"
#include "formats/format.hpp"
#include "io/input_file.hpp"
#include "quantized/layout/config_text.hpp"
#include "quantized/layout/spelling.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast::checkpoint {

// The tensors of a model, and what its files say about quantization.
struct OpenedModel {
  std::unique_ptr<io::InputFile> file = {};  // of a single file: the reader refers to it
  std::unique_ptr<formats::Reader> reader = {};
  std::vector<quantized::ConfigText> texts = {};
  std::string path = {};                // of a single file
  const ShardReader* shards = nullptr;  // of a checkpoint: `reader`

  [[nodiscard]] quantized::FoundLayers layers() const;
  // Returns the file of a tensor, or that of the codes of a weight; "": the model has neither.
  [[nodiscard]] std::string file_of(const std::string& name) const;
};

[[nodiscard]] OpenedModel opened_model(const SourceCheckpoint& checkpoint, const SourceModel& model);
// Opens a file of tensors. Errors: those of reading.
[[nodiscard]] Result<OpenedModel> open_model(const std::string& path);
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
// Errors: io, parse; internal: a tensor is missing or is too much; cancelled. They name the file of a tensor
// of `source` if it is at fault; else Error::file may be empty.
[[nodiscard]] Result<ComparedModel> compare_model(const VerifyRequest& request, OpenedModel& output,
                                                  OpenedModel& source, file_conversion::OutputNames& written);

}  // namespace tensorcast::checkpoint
