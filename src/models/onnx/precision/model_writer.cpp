#include "models/onnx/precision/model_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/edit/data_record.hpp"
#include "models/onnx/edit/retyped_declaration.hpp"
#include "models/onnx/ir/fresh_names.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::models::onnx {
namespace {

std::string encode_tensor(DType dtype, std::span<const std::int64_t> shape, std::span<const std::byte> bytes) {
  using formats::onnx::Field;
  std::string text;
  for (const std::int64_t dimension : shape) {
    text += encode_varint_field(static_cast<std::uint32_t>(Field::dims), static_cast<std::uint64_t>(dimension));
  }
  text += encode_varint_field(static_cast<std::uint32_t>(Field::data_type), static_cast<std::uint64_t>(dtype));
  return text + encode_field(static_cast<std::uint32_t>(Field::raw_data),
                             std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
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

void ModelWriter::need_other(ValueId id, std::uint32_t element) {
  id = elision_.source(id);
  if (id == no_value || element == plan_.produced(id)) return;
  std::vector<Form>& others = forms_[id].others;
  const bool known =
      std::any_of(others.begin(), others.end(), [&](const Form& form) { return form.element == element; });
  if (!known) others.push_back({.element = element});
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
      const std::uint32_t element = plan_.given_back(graph, k);
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
    const auto named = [&](std::uint32_t element) {
      return values.take(fmt::format("{}_{}", own, name(static_cast<DType>(element))));
    };
    if (output_elements_[id] != 0) forms.produced = named(plan_.produced(id));
    for (Form& form : forms.others) {
      form.name = form.element == output_elements_[id] ? own : named(form.element);
      form.cast_name = nodes.take(fmt::format("Cast_{}_{}", own, name(static_cast<DType>(form.element))));
    }
    const bool is_quantized = plan_.quantization(id) != nullptr && plan_.produced(id) == plan_.settings().to;
    if (is_quantized && !forms.others.empty()) scale_names_[id] = values.take(own + "_scale");
  }
}

const std::string& ModelWriter::name_in(ValueId id, std::uint32_t element) const {
  id = elision_.source(id);
  const Forms& forms = forms_[id];
  const auto form = std::find_if(forms.others.begin(), forms.others.end(),
                                 [&](const Form& other) { return other.element == element; });
  return element == plan_.produced(id) || form == forms.others.end() ? forms.produced : form->name;
}

bool ModelWriter::keeps_name(ValueId id) const {
  const Value& value = plan_.model().values[id];
  const bool is_made = value.producer == nullptr || elision_.removal(*value.producer) == Removal::none;
  return is_made && elision_.source(id) == id && forms_[id].produced == value.name;
}

std::string ModelWriter::cast_node(ValueId id, const Form& form) const {
  const Graph& graph = *plan_.model().values[id].graph;
  const auto to = static_cast<DType>(form.element);
  const std::string attribute = graph.opset("") < 6 ? encode_string_attribute("to", cast_word(to))
                                                    : encode_int_attribute("to", static_cast<std::uint64_t>(to));
  return encode_field(node_field::input, forms_[id].produced) + encode_field(node_field::output, form.name) +
         encode_field(node_field::name, form.cast_name) + encode_field(node_field::op_type, "Cast") +
         encode_field(node_field::attribute, attribute);
}

std::string ModelWriter::dequantize_node(ValueId id, const Form& form) const {
  const Quantization& quantization = *plan_.quantization(id);
  std::string node = encode_field(node_field::input, forms_[id].produced) +
                     encode_field(node_field::input, scale_names_[id]) + encode_field(node_field::output, form.name) +
                     encode_field(node_field::name, form.cast_name) +
                     encode_field(node_field::op_type, "DequantizeLinear");
  if (quantization.per_channel)
    node += encode_field(node_field::attribute, encode_int_attribute("axis", quantization.axis));
  return node;
}

void ModelWriter::add_casts(WireRope& rope, std::uint32_t field, ValueId id) {
  for (const Form& form : forms_[id].others) {
    if (plan_.has_copy(id) && form.element == plan_.settings().to) continue;
    const bool is_quantized = !scale_names_[id].empty();
    rope.text(encode_field(field, is_quantized ? dequantize_node(id, form) : cast_node(id, form)));
    ++counts_.casts_added;
  }
}

TensorChange ModelWriter::change_of(ValueId id, std::uint32_t element) const {
  const ::tensorcast::onnx::ConvertRequest& request = *plan_.settings().request;
  const bool is_target = element == plan_.settings().to;
  return {.to = static_cast<DType>(element),
          .clamp = plan_.fit(id) == Fit::clamp,
          .name = {},
          .min_positive = is_target ? request.min_positive : 0.0,
          .max_finite = is_target ? request.max_finite : 0.0,
          .quantization = is_target ? plan_.quantization(id) : nullptr};
}

Result<WireRope> ModelWriter::model() {
  WireReader wire(file_, 0, file_.size());
  WireRope rope;
  std::size_t functions = 0;
  std::size_t opsets = 0;
  Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
    if (Result<void> skipped = wire.skip(field); !skipped) return skipped;
    bool changed = false;
    if (field.number == model_field::opset_import) {
      return opset(plan_.model().opsets[opsets++], field, wire.position(), rope);
    }
    if (field.number == model_field::metadata_props && !placement_.leave_external) {
      const Result<bool> is_old = is_data_record(file_, field);
      if (!is_old) return is_old.error();
      if (*is_old) return {};
    }
    if (field.number == model_field::graph) {
      Result<WireRope> contents = graph(*plan_.model().graph, changed);
      if (!contents) return std::move(contents).error();
      if (changed) rope.message(field.number, std::move(*contents));
    } else if (field.number == model_field::functions) {
      const Function& original = *plan_.model().functions[functions++];
      Result<WireRope> contents = function(original, changed);
      if (!contents) return std::move(contents).error();
      if (changed) {
        rope.message(field.number, std::move(*contents));
      } else {
        rope.copy(field.begin, wire.position());
      }
      return copies_of(original, field.number, rope);
    }
    if (!changed) rope.copy(field.begin, wire.position());
    return {};
  });
  if (!done) return std::move(done).error();
  return rope;
}

