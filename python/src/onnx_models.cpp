#include "onnx_models.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bound_arguments.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::python {

namespace {

// Returns the choice of this name. ValueError names the keyword and the choices.
template <class Choice, std::size_t count>
Choice choice_of(const nb::dict& options, const char* keyword,
                 const std::pair<std::string_view, Choice> (&choices)[count]) {
  const auto given = nb::cast<std::string>(options[keyword]);
  std::string known;
  for (const auto& [word, choice] : choices) {
    if (word == given) return choice;
    known += known.empty() ? "" : ", ";
    known += word;
  }
  throw nb::value_error((std::string(keyword) + "= is one of " + known + ", not '" + given + "'").c_str());
}

std::vector<std::string> names_in(const nb::dict& options, const char* keyword) {
  return nb::cast<std::vector<std::string>>(options[keyword]);
}

// Returns the outcome as a dictionary. The GIL is released.
nb::dict convert_model(const std::string& src, const std::string& dst, nb::handle to, const nb::dict& options) {
  using onnx::Masks;
  using onnx::OnOverflow;
  using onnx::Runtime;
  onnx::ConvertRequest request;
  request.input = src;
  request.output = dst;
  request.to = dtype_of(to);
  for (const nb::handle from : nb::borrow<nb::list>(options["from_"])) request.from.push_back(dtype_of(from));
  request.keep_io_types = nb::cast<bool>(options["keep_io_types"]);
  request.keep_io_names = names_in(options, "keep_io_names");
  request.keep_op_types = names_in(options, "keep_ops");
  request.keep_nodes = names_in(options, "keep_nodes");
  request.weights_only = nb::cast<bool>(options["weights_only"]);
  request.overwrite = nb::cast<bool>(options["overwrite"]);
  request.runtime =
      choice_of<Runtime>(options, "runtime", {{"onnxruntime_cpu", Runtime::onnxruntime_cpu}, {"any", Runtime::any}});
  request.on_overflow = choice_of<OnOverflow>(options, "on_overflow",
                                              {{"keep_high", OnOverflow::keep_high},
                                               {"clamp", OnOverflow::clamp},
                                               {"inf", OnOverflow::inf},
                                               {"error", OnOverflow::error}});
  request.masks = choice_of<Masks>(options, "masks",
                                   {{"finite", Masks::finite}, {"inf", Masks::inf}, {"as_others", Masks::as_others}});
  Result<onnx::ConvertOutcome> outcome = Error{};
  {
    const nb::gil_scoped_release released;
    outcome = onnx::convert(request);
  }
  const onnx::ConvertOutcome done = checked(std::move(outcome));
  nb::list kept;
  for (const onnx::KeptNode& node : done.kept) {
    nb::dict row;
    row["name"] = node.name;
    row["op_type"] = node.op_type;
    row["reason"] = node.reason;
    kept.append(row);
  }
  nb::dict summary;
  summary["nodes"] = done.nodes;
  summary["nodes_converted"] = done.nodes_converted;
  summary["values_changed"] = done.values_changed;
  summary["casts_before"] = done.casts_before;
  summary["casts_added"] = done.casts_added;
  summary["casts_removed"] = done.casts_removed;
  summary["initializers_converted"] = done.initializers_converted;
  summary["initializer_bytes_before"] = done.initializer_bytes_before;
  summary["initializer_bytes_after"] = done.initializer_bytes_after;
  summary["kept"] = kept;
  return summary;
}

}  // namespace

void bind_onnx_models(nb::module_& module) {
  module.def("onnx_convert", &convert_model, nb::arg("src"), nb::arg("dst"), nb::arg("to"), nb::arg("options"),
             "Converts the precision of an ONNX model.");
}

}  // namespace tensorcast::python
