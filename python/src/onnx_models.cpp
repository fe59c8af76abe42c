#include "onnx_models.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "convert_request.hpp"
#include "models/onnx/convert_options.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::python {

namespace {

// Reads True, names, or a dictionary of types by name, in which None keeps a type.
void read_io_types(nb::handle given, onnx::ConvertRequest& request) {
  if (PyBool_Check(given.ptr())) {
    request.keep_io_types = given.is(nb::bool_(true));
  } else if (PyDict_Check(given.ptr())) {
    for (const auto& [edge, dtype] : nb::borrow<nb::dict>(given)) {
      if (dtype.is_none()) {
        request.keep_io_names.push_back(nb::cast<std::string>(edge));
      } else {
        request.io_types.emplace_back(nb::cast<std::string>(edge), dtype_of(dtype));
      }
    }
  } else {
    each_item(given, [&](nb::handle edge) { request.keep_io_names.push_back(nb::cast<std::string>(edge)); });
  }
}

onnx::ConvertRequest request_of_model(const std::string& src, const std::string& dst, nb::handle to, bool overwrite,
                                      const nb::dict& given) {
  onnx::ConvertRequest request;
  request.input = src;
  request.output = dst;
  request.to = dtype_of(to);
  request.overwrite = overwrite;
  options::for_each(options::model_options, [&](const auto& option) {
    if (!given.contains(option.name)) return;
    if constexpr (options::is_io_types<std::decay_t<decltype(option)>>) {
      read_io_types(given[option.name], request);
    } else {
      read_bound_option(given[option.name], option, request.*option.member);
    }
  });
  return request;
}

// Runs work without the GIL.
template <class Work>
auto released(Work&& work) {
  return run_released(std::forward<Work>(work), "cancelled");
}

nb::list rows_of(const std::vector<onnx::KeptNode>& kept) {
  nb::list rows;
  for (const onnx::KeptNode& node : kept) {
    nb::dict row;
    row["name"] = node.name;
    row["op_type"] = node.op_type;
    row["reason"] = node.reason;
    rows.append(row);
  }
  return rows;
}

nb::list rows_of(const std::vector<onnx::InitializerChange>& changes) {
  nb::list rows;
  for (const onnx::InitializerChange& change : changes) {
    nb::dict row;
    row["name"] = change.name;
    row["from_"] = name_or_none(change.from);
    row["to"] = name_or_none(change.to);
    row["count"] = change.count;
    row["overflowed"] = change.overflowed;
    row["underflowed"] = change.underflowed;
    row["clamped"] = change.clamped;
    rows.append(row);
  }
  return rows;
}

nb::list rows_of(const std::vector<onnx::ValueDecision>& values) {
  nb::list rows;
  for (const onnx::ValueDecision& value : values) {
    nb::dict row;
    row["value"] = value.value;
    row["is_input"] = value.is_input;
    row["from_"] = name_or_none(value.from);
    row["to"] = name_or_none(value.to);
    row["cast"] = value.has_cast;
    row["reason"] = value.reason;
    rows.append(row);
  }
  return rows;
}

nb::list rows_of(const std::vector<onnx::NodeDecision>& nodes) {
  nb::list rows;
  for (const onnx::NodeDecision& node : nodes) {
    nb::dict row;
    row["name"] = node.name;
    row["op_type"] = node.op_type;
    row["scope"] = node.scope;
    row["values"] = rows_of(node.values);
    rows.append(row);
  }
  return rows;
}

nb::list rows_of(const std::vector<onnx::CastInfo>& casts) {
  nb::list rows;
  for (const onnx::CastInfo& cast : casts) {
    nb::dict row;
    row["name"] = cast.name;
    row["op_type"] = cast.op_type;
    row["scope"] = cast.scope;
    row["input"] = cast.input;
    row["output"] = cast.output;
    row["from_"] = name_or_none(cast.from);
    row["to"] = name_or_none(cast.to);
    row["consumers"] = cast.consumers;
    row["role"] = name(cast.role);
    row["reason"] = cast.reason;
    row["removable"] = cast.removable;
    rows.append(row);
  }
  return rows;
}

// Calls `check(path)` with the GIL. An exception stays pending.
std::function<Result<void>(const std::string&)> check_of(nb::handle check) {
  return [check](const std::string& made) -> Result<void> {
    const nb::gil_scoped_acquire acquired;
    try {
      check(made);
      return {};
    } catch (nb::python_error& error) {
      error.restore();
      return Error{.code = ErrorCode::cancelled};
    }
  };
}

nb::dict convert_model(const std::string& src, const std::string& dst, nb::handle to, bool overwrite,
                       const nb::dict& options, nb::handle check) {
  onnx::ConvertRequest request = request_of_model(src, dst, to, overwrite, options);
  if (!check.is_none()) request.check = check_of(check);
  request.on_progress = [] {
    const nb::gil_scoped_acquire acquired;
    return PyErr_CheckSignals() == 0;
  };
  const onnx::ConvertOutcome done = released([&] { return onnx::convert(request); });
  nb::dict by_type;
  for (const auto& [dtype, count] : done.nodes_by_type) by_type[nb::cast(name(dtype))] = count;
  nb::dict summary;
  summary["opset_before"] = done.opset_before;
  summary["opset_after"] = done.opset_after;
  summary["nodes"] = done.nodes;
  summary["calls_inlined"] = done.calls_inlined;
  summary["nodes_converted"] = done.nodes_converted;
  summary["nodes_by_type"] = by_type;
  summary["values_changed"] = done.values_changed;
  summary["casts_before"] = done.casts_before;
  summary["casts_added"] = done.casts_added;
  summary["casts_removed"] = done.casts_removed;
  summary["casts_after"] = done.casts_before + done.casts_added - done.casts_removed;
  summary["initializers_converted"] = done.initializers_converted;
  summary["initializer_bytes_before"] = done.initializer_bytes_before;
  summary["initializer_bytes_after"] = done.initializer_bytes_after;
  summary["initializers"] = rows_of(done.initializers);
  summary["kept"] = rows_of(done.kept);
  summary["explained"] = rows_of(done.explained);
  return summary;
}

nb::list list_model_casts(const std::string& model) {
  return rows_of(released([&] { return onnx::list_casts(model); }));
}

nb::dict clean_model(const std::string& src, const std::string& dst, bool allow_lossy_cast_elision, bool dry_run,
                     bool overwrite) {
  const onnx::CleanRequest request{.input = src,
                                   .output = dst,
                                   .allow_lossy_cast_elision = allow_lossy_cast_elision,
                                   .dry_run = dry_run,
                                   .overwrite = overwrite};
  const onnx::CleanOutcome done = released([&] { return onnx::clean(request); });
  nb::list removed;
  for (const onnx::RemovedNode& node : done.removed) {
    nb::dict row;
    row["name"] = node.name;
    row["op_type"] = node.op_type;
    row["scope"] = node.scope;
    row["reason"] = node.reason;
    removed.append(row);
  }
  nb::dict summary;
  summary["nodes"] = done.nodes;
  summary["nodes_removed"] = done.removed.size();
  summary["casts_before"] = done.casts;
  summary["casts_after"] = done.casts - done.casts_removed;
  summary["removed"] = removed;
  return summary;
}

nb::object text_or_none(const std::string& text) { return text.empty() ? nb::none() : nb::cast(text); }

nb::dict diff_models(const std::string& a, const std::string& b, bool headers_only) {
  const onnx::DiffRequest request{.a = a, .b = b, .headers_only = headers_only};
  const onnx::DiffOutcome done = released([&] { return onnx::diff(request); });
  nb::list opsets;
  for (const onnx::OpsetDifference& opset : done.opsets) {
    nb::dict row;
    row["domain"] = opset.domain;
    row["a"] = opset.a;
    row["b"] = opset.b;
    opsets.append(row);
  }
  nb::list operators;
  for (const onnx::OperatorDifference& op : done.operators) {
    nb::dict row;
    row["op_type"] = op.op_type;
    row["a"] = op.a;
    row["b"] = op.b;
    operators.append(row);
  }
  nb::list values;
  for (const onnx::ValueDifference& value : done.values) {
    nb::dict row;
    row["scope"] = value.scope;
    row["name"] = value.name;
    row["a"] = text_or_none(value.a);
    row["b"] = text_or_none(value.b);
    values.append(row);
  }
  nb::list initializers;
  for (const TensorDifference& tensor : done.initializers) initializers.append(difference_row(tensor));
  nb::dict summary;
  summary["equal"] = done.equal;
  summary["ir_version_a"] = done.ir_version_a;
  summary["ir_version_b"] = done.ir_version_b;
  summary["opsets"] = opsets;
  summary["operators"] = operators;
  summary["values"] = values;
  summary["casts_only_a"] = rows_of(done.casts_only_a);
  summary["casts_only_b"] = rows_of(done.casts_only_b);
  summary["initializers"] = initializers;
  return summary;
}

nb::dict use_tensorcast_in_model(const std::string& src, const std::string& dst, bool overwrite) {
  const onnx::UseTensorcastRequest request{.input = src, .output = dst, .overwrite = overwrite};
  const onnx::UseTensorcastOutcome done = released([&] { return onnx::use_tensorcast(request); });
  nb::dict summary;
  summary["rewritten"] = done.rewritten;
  summary["left"] = done.left;
  return summary;
}

nb::list list_model_initializers(const std::string& model) {
  const FileSummary found = released([&] { return onnx::list_initializers(model); });
  nb::list rows;
  for (const TensorSummary& tensor : found.tensors) rows.append(summary_row(tensor));
  return rows;
}

}  // namespace

void bind_onnx_models(nb::module_& module) {
  module.def("onnx_convert", &convert_model, nb::arg("src"), nb::arg("dst"), nb::arg("to"), nb::arg("overwrite"),
             nb::arg("options"), nb::arg("check").none(), "Converts the precision of an ONNX model.");
  module.def("onnx_casts", &list_model_casts, nb::arg("model"), "Lists the Casts of an ONNX model.");
  module.def("onnx_clean", &clean_model, nb::arg("src"), nb::arg("dst"), nb::arg("allow_lossy_cast_elision"),
             nb::arg("dry_run"), nb::arg("overwrite"), "Removes Casts and Identities that change no value.");
  module.def("onnx_diff", &diff_models, nb::arg("a"), nb::arg("b"), nb::arg("headers_only"),
             "Compares two ONNX models.");
  module.def("onnx_use_tensorcast", &use_tensorcast_in_model, nb::arg("src"), nb::arg("dst"), nb::arg("overwrite"),
             "Rewrites the Casts of an ONNX model for tensorcast's library.");
  module.def("onnx_initializers", &list_model_initializers, nb::arg("model"),
             "Lists the initializers of an ONNX model.");
}

}  // namespace tensorcast::python
