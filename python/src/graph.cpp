// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bound_arguments.hpp"
#include "graph_tensor.hpp"
#include "path_argument.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"
#include "tensorcast/node.hpp"

namespace tensorcast::python {
namespace {

using Shape = std::optional<std::vector<std::int64_t>>;
using Named = std::vector<std::pair<std::string, Tensor>>;

Named named(std::vector<NamedTensor>&& tensors) {
  Named pairs;
  for (NamedTensor& tensor : tensors) pairs.emplace_back(std::move(tensor.name), std::move(tensor.tensor));
  return pairs;
}

nb::object dtype_name(DType dtype) {
  return dtype == DType::undefined ? nb::none() : nb::object(nb::str(name(dtype).data(), name(dtype).size()));
}

// Returns (name, dtype or None, shape or None, whether a run may omit it); unknown lengths are None.
nb::list described(std::span<const ValueInfo> values) {
  nb::list list;
  for (const ValueInfo& value : values) {
    nb::object shape = nb::none();
    if (value.shape) {
      nb::list dimensions;
      for (const std::int64_t dimension : *value.shape) {
        dimensions.append(dimension < 0 ? nb::none() : nb::object(nb::int_(dimension)));
      }
      shape = nb::tuple(dimensions);
    }
    list.append(nb::make_tuple(value.name, dtype_name(value.dtype), shape, value.default_value.has_value()));
  }
  return list;
}

void add_node(Graph& graph, const std::string& name, Operation operation, std::vector<std::string> inputs,
              std::vector<std::string> outputs) {
  graph.nodes.push_back({name, std::move(operation), std::move(inputs), std::move(outputs)});
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor>(module, "Tensor", "An immutable tensor in packed storage.")
      .def(
          "__init__",
          [](Tensor* self, nb::handle storage, nb::handle dtype, const std::vector<std::int64_t>& shape) {
            new (self) Tensor(tensor_on_array(storage, dtype, shape));
          },
          nb::arg("storage"), nb::arg("dtype"), nb::arg("shape"), "On the memory of a contiguous array.")
      .def_static("of_texts", &tensor_of_texts, nb::arg("texts"), nb::arg("shape"), "Strings.")
      .def_prop_ro("dtype", [](const Tensor& self) { return dtype_name(self.dtype()); })
      .def_prop_ro("shape",
                   [](const Tensor& self) {
                     return nb::tuple(nb::cast(std::vector<std::int64_t>(self.shape().begin(), self.shape().end())));
                   })
      .def("storage", &array_on_tensor, "The packed storage as flat uint8, on the same memory.")
      .def("texts", &texts_of_tensor, "The strings.")
      .def(
          "shares_with",
          [](const Tensor& self, const Tensor& other) {
            return self.dtype() == other.dtype() && !self.bytes().empty() &&
                   self.bytes().data() == other.bytes().data() && self.bytes().size() == other.bytes().size();
          },
          nb::arg("other"), "Whether both are of the same elements in the same memory.");
}

// BitCast and the operators of linear quantization.
void bind_codes(nb::class_<Graph>& graph) {
  graph
      .def(
          "add_bit_cast",
          [](Graph& self, const std::string& name, const std::string& input, nb::handle to, const std::string& output) {
            add_node(self, name, BitCastOp{dtype_of(to)}, {input}, {output});
          },
          nb::arg("name"), nb::arg("input"), nb::arg("to"), nb::arg("output"))
      .def(
          "add_quantize_linear",
          [](Graph& self, const std::string& name, const std::vector<std::string>& inputs, const std::string& output,
             int opset, std::int64_t axis, std::int64_t block_size, bool saturate, nb::handle output_dtype,
             nb::handle precision) {
            add_node(self, name,
                     QuantizeLinearOp{opset, axis, block_size, saturate, dtype_or_undefined(output_dtype),
                                      dtype_or_undefined(precision)},
                     inputs, {output});
          },
          nb::arg("name"), nb::arg("inputs"), nb::arg("output"), nb::arg("opset"), nb::arg("axis"),
          nb::arg("block_size"), nb::arg("saturate"), nb::arg("output_dtype").none(), nb::arg("precision").none())
      .def(
          "add_dequantize_linear",
          [](Graph& self, const std::string& name, const std::vector<std::string>& inputs, const std::string& output,
             int opset, std::int64_t axis, std::int64_t block_size, nb::handle output_dtype) {
            add_node(self, name, DequantizeLinearOp{opset, axis, block_size, dtype_or_undefined(output_dtype)}, inputs,
                     {output});
          },
          nb::arg("name"), nb::arg("inputs"), nb::arg("output"), nb::arg("opset"), nb::arg("axis"),
          nb::arg("block_size"), nb::arg("output_dtype").none())
      .def(
          "add_dynamic_quantize_linear",
          [](Graph& self, const std::string& name, const std::string& input, const std::vector<std::string>& outputs) {
            add_node(self, name, DynamicQuantizeLinearOp{}, {input}, outputs);
          },
          nb::arg("name"), nb::arg("input"), nb::arg("outputs"));
}

void bind_builder(nb::module_& module) {
  nb::class_<Graph> graph(module, "Graph", "A graph of conversions, to be compiled.");
  bind_codes(graph);
  graph
      .def(
          "__init__",
          [](Graph* self, const std::string& name) {
            new (self) Graph();
            self->name = name;
          },
          nb::arg("name"))
      .def(
          "add_input",
          [](Graph& self, const std::string& name, nb::handle dtype, const Shape& shape,
             const std::optional<Tensor>& value) {
            self.inputs.push_back({name, dtype_or_undefined(dtype), shape, value});
          },
          nb::arg("name"), nb::arg("dtype").none(), nb::arg("shape").none(), nb::arg("default").none())
      .def(
          "add_output",
          [](Graph& self, const std::string& name, nb::handle dtype, const Shape& shape) {
            self.outputs.push_back({name, dtype_or_undefined(dtype), shape, {}});
          },
          nb::arg("name"), nb::arg("dtype").none(), nb::arg("shape").none())
      .def(
          "add_constant",
          [](Graph& self, const std::string& name, const Tensor& value, const std::string& output) {
            add_node(self, name, ConstantOp{value}, {}, {output});
          },
          nb::arg("name"), nb::arg("value"), nb::arg("output"))
      .def(
          "add_cast",
          [](Graph& self, const std::string& name, const std::string& input, nb::handle to, const std::string& output,
             const nb::dict& options) {
            add_node(self, name, CastOp{dtype_of(to), options_of(options)}, {input}, {output});
          },
          nb::arg("name"), nb::arg("input"), nb::arg("to"), nb::arg("output"), nb::arg("options"))
      .def(
          "add_cast_like",
          [](Graph& self, const std::string& name, const std::string& input, const std::string& target_type,
             const std::string& output, const nb::dict& options) {
            add_node(self, name, CastLikeOp{options_of(options)}, {input, target_type}, {output});
          },
          nb::arg("name"), nb::arg("input"), nb::arg("target_type"), nb::arg("output"), nb::arg("options"))
      .def(
          "add_convert_promote_types",
          [](Graph& self, const std::string& name, const std::pair<std::string, std::string>& inputs,
             const std::pair<std::string, std::string>& outputs, bool promote_unsafe, bool pytorch_scalar_promotion,
             nb::handle u64_integer_promotion_target, const nb::dict& options) {
            PromoteOptions promote;
            promote.promote_unsafe = promote_unsafe;
            promote.pytorch_scalar_promotion = pytorch_scalar_promotion;
            promote.u64_integer_promotion_target = dtype_of(u64_integer_promotion_target);
            add_node(self, name, ConvertPromoteTypesOp{promote, options_of(options)}, {inputs.first, inputs.second},
                     {outputs.first, outputs.second});
          },
          nb::arg("name"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("promote_unsafe"),
          nb::arg("pytorch_scalar_promotion"), nb::arg("u64_integer_promotion_target"), nb::arg("options"))
      .def(
          "add_identity",
          [](Graph& self, const std::string& name, const std::string& input, const std::string& output) {
            add_node(self, name, IdentityOp{}, {input}, {output});
          },
          nb::arg("name"), nb::arg("input"), nb::arg("output"))
      .def(
          "add_if",
          [](Graph& self, const std::string& name, const std::string& condition,
             const std::vector<std::string>& outputs, const Graph& then_branch, const Graph& else_branch) {
            add_node(self, name,
                     IfOp{std::make_shared<const Graph>(then_branch), std::make_shared<const Graph>(else_branch)},
                     {condition}, outputs);
          },
          nb::arg("name"), nb::arg("condition"), nb::arg("outputs"), nb::arg("then_branch"), nb::arg("else_branch"))
      .def_ro("name", &Graph::name)
      .def("steps", &steps_of, "The calls of these methods that build the graph again.")
      .def("compile", [](const Graph& self) { return checked(Program::compile(self)); });
}

void bind_program(nb::module_& module) {
  nb::class_<Program>(module, "Program", "A graph that was checked and put in order.")
      .def("inputs", [](const Program& self) { return described(self.inputs()); })
      .def("outputs", [](const Program& self) { return described(self.outputs()); })
      .def(
          "run",
          [](const Program& self, const Named& inputs, int threads) {
            std::vector<NamedTensor> tensors;
            for (const auto& [name, tensor] : inputs) tensors.push_back({name, tensor});
            return named(checked(without_gil([&]() { return self.run(tensors, {.threads = threads}); })));
          },
          nb::arg("inputs"), nb::arg("threads"), "Named tensors to named tensors, with the GIL released.");
  module.def(
      "load_model",
      [](const std::optional<PathText>& path, const std::optional<nb::bytes>& bytes, const std::string& format,
         bool mdf_reference, const nb::dict& input_types) {
        std::map<std::string, DType, std::less<>> types;
        for (const auto& [name, dtype] : input_types) types[nb::cast<std::string>(name)] = dtype_or_undefined(dtype);
        const LoadModelOptions options{
            .format = format,
            .mdf_semantics = mdf_reference ? MdfSemantics::mdf_reference : MdfSemantics::onnx,
            .input_type = [&](std::string_view input) {
              const auto found = types.find(input);
              return found == types.end() ? DType::undefined : found->second;
            }};
        std::span<const std::byte> content;
        if (bytes) content = {static_cast<const std::byte*>(bytes->data()), bytes->size()};
        Result<Model> model = Error{};
        Result<Program> program = Error{};
        {
          const nb::gil_scoped_release released;
          model = path ? tensorcast::load_model(*path, options) : tensorcast::parse_model(content, options);
          if (model) program = Program::compile(model->graph);
        }
        const Model loaded = checked(std::move(model));
        if (!program && program.error().file.empty()) program.error().file = path.value_or(PathText());
        return nb::make_tuple(loaded.format, loaded.graph, checked(std::move(program)));
      },
      nb::arg("path").none(), nb::arg("content").none(), nb::arg("format"), nb::arg("mdf_reference"),
      nb::arg("input_types"), "Format, graph and program of a model in a file or in memory.");
  module.def(
      "add_cast",
      [](const PathText& src, const PathText& dst, const std::string& tensor, nb::handle to, bool saturate,
         const std::string& node_name, const std::string& output_name, bool overwrite) {
        const AddCastRequest request{.input = src,
                                     .output = dst,
                                     .tensor = tensor,
                                     .to = dtype_of(to),
                                     .node_name = node_name,
                                     .output_name = output_name,
                                     .saturate = saturate,
                                     .overwrite = overwrite};
        const AddCastOutcome done = checked(without_gil([&]() { return tensorcast::add_cast(request); }));
        nb::dict fields;
        fields["node_name"] = done.node_name;
        fields["output_name"] = done.output_name;
        fields["rewired"] = done.rewired;
        fields["graph_output_renamed"] = done.graph_output_renamed;
        return fields;
      },
      nb::arg("src"), nb::arg("dst"), nb::arg("tensor"), nb::arg("to"), nb::arg("saturate"), nb::arg("node_name"),
      nb::arg("output_name"), nb::arg("overwrite"), "Adds a Cast to an ONNX model.");
}

using GuardedCast = Guarded<CastNode>;
using GuardedCastLike = Guarded<CastLikeNode>;

CastNodeParameters parameters_of(nb::handle to, const std::string& name, const std::vector<std::string>& outputs,
                                 bool training, double lda_coeff, bool zero_saturated_gradient,
                                 const nb::dict& options) {
  CastNodeParameters parameters;
  parameters.specified_outputs_name = outputs;
  parameters.name = name;
  parameters.to = dtype_or_undefined(to);
  parameters.training = training;
  parameters.lda_coeff = lda_coeff;
  parameters.zero_saturated_gradient = zero_saturated_gradient;
  parameters.options = options_of(options);
  return parameters;
}

template <class Node>
void bind_node(nb::class_<Guarded<Node>>& bound) {
  bound
      .def(
          "backward",
          [](Guarded<Node>& self, const Tensor& grad_output) {
            return checked(self.use([&](Node& node) { return node.backward(grad_output); }));
          },
          nb::arg("grad_output"))
      .def_prop_ro("output_name", [](const Guarded<Node>& self) { return self->output_name(); })
      .def_prop_ro("saved_bytes",
                   [](Guarded<Node>& self) { return self.use([](Node& node) { return node.saved_bytes(); }); });
}

void bind_nodes(nb::module_& module) {
  nb::class_<GuardedCast> cast(module, "CastNode", "Cast as a layer.");
  cast.def(
          "__init__",
          [](GuardedCast* self, nb::handle to, const std::string& name, const std::vector<std::string>& outputs,
             bool training, double lda_coeff, bool zero_saturated_gradient, const nb::dict& options) {
            new (self) GuardedCast(checked(CastNode::create(
                parameters_of(to, name, outputs, training, lda_coeff, zero_saturated_gradient, options))));
          },
          nb::arg("to").none(), nb::arg("name"), nb::arg("specified_outputs_name"), nb::arg("training"),
          nb::arg("lda_coeff"), nb::arg("zero_saturated_gradient"), nb::arg("options"))
      .def(
          "forward",
          [](GuardedCast& self, const Tensor& input) {
            return named(checked(self.use([&](CastNode& node) { return node.forward(input); })));
          },
          nb::arg("input"));
  bind_node(cast);
  nb::class_<GuardedCastLike> like(module, "CastLikeNode", "CastLike as a layer.");
  like.def(
          "__init__",
          [](GuardedCastLike* self, const std::string& name, const std::vector<std::string>& outputs, bool training,
             double lda_coeff, bool zero_saturated_gradient, const nb::dict& options) {
            new (self) GuardedCastLike(checked(CastLikeNode::create(
                parameters_of(nb::none(), name, outputs, training, lda_coeff, zero_saturated_gradient, options))));
          },
          nb::arg("name"), nb::arg("specified_outputs_name"), nb::arg("training"), nb::arg("lda_coeff"),
          nb::arg("zero_saturated_gradient"), nb::arg("options"))
      .def(
          "forward",
          [](GuardedCastLike& self, const Tensor& input, const Tensor& target_type) {
            return named(checked(self.use([&](CastLikeNode& node) { return node.forward(input, target_type); })));
          },
          nb::arg("input"), nb::arg("target_type"));
  bind_node(like);
}

}  // namespace

void bind_graph(nb::module_& module) {
  bind_tensor(module);
  bind_builder(module);
  bind_program(module);
  bind_nodes(module);
}

}  // namespace tensorcast::python
