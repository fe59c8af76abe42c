// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/model_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/edit/data_record.hpp"
#include "models/onnx/edit/retyped_declaration.hpp"
#include "models/onnx/edit/splice_node.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast::models::onnx {
namespace {

std::string encode_tensor(DType dtype, std::span<const std::int64_t> shape, std::span<const std::byte> bytes) {
  using formats::onnx::Field;
  std::string text;
  for (const std::int64_t dimension : shape) {
    text += encode_varint_field(Field::dims, static_cast<std::uint64_t>(dimension));
  }
  return text + encode_varint_field(Field::data_type, dtype) +
         encode_field(Field::raw_data, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string tensor_attribute(std::string_view name, const std::string& tensor) {
  return encode_attribute(name, AttributeType::tensor, encode_field(attribute_field::t, tensor));
}

}  // namespace

ModelWriter::ModelWriter(const io::InputFile& file, const PrecisionPlan& plan, const CastElision& elision,
                         ExternalFiles& external, const TensorPlacement& placement)
    : file_(file), plan_(plan), elision_(elision), external_(external), placement_(placement) {
  name_forms();
}

void ModelWriter::need_other(ValueId id, DType element) {
  id = elision_.source(id);
  if (id == no_value || element == plan_.produced(id)) return;
  std::vector<Form>& others = forms_[id].others;
  if (find_row(others, &Form::element, element) == nullptr) others.push_back({.element = element});
}

void ModelWriter::name_forms() {
  const Model& model = plan_.model();
  forms_.resize(model.values.size());
  output_elements_.resize(model.values.size());
  scale_names_.resize(model.values.size());
  each_graph(plan_.model(), [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (elision_.removal(node) != Removal::none) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != no_value) need_other(node.inputs[i], plan_.taken(node, i));
      }
    }
    for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
      const ValueId id = graph.outputs[k].value;
      const DType element = plan_.given_back(graph, k);
      need_other(id, element);
      if (&graph == model.graph.get() && element != plan_.produced(id)) {
        output_elements_[elision_.source(id)] = element;
      }
    }
  });
  FreshNames values(model.value_names);
  FreshNames nodes(model.node_names);
  for (ValueId id = 0; id < forms_.size(); ++id) {
    Forms& forms = forms_[id];
    const std::string& own = elision_.name(id);
    forms.produced = own;
    if (plan_.has_copy(id)) need_other(id, plan_.settings().to);
    const auto named = [&](DType element) { return values.take(fmt::format("{}_{}", own, name(element))); };
    if (output_elements_[id] != DType::undefined) forms.produced = named(plan_.produced(id));
    for (Form& form : forms.others) {
      form.name = form.element == output_elements_[id] ? own : named(form.element);
      form.cast_name = nodes.take(fmt::format("Cast_{}_{}", own, name(form.element)));
    }
    const bool is_quantized = plan_.quantization(id) != nullptr && plan_.produced(id) == plan_.settings().to;
    if (is_quantized && !forms.others.empty()) {
      scale_names_[id] = name_scales(own, *plan_.quantization(id), values, nodes);
    }
  }
}

ModelWriter::ScaleNames ModelWriter::name_scales(const std::string& own, const Quantization& quantization,
                                                 FreshNames& values, FreshNames& nodes) const {
  ScaleNames names{.stored = values.take(own + "_scale")};
  if (!quantization.recipe().symmetric) names.zeros = values.take(own + "_zero_point");
  if (!quantization.recipe().has_float_scales()) {
    names.numbers = values.take(names.stored + "_float32");
    names.node = nodes.take("Cast_" + names.numbers);
    if (quantization.recipe().has_tensor_scale) names.tensor = values.take(own + "_scale_2");
  }
  if (quantization.is_wide()) {
    names.wide = values.take(own + "_float32");
    names.wide_node = nodes.take("Cast_" + names.wide);
  }
  return names;
}

