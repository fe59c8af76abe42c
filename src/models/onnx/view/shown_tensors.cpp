// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/view/shown_tensors.hpp"

#include <span>
#include <utility>

#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

using formats::onnx::Field;

// Reads all entries of `ints`; the model keeps the first few.
Result<std::vector<std::int64_t>> read_ints(const io::InputFile& file, const Attribute& attribute) {
  std::vector<std::int64_t> ints;
  WireReader wire(file, attribute.field.offset, end_of(attribute.field));
  TRY(each_field(wire, [&](const WireField& field) -> Result<void> {
    if (field.number != attribute_field::ints) return {};
    const bool is_packed = field.type == protozero::pbf_wire_type::length_delimited;
    while (!is_packed || wire.position() < end_of(field)) {
      ints.push_back(static_cast<std::int64_t>(TRY(wire.varint())));
      if (!is_packed) return {};
    }
    return {};
  }));
  return ints;
}

// Reads the texts of an attribute, of which the model keeps at most one.
Result<std::vector<std::string>> read_texts(const io::InputFile& file, const Attribute& attribute) {
  std::vector<std::string> texts;
  WireReader wire(file, attribute.field.offset, end_of(attribute.field));
  TRY(each_field(wire, [&](const WireField& field) -> Result<void> {
    if (field.number != attribute_field::s && field.number != attribute_field::strings) return {};
    TRY(expect(field, protozero::pbf_wire_type::length_delimited));
    texts.push_back(TRY(wire.text(field.length)));
    return {};
  }));
  return texts;
}

template <class Number>
std::string raw_data(std::span<const Number> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return encode_field(Field::raw_data, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

Result<ShownTensors> ShownTensors::of(const io::InputFile& file, const Model& model,
                                      const std::vector<std::string>& scopes) {
  ShownTensors shown;
  Result<void> done;
  each_graph(model, [&](const Graph& graph) {
    const std::string& scope = scopes[graph.id];
    const auto placed = [&](const std::string& name) { return scope.empty() ? name : scope + "/" + name; };
    for (const Initializer& initializer : graph.initializers) {
      shown.tensors_.push_back({.name = placed(initializer.name), .file = &file, .tensor = initializer});
    }
    for (const Node& node : graph.nodes) {
      if (node.op_type != "Constant" || !node.domain.empty() || node.output_names.empty()) continue;
      for (const Attribute& attribute : node.attributes) {
        if (done && attribute.reference.empty()) {
          const std::size_t before = shown.tensors_.size();
          done = shown.add_constant(file, attribute, placed(node.output_names[0]));
          if (shown.tensors_.size() != before) shown.tensors_.back().tensor.value = node.outputs[0];
        }
      }
    }
  });
  TRY(std::move(done));
  return shown;
}

Result<void> ShownTensors::add_constant(const io::InputFile& file, const Attribute& attribute, std::string name) {
  if (attribute.name == "value_float" || attribute.name == "value_floats") {
    add_elements(std::move(name), DType::float32, attribute.name == "value_float", attribute.floats.size(),
                 raw_data(std::span<const float>(attribute.floats)));
  } else if (attribute.name == "value_int") {
    add_elements(std::move(name), DType::int64, true, 1, raw_data(std::span<const std::int64_t>(&attribute.i, 1)));
  } else if (attribute.name == "value_ints") {
    const std::vector<std::int64_t> ints = TRY(read_ints(file, attribute));
    add_elements(std::move(name), DType::int64, false, ints.size(), raw_data(std::span<const std::int64_t>(ints)));
  } else if (attribute.name == "value_string" || attribute.name == "value_strings") {
    const std::vector<std::string> texts = TRY(read_texts(file, attribute));
    std::string contents;
    for (const std::string& text : texts) contents += encode_field(Field::string_data, text);
    add_elements(std::move(name), DType::string, attribute.name == "value_string", texts.size(), contents);
  } else if (attribute.tensor.length != 0) {
    Initializer tensor = as_initializer(attribute);
    tensor.field.offset = attribute.tensor.offset;
    tensor.field.length = attribute.tensor.length;
    if (tensor.sparse) {
      WireReader wire(file, attribute.field.offset, end_of(attribute.field));
      TRY(each_field(wire, [&](const WireField& field) -> Result<void> {
        if (field.number == attribute_field::sparse_tensor) tensor.field = field;
        return {};
      }));
    }
    tensors_.push_back({.name = std::move(name), .file = &file, .tensor = std::move(tensor)});
  }
  return {};
}

void ShownTensors::add_elements(std::string name, DType element, bool is_scalar, std::uint64_t count,
                                std::string_view contents) {
  std::string& message = messages_.emplace_back();
  if (!is_scalar) message = encode_varint_field(Field::dims, count);
  message += encode_varint_field(Field::data_type, element);
  message += contents;
  files_.push_back(io::InputFile::in_memory(std::as_bytes(std::span(std::as_const(message)))));
  Initializer tensor;
  tensor.tensor = {.offset = 0, .length = message.size()};
  tensor.element = element;
  tensor.count = count;
  tensor.rank = is_scalar ? 0 : 1;
  tensor.field.length = message.size();
  tensors_.push_back({.name = std::move(name), .file = &files_.back(), .tensor = std::move(tensor)});
}

}  // namespace tensorcast::models::onnx
