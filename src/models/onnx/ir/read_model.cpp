#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/memory_budget.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/run/model_tree.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

using protozero::pbf_wire_type;

Error broken(std::string what) { return Error{.code = ErrorCode::parse, .message = std::move(what)}; }

// A node of 25 bytes in the file becomes a Node, its names and its values. The new model of a conversion has smaller
// ones than the old: Casts.
constexpr std::uint64_t node_bytes_per_byte = 4;

class ModelReader {
 public:
  explicit ModelReader(const io::InputFile& file)
      : wire_(file, 0, file.size()),
        own_budget_(node_bytes_per_byte * file.size()),
        budget_(own_budget_),
        owner_(std::make_unique<Model>()),
        model_(*owner_) {}
  // Reads more of what `field` holds into a model.
  ModelReader(const io::InputFile& file, Model& model, const WireField& field, io::MemoryBudget& budget)
      : wire_(file, field.offset, field.offset + field.length), own_budget_(0), budget_(budget), model_(model) {}

  Result<std::unique_ptr<Model>> read() {
    Result<void> done = each_field(wire_, [&](const WireField& field) -> Result<void> {
      switch (field.number) {
        case model_field::ir_version:
          return take_int(field, model_.ir_version);
        case model_field::opset_import:
          return take_opset(field, model_.opsets);
        case model_field::graph:
          if (model_.graph) return broken("the model has two graphs");
          model_.graph = std::make_unique<Graph>();
          return take_graph(field, *model_.graph, 0);
        case model_field::functions:
          return take_function(field);
        case model_field::training_info:
          model_.has_training = true;
          return {};
        default:
          return {};
      }
    });
    if (!done) return std::move(done).error();
    if (!model_.graph) return broken("the file holds no graph, so it is not an ONNX model");
    if (Result<void> resolved = resolve(*model_.graph, nullptr, model_.opsets); !resolved) {
      return std::move(resolved).error();
    }
    for (const auto& function : model_.functions) {
      if (Result<void> added = add_function(*function); !added) return std::move(added).error();
    }
    return std::move(owner_);
  }

  Result<const Function*> copy(Function& origin, std::string name) {
    if (Result<void> taken = take_function(origin.body.field); !taken) return std::move(taken).error();
    Function& function = *model_.functions.back();
    function.origin = &origin;
    origin.copies.push_back(&function);
    function.name = std::move(name);
    if (Result<void> added = add_function(function); !added) return std::move(added).error();
    return &function;
  }

 private:
  template <class Part>
  Result<Part*> add_part(std::vector<Part>& parts) {
    if (Result<void> fits = budget_.take(sizeof(Part)); !fits) return std::move(fits).error();
    return &parts.emplace_back();
  }

  Result<void> take_text(const WireField& field, std::string& text) {
    if (Result<void> right = expect(field, pbf_wire_type::length_delimited); !right) return right;
    if (Result<void> fits = budget_.take(field.length); !fits) return fits;
    Result<std::string> read = wire_.text(field.length);
    if (!read) return std::move(read).error();
    text = std::move(*read);
    return {};
  }
  Result<void> take_text(const WireField& field, std::vector<std::string>& texts) {
    const Result<std::string*> text = add_part(texts);
    return text ? take_text(field, **text) : text.error();
  }
  template <class Number>
  Result<void> take_int(const WireField& field, Number& value) {
    const Result<std::uint64_t> read = read_varint(wire_, field);
    if (!read) return read.error();
    value = static_cast<Number>(*read);
    return {};
  }