const std::string& ModelWriter::name_in(ValueId id, DType element) const {
  id = elision_.source(id);
  const Forms& forms = forms_[id];
  const Form* form = find_row(forms.others, &Form::element, element);
  return element == plan_.produced(id) || form == nullptr ? forms.produced : form->name;
}

bool ModelWriter::keeps_name(ValueId id) const {
  const Value& value = plan_.model().values[id];
  const bool is_made = value.producer == nullptr || elision_.removal(*value.producer) == Removal::none;
  return is_made && elision_.source(id) == id && forms_[id].produced == value.name;
}

std::string ModelWriter::cast_node(ValueId id, const Form& form) const {
  const std::int64_t opset = plan_.model().values[id].graph->opset("");
  return encode_node({.op_type = "Cast",
                      .inputs = {forms_[id].produced},
                      .outputs = {form.name},
                      .name = form.cast_name,
                      .attributes = {encode_cast_target(form.element, opset)}});
}

// Scales of 8 bits become float32 by a node of their own, as DequantizeLinear takes no float8_e4m3fn, and ONNX's
// reference and ONNX Runtime no float8_e8m0fnu.
void ModelWriter::add_dequantize(WireRope& rope, std::uint32_t field, ValueId id, const Form& form) {
  const Quantization& quantization = *plan_.quantization(id);
  const WeightRecipe& recipe = quantization.recipe();
  const ScaleNames& names = scale_names_[id];
  const auto node = [&](const NewNode& made) {
    rope.text(encode_field(field, encode_node(made)));
    ++counts_.casts_added;
  };
  if (!names.tensor.empty()) {
    node({"DequantizeLinear", {names.stored, names.tensor}, {names.numbers}, names.node});
  } else if (!names.numbers.empty()) {
    node({"Cast", {names.stored}, {names.numbers}, names.node, {encode_int_attribute("to", DType::float32)}});
  }
  std::vector<std::string> attributes;
  if (quantization.has_axis()) attributes.push_back(encode_int_attribute("axis", quantization.axis()));
  if (recipe.block != 0) {
    attributes.push_back(encode_int_attribute("block_size", static_cast<std::uint64_t>(recipe.block)));
  }
  const std::string& scales = names.numbers.empty() ? names.stored : names.numbers;
  const bool is_rounded = !names.wide.empty();
  std::vector<std::string> inputs = {forms_[id].produced, scales};
  if (!names.zeros.empty()) inputs.push_back(names.zeros);
  node({"DequantizeLinear",
        inputs,
        {is_rounded ? names.wide : form.name},
        is_rounded ? names.wide_node : form.cast_name,
        attributes});
  if (is_rounded) node({"Cast", {names.wide}, {form.name}, form.cast_name, {encode_int_attribute("to", form.element)}});
}

void ModelWriter::add_casts(WireRope& rope, std::uint32_t field, ValueId id) {
  for (const Form& form : forms_[id].others) {
    if (plan_.has_copy(id) && form.element == plan_.settings().to) continue;
    if (!scale_names_[id].stored.empty()) {
      add_dequantize(rope, field, id, form);
      continue;
    }
    rope.text(encode_field(field, cast_node(id, form)));
    ++counts_.casts_added;
  }
}

TensorChange ModelWriter::change_of(ValueId id, DType element) const {
  const ::tensorcast::onnx::ConvertRequest& request = *plan_.settings().request;
  const bool is_target = element == plan_.settings().to;
  return {.to = element,
          .clamp = plan_.fit(id) == Fit::clamp,
          .name = {},
          .min_positive = is_target ? request.min_positive : 0.0,
          .max_finite = is_target ? request.max_finite : 0.0,
          .quantization = is_target ? plan_.quantization(id) : nullptr};
}