Result<void> ModelWriter::opset(const Opset& opset, const WireField& field, std::uint64_t end, WireRope& rope) {
  if (opset.version == opset.file_version) {
    rope.copy(field.begin, end);
    return {};
  }
  WireRope contents;
  WireReader wire(file_, field.offset, field.offset + field.length);
  Result<void> done = each_field(wire, [&](const WireField& part) -> Result<void> {
    if (Result<void> skipped = wire.skip(part); !skipped) return skipped;
    if (part.number != opset_field::version) contents.copy(part.begin, wire.position());
    return {};
  });
  contents.text(encode_varint_field(opset_field::version, static_cast<std::uint64_t>(opset.version)));
  rope.message(field.number, std::move(contents));
  return done;
}

Result<WireRope> ModelWriter::graph(const Graph& graph, bool& changed) {
  WireRope rope;
  // Casts of values that no node of this graph makes stand before its first node.
  WireRope first;
  std::vector<ValueId> own;
  for (const Declaration& input : graph.inputs) own.push_back(input.value);
  for (const Initializer& initializer : graph.initializers) {
    if (!plan_.model().values[initializer.value].is_input) own.push_back(initializer.value);
  }
  for (const ValueId id : own) add_casts(first, graph_field::node, id);
  bool has_first = first.size() > 0;
  changed = changed || has_first;

  std::size_t nodes = 0;
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::size_t infos = 0;
  std::size_t initializers = 0;
  WireReader wire(file_, graph.field.offset, graph.field.offset + graph.field.length);
  const auto retype = [&](const WireField& field, ValueId id, std::uint32_t element,
                          const std::string& shown_name) -> Result<void> {
    const Value& value = plan_.model().values[id];
    const bool same = element == value.type.element && shown_name == value.name;
    if (same || element == 0) {
      rope.copy(field.begin, wire.position());
      return {};
    }
    Result<WireRope> contents = retyped_declaration(file_, field, element, shown_name);
    if (!contents) return std::move(contents).error();
    rope.message(field.number, std::move(*contents));
    changed = true;
    return {};
  };
  Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
    if (Result<void> skipped = wire.skip(field); !skipped) return skipped;
    switch (field.number) {
      case graph_field::node:
        if (std::exchange(has_first, false)) rope.append(std::move(first));
        return node(graph.nodes[nodes++], field.number, rope, changed);
      case graph_field::initializer:
      case graph_field::sparse_initializer:
        return initializer(graph.initializers[initializers++], rope, changed);
      case graph_field::input: {
        const Declaration& input = graph.inputs[inputs++];
        return retype(field, input.value, plan_.produced(input.value), input.name);
      }
      case graph_field::output: {
        const std::size_t index = outputs++;
        const Declaration& output = graph.outputs[index];
        const std::uint32_t element = plan_.given_back(graph, index);
        return retype(field, output.value, element, name_in(output.value, element));
      }
      case graph_field::value_info: {
        const Declaration& info = graph.infos[infos++];
        if (info.value == no_value) break;
        if (output_elements_[info.value] != 0 && elision_.name(info.value) == info.name) break;
        if (keeps_name(info.value)) return retype(field, info.value, plan_.produced(info.value), info.name);
        changed = true;
        return {};
      }
      default:
        break;
    }
    rope.copy(field.begin, wire.position());
    return {};
  });
  if (!done) return std::move(done).error();
  if (has_first) rope.append(std::move(first));
  return rope;
}