  Result<void> take_opset(const WireField& field, std::vector<Opset>& opsets) {
    const Result<Opset*> added = add_part(opsets);
    if (!added) return added.error();
    Opset& opset = **added;
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
    if (depth > max_graph_depth) {
      return Error{.code = ErrorCode::unsupported,
                   .message = fmt::format("graphs are nested over {} deep", max_graph_depth)};
    }
    if (Result<void> right = expect(field, pbf_wire_type::length_delimited); !right) return right;
    graph.field = field;
    graph.id = model_.graph_count++;
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case graph_field::node:
          return take_node(part, graph, depth);
        case graph_field::input:
          return take_declaration(part, graph.inputs);
        case graph_field::output:
          return take_declaration(part, graph.outputs);
        case graph_field::value_info:
          return take_declaration(part, graph.infos);
        case graph_field::initializer:
          return take_initializer(part, graph, false);
        case graph_field::sparse_initializer:
          return take_initializer(part, graph, true);
        case graph_field::quantization_annotation:
          return each_field_of(wire_, part, [&](const WireField& fact) -> Result<void> {
            return fact.number == annotation_field::tensor_name ? take_text(fact, graph.annotated) : Result<void>();
          });
        default:
          return {};
      }
    });
  }

  Result<void> take_function(const WireField& field) {
    if (Result<void> right = expect(field, pbf_wire_type::length_delimited); !right) return right;
    if (Result<void> fits = budget_.take(sizeof(Function)); !fits) return fits;
    Function& function = *model_.functions.emplace_back(std::make_unique<Function>());
    Graph& body = function.body;
    body.field = field;
    body.id = model_.graph_count++;
    body.is_function = true;
    const auto take_name = [&](const WireField& part, std::vector<Declaration>& names) -> Result<void> {
      const Result<Declaration*> added = add_part(names);
      if (!added) return added.error();
      (*added)->field = part;
      return take_text(part, (*added)->name);
    };
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case function_field::name:
          return take_text(part, function.name);
        case function_field::domain:
          return take_text(part, function.domain);
        case function_field::overload:
          return take_text(part, function.overload);
        case function_field::opset_import:
          return take_opset(part, function.opsets);
        case function_field::input:
          return take_name(part, body.inputs);
        case function_field::output:
          return take_name(part, body.outputs);
        case function_field::node:
          return take_node(part, body, 0);
        case function_field::value_info:
          return take_declaration(part, body.infos);
        default:
          return {};
      }
    });
    function.domain = normal_domain(std::move(function.domain));
    return done;
  }

  Result<void> add_function(Function& function) {
    model_.functions_by_name.emplace(function.name, &function);
    return resolve(function.body, nullptr, function.opsets);
  }

  Result<void> take_node(const WireField& field, Graph& graph, int depth) {
    const Result<Node*> added = add_part(graph.nodes);
    if (!added) return added.error();
    Node node;  // not in the vector yet: its graphs must not move
    node.field = field;
    node.id = model_.node_count++;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case node_field::input:
          return take_text(part, node.input_names);
        case node_field::output:
          return take_text(part, node.output_names);
        case node_field::name:
          return take_text(part, node.name);
        case node_field::op_type:
          return take_text(part, node.op_type);
        case node_field::domain:
          return take_text(part, node.domain);
        case node_field::overload:
          return take_text(part, node.overload);
        case node_field::attribute:
          return take_attribute(part, node, depth);
        default:
          return {};
      }
    });
    node.domain = normal_domain(std::move(node.domain));
    if (!node.name.empty()) model_.node_names.insert(node.name);
    graph.nodes.back() = std::move(node);
    return done;
  }

  Result<void> take_attribute(const WireField& field, Node& node, int depth) {
    const Result<Attribute*> added = add_part(node.attributes);
    if (!added) return added.error();
    Attribute& attribute = **added;
    attribute.field = field;
    std::uint64_t type = 0;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case attribute_field::name:
          return take_text(part, attribute.name);
        case attribute_field::ref_attr_name:
          return take_text(part, attribute.reference);
        case attribute_field::type:
          return take_int(part, type);
        case attribute_field::i:
          return take_int(part, attribute.i);
        case attribute_field::s:
          return take_text(part, attribute.s);
        case attribute_field::f:
        case attribute_field::floats:
          return take_floats(part, attribute.floats);
        case attribute_field::ints:
          return take_ints(part, attribute.ints);
        case attribute_field::t:
          return take_tensor(part, attribute);
        case attribute_field::sparse_tensor:
          return each_field_of(wire_, part, [&](const WireField& values) -> Result<void> {
            if (values.number != sparse_tensor_field::values) return {};
            return take_tensor(values, attribute);
          });
        case attribute_field::g:
        case attribute_field::graphs: {
          if (Result<void> fits = budget_.take(sizeof(Graph)); !fits) return fits;
          return take_graph(part, *attribute.graphs.emplace_back(std::make_unique<Graph>()), depth + 1);
        }
        default:
          return {};
      }
    });
    attribute.type = type <= static_cast<std::uint64_t>(AttributeType::type_protos) ? static_cast<AttributeType>(type)
                                                                                    : AttributeType::undefined;
    return done;
  }

  // One value, or many packed into one field.
  Result<void> take_floats(const WireField& field, std::vector<float>& floats) {
    const bool packed = field.type == pbf_wire_type::length_delimited;
    if (!packed) {
      if (Result<void> right = expect(field, pbf_wire_type::fixed32); !right) return right;
    }
    const std::uint64_t count = packed ? field.length / sizeof(float) : 1;
    if (packed && field.length % sizeof(float) != 0) return malformed_message(field.offset, "half a number");
    if (Result<void> fits = budget_.take(count * sizeof(float)); !fits) return fits;
    const std::size_t before = floats.size();
    floats.resize(before + count);
    return wire_.read(std::as_writable_bytes(std::span(floats).subspan(before)));
  }

  // As take_floats(), but only the first few: such as a permutation of axes.
  Result<void> take_ints(const WireField& field, std::vector<std::int64_t>& ints) {
    const bool packed = field.type == pbf_wire_type::length_delimited;
    if (!packed) {
      if (Result<void> right = expect(field, pbf_wire_type::varint); !right) return right;
    }
    while (ints.size() < Attribute::max_ints && (!packed || wire_.position() < field.offset + field.length)) {
      if (Result<void> fits = budget_.take(sizeof(std::int64_t)); !fits) return fits;
      const Result<std::uint64_t> number = wire_.varint();
      if (!number) return number.error();
      ints.push_back(static_cast<std::int64_t>(*number));
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
    attribute.tensor_is_external = header.external;
    return done;
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
          return take_int(part, header.element);
        case Field::data_location: {
          std::uint64_t location = 0;
          Result<void> got = take_int(part, location);
          header.external = location == formats::onnx::external_location;
          return got;
        }
        case Field::dims:
          if (part.type == pbf_wire_type::varint) {
            std::uint64_t dimension = 0;
            Result<void> got = take_int(part, dimension);
            multiply(dimension);
            return got;
          }
          if (Result<void> right = expect(part, pbf_wire_type::length_delimited); !right) return right;
          while (wire_.position() < part.offset + part.length) {
            const Result<std::uint64_t> dimension = wire_.varint();
            if (!dimension) return dimension.error();
            multiply(*dimension);
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
    const Result<Initializer*> added = add_part(graph.initializers);
    if (!added) return added.error();
    Initializer& initializer = **added;
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
    const Result<Declaration*> added = add_part(declarations);
    if (!added) return added.error();
    Declaration& declaration = **added;
    declaration.field = field;
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == value_field::name) return take_text(part, declaration.name);
      if (part.number == value_field::type) return take_type(part, declaration.type, 0);
      return {};
    });
  }

  Result<void> take_type(const WireField& field, ValueType& type, int depth) {
    using Kind = ValueType::Kind;
    if (depth > max_graph_depth) {
      return Error{.code = ErrorCode::unsupported, .message = "types are nested too deep"};
    }
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == type_field::tensor) {
        type.kind = Kind::tensor;
        return each_field_of(wire_, part, [&](const WireField& fact) -> Result<void> {
          return fact.number == tensor_type_field::elem_type ? take_int(fact, type.element) : Result<void>();
        });
      }
      const bool is_sequence = part.number == type_field::sequence;
      if (!is_sequence && part.number != type_field::optional) {
        if (part.number <= type_field::optional && part.number != 6) type = {.kind = Kind::other};
        return {};
      }
      ValueType inner;
      Result<void> done = each_field_of(wire_, part, [&](const WireField& element) -> Result<void> {
        return element.number == 1 ? take_type(element, inner, depth + 1) : Result<void>();
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

  Result<ValueId> define(Graph& graph, const std::string& name) {
    if (Result<void> fits = budget_.take(sizeof(Value) + 2 * name.size()); !fits) return std::move(fits).error();
    const auto id = static_cast<ValueId>(model_.values.size());
    if (!graph.names.emplace(name, id).second) {
      return broken(fmt::format("the value \"{}\" is defined twice", shown(name)));
    }
    model_.values.push_back({.name = name, .graph = &graph});
    model_.value_names.insert(name);
    return id;
  }

  static ValueId lookup(const Graph& graph, const std::string& name) {
    if (name.empty()) return no_value;
    for (const Graph* scope = &graph; scope != nullptr; scope = scope->parent) {
      if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
    }
    return no_value;
  }

  // Names become values. A graph may take values of the graphs around it; a function sees only its own.
  Result<void> resolve(Graph& graph, const Graph* parent, const std::vector<Opset>& opsets) {
    graph.parent = parent;
    graph.opsets = &opsets;
    for (Declaration& input : graph.inputs) {
      const Result<ValueId> id = define(graph, input.name);
      if (!id) return id.error();
      input.value = *id;
      model_.values[*id].is_input = true;
      model_.values[*id].type = input.type;
    }
    for (Initializer& initializer : graph.initializers) {
      const auto known = graph.names.find(initializer.name);
      Result<ValueId> id = known == graph.names.end() ? define(graph, initializer.name) : known->second;
      if (!id) return id.error();
      Value& value = model_.values[*id];
      if (value.initializer != nullptr) {
        return broken(fmt::format("there are two initializers \"{}\"", shown(initializer.name)));
      }
      value.initializer = &initializer;
      value.type = tensor_of(initializer.element);
      initializer.value = *id;
    }
    for (Node& node : graph.nodes) {
      for (const std::string& name : node.output_names) {
        node.outputs.push_back(no_value);
        if (name.empty()) continue;
        const Result<ValueId> id = define(graph, name);
        if (!id) return id.error();
        node.outputs.back() = *id;
        model_.values[*id].producer = &node;
      }
    }
    for (Node& node : graph.nodes) {
      for (const std::string& name : node.input_names) {
        const ValueId id = lookup(graph, name);
        if (id == no_value && !name.empty()) {
          return broken(
              fmt::format("nothing defines the value \"{}\", which {} takes", shown(name), shown(node.op_type)));
        }
        node.inputs.push_back(id);
      }
      for (Attribute& attribute : node.attributes) {
        for (const auto& inner : attribute.graphs) {
          if (Result<void> done = resolve(*inner, &graph, opsets); !done) return done;
        }
      }
    }
    for (Declaration& output : graph.outputs) {
      output.value = lookup(graph, output.name);
      if (output.value == no_value) {
        return broken(fmt::format("nothing defines the output \"{}\"", shown(output.name)));
      }
      Value& value = model_.values[output.value];
      if (value.graph == &graph) value.is_output = true;
      if (value.type.kind == ValueType::Kind::unknown) value.type = output.type;
    }
    for (Declaration& info : graph.infos) {
      const auto known = graph.names.find(info.name);
      if (known == graph.names.end()) continue;
      info.value = known->second;
      Value& value = model_.values[info.value];
      if (value.type.kind == ValueType::Kind::unknown) value.type = info.type;
    }
    return {};
  }

  WireReader wire_;
  io::MemoryBudget own_budget_;
  io::MemoryBudget& budget_;
  std::unique_ptr<Model> owner_ = nullptr;  // of a whole model; graphs point into it, so it must not move
  Model& model_;
};

}  // namespace