Result<WireRope> ModelWriter::model() {
  const Model& model = plan_.model();
  Splice splice(0, file_.size());
  TRY(change_opsets(model.opsets, splice));
  if (!placement_.leave_external) {
    WireReader wire(file_, 0, file_.size());
    TRY(each_field(wire, [&](const WireField& field) -> Result<void> {
      if (field.number != model_field::metadata_props) return {};
      const bool is_old = TRY(is_data_record(file_, field));
      if (is_old) splice.replace_by_fields(field, {});
      return {};
    }));
  }
  TRY(graph(*model.graph, splice));
  for (const auto& original : model.functions) {
    if (original->origin != nullptr) continue;
    TRY(splice.edit(original->body.field, [&](Splice& changed) { return function(*original, changed); }));
    for (const Function* copy : original->copies) {
      Splice copied(copy->body.field);
      TRY(function(*copy, copied));
      splice.insert(end_of(copy->body.field), WireRope(copy->body.field.number, std::move(copied).finish()));
    }
  }
  return std::move(splice).finish();
}

Result<void> ModelWriter::change_opsets(const std::vector<Opset>& opsets, Splice& splice) {
  for (const Opset& opset : opsets) {
    if (opset.version == opset.file_version) continue;
    WireRope contents = TRY(without_field(file_, opset.field, opset_field::version));
    contents.text(encode_varint_field(opset_field::version, static_cast<std::uint64_t>(opset.version)));
    splice.replace(opset.field, std::move(contents));
  }
  return {};
}

Result<void> ModelWriter::retype(const Declaration& declared, DType element, const std::string& shown_name,
                                 Splice& splice) {
  WireRope contents = TRY(retyped_declaration(file_, declared.field, element, shown_name));
  splice.replace(declared.field, std::move(contents));
  return {};
}

// Casts of inputs, initializers and outer values are written before the graph's first node.
Result<void> ModelWriter::nodes(const Graph& graph, std::uint32_t number, Splice& splice) {
  WireRope first;
  for (const Initializer& initializer : graph.initializers) {
    if (scale_names_[initializer.value].stored.empty() || has_scale_initializers()) continue;
    TRY(add_scale_constants(initializer.value, initializer.tensor, number, first));
  }
  for (const Declaration& input : graph.inputs) add_casts(first, number, input.value);
  for (const Initializer& initializer : graph.initializers) {
    if (!plan_.model().values[initializer.value].is_input) add_casts(first, number, initializer.value);
  }
  if (first.size() > 0) {
    splice.insert(graph.nodes.empty() ? end_of(graph.field) : graph.nodes.front().field.begin, std::move(first));
  }
  for (const Node& each : graph.nodes) {
    TRY(node(each, splice));
  }
  return {};
}

Result<void> ModelWriter::graph(const Graph& graph, Splice& around) {
  Splice splice(graph.field);
  // In the order of the file, so that external data is, too.
  const bool nodes_first = graph.initializers.empty() || graph.nodes.empty() ||
                           graph.nodes.front().field.begin < graph.initializers.front().field.begin;
  if (nodes_first) {
    TRY(nodes(graph, graph_field::node, splice));
  }
  for (const Initializer& each : graph.initializers) {
    TRY(initializer(each, splice));
  }
  if (!nodes_first) {
    TRY(nodes(graph, graph_field::node, splice));
  }
  const auto declare = [&](const Declaration& declared, DType element, const std::string& shown_name) -> Result<void> {
    const Value& value = plan_.model().values[declared.value];
    const bool same = element == value.type.element && shown_name == value.name;
    return same || element == DType::undefined ? Result<void>() : retype(declared, element, shown_name, splice);
  };
  for (const Declaration& input : graph.inputs) {
    TRY(declare(input, plan_.produced(input.value), input.name));
  }
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const Declaration& output = graph.outputs[k];
    const DType element = plan_.given_back(graph, k);
    TRY(declare(output, element, name_in(output.value, element)));
  }
  for (const Declaration& info : graph.infos) {
    if (info.value == no_value) continue;
    const DType output = output_elements_[info.value];  // of the Cast that has the output's name
    if (output != DType::undefined && elision_.name(info.value) == info.name) {
      TRY(declare(info, output, info.name));
    } else if (!keeps_name(info.value)) {
      splice.replace_by_fields(info.field, {});
    } else {
      TRY(declare(info, plan_.produced(info.value), info.name));
    }
  }
  if (splice.changed()) around.replace(graph.field, std::move(splice).finish());
  return {};
}

