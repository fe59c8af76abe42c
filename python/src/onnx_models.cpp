// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "convert_request.hpp"
#include "models/onnx/model_options.hpp"
#include "models/onnx/model_results.hpp"
#include "path_argument.hpp"
#include "result_rows.hpp"
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

// Reads a truth value, or a scheme.
void read_weights_only(nb::handle given, onnx::ConvertRequest& request) {
  if (PyUnicode_Check(given.ptr())) {
    request.weights_scheme = nb::cast<std::string>(given);
    request.weights_only = true;
  } else if (truth_value(nb::str("weights_only").ptr(), given.ptr(), request.weights_only) != 1) {
    throw nb::python_error();
  }
}

onnx::ConvertRequest request_of_model(const PathText& src, const PathText& dst, nb::handle to, bool overwrite,
                                      const nb::dict& given) {
  onnx::ConvertRequest request;
  request.input = src;
  request.output = dst;
  if (!to.is_none()) request.to = dtype_of(to);
  request.overwrite = overwrite;
  options::for_each(options::model_options, [&](const auto& option) {
    if (!given.contains(option.name)) return;
    if constexpr (options::is_io_types<std::decay_t<decltype(option)>>) {
      read_io_types(given[option.name], request);
    } else if constexpr (options::is_weights_scheme<std::decay_t<decltype(option)>>) {
      read_weights_only(given[option.name], request);
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

// Calls `check(path)` with the GIL. An exception stays pending.
std::function<Result<void>(const std::string&)> check_of(nb::handle check) {
  return [check](const std::string& made) -> Result<void> {
    const nb::gil_scoped_acquire acquired;
    try {
      check(PathText{made});
      return {};
    } catch (nb::python_error& error) {
      error.restore();
      return Error{.code = ErrorCode::cancelled};
    }
  };
}

nb::dict convert_model(const PathText& src, const PathText& dst, nb::handle to, bool overwrite, const nb::dict& options,
                       nb::handle check) {
  onnx::ConvertRequest request = request_of_model(src, dst, to, overwrite, options);
  if (!check.is_none()) request.check = check_of(check);
  request.on_progress = [] {
    const nb::gil_scoped_acquire acquired;
    return PyErr_CheckSignals() == 0;
  };
  const onnx::ConvertOutcome done = released([&] { return onnx::convert(request); });
  return result_row(done);
}

// What the new model needs: the opset and type, and what the runtime lacks.
nb::tuple model_needs(nb::handle to, const nb::dict& options) {
  const onnx::Needs needs = checked(onnx::needs(request_of_model({}, {}, to, false, options)));
  return nb::make_tuple(needs.opset, std::string(name(needs.to)), needs.missing_kernel);
}

nb::object list_model_casts(const PathText& model) {
  return value_row(released([&] { return onnx::list_casts(model); }));
}

nb::dict clean_model(const PathText& src, const PathText& dst, bool allow_lossy_cast_elision, bool dry_run,
                     bool overwrite) {
  const onnx::CleanRequest request{.input = src,
                                   .output = dst,
                                   .allow_lossy_cast_elision = allow_lossy_cast_elision,
                                   .dry_run = dry_run,
                                   .overwrite = overwrite};
  const onnx::CleanOutcome done = released([&] { return onnx::clean(request); });
  nb::dict summary;
  summary["nodes"] = done.nodes;
  summary["nodes_removed"] = done.removed.size();
  summary["casts_before"] = done.casts;
  summary["casts_after"] = done.casts - done.casts_removed;
  summary["removed"] = value_row(done.removed);
  return summary;
}

nb::dict respell_model(const PathText& src, const PathText& dst, bool to_qdq, bool overwrite) {
  const onnx::RespellRequest request{.input = src,
                                     .output = dst,
                                     .to = to_qdq ? onnx::MatMulSpelling::qdq : onnx::MatMulSpelling::matmulnbits,
                                     .overwrite = overwrite};
  const onnx::RespellOutcome done = released([&] { return onnx::respell(request); });
  nb::dict summary;
  summary["respelled"] = done.respelled;
  summary["left"] = value_row(done.left);
  summary["opset_before"] = done.opset_before;
  summary["opset_after"] = done.opset_after;
  return summary;
}

nb::dict diff_models(const PathText& a, const PathText& b, bool headers_only) {
  const onnx::DiffRequest request{.a = a, .b = b, .headers_only = headers_only};
  return result_row(released([&] { return onnx::diff(request); }));
}

nb::dict use_tensorcast_in_model(const PathText& src, const PathText& dst, bool overwrite) {
  const onnx::UseTensorcastRequest request{.input = src, .output = dst, .overwrite = overwrite};
  const onnx::UseTensorcastOutcome done = released([&] { return onnx::use_tensorcast(request); });
  nb::dict summary;
  summary["rewritten"] = done.rewritten;
  summary["left"] = done.left;
  return summary;
}

nb::object list_model_initializers(const PathText& model) {
  return value_row(released([&] { return onnx::list_initializers(model); }).tensors);
}

}  // namespace

void bind_onnx_models(nb::module_& module) {
  module.def("onnx_convert", &convert_model, nb::arg("src"), nb::arg("dst"), nb::arg("to").none(), nb::arg("overwrite"),
             nb::arg("options"), nb::arg("check").none(), "Converts the precision of an ONNX model.");
  module.def("onnx_needs", &model_needs, nb::arg("to").none(), nb::arg("options"),
             "What a converted ONNX model needs.");
  module.def("onnx_casts", &list_model_casts, nb::arg("model"), "Lists the Casts of an ONNX model.");
  module.def("onnx_clean", &clean_model, nb::arg("src"), nb::arg("dst"), nb::arg("allow_lossy_cast_elision"),
             nb::arg("dry_run"), nb::arg("overwrite"), "Removes Casts and Identities that change no value.");
  module.def("onnx_respell", &respell_model, nb::arg("src"), nb::arg("dst"), nb::arg("to_qdq"), nb::arg("overwrite"),
             "Respells products with 4-bit codes.");
  module.def("onnx_diff", &diff_models, nb::arg("a"), nb::arg("b"), nb::arg("headers_only"),
             "Compares two ONNX models.");
  module.def("onnx_use_tensorcast", &use_tensorcast_in_model, nb::arg("src"), nb::arg("dst"), nb::arg("overwrite"),
             "Rewrites the Casts of an ONNX model for tensorcast's library.");
  module.def("onnx_initializers", &list_model_initializers, nb::arg("model"),
             "Lists the initializers of an ONNX model.");
}

}  // namespace tensorcast::python