Result<WireRope> ModelWriter::function(const Function& function, bool& changed) {
  const Graph& body = function.body;
  WireRope rope;
  WireRope first;
  for (const Declaration& input : body.inputs) add_casts(first, function_field::node, input.value);
  bool has_first = first.size() > 0;
  changed = changed || has_first;
  std::size_t nodes = 0;
  std::size_t infos = 0;
  std::size_t opsets = 0;
  WireReader wire(file_, body.field.offset, body.field.offset + body.field.length);
  Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
    if (Result<void> skipped = wire.skip(field); !skipped) return skipped;
    if (field.number == function_field::opset_import) {
      const Opset& imported = function.opsets[opsets++];
      changed = changed || imported.version != imported.file_version;
      return opset(imported, field, wire.position(), rope);
    }
    if (field.number == function_field::name && function.origin != nullptr) {
      rope.text(encode_field(field.number, function.name));
      return {};
    }
    if (field.number == function_field::node) {
      if (std::exchange(has_first, false)) rope.append(std::move(first));
      return node(body.nodes[nodes++], field.number, rope, changed);
    }
    if (field.number == function_field::value_info) {
      const Declaration& info = body.infos[infos++];
      if (info.value != no_value && !keeps_name(info.value)) {
        changed = true;
        return {};
      }
      const std::uint32_t element = info.value == no_value ? 0 : plan_.produced(info.value);
      if (element != 0 && element != info.type.element) {
        Result<WireRope> contents = retyped_declaration(file_, field, element, info.name);
        if (!contents) return std::move(contents).error();
        rope.message(field.number, std::move(*contents));
        changed = true;
        return {};
      }
    }
    rope.copy(field.begin, wire.position());
    return {};
  });
  if (!done) return std::move(done).error();
  if (has_first) rope.append(std::move(first));
  return rope;
}

Result<void> ModelWriter::copies_of(const Function& original, std::uint32_t number, WireRope& rope) {
  for (const Function* copy : original.copies) {
    bool changed = false;
    Result<WireRope> contents = function(*copy, changed);
    if (!contents) return std::move(contents).error();
    rope.message(number, std::move(*contents));
  }
  return {};
}

