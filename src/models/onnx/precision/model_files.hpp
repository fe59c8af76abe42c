// A converted model before it is written, and its files: the model and, if it needs one, that of external data.
#pragma once

#include <functional>
#include <string>

#include "io/input_file.hpp"
#include "models/onnx/precision/cast_elision.hpp"
#include "models/onnx/precision/model_writer.hpp"

namespace tensorcast::models::onnx::precision {

struct BuiltModel {
  WireRope rope;
  ExternalFiles external;
  ModelWriter::Counts counts;
};

// Puts initializers outside if the model would exceed protobuf's limit. `output` is where it will be written. `file`
// outlives the result. Errors: parse, unsupported, io.
[[nodiscard]] Result<BuiltModel> build_model(const io::InputFile& file, const PrecisionPlan& plan,
                                             const CastElision& elision, TensorPlacement placement,
                                             const std::string& output);

// As the fields of ConvertRequest.
struct WriteOptions {
  bool overwrite = false;
  bool dry_run = false;  // the files are made for `check`, and go
  std::function<Result<void>(const std::string&)> check = {};
  std::function<bool()> on_progress = {};
};

// The files get their names only when all are complete, the model has no fault that `file` has not, and `check` has
// seen it; after an error, none is new and none has changed. Errors: io; internal: a fault; invalid_argument: a file
// exists and `overwrite` is off; cancelled; those of `check`.
[[nodiscard]] Result<void> write_model(const io::InputFile& file, const BuiltModel& model, const std::string& output,
                                       const WriteOptions& options);

}  // namespace tensorcast::models::onnx::precision
