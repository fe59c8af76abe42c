// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/memory_budget.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/resolve_names.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

using protozero::pbf_wire_type;

// A node of 25 bytes in the file becomes a Node, its names and its values. The new model of a conversion has smaller
// ones than the old: Casts.
constexpr std::uint64_t node_bytes_per_byte = 12;

enum class Extent : std::uint8_t { precision, whole };  // whole: all values of attributes, shapes, training

AttributeType type_of_value(std::uint32_t number) {
  using enum AttributeType;
  namespace field = attribute_field;
  constexpr std::pair<std::uint32_t, AttributeType> types[] = {
      {field::f, float_},
      {field::i, int_},
      {field::s, string},
      {field::t, tensor},
      {field::g, graph},
      {field::floats, floats},
      {field::ints, ints},
      {field::strings, strings},
      {field::tensors, tensors},
      {field::graphs, graphs},
      {field::sparse_tensor, sparse_tensor},
      {field::sparse_tensors, sparse_tensors},
      {field::tp, type_proto},
      {field::type_protos, type_protos},
  };
  const auto* found = find_row(
      types, [](const auto& row) { return row.first; }, number);
  return found == nullptr ? undefined : found->second;
}

class ModelReader {
 public:
  // Reads what [begin, end) of the file holds into a model.
  ModelReader(const io::InputFile& file, std::uint64_t begin, std::uint64_t end, Extent extent, Model& model,
              io::MemoryBudget& budget)
      : wire_(file, begin, end), whole_(extent == Extent::whole), budget_(budget), model_(model) {}

  Result<void> read() {
    Result<void> done = each_field(wire_, [&](const WireField& field) -> Result<void> {
      if (field.number == model_field::ir_version) return take_int(field, model_.ir_version);
      if (field.number == model_field::opset_import) return take_opset(field, model_.opsets);
      if (field.number == model_field::functions) return take_function(field);
      if (field.number == model_field::graph) {
        if (model_.graph) return parse_error("the model has two graphs");
        model_.graph = std::make_unique<Graph>();
        return take_graph(field, *model_.graph, 0);
      }
      if (field.number != model_field::training_info) return {};
      model_.has_training = true;
      return whole_ ? take_training(field) : Result<void>();
    });
    if (done && !model_.graph) return parse_error("the file holds no graph, so it is not an ONNX model");
    return done;
  }