Result<void> ModelWriter::node(const Node& node, std::uint32_t number, WireRope& rope, bool& changed) {
  if (elision_.removal(node) != Removal::none) {
    changed = true;
    return {};
  }
  std::unordered_map<std::uint64_t, WireRope> replaced;  // attributes, by the offset of their keys
  std::string added;
  const Result<bool> edited = attributes(node, replaced, added);
  if (!edited) return edited.error();
  bool renamed = *edited || !node.callee.empty();
  std::vector<std::string> inputs = node.input_names;
  std::vector<std::string> outputs = node.output_names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] != no_value) inputs[i] = name_in(node.inputs[i], plan_.taken(node, i));
    renamed = renamed || inputs[i] != node.input_names[i];
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != no_value) outputs[i] = forms_[node.outputs[i]].produced;
    renamed = renamed || outputs[i] != node.output_names[i];
  }
  const std::uint64_t end = node.field.offset + node.field.length;
  if (!renamed) {
    rope.copy(node.field.begin, end);
  } else {
    changed = true;
    WireRope contents;
    std::size_t input = 0;
    std::size_t output = 0;
    WireReader wire(file_, node.field.offset, end);
    Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
      if (Result<void> skipped = wire.skip(field); !skipped) return skipped;
      if (field.number == node_field::input) {
        contents.text(encode_field(field.number, inputs[input++]));
      } else if (field.number == node_field::output) {
        contents.text(encode_field(field.number, outputs[output++]));
      } else if (field.number == node_field::op_type && !node.callee.empty()) {
        contents.text(encode_field(field.number, node.callee));
      } else if (const auto found = replaced.find(field.begin); found != replaced.end()) {
        contents.message(field.number, std::move(found->second));
      } else {
        contents.copy(field.begin, wire.position());
      }
      return {};
    });
    if (!done) return done;
    if (!added.empty()) contents.text(encode_field(node_field::attribute, added));
    rope.message(number, std::move(contents));
  }
  for (const ValueId id : node.outputs) {
    if (id == no_value || forms_[id].others.empty()) continue;
    add_casts(rope, number, id);
    changed = true;
  }
  return {};
}

// Collects the new contents of attributes that change, and an attribute that is to be added.
Result<bool> ModelWriter::attributes(const Node& node, std::unordered_map<std::uint64_t, WireRope>& replaced,
                                     std::string& added) {
  const ValueId first = node.outputs.empty() ? no_value : node.outputs.front();
  const bool standard = node.domain.empty();
  const bool retyped =
      standard && first != no_value && plan_.produced(first) != plan_.model().values[first].type.element;
  const auto to = first == no_value ? DType::undefined : static_cast<DType>(plan_.produced(first));
  const TypeAttribute* row = retyped ? type_attribute(node.op_type) : nullptr;
  for (const Attribute& attribute : node.attributes) {
    if (!attribute.graphs.empty()) {
      bool changed = false;
      WireRope contents;
      std::size_t index = 0;
      WireReader wire(file_, attribute.field.offset, attribute.field.offset + attribute.field.length);
      Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
        if (Result<void> skipped = wire.skip(field); !skipped) return skipped;
        if (field.number != attribute_field::g && field.number != attribute_field::graphs) {
          contents.copy(field.begin, wire.position());
          return {};
        }
        Result<WireRope> inner = graph(*attribute.graphs[index++], changed);
        if (!inner) return std::move(inner).error();
        contents.message(field.number, std::move(*inner));
        return {};
      });
      if (!done) return std::move(done).error();
      if (changed) replaced.emplace(attribute.field.begin, std::move(contents));
      continue;
    }
    if (retyped && (node.op_type == "Constant" || (node.op_type == "ConstantOfShape" && attribute.name == "value"))) {
      Result<WireRope> contents = constant_tensor(node, attribute, to);
      if (!contents) return std::move(contents).error();
      if (contents->size() > 0) replaced.emplace(attribute.field.begin, std::move(*contents));
    } else if (row != nullptr && attribute.name == row->attribute) {
      WireRope contents;
      const bool is_word = attribute.type == AttributeType::string;
      // 0: as the scale. ONNX Runtime 1.31.1 does not load a model where it computes this node in another type than
      // the attribute names.
      const bool as_scale =
          node.op_type == "DequantizeLinear" && node.inputs.size() > 1 && plan_.taken(node, 1) == plan_.produced(first);
      const std::uint64_t number = as_scale ? 0 : static_cast<std::uint64_t>(to);
      contents.text(is_word ? encode_string_attribute(attribute.name, cast_word(to))
                            : encode_int_attribute(attribute.name, number));
      replaced.emplace(attribute.field.begin, std::move(contents));
    } else if (attribute.tensor_is_external && attribute.type == AttributeType::tensor && !placement_.leave_external) {
      Result<WireRope> tensor = convert_tensor(file_, attribute.tensor, {}, nullptr);
      if (!tensor) return std::move(tensor).error();
      Result<WireRope> contents = attribute_with(attribute, attribute_field::t, std::move(*tensor));
      if (!contents) return std::move(contents).error();
      replaced.emplace(attribute.field.begin, std::move(*contents));
    }
  }
  if (row != nullptr && row->absent != 0 && node.attribute(row->attribute) == nullptr) {
    added = encode_int_attribute(row->attribute, static_cast<std::uint64_t>(to));
  }
  if (retyped && node.op_type == "ConstantOfShape" && node.attribute("value") == nullptr) {
    const std::int64_t shape[] = {1};
    const std::vector<std::byte> zero(storage_bytes(to, 1));
    added = tensor_attribute("value", encode_tensor(to, shape, zero));
  }
  return !replaced.empty() || !added.empty();
}