Result<void> ModelWriter::function(const Function& function, Splice& splice) {
  const Graph& body = function.body;
  TRY(change_opsets(function.opsets, splice));
  if (function.origin != nullptr) {
    splice.replace_by_fields(function.name_field, WireRope(encode_field(function_field::name, function.name)));
  }
  TRY(nodes(body, function_field::node, splice));
  for (const Declaration& info : body.infos) {
    if (info.value == no_value) continue;
    const DType element = plan_.produced(info.value);
    if (!keeps_name(info.value)) {
      splice.replace_by_fields(info.field, {});
    } else if (element != DType::undefined && element != info.type.element) {
      TRY(retype(info, element, info.name, splice));
    }
  }
  return {};
}

Result<void> ModelWriter::node(const Node& node, Splice& around) {
  if (elision_.removal(node) != Removal::none) {
    around.replace_by_fields(node.field, {});
    return {};
  }
  Splice splice(node.field);
  const auto inner = [&](const Graph& subgraph, Splice& inside) { return graph(subgraph, inside); };
  TRY(splice_subgraphs(node, splice, inner));
  TRY(attributes(node, splice));
  std::vector<std::string> inputs = node.input_names;
  std::vector<std::string> outputs = node.output_names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] != no_value) inputs[i] = name_in(node.inputs[i], plan_.taken(node, i));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != no_value) outputs[i] = forms_[node.outputs[i]].produced;
  }
  TRY(rename(file_, node, inputs, outputs, node.callee, splice));
  if (splice.changed()) around.replace(node.field, std::move(splice).finish());
  WireRope casts;
  for (const ValueId id : node.outputs) {
    if (id == no_value) continue;
    const bool is_weight = !scale_names_[id].stored.empty();
    if (is_weight) TRY(add_scale_constants(id, node.attribute("value")->tensor, node.field.number, casts));
    add_casts(casts, node.field.number, id);
  }
  if (casts.size() > 0) around.insert(end_of(node.field), std::move(casts));
  return {};
}

// Changes attributes, and adds one that is needed.
Result<void> ModelWriter::attributes(const Node& node, Splice& splice) {
  const ValueId first = node.outputs.empty() ? no_value : node.outputs.front();
  const bool standard = node.domain.empty();
  const bool retyped =
      standard && first != no_value && plan_.produced(first) != plan_.model().values[first].type.element;
  const DType to = first == no_value ? DType::undefined : plan_.produced(first);
  const TypeAttribute* row = retyped ? type_attribute(node.op_type) : nullptr;
  for (const Attribute& attribute : node.attributes) {
    if (!attribute.graphs.empty()) continue;
    Result<WireRope> contents = WireRope();
    if (retyped && (node.op_type == "Constant" || (node.op_type == "ConstantOfShape" && attribute.name == "value"))) {
      contents = constant_tensor(node, attribute, to);
    } else if (row != nullptr && attribute.name == row->attribute) {
      const bool is_word = attribute.type == AttributeType::string;
      // 0: as the scale. ONNX Runtime 1.31.1 does not load a model where it computes this node in another type than
      // the attribute names.
      const bool as_scale =
          node.op_type == "DequantizeLinear" && node.inputs.size() > 1 && plan_.taken(node, 1) == plan_.produced(first);
      contents->text(is_word ? encode_string_attribute(attribute.name, cast_word(to))
                             : encode_int_attribute(attribute.name, as_scale ? DType::undefined : to));
    } else if (attribute.tensor_is_external && attribute.type == AttributeType::tensor && !placement_.leave_external) {
      contents = with_message(file_, attribute.field, attribute_field::t,
                              [&](const WireField&) { return convert_tensor(file_, attribute.tensor, {}, nullptr); });
    }
    WireRope changed = TRY(std::move(contents));
    if (changed.size() > 0) splice.replace(attribute.field, std::move(changed));
  }
  std::string added;
  if (row != nullptr && row->absent != DType::undefined && node.attribute(row->attribute) == nullptr) {
    added = encode_int_attribute(row->attribute, to);
  }
  if (retyped && node.op_type == "ConstantOfShape" && node.attribute("value") == nullptr) {
    const std::int64_t shape[] = {1};
    const std::vector<std::byte> zero(storage_bytes(to, 1));
    added = tensor_attribute("value", encode_tensor(to, shape, zero));
  }
  if (added.empty()) return {};
  splice.insert(end_of(node.field), WireRope(encode_field(node_field::attribute, added)));
  return {};
}

