#include "models/onnx/run/model_tree.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/memory_budget.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

using protozero::pbf_wire_type;

// Memory that a node of the tree needs later: as a node of a graph, and as a step of a program.
constexpr std::uint64_t compiled_node_bytes = 1024;

Error broken(std::string what) { return Error{.code = ErrorCode::parse, .message = std::move(what)}; }

class TreeReader {
 public:
  explicit TreeReader(const io::InputFile& file) : wire_(file, 0, file.size()), budget_(file.size()) {}

  Result<ModelTree> read() {
    ModelTree model;
    bool has_graph = false;
    Result<void> done = each_field(wire_, [&](const WireField& field) -> Result<void> {
      switch (field.number) {
        case model_field::ir_version:
          return take_int(field, model.ir_version);
        case model_field::opset_import:
          return take_opset(field, model.opsets);
        case model_field::graph:
          if (std::exchange(has_graph, true)) return broken("the model has two graphs");
          return take_graph(field, model.graph, 0);
        case model_field::functions:
          return take_function(field, model.functions);
        default:
          return {};
      }
    });
    if (!done) return std::move(done).error();
    if (!has_graph) return broken("the file holds no graph, so it is not an ONNX model");
    return model;
  }

 private:
  // Appends an element to `parts` if the budget allows it.
  template <class Part>
  Result<Part*> add_part(std::vector<Part>& parts) {
    if (Result<void> fits = budget_.take_grown<Part>(); !fits) return std::move(fits).error();
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

  Result<void> take_int(const WireField& field, std::int64_t& value) {
    const Result<std::uint64_t> read = read_varint(wire_, field);
    if (!read) return read.error();
    value = static_cast<std::int64_t>(*read);
    return {};
  }

  Result<float> read_float() {
    float value = 0;
    if (Result<void> got = wire_.read(std::as_writable_bytes(std::span(&value, 1))); !got) {
      return std::move(got).error();
    }
    return value;
  }

  Result<void> take_opset(const WireField& field, std::vector<OpsetTree>& opsets) {
    const Result<OpsetTree*> added = add_part(opsets);
    if (!added) return added.error();
    OpsetTree& opset = **added;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == opset_field::domain) return take_text(part, opset.domain);
      if (part.number == opset_field::version) return take_int(part, opset.version);
      return {};
    });
    opset.domain = normal_domain(std::move(opset.domain));
    return done;
  }

  Result<void> take_graph(const WireField& field, GraphTree& graph, int depth) {
    if (depth > max_graph_depth) {
      return Error{.code = ErrorCode::unsupported,
                   .message = fmt::format("graphs are nested over {} deep", max_graph_depth)};
    }
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case graph_field::name:
          return take_text(part, graph.name);
        case graph_field::node:
          return take_node(part, graph.nodes, depth);
        case graph_field::input:
          return take_value(part, graph.inputs, "input");
        case graph_field::output:
          return take_value(part, graph.outputs, "output");
        case graph_field::initializer:
          if (Result<void> right = expect(part, pbf_wire_type::length_delimited); !right) return right;
          graph.initializers.push_back({.offset = part.offset, .length = part.length});
          return budget_.take_grown<formats::onnx::ByteRange>();
        case graph_field::sparse_initializer:
          return Error{.code = ErrorCode::unsupported, .message = "sparse initializers are not supported"};
        default:
          return {};
      }
    });
  }

  Result<void> take_node(const WireField& field, std::vector<NodeTree>& nodes, int depth) {
    const Result<NodeTree*> added = add_part(nodes);
    if (!added) return added.error();
    if (Result<void> fits = budget_.take(compiled_node_bytes); !fits) return fits;
    NodeTree& node = **added;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case node_field::input:
          return take_text(part, node.inputs);
        case node_field::output:
          return take_text(part, node.outputs);
        case node_field::name:
          return take_text(part, node.name);
        case node_field::op_type:
          return take_text(part, node.op_type);
        case node_field::domain:
          return take_text(part, node.domain);
        case node_field::overload:
          return take_text(part, node.overload);
        case node_field::attribute:
          return take_attribute(part, node.attributes, depth);
        default:
          return {};
      }
    });
    node.domain = normal_domain(std::move(node.domain));
    if (done && node.op_type.empty()) {
      return broken(fmt::format("node \"{}\" has no op_type", shown(node.name)));
    }
    return done;
  }

  Result<void> take_attribute(const WireField& field, std::vector<AttributeTree>& attributes, int depth) {
    const Result<AttributeTree*> added = add_part(attributes);
    if (!added) return added.error();
    AttributeTree& attribute = **added;
    std::int64_t declared = 0;
    std::uint32_t present = 0;  // a bit for each AttributeType
    const auto found = [&](AttributeType type) { present |= 1u << static_cast<unsigned>(type); };
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case attribute_field::name:
          return take_text(part, attribute.name);
        case attribute_field::ref_attr_name:
          return take_text(part, attribute.reference);
        case attribute_field::type:
          return take_int(part, declared);
        case attribute_field::f: {
          found(AttributeType::float_);
          if (Result<void> right = expect(part, pbf_wire_type::fixed32); !right) return right;
          const Result<float> value = read_float();
          if (!value) return value.error();
          attribute.f = *value;
          return {};
        }
        case attribute_field::i:
          found(AttributeType::int_);
          return take_int(part, attribute.i);
        case attribute_field::s:
          found(AttributeType::string);
          return take_text(part, attribute.s);
        case attribute_field::t:
          found(AttributeType::tensor);
          attribute.t = {.offset = part.offset, .length = part.length};
          return expect(part, pbf_wire_type::length_delimited);
        case attribute_field::g:
          found(AttributeType::graph);
          if (attribute.g != nullptr)
            return broken(fmt::format("attribute \"{}\" has two graphs", shown(attribute.name)));
          attribute.g = std::make_unique<GraphTree>();
          return take_graph(part, *attribute.g, depth + 1);
        case attribute_field::floats:
          found(AttributeType::floats);
          return take_floats(part, attribute.floats);
        case attribute_field::ints:
          found(AttributeType::ints);
          return take_ints(part, attribute.ints);
        case attribute_field::strings:
          found(AttributeType::strings);
          return take_text(part, attribute.strings);
        case attribute_field::tensors:
          found(AttributeType::tensors);
          return {};
        case attribute_field::graphs:
          found(AttributeType::graphs);
          return {};
        case attribute_field::sparse_tensor:
          found(AttributeType::sparse_tensor);
          return {};
        case attribute_field::sparse_tensors:
          found(AttributeType::sparse_tensors);
          return {};
        case attribute_field::tp:
          found(AttributeType::type_proto);
          return {};
        case attribute_field::type_protos:
          found(AttributeType::type_protos);
          return {};
        default:
          return {};
      }
    });
    if (!done) return done;
    return settle_type(attribute, declared, present);
  }

  // Models of IR version 1 have no type field; later ones have it, and may set only the field of that type.
  static Result<void> settle_type(AttributeTree& attribute, std::int64_t declared, std::uint32_t present) {
    if (declared < 0 || declared > static_cast<std::int64_t>(AttributeType::type_protos)) {
      return broken(fmt::format("attribute \"{}\" has the unknown type {}", shown(attribute.name), declared));
    }
    attribute.type = static_cast<AttributeType>(declared);
    if (declared == 0 && std::has_single_bit(present)) {
      attribute.type = static_cast<AttributeType>(std::countr_zero(present));
    }
    const std::uint32_t allowed = attribute.reference.empty() ? 1u << static_cast<unsigned>(attribute.type) : 0;
    if ((present & ~allowed) == 0) return {};
    return broken(fmt::format("attribute \"{}\" has values that are not of its type", shown(attribute.name)));
  }

  Result<void> take_floats(const WireField& field, std::vector<float>& floats) {
    const bool packed = field.type == pbf_wire_type::length_delimited;
    if (!packed) {
      if (Result<void> right = expect(field, pbf_wire_type::fixed32); !right) return right;
    }
    if (field.length % sizeof(float) != 0)
      return malformed_message(field.offset, "floats are not a whole number of values");
    const std::uint64_t count = field.length / sizeof(float);
    if (Result<void> fits = budget_.take_grown<float>(count); !fits) return fits;
    const std::size_t before = floats.size();
    floats.resize(before + count);
    return wire_.read(std::as_writable_bytes(std::span(floats).subspan(before)));
  }

  Result<void> take_ints(const WireField& field, std::vector<std::int64_t>& ints) {
    if (field.type != pbf_wire_type::length_delimited) {
      if (Result<void> fits = budget_.take_grown<std::int64_t>(); !fits) return fits;
      return take_int(field, ints.emplace_back());
    }
    const std::uint64_t outer_end = wire_.narrow(field.offset + field.length);
    Result<void> done;
    while (done && !wire_.at_end()) {
      const Result<std::uint64_t> value = wire_.varint();
      if (!value) {
        done = value.error();
      } else {
        ints.push_back(static_cast<std::int64_t>(*value));
        done = budget_.take_grown<std::int64_t>();
      }
    }
    wire_.narrow(outer_end);
    return done;
  }

  Result<void> take_function(const WireField& field, std::vector<FunctionTree>& functions) {
    const Result<FunctionTree*> added = add_part(functions);
    if (!added) return added.error();
    FunctionTree& function = **added;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case function_field::name:
          return take_text(part, function.name);
        case function_field::domain:
          return take_text(part, function.domain);
        case function_field::overload:
          return take_text(part, function.overload);
        case function_field::input:
          return take_text(part, function.inputs);
        case function_field::output:
          return take_text(part, function.outputs);
        case function_field::attribute:
          return take_text(part, function.attributes);
        case function_field::attribute_proto:
          return take_attribute(part, function.defaults, 0);
        case function_field::node:
          return take_node(part, function.nodes, 0);
        case function_field::opset_import:
          return take_opset(part, function.opsets);
        default:
          return {};
      }
    });
    function.domain = normal_domain(std::move(function.domain));
    return done;
  }

  Result<void> take_value(const WireField& field, std::vector<ValueInfo>& values, std::string_view role) {
    const Result<ValueInfo*> added = add_part(values);
    if (!added) return added.error();
    ValueInfo& value = **added;
    // The name may follow the type, so errors about the type are reported later.
    std::uint64_t elem_type = 0;
    std::string_view no_tensor;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == value_field::name) return take_text(part, value.name);
      if (part.number != value_field::type) return {};
      return each_field_of(wire_, part, [&](const WireField& kind) -> Result<void> {
        switch (kind.number) {
          case type_field::tensor:
            return take_tensor_type(kind, elem_type, value);
          case type_field::sequence:
            no_tensor = "a sequence";
            return {};
          case type_field::map:
            no_tensor = "a map";
            return {};
          case type_field::opaque:
            no_tensor = "opaque";
            return {};
          case type_field::sparse_tensor:
            no_tensor = "a sparse tensor";
            return {};
          case type_field::optional:
            no_tensor = "optional";
            return {};
          default:
            return {};
        }
      });
    });
    if (!done) {
      done.error().message = fmt::format("{} \"{}\": {}", role, shown(value.name), done.error().message);
      return done;
    }
    if (value.name.empty()) return broken(fmt::format("an {} of a graph has no name", role));
    if (!no_tensor.empty()) {
      return Error{.code = ErrorCode::unsupported,
                   .message = fmt::format("{} \"{}\" is {}; only tensors are run", role, value.name, no_tensor)};
    }
    if (elem_type == 0) return {};
    Result<DType> dtype = formats::onnx::parse_data_type(elem_type);
    if (!dtype) {
      dtype.error().message = fmt::format("{} \"{}\": {}", role, shown(value.name), dtype.error().message);
      return std::move(dtype).error();
    }
    value.dtype = *dtype;
    return {};
  }

  Result<void> take_tensor_type(const WireField& field, std::uint64_t& elem_type, ValueInfo& value) {
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == tensor_type_field::elem_type) {
        const Result<std::uint64_t> number = read_varint(wire_, part);
        if (!number) return number.error();
        elem_type = *number;
        return {};
      }
      if (part.number != tensor_type_field::shape) return {};
      value.shape.emplace();
      return each_field_of(wire_, part, [&](const WireField& dim) -> Result<void> {
        if (dim.number != shape_field::dim) return {};
        if (Result<void> fits = budget_.take_grown<std::int64_t>(); !fits) return fits;
        std::int64_t length = -1;  // a symbolic name, or unset
        Result<void> done = each_field_of(wire_, dim, [&](const WireField& content) -> Result<void> {
          return content.number == dimension_field::value ? take_int(content, length) : Result<void>();
        });
        if (!done) return done;
        if (length < -1) return broken(fmt::format("the shape has the dimension {}", length));
        value.shape->push_back(length);
        return {};
      });
    });
  }

  WireReader wire_;
  io::MemoryBudget budget_;
};

}  // namespace

std::string shown(std::string_view name) {
  constexpr std::size_t longest = 200;
  if (name.size() <= longest) return std::string(name);
  return std::string(name.substr(0, longest)) + "...";
}

std::string normal_domain(std::string domain) { return domain == "ai.onnx" ? std::string() : std::move(domain); }

Result<ModelTree> read_model_tree(const io::InputFile& file) {
  if (file.size() > formats::onnx::max_message_bytes) {
    return Error{.code = ErrorCode::parse,
                 .message = "the model is larger than protobuf's limit of 2 GiB",
                 .hint = "large models keep their tensors in files of their own, as external data",
                 .file = file.path()};
  }
  Result<ModelTree> model = TreeReader(file).read();
  if (!model) model.error().file = file.path();
  return model;
}

}  // namespace tensorcast::models::onnx
