#include "files.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bound_arguments.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::python {

namespace {

SourceTypes source_types(nb::handle argument) {
  SourceTypes types;
  if (!PyDict_Check(argument.ptr())) {
    types.all = dtype_or_undefined(argument);
    return types;
  }
  for (const auto& [tensor, dtype] : nb::borrow<nb::dict>(argument)) {
    types.named.emplace_back(nb::cast<std::string>(tensor), dtype_of(dtype));
  }
  return types;
}

std::optional<RawLayout> raw_layout(nb::handle argument) {
  if (argument.is_none()) return std::nullopt;
  const auto [dtype, shape] = nb::cast<std::pair<nb::object, std::vector<std::int64_t>>>(argument);
  return RawLayout{.dtype = dtype_of(dtype), .shape = shape};
}

void set_flags(const nb::dict& flags, ConvertRequest& request) {
  const auto is_set = [&](const char* flag) { return nb::cast<bool>(flags[flag]); };
  request.overwrite = is_set("overwrite");
  request.parents = is_set("parents");
  request.allow_odd = is_set("allow_odd");
  request.raw_codes = is_set("raw_codes");
  request.dry_run = is_set("dry_run");
  request.report = is_set("report");
  request.verify = is_set("verify");
  request.on_loss = is_set("strict_loss") ? OnLoss::fail : OnLoss::tell;
}

}  // namespace

nb::dict convert_file(const std::string& src, const std::string& dst, nb::handle to,
                      const std::vector<std::pair<std::string, nb::object>>& rules,
                      const std::vector<std::string>& include, const std::vector<std::string>& exclude, nb::handle from,
                      nb::handle raw, const nb::dict& flags, nb::handle progress, const nb::dict& keywords) {
  ConvertRequest request;
  request.input = src;
  request.output = dst;
  request.to = dtype_or_undefined(to);
  request.from = source_types(from);
  request.raw = raw_layout(raw);
  for (const auto& [pattern, dtype] : rules) request.rules.push_back({pattern, dtype_of(dtype)});
  request.include = include;
  request.exclude = exclude;
  set_flags(flags, request);
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
    row["left"] = tensor.left;
    row["damage"] = tensor.damage;
    row["remedy"] = tensor.remedy;
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

nb::dict stats_of(const std::string& path, const std::string& tensor, const std::vector<DType>& candidates,
                  const SourceTypes& from, const CastOptions& options) {
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

nb::dict inspect_file(const std::string& path, nb::handle from_argument, bool with_stats,
                      nb::handle candidates_argument, const nb::dict& keywords) {
  const SourceTypes from = source_types(from_argument);
  const CastOptions options = options_of(keywords);
  const bool asked = !candidates_argument.is_none();
  std::vector<DType> candidates = {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};
  if (asked) {
    candidates.clear();
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
    row["problem"] = tensor.problem;
    if (with_stats) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      const bool has_numbers = tensor.foreign_dtype.empty() && tensor.dtype != DType::string;
      const bool tried = asked || (has_numbers && family(tensor.dtype) == Family::floating);
      row["stats"] =
          has_numbers
              ? nb::object(stats_of(path, tensor.name, tried ? candidates : std::vector<DType>(), from, options))
              : nb::none();
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