const Attribute* Node::attribute(std::string_view wanted) const noexcept {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const Attribute& attribute) { return attribute.name == wanted; });
  return found == attributes.end() ? nullptr : &*found;
}

std::int64_t Graph::opset(std::string_view domain) const noexcept {
  std::int64_t version = 0;
  for (const Opset& opset : *opsets) {
    if (opset.domain == domain) version = opset.version;
  }
  return version;
}

const Function* Model::function(const Node& node) const noexcept {
  const auto [begin, end] = functions_by_name.equal_range(node.callee.empty() ? node.op_type : node.callee);
  for (auto found = begin; found != end; ++found) {
    const Function& function = *found->second;
    if (function.domain == node.domain && function.overload == node.overload) return &function;
  }
  return nullptr;
}

Result<std::unique_ptr<Model>> read_model(const io::InputFile& file) {
  if (file.size() > formats::onnx::max_message_bytes) {
    return broken("the model is larger than protobuf's limit of 2 GiB");
  }
  return ModelReader(file).read();
}

Result<const Function*> copy_function(const io::InputFile& file, Model& model, Function& function, std::string name,
                                      io::MemoryBudget& budget) {
  return ModelReader(file, model, function.body.field, budget).copy(function, std::move(name));
}

}  // namespace tensorcast::models::onnx