// Returns the attribute of a Constant or ConstantOfShape in another type; empty if it does not hold the value.
Result<WireRope> ModelWriter::constant_tensor(const Node& node, const Attribute& attribute, DType to) {
  TensorChange change = change_of(node.outputs.front(), to);
  const std::uint64_t count = std::max<std::uint64_t>(attribute.tensor_count, attribute.floats.size());
  ++counts_.initializers_converted;
  counts_.initializer_bytes_before += storage_bytes(plan_.model().values[node.outputs.front()].type.element, count);
  counts_.initializer_bytes_after += storage_bytes(to, count);
  if (attribute.name == "value") {
    return with_message(file_, attribute.field, attribute_field::t,
                        [&](const WireField&) { return convert_tensor(file_, attribute.tensor, change, nullptr); });
  }
  if (attribute.name == "sparse_value") {
    return with_message(file_, attribute.field, attribute_field::sparse_tensor,
                        [&](const WireField& field) { return sparse_tensor(field, change); });
  }
  WireRope rope;
  if (attribute.name != "value_float" && attribute.name != "value_floats") return rope;
  std::vector<std::int64_t> shape;
  if (attribute.name == "value_floats") shape.push_back(static_cast<std::int64_t>(attribute.floats.size()));
  std::vector<std::byte> bytes(storage_bytes(to, attribute.floats.size()));
  std::vector<double> numbers(attribute.floats.begin(), attribute.floats.end());
  if (change.clamp) change.max_finite = number_facts(to).largest;
  limit_numbers(change, numbers);
  TRY(cast(TensorView{DType::float64, shape, std::as_bytes(std::span(numbers))}, MutableTensorView{to, shape, bytes}));
  rope.text(tensor_attribute("value", encode_tensor(to, shape, bytes)));
  return rope;
}

Result<WireRope> ModelWriter::sparse_tensor(const WireField& field, const TensorChange& change) {
  return with_message(file_, field, sparse_tensor_field::values, [&](const WireField& values) {
    return convert_tensor(file_, {values.offset, values.length}, change, nullptr);
  });
}

ExternalFiles* ModelWriter::place_of(const Initializer& initializer, std::uint64_t bytes) const {
  if (placement_.all_inside) return nullptr;
  const bool is_outside = initializer.external && !placement_.only_larger;
  return is_outside || bytes > placement_.inline_limit ? &external_ : nullptr;
}