// The attribute with other contents of its message field `member`.
Result<WireRope> ModelWriter::attribute_with(const Attribute& attribute, std::uint32_t member, WireRope contents) {
  WireRope rope;
  WireReader wire(file_, attribute.field.offset, attribute.field.offset + attribute.field.length);
  Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
    if (Result<void> skipped = wire.skip(field); !skipped) return skipped;
    if (field.number == member) {
      rope.message(member, std::move(contents));
    } else {
      rope.copy(field.begin, wire.position());
    }
    return {};
  });
  if (!done) return std::move(done).error();
  return rope;
}

// The attribute of a Constant or ConstantOfShape in another type; empty if it does not hold the value.
Result<WireRope> ModelWriter::constant_tensor(const Node& node, const Attribute& attribute, DType to) {
  const TensorChange change = change_of(node.outputs.front(), static_cast<std::uint32_t>(to));
  if (attribute.name == "value") {
    Result<WireRope> tensor = convert_tensor(file_, attribute.tensor, change, nullptr);
    if (!tensor) return std::move(tensor).error();
    return attribute_with(attribute, attribute_field::t, std::move(*tensor));
  }
  if (attribute.name == "sparse_value") {
    WireReader wire(file_, attribute.field.offset, attribute.field.offset + attribute.field.length);
    WireRope sparse;
    Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
      if (field.number != attribute_field::sparse_tensor) return {};
      Result<WireRope> contents = sparse_tensor(field, change);
      if (!contents) return std::move(contents).error();
      sparse = std::move(*contents);
      return {};
    });
    if (!done) return std::move(done).error();
    return attribute_with(attribute, attribute_field::sparse_tensor, std::move(sparse));
  }
  WireRope rope;
  if (attribute.name != "value_float" && attribute.name != "value_floats") return rope;
  std::vector<std::int64_t> shape;
  if (attribute.name == "value_floats") shape.push_back(static_cast<std::int64_t>(attribute.floats.size()));
  std::vector<std::byte> bytes(storage_bytes(to, attribute.floats.size()));
  std::vector<double> numbers(attribute.floats.begin(), attribute.floats.end());
  limit_numbers(change, numbers);
  Result<void> done =
      cast(TensorView{DType::float64, shape, std::as_bytes(std::span(numbers))}, MutableTensorView{to, shape, bytes});
  if (!done) return std::move(done).error();
  rope.text(tensor_attribute("value", encode_tensor(to, shape, bytes)));
  return rope;
}

