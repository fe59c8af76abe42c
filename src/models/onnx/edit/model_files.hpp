// SPDX-License-Identifier: Apache-2.0
// A converted model before it is written, and its files: the model, and those of external data.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "io/input_file.hpp"
#include "models/onnx/precision/cast_elision.hpp"
#include "models/onnx/precision/model_writer.hpp"

namespace tensorcast::models::onnx {

struct BuiltModel {
  WireRope rope;
  ExternalFiles external;
  ModelWriter::Counts counts;
};

// Puts initializers outside if the model would exceed protobuf's limit. `output` is where it will be written; `names`
// are other locations of its external data. `file` outlives the result. Errors: parse, unsupported, io.
[[nodiscard]] Result<BuiltModel> build_model(const io::InputFile& file, const PrecisionPlan& plan,
                                             const CastElision& elision, TensorPlacement placement,
                                             const std::string& output,
                                             const std::map<std::string, std::string>& names = {});

// The fields of ConvertRequest that are about files.
struct WriteOptions {
  bool overwrite = false;
  bool dry_run = false;  // the files are made for `check`, then removed
  std::function<Result<void>(const std::string&)> check = {};
  std::function<bool()> on_progress = {};
};

// Makes the model again, with other locations of its external data: no byte of the data changes.
using Rebuild = std::function<Result<BuiltModel>(const std::map<std::string, std::string>& names)>;

// Writes a model that was made from `old`, which `file` holds. The rename of the model decides: its external data has
// its names before, and replaces nothing; then the data that the model replaced goes, if it was ours. After an error no
// file is new and none has changed; docs/onnx.md says what a crash leaves. Errors: io; internal: a fault that `file`
// has not; invalid_argument: the output exists and `overwrite` is off, or is external data of `old`; cancelled; those
// of `check` and `rebuild`.
[[nodiscard]] Result<void> write_model(const io::InputFile& file, const Model& old, BuiltModel model,
                                       const std::string& output, const WriteOptions& options, const Rebuild& rebuild);

}  // namespace tensorcast::models::onnx
