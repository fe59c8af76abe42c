// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "convert_request.hpp"
#include "path_argument.hpp"
#include "result_rows.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/damage.hpp"

namespace tensorcast::python {

namespace {

constexpr const char* shards_kept = "cancelled by progress=; the converted shards are kept, and the same call goes on";
constexpr const char* nothing_changed = "cancelled by progress=";

// Decides what a conversion does with the tensors (name, dtype, shape) of one model.
nb::list plan_rows(const std::vector<std::tuple<std::string, std::string, std::vector<std::int64_t>>>& tensors,
                   const nb::dict& request, const nb::dict& options) {
  std::vector<TensorSummary> summaries;
  for (const auto& [tensor, dtype, shape] : tensors) {
    TensorSummary& summary = summaries.emplace_back();
    summary.name = tensor;
    const Result<DType> parsed = parse_dtype(dtype);
    if (parsed) summary.dtype = *parsed;
    if (!parsed) summary.foreign_dtype = dtype;
    summary.shape = shape;
  }
  nb::list rows;
  for (const TensorOutcome& tensor : checked(plan_tensors(request_of(request, options), summaries))) {
    nb::dict row = tensor_row(tensor);
    row["why"] = name(tensor.why);
    rows.append(std::move(row));
  }
  return rows;
}

bool may_lose(const std::string& from, const std::string& to, const nb::dict& options) {
  const Result<DType> source = parse_dtype(from);
  return source && may_damage(*source, checked(parse_dtype(to)), options_of(options));
}

// What destroyed a tensor that had `nonzero` elements other than zero, and what would help; None: nothing.
nb::object damage_of(const CastReport& report, std::uint64_t nonzero, const std::string& from, const std::string& to) {
  const NonzeroCounts counts{nonzero, nonzero - std::min(nonzero, report.underflowed_to_zero)};
  const std::optional<Damage> damage =
      find_damage(report, counts, checked(parse_dtype(from)), checked(parse_dtype(to)));
  return damage ? nb::object(nb::make_tuple(damage->what, damage->remedy)) : nb::none();
}

nb::dict plan(const nb::dict& request, const nb::dict& options) {
  ConvertRequest asked = request_of(request, options);
  return outcome_of(run_released([&] { return plan_checkpoint(asked); }, nothing_changed));
}

nb::dict run_shards(const PathText& output, const std::vector<std::size_t>& shards, std::size_t first, std::size_t step,
                    int threads, nb::handle progress) {
  ShardRequest request{.output = output, .shards = shards, .first = first, .step = step};
  request.execution.threads = threads;
  request.on_progress = progress_of(progress);
  return outcome_of(run_released([&] { return convert_shards(request); }, shards_kept));
}

nb::dict status(const PathText& output) {
  return outcome_of(run_released([&] { return planned_checkpoint(output); }, nothing_changed));
}

nb::dict finish(const PathText& output) {
  return outcome_of(run_released([&] { return finish_checkpoint(output); }, nothing_changed));
}

nb::dict verify(const PathText& checkpoint, const PathText& against, const PathText& importance, const nb::dict& filter,
                nb::handle progress, const nb::dict& options) {
  VerifyRequest request{.checkpoint = checkpoint, .against = against, .importance = importance};
  request.filter = filter_of(filter);
  const CastOptions given = options_of(options);
  request.options = given;
  request.execution = given.execution;
  request.on_progress = progress_of(progress);
  return result_row(run_released([&] { return verify_checkpoint(request); }, nothing_changed));
}

nb::object diff(const PathText& a, const PathText& b, bool headers_only, const std::vector<std::string>& include,
                const nb::dict& filter, nb::handle progress) {
  DiffRequest request{.a = a, .b = b, .headers_only = headers_only, .include = include};
  request.filter = filter_of(filter);
  request.on_progress = progress_of(progress);
  return value_row(run_released([&] { return diff_checkpoints(request); }, nothing_changed).tensors);
}

nb::dict metadata_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  nb::dict metadata;
  for (const auto& [key, value] : entries) metadata[nb::str(key.data(), key.size())] = value;
  return metadata;
}

nb::list files_of(const std::vector<CheckpointFile>& files) {
  nb::list rows;
  for (const CheckpointFile& file : files) {
    nb::dict row;
    row["name"] = file.name;
    row["bytes"] = file.bytes;
    row["tensors"] = file.tensors;
    row["metadata"] = metadata_of(file.metadata);
    rows.append(row);
  }
  return rows;
}

nb::dict inspect_folder(const PathText& path) {
  const CheckpointSummary found = run_released([&] { return inspect_checkpoint(path); }, nothing_changed);
  nb::list tensors;
  for (const CheckpointTensor& tensor : found.tensors) {
    nb::dict row = result_row(tensor.summary);
    row["file"] = tensor.file;
    row["full_name"] = tensor.full_name;
    row["kind"] = name(tensor.kind);
    tensors.append(row);
  }
  nb::dict summary;
  summary["tensors"] = tensors;
  summary["shards"] = files_of(found.shards);
  summary["other_files"] = files_of(found.other_files);
  summary["indexes"] = nb::tuple(nb::cast(found.indexes));
  add_layers(found, summary);
  return summary;
}

}  // namespace

void bind_checkpoint(nb::module_& module) {
  module.def(
      "is_checkpoint", [](const PathText& path) { return is_checkpoint(path); }, nb::arg("path"),
      "Whether a path is read as a checkpoint.");
  module.def("plan_tensors", &plan_rows, nb::arg("tensors"), nb::arg("request"), nb::arg("options"),
             "What a conversion would do with tensors.");
  module.def("may_lose", &may_lose, nb::arg("from_"), nb::arg("to"), nb::arg("options"),
             "Whether a conversion may destroy numbers.");
  module.def("damage_of", &damage_of, nb::arg("report"), nb::arg("nonzero"), nb::arg("from_"), nb::arg("to"),
             "What destroyed a tensor, and what would help.");
  module.def("plan_checkpoint", &plan, nb::arg("request"), nb::arg("options"), "Writes the plan of a conversion.");
  module.def("convert_shards", &run_shards, nb::arg("output"), nb::arg("shards"), nb::arg("first"), nb::arg("step"),
             nb::arg("threads"), nb::arg("progress").none(), "Converts shards of a plan.");
  module.def("planned_checkpoint", &status, nb::arg("output"), "How far a planned conversion is.");
  module.def("finish_checkpoint", &finish, nb::arg("output"), "Completes a planned conversion.");
  module.def("verify_checkpoint", &verify, nb::arg("checkpoint"), nb::arg("against"), nb::arg("importance"),
             nb::arg("filter"), nb::arg("progress").none(), nb::arg("options"), "Reads a checkpoint again.");
  module.def("diff_checkpoints", &diff, nb::arg("a"), nb::arg("b"), nb::arg("headers_only"), nb::arg("include"),
             nb::arg("filter"), nb::arg("progress").none(), "Compares two checkpoints.");
  module.def("inspect_checkpoint", &inspect_folder, nb::arg("path"), "What is inside a checkpoint.");
}

}  // namespace tensorcast::python
