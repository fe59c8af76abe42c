#include "files.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bound_arguments.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::python {

nb::dict convert_file(const std::string& src, const std::string& dst, nb::handle to,
                      const std::vector<std::pair<std::string, nb::object>>& rules,
                      const std::vector<std::string>& include, const std::vector<std::string>& exclude, nb::handle from,
                      bool force, bool dry_run, bool report, bool verify, nb::handle progress,
                      const nb::dict& keywords) {
  ConvertRequest request;
  request.input = src;
  request.output = dst;
  request.to = dtype_or_undefined(to);
  request.from = dtype_or_undefined(from);
  for (const auto& [pattern, dtype] : rules) request.rules.push_back({pattern, dtype_of(dtype)});
  request.include = include;
  request.exclude = exclude;
  request.overwrite = force;
  request.dry_run = dry_run;
  request.report = report;
  request.verify = verify;
  request.options = options_of(keywords);
  const bool wants_progress = !progress.is_none();
  request.on_progress = [&](const Progress& now) {
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) return false;
    if (!wants_progress) return true;
    try {
      const nb::object answer =
          progress(now.bytes_done, now.bytes_total, nb::str(now.tensor.data(), now.tensor.size()));
      return !answer.is(nb::bool_(false));
    } catch (nb::python_error& error) {
      error.restore();
      return false;
    }
  };
  Result<ConvertOutcome> outcome = Error{};
  {
    const nb::gil_scoped_release released;
    outcome = tensorcast::convert_file(request);
  }
  if (PyErr_Occurred()) throw nb::python_error();
  const ConvertOutcome done = checked(std::move(outcome));
  nb::list tensors;
  for (const TensorOutcome& tensor : done.tensors) {
    nb::dict row;
    row["name"] = tensor.name;
    row["from"] = name(tensor.from);
    row["to"] = name(tensor.to);
    row["shape"] = nb::tuple(nb::cast(tensor.shape));
    row["bytes_in"] = tensor.bytes_in;
    row["bytes_out"] = tensor.bytes_out;
    row["reason"] = tensor.reason;
    row["report"] = tensor.report ? nb::cast(*tensor.report) : nb::none();
    tensors.append(row);
  }
  nb::dict summary;
  summary["input_format"] = done.input_format;
  summary["output_format"] = done.output_format;
  summary["tensors"] = tensors;
  summary["bytes_read"] = done.bytes_read;
  summary["bytes_written"] = done.bytes_written;
  summary["verified"] = done.verified;
  summary["cancelled"] = done.cancelled;
  return summary;
}

namespace {

nb::dict stats_of(const std::string& path, const std::string& tensor, const std::vector<DType>& candidates, DType from,
                  const CastOptions& options) {
  Result<TensorStats> outcome = Error{};
  {
    const nb::gil_scoped_release released;
    outcome = tensor_stats(path, tensor, candidates, options, {}, from);
  }
  const TensorStats stats = checked(std::move(outcome));
  nb::dict reports;
  for (const auto& [dtype, report] : stats.candidates) reports[nb::cast(name(dtype))] = report;
  nb::dict row;
  row["count"] = stats.count;
  row["nan"] = stats.nan;
  row["infinite"] = stats.infinite;
  row["zero"] = stats.zero;
  row["negative"] = stats.negative;
  row["min"] = stats.min;
  row["max"] = stats.max;
  row["smallest_nonzero_magnitude"] = stats.smallest_nonzero_magnitude;
  row["candidates"] = reports;
  return row;
}

}  // namespace

nb::dict inspect_file(const std::string& path, nb::handle from_argument, nb::handle candidates_argument,
                      const nb::dict& keywords) {
  const DType from = dtype_or_undefined(from_argument);
  const CastOptions options = options_of(keywords);
  const bool with_stats = !candidates_argument.is_none();
  std::vector<DType> candidates;
  if (with_stats) {
    for (const nb::handle candidate : candidates_argument) candidates.push_back(dtype_of(candidate));
  }
  const FileSummary file = checked(tensorcast::inspect_file(path, {}, from));
  nb::list tensors;
  for (const TensorSummary& tensor : file.tensors) {
    nb::dict row;
    row["name"] = tensor.name;
    row["dtype"] = name(tensor.dtype);
    row["shape"] = nb::tuple(nb::cast(tensor.shape));
    row["bytes"] = tensor.bytes;
    row["foreign_dtype"] = tensor.foreign_dtype;
    if (with_stats) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      const bool has_numbers = tensor.foreign_dtype.empty() && tensor.dtype != DType::string;
      row["stats"] = has_numbers ? nb::object(stats_of(path, tensor.name, candidates, from, options)) : nb::none();
    }
    tensors.append(row);
  }
  nb::dict metadata;
  for (const auto& [key, value] : file.metadata) metadata[nb::str(key.data(), key.size())] = value;
  nb::dict summary;
  summary["format"] = file.format;
  summary["tensors"] = tensors;
  summary["metadata"] = metadata;
  return summary;
}

}  // namespace tensorcast::python
