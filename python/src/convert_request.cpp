// SPDX-License-Identifier: Apache-2.0
#include "convert_request.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "convert/convert_options.hpp"
#include "dtype/errors.hpp"
#include "dtype/lower_case.hpp"
#include "path_argument.hpp"
#include "result_rows.hpp"

namespace tensorcast::python {

namespace {

// Sets the type, or the scheme of a text such as "nvfp4".
template <class Targets>
void take_target(nb::handle given, Targets& targets) {
  if (PyUnicode_Check(given.ptr())) {
    const Result<ConvertTarget> target = parse_target(nb::cast<std::string>(given));
    if (target && !target->scheme.empty()) {
      targets.scheme = target->scheme;
      if (target->recipe.empty()) return;
      if (!targets.recipe.empty() && !is_same_name(targets.recipe, target->recipe)) {
        checked(Result<void>(invalid("`to` and `recipe` name two recipes")));
      }
      targets.recipe = target->recipe;
      return;
    }
  }
  targets.to = dtype_or_undefined(given);
}

std::vector<ConvertRule> rules_of(nb::handle argument) {
  using Row = std::tuple<std::string, nb::object, std::vector<std::int64_t>, std::uint64_t, std::optional<double>,
                         std::vector<std::string>>;
  std::vector<ConvertRule> rules;
  for (auto& [pattern, to, ranks, smaller, scale, kinds] : nb::cast<std::vector<Row>>(argument)) {
    rules.push_back(
        {.pattern = pattern, .ranks = std::move(ranks), .smaller = smaller, .keep = to.is_none(), .scale = scale});
    for (const std::string& kind : kinds) rules.back().kinds.push_back(checked(parse_tensor_kind(kind)));
    take_target(to, rules.back());
  }
  return rules;
}

std::vector<Rename> renames_of(nb::handle argument) {
  std::vector<Rename> renames;
  for (const nb::handle row : argument) {
    const auto [pattern, replacement] = nb::cast<std::pair<std::string, std::string>>(row);
    renames.push_back({.pattern = pattern, .replacement = replacement});
  }
  return renames;
}

// Sets an option of the request if the dictionary has it.
template <class Option>
void take(const nb::dict& fields, const Option& option, typename Option::Type& value) {
  using Value = typename Option::Type;
  if (!fields.contains(option.name)) return;
  const nb::object given = fields[option.name];
  if constexpr (std::is_same_v<Value, std::vector<ConvertRule>>) {
    value = rules_of(given);
  } else if constexpr (std::is_same_v<Value, std::vector<Rename>>) {
    value = renames_of(given);
  } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    value = nb::cast<Value>(given);
  } else {
    read_bound_option(given, option, value);
  }
}

}  // namespace

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

OutputFilter filter_of(const nb::dict& fields) {
  OutputFilter filter;
  options::for_each(options::request_options, [&](const auto& option) {
    if constexpr (options::is_filter<std::decay_t<decltype(option)>>) take(fields, option, filter.*option.member);
  });
  return filter;
}

ConvertRequest request_of(const nb::dict& fields, const nb::dict& keywords) {
  ConvertRequest request;
  options::for_each(options::request_options, [&](const auto& option) {
    if (std::string_view(option.name) != "to") take(fields, option, value_of(request, option));
  });
  if (fields.contains("to")) take_target(fields["to"], request);
  if (fields.contains("input")) request.input = nb::cast<PathText>(fields["input"]).text;
  if (fields.contains("output")) request.output = nb::cast<PathText>(fields["output"]).text;
  if (fields.contains("from_")) request.from = source_types(fields["from_"]);
  if (fields.contains("raw")) request.raw = raw_layout(fields["raw"]);
  if (fields.contains("strict_loss")) {
    request.on_loss = nb::cast<bool>(fields["strict_loss"]) ? OnLoss::fail : OnLoss::tell;
  }
  const CastOptions options = options_of(keywords);
  request.options = options;
  request.execution = options.execution;
  return request;
}

std::function<bool(const Progress&)> progress_of(nb::handle progress) {
  return [progress](const Progress& now) {
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) return false;
    if (progress.is_none()) return true;
    try {
      const nb::object answer =
          progress(now.bytes_done, now.bytes_total, nb::str(now.tensor.data(), now.tensor.size()));
      return !answer.is(nb::bool_(false));
    } catch (nb::python_error& error) {
      error.restore();
      return false;
    }
  };
}

nb::dict tensor_row(const TensorOutcome& tensor) {
  nb::dict row = result_row(tensor);
  if (tensor.output_name.empty()) row["output_name"] = tensor.name;
  return row;
}

nb::dict outcome_of(const ConvertOutcome& done) {
  nb::dict summary = result_row(done);
  nb::list tensors;
  for (const TensorOutcome& tensor : done.tensors) tensors.append(tensor_row(tensor));
  summary["tensors"] = tensors;
  return summary;
}

}  // namespace tensorcast::python