  // Also the one way to read a function again.
  Result<void> take_function(const WireField& field) {
    TRY(expect(field, pbf_wire_type::length_delimited));
    TRY(budget_.take(sizeof(Function)));
    Function& function = *model_.functions.emplace_back(std::make_unique<Function>());
    Graph& body = function.body;
    body.field = field;
    body.id = model_.graph_count++;
    body.is_function = true;
    const auto take_name = [&](const WireField& part, std::vector<Declaration>& names) -> Result<void> {
      Declaration* added = TRY(add_part(names));
      added->field = part;
      return take_text(part, added->name);
    };
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == function_field::name) function.name_field = part;
      if (part.number == function_field::name) return take_text(part, function.name);
      if (part.number == function_field::domain) return take_text(part, function.domain);
      if (part.number == function_field::overload) return take_text(part, function.overload);
      if (part.number == function_field::opset_import) return take_opset(part, function.opsets);
      if (part.number == function_field::input) return take_name(part, body.inputs);
      if (part.number == function_field::output) return take_name(part, body.outputs);
      if (part.number == function_field::attribute) return take_text(part, function.attributes);
      if (part.number == function_field::attribute_proto) return take_default(part, function.defaults);
      if (part.number == function_field::node) return take_node(part, body, 0);
      if (part.number == function_field::value_info) return take_declaration(part, body.infos);
      return {};
    });
    function.domain = normal_domain(std::move(function.domain));
    return done;
  }

 private:
  template <class Part>
  Result<Part*> add_part(std::vector<Part>& parts) {
    TRY(budget_.take_grown<Part>());
    return &parts.emplace_back();
  }

  Result<void> take_text(const WireField& field, std::string& text) {
    TRY(expect(field, pbf_wire_type::length_delimited));
    TRY(budget_.take(field.length));
    text = TRY(wire_.text(field.length));
    return {};
  }
  Result<void> take_text(const WireField& field, std::vector<std::string>& texts) {
    std::string* text = TRY(add_part(texts));
    return take_text(field, *text);
  }
  template <class Number>
  Result<void> take_int(const WireField& field, Number& value) {
    const std::uint64_t read = TRY(read_varint(wire_, field));
    value = static_cast<Number>(read);
    return {};
  }
  Result<void> take_element(const WireField& field, DType& element) {
    std::uint64_t number = 0;
    Result<void> got = take_int(field, number);
    element = static_cast<DType>(std::min<std::uint64_t>(number, UINT32_MAX));
    return got;
  }

  Result<void> take_opset(const WireField& field, std::vector<Opset>& opsets) {
    Opset* added = TRY(add_part(opsets));
    Opset& opset = *added;
    opset.field = field;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == opset_field::domain) return take_text(part, opset.domain);
      if (part.number == opset_field::version) return take_int(part, opset.version);
      return {};
    });
    opset.domain = normal_domain(std::move(opset.domain));
    opset.file_version = opset.version;
    return done;
  }

  Result<void> take_graph(const WireField& field, Graph& graph, int depth) {
    if (depth > max_graph_depth) return unsupported(fmt::format("graphs are nested over {} deep", max_graph_depth));
    TRY(expect(field, pbf_wire_type::length_delimited));
    graph.field = field;
    graph.id = model_.graph_count++;
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == graph_field::node) return take_node(part, graph, depth);
      if (part.number == graph_field::name) return take_text(part, graph.name);
      if (part.number == graph_field::input) return take_declaration(part, graph.inputs);
      if (part.number == graph_field::output) return take_declaration(part, graph.outputs);
      if (part.number == graph_field::value_info) return take_declaration(part, graph.infos);
      if (part.number == graph_field::initializer) return take_initializer(part, graph, false);
      if (part.number == graph_field::sparse_initializer) return take_initializer(part, graph, true);
      if (part.number != graph_field::quantization_annotation) return {};
      return each_field_of(wire_, part, [&](const WireField& fact) -> Result<void> {
        return fact.number == annotation_field::tensor_name ? take_text(fact, graph.annotated) : Result<void>();
      });
    });
  }

  Result<void> take_node(const WireField& field, Graph& graph, int depth) {
    TRY(add_part(graph.nodes));
    Node node;  // not in the vector yet: its graphs must not move
    node.field = field;
    node.id = model_.node_count++;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == node_field::input) return take_text(part, node.input_names);
      if (part.number == node_field::output) return take_text(part, node.output_names);
      if (part.number == node_field::name) return take_text(part, node.name);
      if (part.number == node_field::op_type) return take_text(part, node.op_type);
      if (part.number == node_field::domain) return take_text(part, node.domain);
      if (part.number == node_field::overload) return take_text(part, node.overload);
      return part.number == node_field::attribute ? take_attribute(part, node.attributes, depth) : Result<void>();
    });
    node.domain = normal_domain(std::move(node.domain));
    if (!node.name.empty()) model_.node_names.insert(node.name);
    graph.nodes.back() = std::move(node);
    return done;
  }

  // Graphs that train the main one, and see its values.
  Result<void> take_training(const WireField& field) {
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number != training_field::initialization && part.number != training_field::algorithm) return {};
      TRY(budget_.take(sizeof(Graph)));
      return take_graph(part, *model_.training.emplace_back(std::make_unique<Graph>()), 1);
    });
  }

  // An attribute of a function, which calls may leave out.
  Result<void> take_default(const WireField& field, std::vector<Attribute>& defaults) {
    if (whole_) return take_attribute(field, defaults, 0);
    Attribute* added = TRY(add_part(defaults));
    added->field = field;
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == attribute_field::name) return take_text(part, added->name);
      if (part.number == attribute_field::t) return take_tensor(part, *added);
      const bool is_number = part.number == attribute_field::f || part.number == attribute_field::floats;
      return is_number ? take_floats(part, added->floats) : Result<void>();
    });
  }

  Result<void> take_attribute(const WireField& field, std::vector<Attribute>& attributes, int depth) {
    Attribute* added = TRY(add_part(attributes));
    Attribute& attribute = *added;
    attribute.field = field;
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (const AttributeType type = type_of_value(part.number); type != AttributeType::undefined) {
        attribute.present |= 1u << static_cast<unsigned>(type);
      }
      switch (part.number) {
        case attribute_field::name:
          return take_text(part, attribute.name);
        case attribute_field::ref_attr_name:
          return take_text(part, attribute.reference);
        case attribute_field::type:
          return take_int(part, attribute.type);
        case attribute_field::i:
          return take_int(part, attribute.i);
        case attribute_field::s:
          return take_text(part, attribute.s);
        case attribute_field::f:
        case attribute_field::floats:
          return take_floats(part, attribute.floats);
        case attribute_field::ints:
          return take_ints(part, attribute.ints);
        case attribute_field::strings:
          return whole_ ? take_text(part, attribute.strings) : Result<void>();
        case attribute_field::t:
          return take_tensor(part, attribute);
        case attribute_field::sparse_tensor:
          return take_sparse_tensor(part, attribute);
        case attribute_field::tensors:
          return whole_ ? take_tensor(part, attribute) : Result<void>();
        case attribute_field::sparse_tensors:
          return whole_ ? take_sparse_tensor(part, attribute) : Result<void>();
        case attribute_field::g:
        case attribute_field::graphs: {
          TRY(budget_.take(sizeof(Graph)));
          return take_graph(part, *attribute.graphs.emplace_back(std::make_unique<Graph>()), depth + 1);
        }
        default:
          return {};
      }
    });
  }

  // One value, or many packed into one field.
  Result<void> take_floats(const WireField& field, std::vector<float>& floats) {
    const bool packed = field.type == pbf_wire_type::length_delimited;
    if (!packed) {
      TRY(expect(field, pbf_wire_type::fixed32));
    }
    const std::uint64_t count = packed ? field.length / sizeof(float) : 1;
    if (packed && field.length % sizeof(float) != 0) return malformed_message(field.offset, "half a number");
    TRY(budget_.take_grown<float>(count));
    const std::size_t before = floats.size();
    floats.resize(before + count);
    return wire_.read(std::as_writable_bytes(std::span(floats).subspan(before)));
  }

  // As take_floats(), but of a model that is not read whole only the first few: such as a permutation of axes.
  Result<void> take_ints(const WireField& field, std::vector<std::int64_t>& ints) {
    const bool packed = field.type == pbf_wire_type::length_delimited;
    if (!packed) {
      TRY(expect(field, pbf_wire_type::varint));
    }
    while ((whole_ || ints.size() < Attribute::max_ints) &&
           (!packed || wire_.position() < field.offset + field.length)) {
      TRY(budget_.take_grown<std::int64_t>());
      const std::uint64_t number = TRY(wire_.varint());
      ints.push_back(static_cast<std::int64_t>(number));
      if (!packed) return {};
    }
    if (packed) wire_.seek(field.offset + field.length);
    return {};
  }

  Result<void> take_tensor(const WireField& field, Attribute& attribute) {
    Initializer header;
    attribute.tensor = {.offset = field.offset, .length = field.length};
    Result<void> done = take_tensor_header(field, header);
    attribute.tensor_element = header.element;
    attribute.tensor_count = header.count;
    attribute.tensor_rank = header.rank;
    attribute.tensor_is_external = header.external;
    return done;
  }
  Result<void> take_sparse_tensor(const WireField& field, Attribute& attribute) {
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      return part.number == sparse_tensor_field::values ? take_tensor(part, attribute) : Result<void>();
    });
  }

  Result<void> take_tensor_header(const WireField& field, Initializer& header) {
    using formats::onnx::Field;
    std::uint64_t count = 1;
    const auto multiply = [&](std::uint64_t dimension) {
      ++header.rank;
      count = dimension != 0 && count > UINT64_MAX / dimension ? UINT64_MAX : count * dimension;
    };
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (static_cast<Field>(part.number)) {
        case Field::name:
          return take_text(part, header.name);
        case Field::data_type:
          return take_element(part, header.element);
        case Field::data_location: {
          std::uint64_t location = 0;
          Result<void> got = take_int(part, location);
          header.external = location == formats::onnx::external_location;
          model_.has_external_data = model_.has_external_data || header.external;
          return got;
        }
        case Field::dims:
          if (part.type == pbf_wire_type::varint) {
            std::uint64_t dimension = 0;
            Result<void> got = take_int(part, dimension);
            multiply(dimension);
            return got;
          }
          TRY(expect(part, pbf_wire_type::length_delimited));
          while (wire_.position() < part.offset + part.length) {
            const std::uint64_t dimension = TRY(wire_.varint());
            multiply(dimension);
          }
          return {};
        default:
          return {};
      }
    });
    header.count = count;
    return done;
  }

  Result<void> take_initializer(const WireField& field, Graph& graph, bool sparse) {
    Initializer* added = TRY(add_part(graph.initializers));
    Initializer& initializer = *added;
    initializer.field = field;
    initializer.sparse = sparse;
    if (!sparse) {
      initializer.tensor = {.offset = field.offset, .length = field.length};
      return take_tensor_header(field, initializer);
    }
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number != sparse_tensor_field::values) return {};
      initializer.tensor = {.offset = part.offset, .length = part.length};
      return take_tensor_header(part, initializer);
    });
  }

  Result<void> take_declaration(const WireField& field, std::vector<Declaration>& declarations) {
    Declaration* added = TRY(add_part(declarations));
    Declaration& declaration = *added;
    declaration.field = field;
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == value_field::name) return take_text(part, declaration.name);
      if (part.number == value_field::type) return take_type(part, declaration.type, 0, &declaration);
      return {};
    });
  }

  Result<void> take_shape(const WireField& field, std::vector<std::int64_t>& shape) {
    return each_field_of(wire_, field, [&](const WireField& dim) -> Result<void> {
      if (dim.number != shape_field::dim) return {};
      TRY(budget_.take_grown<std::int64_t>());
      std::int64_t& length = shape.emplace_back(-1);  // a symbolic name, or unset
      return each_field_of(wire_, dim, [&](const WireField& content) -> Result<void> {
        return content.number == dimension_field::value ? take_int(content, length) : Result<void>();
      });
    });
  }

  // `declared`: has this type itself; null for a type inside another.
  Result<void> take_type(const WireField& field, ValueType& type, int depth, Declaration* declared) {
    using Kind = ValueType::Kind;
    if (depth > max_graph_depth) return unsupported("types are nested too deep");
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (declared != nullptr && part.number != type_field::denotation) declared->type_field = part.number;
      if (part.number == type_field::tensor) {
        type.kind = Kind::tensor;
        return each_field_of(wire_, part, [&](const WireField& fact) -> Result<void> {
          if (fact.number == tensor_type_field::elem_type) return take_element(fact, type.element);
          if (fact.number != tensor_type_field::shape || !whole_ || declared == nullptr) return {};
          return take_shape(fact, declared->shape.emplace());
        });
      }
      const bool is_sequence = part.number == type_field::sequence;
      if (!is_sequence && part.number != type_field::optional) {
        if (part.number <= type_field::optional && part.number != type_field::denotation) type = {.kind = Kind::other};
        return {};
      }
      ValueType inner;
      Result<void> done = each_field_of(wire_, part, [&](const WireField& element) -> Result<void> {
        return element.number == 1 ? take_type(element, inner, depth + 1, nullptr) : Result<void>();
      });
      const bool of_tensor = inner.kind == Kind::tensor;
      const bool of_sequence = inner.kind == Kind::sequence;
      type.element = inner.element;
      type.kind = is_sequence ? (of_tensor ? Kind::sequence : Kind::other)
                              : (of_tensor     ? Kind::optional
                                 : of_sequence ? Kind::optional_sequence
                                               : Kind::other);
      return done;
    });
  }

  WireReader wire_;
  bool whole_;
  io::MemoryBudget& budget_;
  Model& model_;
};