// Returns the scales of a quantized weight as tensors, with its zero points and the scale of the whole weight if it has
// them.
Result<std::vector<WireRope>> ModelWriter::scales_of(ValueId id, ByteRange tensor, ExternalFiles* external) {
  using formats::onnx::Field;
  const std::shared_ptr<const Quantization>& quantization = plan_.quantization(id);
  const ScaleNames& names = scale_names_[id];
  counts_.initializer_bytes_after += quantization->scales_bytes();
  std::vector<WireRope> tensors;
  tensors.push_back(TRY(scales_tensor(file_, tensor, ScalePart::scales, names.stored, quantization, external)));
  if (!names.zeros.empty()) {
    counts_.initializer_bytes_after += quantization->zero_points_bytes();
    tensors.push_back(TRY(scales_tensor(file_, tensor, ScalePart::zero_points, names.zeros, quantization, external)));
  }
  if (names.tensor.empty()) return tensors;
  counts_.initializer_bytes_after += sizeof(float);
  WireRope data;
  data.produce(sizeof(float), [quantization](io::OutputFile& target) -> Result<void> {
    const float scale = TRY(quantization->tensor_scale());
    return target.append(std::as_bytes(std::span(&scale, 1)));
  });
  WireRope& whole = tensors.emplace_back();
  whole.text(encode_varint_field(Field::data_type, DType::float32) + encode_field(Field::name, names.tensor));
  whole.message(Field::raw_data, std::move(data));
  return tensors;
}

// Adds Constants of the scales of a quantized weight: behind a weight that is a Constant, and before IR version 4,
// where an initializer has to be an input of the model.
Result<void> ModelWriter::add_scale_constants(ValueId id, ByteRange tensor, std::uint32_t field, WireRope& rope) {
  const ScaleNames& names = scale_names_[id];
  std::vector<WireRope> tensors = TRY(scales_of(id, tensor, nullptr));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    WireRope attribute(encode_field(attribute_field::name, "value") +
                       encode_varint_field(attribute_field::type, static_cast<std::uint64_t>(AttributeType::tensor)));
    attribute.message(attribute_field::t, std::move(tensors[i]));
    const std::string& output = i == 0 ? names.stored : !names.zeros.empty() ? names.zeros : names.tensor;
    WireRope made(encode_node({.op_type = "Constant", .inputs = {}, .outputs = {output}}));
    made.message(node_field::attribute, std::move(attribute));
    rope.message(field, std::move(made));
  }
  return {};
}

Result<void> ModelWriter::initializer(const Initializer& initializer, Splice& splice) {
  const ValueId id = initializer.value;
  const DType produced = plan_.produced(id);
  const bool converts = produced != initializer.element;
  const WireField& field = initializer.field;
  WireRope made;
  const auto bytes_in = [&](DType element) {
    return storage_bytes(element, static_cast<std::size_t>(initializer.count));
  };
  const auto placed = [&](DType element) { return place_of(initializer, bytes_in(element)); };
  const auto emit = [&](const TensorChange& change, DType element) -> Result<void> {
    WireRope contents = TRY(initializer.sparse ? sparse_tensor(field, change)
                                               : convert_tensor(file_, initializer.tensor, change, placed(element)));
    made.message(field.number, std::move(contents));
    return {};
  };
  const auto count = [&](DType element) {
    ++counts_.initializers_converted;
    counts_.initializer_bytes_before += bytes_in(initializer.element);
    counts_.initializer_bytes_after += bytes_in(element);
  };
  const bool moves = initializer.external ? !placement_.leave_external : placed(produced) != nullptr;
  if (converts) {
    count(produced);
    TRY(emit(change_of(id, produced), produced));
    if (!scale_names_[id].stored.empty() && has_scale_initializers()) {
      ExternalFiles* place = place_of(initializer, plan_.quantization(id)->scales_bytes());
      for (WireRope& scales : TRY(scales_of(id, initializer.tensor, place)))
        made.message(field.number, std::move(scales));
    }
  } else if (!initializer.sparse && is_onnx(initializer.element) && initializer.element != DType::string && moves) {
    TRY(emit({}, produced));
  } else if (plan_.has_copy(id)) {
    made.copy(field.begin, end_of(field));
  }
  if (plan_.has_copy(id)) {
    const DType element = plan_.settings().to;
    count(element);
    TensorChange copy = change_of(id, element);
    copy.name = name_in(id, element);
    TRY(emit(copy, element));
  }
  if (made.size() > 0) splice.replace_by_fields(field, std::move(made));
  return {};
}

}  // namespace tensorcast::models::onnx
