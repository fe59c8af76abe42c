// SPDX-License-Identifier: Apache-2.0
// Component files. Checkpoints: folders of safetensors files, or of PyTorch's, with their indexes and configs.
// Converts them whole, on one machine or on many, verifies, lists and compares them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Reports whether `path` is read as a checkpoint: a folder, or the index of one (NAME.safetensors.index.json,
// NAME.bin.index.json).
[[nodiscard]] TENSORCAST_API bool is_checkpoint(const std::string& path);

// Converts a file as convert_file() does, or a checkpoint as convert_folder() does, if is_checkpoint(request.input).
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert(const ConvertRequest& request);

// Converts a checkpoint: a folder or an index. `request.output` is a folder, or the name of a file for one model. A
// folder must not exist, or be empty, unless `overwrite` is set. Then what a former conversion wrote there is replaced,
// and files of anybody else are not (docs/outputs.md). It is never the input's folder, one above it or inside it.
//
// Shards     keep their names and tensors unless max_shard_bytes or single_file is set.
// Others     indexes get their new total_size, config.json its new torch_dtype or dtype; all other files are copied.
// Checks     everything that headers tell is checked before the first byte is written: missing, truncated and
//            contradictory files, tensors that occur twice, space on the disk.
// Crash      the folder has a hidden folder .tcast until the conversion is complete. The same request goes on
//            where the last one stopped. Old files of an overwritten folder stay until all new ones are complete.
// Memory     bounded: that of the headers and about 64 MiB for each shard at a time, of which there are up to four and
//            no more than threads, whatever the size of the checkpoint.
// Errors     as convert_file().
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert_folder(const ConvertRequest& request);

// The same conversion in steps, which may run on different machines that share the folders:
// plan_checkpoint() once, convert_shards() for every shard, finish_checkpoint() once.

// Plans the conversion of a checkpoint and writes `request.output`/.tcast/plan.json. The outcome has the plan's tensors
// and shards. Errors: as convert_folder(); nothing is written then.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> plan_checkpoint(const ConvertRequest& request);

struct ShardRequest {
  std::string output = {};               // the folder that was planned, or its plan.json
  std::vector<std::size_t> shards = {};  // indices, from 0; empty: all
  std::size_t first = 0, step = 1;       // of the shards, converts those with the indices first, first + step, ...
  Execution execution = {};
  // Called now and then; returning false cancels, which is the error `cancelled`.
  std::function<bool(const Progress&)> on_progress = {};
};

// Converts shards of a plan. A shard that is done is left alone, so it does no harm if two processes convert one shard.
// The outcome has the tensors and shards that were chosen.
// Errors: as convert_folder(); invalid_argument (no such shard); io, if the source has changed.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> convert_shards(const ShardRequest& request);

// Tells how far a planned conversion is: the plan's tensors and shards. A shard that is done has its `sha256` and
// `done_before`. Errors: io; parse; invalid_argument, if there is no plan, as after finish_checkpoint().
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> planned_checkpoint(const std::string& output);

// Makes a planned folder a checkpoint: checks that every shard is done, writes indexes, configs, SHA256SUMS, copies the
// other files, and gives every file its name. May run again after a crash, and more than once at a time.
// Errors: as convert_folder(); invalid_argument, naming the shards that are not done.
[[nodiscard]] TENSORCAST_API Result<ConvertOutcome> finish_checkpoint(const std::string& output);

struct VerifyRequest {
  std::string checkpoint = {};
  std::string against = {};     // the checkpoint that it was converted from; empty: compare with SHA256SUMS only
  CastOptions options = {};     // of the conversion
  OutputFilter filter = {};     // of the conversion
  std::string importance = {};  // of the conversion: as DetectRequest
  Execution execution = {};
  std::function<bool(const Progress&)> on_progress = {};  // as in ShardRequest
};

struct VerifyOutcome {
  std::size_t files = 0;    // whose SHA-256 is right
  std::size_t tensors = 0;  // that equal a second conversion of the source
  std::uint64_t bytes_read = 0;
  std::vector<std::string> warnings = {};  // as of inspect_checkpoint()
  std::vector<std::string> recipes = {};   // of quantized weights: "4 weights are nvfp4 by modelopt"
};