Result<std::unique_ptr<Model>> read(const io::InputFile& file, Extent extent, io::MemoryBudget& budget) {
  if (file.size() > formats::onnx::max_message_bytes) {
    return parse_error("the model is larger than protobuf's limit of 2 GiB",
                       "large models keep their tensors in files of their own, as external data");
  }
  auto model = std::make_unique<Model>();
  TRY(ModelReader(file, 0, file.size(), extent, *model, budget).read());
  return model;
}

Result<void> add_function(Model& model, Function& function, io::MemoryBudget& budget) {
  model.functions_by_name.emplace(function.name, &function);
  return resolve_names(model, function.body, function.opsets, budget);
}

}  // namespace

Result<std::unique_ptr<Model>> parse_model(const io::InputFile& file, io::MemoryBudget& budget) {
  return read(file, Extent::whole, budget);
}

Result<std::unique_ptr<Model>> read_model(const io::InputFile& file) {
  io::MemoryBudget budget(node_bytes_per_byte * file.size());
  std::unique_ptr<Model> model = TRY(read(file, Extent::precision, budget));
  TRY(resolve_names(*model, *model->graph, model->opsets, budget));
  for (const auto& function : model->functions) {
    TRY(add_function(*model, *function, budget));
  }
  return model;
}

Result<OpenModel> open_model(const std::string& path) {
  io::InputFile file = TRY(io::InputFile::open(path));
  std::unique_ptr<Model> model = TRY(read_model(file));
  return OpenModel{.file = std::move(file), .model = std::move(model)};
}

Result<const Function*> copy_function(const io::InputFile& file, Model& model, Function& origin, std::string name,
                                      io::MemoryBudget& budget) {
  const WireField& field = origin.body.field;
  TRY(ModelReader(file, field.begin, end_of(field), Extent::precision, model, budget).take_function(field));
  Function& function = *model.functions.back();
  function.origin = &origin;
  origin.copies.push_back(&function);
  function.name = std::move(name);
  TRY(add_function(model, function, budget));
  return &function;
}

}  // namespace tensorcast::models::onnx