Result<WireRope> ModelWriter::sparse_tensor(const WireField& field, const TensorChange& change) {
  WireReader wire(file_, field.offset, field.offset + field.length);
  WireRope rope;
  Result<void> done = each_field(wire, [&](const WireField& part) -> Result<void> {
    if (Result<void> skipped = wire.skip(part); !skipped) return skipped;
    if (part.number != sparse_tensor_field::values) {
      rope.copy(part.begin, wire.position());
      return {};
    }
    Result<WireRope> values = convert_tensor(file_, {part.offset, part.length}, change, nullptr);
    if (!values) return std::move(values).error();
    rope.message(part.number, std::move(*values));
    return {};
  });
  if (!done) return std::move(done).error();
  return rope;
}

// The scales of an int8 weight, in the type that DequantizeLinear gives.
std::string ModelWriter::scale_tensor(ValueId id) const {
  const Quantization& quantization = *plan_.quantization(id);
  const auto to = static_cast<DType>(forms_[id].others.front().element);
  std::vector<std::int64_t> shape;
  if (quantization.per_channel) shape.push_back(static_cast<std::int64_t>(quantization.scales.size()));
  std::vector<std::byte> bytes(storage_bytes(to, quantization.scales.size()));
  const Result<void> done = cast(TensorView{DType::float32, shape, std::as_bytes(std::span(quantization.scales))},
                                 MutableTensorView{to, shape, bytes});
  static_cast<void>(done);
  return encode_tensor(to, shape, bytes) +
         encode_field(static_cast<std::uint32_t>(formats::onnx::Field::name), scale_names_[id]);
}

Result<void> ModelWriter::initializer(const Initializer& initializer, WireRope& rope, bool& changed) {
  const ValueId id = initializer.value;
  const std::uint32_t produced = plan_.produced(id);
  const bool converts = produced != initializer.element;
  const WireField& field = initializer.field;
  const auto bytes_in = [&](std::uint32_t element) {
    return storage_bytes(static_cast<DType>(element), static_cast<std::size_t>(initializer.count));
  };
  const auto placed = [&](std::uint32_t element) -> ExternalFiles* {
    if (placement_.all_inside) return nullptr;
    const bool is_outside = initializer.external && !placement_.only_larger;
    return is_outside || bytes_in(element) > placement_.inline_limit ? &external_ : nullptr;
  };
  const auto emit = [&](const TensorChange& change, std::uint32_t element) -> Result<void> {
    Result<WireRope> contents = initializer.sparse ? sparse_tensor(field, change)
                                                   : convert_tensor(file_, initializer.tensor, change, placed(element));
    if (!contents) return std::move(contents).error();
    rope.message(field.number, std::move(*contents));
    changed = true;
    return {};
  };
  const auto count = [&](std::uint32_t element) {
    ++counts_.initializers_converted;
    counts_.initializer_bytes_before += bytes_in(initializer.element);
    counts_.initializer_bytes_after += bytes_in(element);
  };
  const bool moves = initializer.external ? !placement_.leave_external : placed(produced) != nullptr;
  if (converts) {
    count(produced);
    if (Result<void> done = emit(change_of(id, produced), produced); !done) return done;
    if (!scale_names_[id].empty()) rope.text(encode_field(graph_field::initializer, scale_tensor(id)));
  } else if (!initializer.sparse && is_castable(static_cast<DType>(initializer.element)) &&
             initializer.element != element_of(DType::string) && moves) {
    if (Result<void> done = emit({}, produced); !done) return done;
  } else {
    rope.copy(field.begin, field.offset + field.length);
  }
  if (!plan_.has_copy(id)) return {};
  const std::uint32_t element = plan_.settings().to;
  count(element);
  TensorChange copy = change_of(id, element);
  copy.name = name_in(id, element);
  return emit(copy, element);
}

}  // namespace tensorcast::models::onnx