// Reads a checkpoint again. Its files must have the hashes of SHA256SUMS; with `against`, every tensor must equal a
// conversion of the source's tensor, and none may be missing. Of a weight that was quantized, a recipe must make every
// code and scale, as detect_recipes() finds it. Without SHA256SUMS only tensors are compared, as of a GGUF file.
// Errors: io, parse, internal (naming the file, tensor and element that differ), invalid_argument (nothing to compare).
[[nodiscard]] TENSORCAST_API Result<VerifyOutcome> verify_checkpoint(const VerifyRequest& request);

struct CheckpointTensor {
  TensorSummary summary = {};
  std::string file = {};       // relative to the checkpoint's folder
  std::string full_name = {};  // with the folder and variant of its model, such as "unet/fp16:conv_in.weight"
  TensorKind kind = TensorKind::other;
};

struct CheckpointFile {
  std::string name = {};
  std::uint64_t bytes = 0;
  std::size_t tensors = 0;
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

struct CheckpointSummary {
  std::vector<CheckpointFile> shards = {};
  std::vector<CheckpointFile> other_files = {};
  std::vector<std::string> indexes = {};
  std::vector<CheckpointTensor> tensors = {};  // shard by shard, in file order
  std::vector<QuantizedLayer> layers = {};     // with full names, as of tensors
  std::vector<std::string> warnings = {};      // of the scales of layers, and of methods that are not decoded
  std::vector<std::string> notes = {};         // as FileSummary::notes
};

// Lists a folder, an index or a safetensors file, and the quantized layers of its models. Of the elements, only scales
// of such layers are read, at most 256 MiB of each model. Errors: as convert_folder()'s checks.
[[nodiscard]] TENSORCAST_API Result<CheckpointSummary> inspect_checkpoint(const std::string& path);

struct TensorDifference {
  std::string name = {};          // as CheckpointTensor::full_name
  DType from = DType::undefined;  // undefined: the tensor is missing, or its type is not castable
  DType to = DType::undefined;
  std::vector<std::int64_t> from_shape = {}, to_shape = {};
  bool in_a = true, in_b = true;
  bool equal = false;  // type, shape and, unless only headers are compared, every value, NaN with NaN
  // Compared as float64, if both have numbers and the same shape.
  bool compared = false;
  // Of onnx::diff(): compared as DequantizeLinear decodes the codes of one or both.
  bool decoded = false;
  // Of onnx::diff(): codes of one are not compared with numbers, or other codes, of the other.
  bool undecodable = false;
  std::uint64_t count = 0;
  std::uint64_t different = 0;  // elements
  // Of the differing ones: infinite in `b` only, or of another sign there; infinite in `a` only; the same for NaN.
  std::uint64_t infinities_made = 0, infinities_lost = 0;
  std::uint64_t nan_made = 0, nan_lost = 0;
  double max_abs_error = 0.0;  // the errors are those of elements that are finite in both
  double max_rel_error = 0.0;
  double snr_db = 0.0;  // infinity: all equal; NaN: only infinities and NaN differ
};

struct DiffRequest {
  std::string a = {}, b = {};  // folders, indexes, or files of any format with tensors
  bool headers_only = false;
  OutputFilter filter = {};                               // of the conversion from `a` to `b`; `a` is compared as it
                                                          // would be written
  std::vector<std::string> include = {};                  // patterns, as in ConvertRequest
  std::function<bool(const Progress&)> on_progress = {};  // as in ShardRequest
};

struct DiffOutcome {
  std::vector<TensorDifference> tensors = {};  // all, in the order of `a`, then those that only `b` has
};

// Compares the tensors of two checkpoints or files by name; the array of a file without names is compared with the only
// tensor of the other, if it has one. Errors: io, parse, unsupported (elements that cannot be read), invalid_argument
// (patterns).
// Cost: reads both once; memory is bounded.
[[nodiscard]] TENSORCAST_API Result<DiffOutcome> diff_checkpoints(const DiffRequest& request);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
