// SPDX-License-Identifier: Apache-2.0
#include "models/openvino_ir/ir_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "graph/value_type.hpp"
#include "models/openvino_ir/ir_order.hpp"
#include "models/openvino_ir/ir_types.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast::models::openvino_ir {
namespace {

using Shape = std::optional<std::vector<std::int64_t>>;

// The known facts about the tensor at an output port. `dtype` may be uint1, whose elements are stored as uint8.
struct Value {
  std::string name = {};
  DType dtype = DType::undefined;
  Shape shape = {};
};

Error wrong_in(const Layer& layer, std::string message) {
  return at(layer.described(), parse_error(std::move(message)));
}

Error unsupported_in(const Layer& layer, std::string message, std::string hint = {}) {
  return at(layer.described(), unsupported(std::move(message), std::move(hint)));
}

// --- attributes of <data> ---

const std::string* find_attribute(const Layer& layer, const std::string& name) {
  const auto found = layer.data.find(name);
  return found == layer.data.end() ? nullptr : &found->second;
}

Result<std::string> attribute(const Layer& layer, const std::string& name) {
  if (const std::string* value = find_attribute(layer, name)) return *value;
  return wrong_in(layer, fmt::format("<data> has no attribute {}", name));
}

// Rejects unknown attributes, which may change the layer's result.
Result<void> check_layer_attributes(const Layer& layer, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : layer.data) {
    if (!contains(known, name)) {
      return unsupported_in(
          layer, fmt::format("the attribute {}=\"{}\" is not known", name.substr(0, 60), value.substr(0, 60)));
    }
  }
  return {};
}

Result<DType> type_attribute(const Layer& layer, const std::string& name) {
  std::string text = TRY(attribute(layer, name));
  return at(layer.described(), parse_element_type(text));
}

Result<bool> bool_attribute(const Layer& layer, const std::string& name) {
  const std::string* text = find_attribute(layer, name);
  if (text == nullptr) return false;
  if (*text == "true" || *text == "True" || *text == "1") return true;
  if (*text == "false" || *text == "False" || *text == "0") return false;
  return wrong_in(layer, fmt::format("{}=\"{}\" is neither true nor false", name, text->substr(0, 60)));
}

Result<std::uint64_t> count_attribute(const Layer& layer, const std::string& name) {
  std::string text = TRY(attribute(layer, name));
  if (const auto value = parse_whole<std::uint64_t>(text)) return *value;
  return wrong_in(layer, fmt::format("{}=\"{}\" is not a number of bytes", name, text.substr(0, 60)));
}

// Parses a dimension: "3", "?" for any, "2..5" for any between.
std::optional<std::int64_t> parse_dimension(std::string_view text) {
  if (text == "?" || text == "-1") return -1;
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    const std::string_view low = text.substr(0, dots);
    const std::string_view high = text.substr(dots + 2);
    const bool valid =
        (low.empty() || parse_whole<std::uint64_t>(low)) && (high.empty() || parse_whole<std::uint64_t>(high));
    return valid && low.size() + high.size() > 0 ? std::optional<std::int64_t>(-1) : std::nullopt;
  }
  const auto length = parse_whole<std::uint64_t>(text);
  if (!length || *length > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(*length);
}

Result<Shape> shape_attribute(const Layer& layer) {
  std::string text = TRY(attribute(layer, "shape"));
  std::string list = text;
  std::erase_if(list, [](char c) { return c == ' ' || c == '[' || c == ']'; });
  if (list == "...") return Shape{};
  std::vector<std::int64_t> shape;
  for (std::size_t begin = 0; !list.empty() && begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const auto length = parse_dimension(std::string_view(list).substr(begin, end - begin));
    if (!length) return wrong_in(layer, fmt::format("shape=\"{}\" is not a shape", text.substr(0, 60)));
    shape.push_back(*length);
    begin = end + 1;
  }
  return Shape{std::move(shape)};
}

std::string described(const Shape& shape) {
  if (!shape) return "[...]";
  std::vector<std::string> lengths;
  for (const std::int64_t length : *shape) lengths.push_back(length < 0 ? "?" : std::to_string(length));
  return fmt::format("[{}]", fmt::join(lengths, ","));
}

// --- the graph ---

class Builder {
 public:
  Builder(const Document& document, Weights& weights) : document_(document), weights_(weights) {}

  Result<Graph> build() {
    wiring_ = TRY(connect(document_));
    for (const std::size_t index : wiring_.order) {
      const Layer& layer = document_.layers[index];
      TRY(check_layer(layer));
    }
    TRY(name_values());
    for (const std::size_t index : wiring_.order) {
      TRY(add(document_.layers[index]));
    }
    graph_.name = document_.name;
    TRY(list_ends());
    return std::move(graph_);
  }

 private:
  struct Kind {
    std::string_view type;
    std::size_t inputs;
    std::size_t outputs;
    Result<void> (Builder::*add)(const Layer&);
  };

  static const Kind* find_kind(std::string_view type) {
    static constexpr Kind kinds[] = {
        {"Parameter", 0, 1, &Builder::add_parameter},
        {"Const", 0, 1, &Builder::add_constant},
        {"Convert", 1, 1, &Builder::add_convert},
        {"ConvertLike", 2, 1, &Builder::add_convert_like},
        {"ConvertPromoteTypes", 2, 2, &Builder::add_promotion},
        {"Result", 1, 0, &Builder::add_result},
    };
    return find_row(kinds, &Kind::type, type);
  }

  static Result<void> check_layer(const Layer& layer) {
    const Kind* kind = find_kind(layer.type);
    const bool official = layer.version.empty() || layer.version.starts_with("opset");
    if (kind == nullptr || !official) {
      return unsupported_in(layer,
                            official ? "no conversion" : fmt::format("of the set \"{}\"", layer.version.substr(0, 60)),
                            "Parameter, Const, Convert, ConvertLike, ConvertPromoteTypes and Result are run");
    }
    if (layer.inputs.size() != kind->inputs || layer.outputs.size() != kind->outputs) {
      return wrong_in(layer, fmt::format("has {} inputs and {} outputs, not {} and {}", layer.inputs.size(),
                                         layer.outputs.size(), kind->inputs, kind->outputs));
    }
    return {};
  }

  const Layer& layer_at(std::int64_t id) const { return document_.layers[wiring_.layers.at(id)]; }

  // --- names: a tensor's first name in order of the alphabet, as OpenVINO chooses; else what the layer is called ---

  static std::string first_of(const std::vector<std::string>& names) {
    const auto first = std::ranges::min_element(names);
    return first == names.end() ? std::string() : *first;
  }

  static const Port& output_of(const Layer& layer, std::int64_t id) { return *find_row(layer.outputs, &Port::id, id); }

  // Returns the name of the tensor at an output port.
  std::string own_name(LayerPort from) const {
    const Layer& layer = layer_at(from.layer);
    const Port& port = output_of(layer, from.port);
    if (std::string name = first_of(port.names); !name.empty()) return name;
    const std::string base = layer.name.empty() ? fmt::format("layer_{}", layer.id) : layer.name;
    return layer.outputs.size() == 1 ? base : fmt::format("{}.{}", base, &port - layer.outputs.data());
  }

  // Inputs choose names first, then outputs, then inner values.
  Result<void> name_values() {
    for (const Layer& layer : document_.layers) {
      if (layer.type != "Parameter") continue;
      const LayerPort from{layer.id, layer.outputs.front().id};
      std::string name = own_name(from);
      if (!taken_.insert(name).second) {
        return wrong_in(layer, fmt::format("another input is named \"{}\" too", name.substr(0, 60)));
      }
      values_[from].name = std::move(name);
    }
    for (const Layer& layer : document_.layers) {
      if (layer.type != "Result") continue;
      TRY(name_output(layer));
    }
    for (const Layer& layer : document_.layers) {
      for (const Port& port : layer.outputs) {
        std::string& name = values_[{layer.id, port.id}].name;
        if (!name.empty()) continue;
        const std::string base = own_name({layer.id, port.id});
        name = base;
        while (!taken_.insert(name).second) name = fmt::format("{}#{}", base, next_suffix_++);
      }
    }
    return {};
  }

  Result<void> name_output(const Layer& layer) {
    const LayerPort from = wiring_.source.at({layer.id, layer.inputs.front().id});
    std::string& value = values_[from].name;
    std::string wanted = first_of(layer.output_names);
    if (wanted.empty()) wanted = own_name(from);
    for (const std::string& name : {wanted, layer.name}) {
      if (name.empty() || outputs_.contains(name)) continue;
      if (name != value && !taken_.insert(name).second) continue;
      if (value.empty()) value = name;
      outputs_.insert(name);
      output_name_[layer.id] = name;
      return {};
    }
    return wrong_in(layer, fmt::format("the name \"{}\" is that of another tensor", wanted.substr(0, 60)));
  }

  // --- layers ---

  Result<void> add(const Layer& layer) {
    for (const Port& port : layer.inputs) {
      const Value& value = source({layer.id, port.id});
      TRY(check_port(layer, port, "input", value));
    }
    TRY((this->*find_kind(layer.type)->add)(layer));
    for (const Port& port : layer.outputs) {
      TRY(check_port(layer, port, "output", values_.at({layer.id, port.id})));
    }
    return {};
  }

  // Checks that the file's declaration of a port matches the value that arrives or leaves there.
  static Result<void> check_port(const Layer& layer, const Port& port, std::string_view side, const Value& value) {
    if (value.dtype != DType::undefined && !port.precision.empty()) {
      const DType precision = TRY(at(layer.described(), parse_precision(port.precision)));
      if (precision != value.dtype) {
        return wrong_in(layer, fmt::format("{} port {} says {}, but the tensor there is {}", side, port.id,
                                           port.precision, element_type_name(value.dtype)));
      }
    }
    if (value.shape && !graph::shapes_agree(port.dims, *value.shape)) {
      return wrong_in(layer, fmt::format("{} port {} says {}, but the tensor there has the shape {}", side, port.id,
                                         described(Shape(port.dims)), described(value.shape)));
    }
    return {};
  }

  const Value& source(LayerPort to) const { return values_.at(wiring_.source.at(to)); }
  const Value& input(const Layer& layer, std::size_t index) const { return source({layer.id, layer.inputs[index].id}); }
  Value& output(const Layer& layer, std::size_t index) { return values_.at({layer.id, layer.outputs[index].id}); }

  void add_node(const Layer& layer, Operation operation, std::vector<std::string> inputs,
                std::vector<std::string> outputs) {
    graph_.nodes.push_back({.name = layer.name,
                            .operation = std::move(operation),
                            .inputs = std::move(inputs),
                            .outputs = std::move(outputs)});
  }

  Result<void> add_parameter(const Layer& layer) {
    DType dtype = TRY(type_attribute(layer, "element_type"));
    if (dtype == DType::uint1) return unsupported_in(layer, "an input of type u1 cannot be given");
    Shape shape = TRY(shape_attribute(layer));
    Value& value = output(layer, 0);
    value.dtype = dtype;
    value.shape = std::move(shape);
    return {};
  }

  Result<void> add_constant(const Layer& layer) {
    DType dtype = TRY(type_attribute(layer, "element_type"));
    Shape shape = TRY(shape_attribute(layer));
    if (!shape) return wrong_in(layer, "a constant of unknown shape");
    std::uint64_t offset = TRY(count_attribute(layer, "offset"));
    std::uint64_t size = TRY(count_attribute(layer, "size"));
    Tensor tensor = TRY(at(layer.described(), weights_.constant(dtype, *shape, offset, size)));
    Value& value = output(layer, 0);
    value.dtype = dtype;
    value.shape = std::move(shape);
    add_node(layer, ConstantOp{std::move(tensor)}, {}, {value.name});
    return {};
  }

  // Converts `from` to a value of type `to` with the same shape.
  Result<void> convert(const Layer& layer, const Value& from, DType to, Value& result) {
    result.dtype = to;
    result.shape = from.shape;
    if (from.dtype == to) {
      add_node(layer, IdentityOp{}, {from.name}, {result.name});
      return {};
    }
    if (to == DType::uint1) return unsupported_in(layer, "nothing is converted to u1");
    add_node(layer, CastOp{to, convert_options(from.dtype, to)}, {from.name}, {result.name});
    return {};
  }

  Result<void> add_convert(const Layer& layer) {
    TRY(check_layer_attributes(layer, {"destination_type"}));
    DType to = TRY(type_attribute(layer, "destination_type"));
    return convert(layer, input(layer, 0), to, output(layer, 0));
  }

  Result<void> add_convert_like(const Layer& layer) {
    TRY(check_layer_attributes(layer, {}));
    const Value& like = input(layer, 1);
    if (like.dtype != DType::undefined) return convert(layer, input(layer, 0), like.dtype, output(layer, 0));
    Value& result = output(layer, 0);
    result.shape = input(layer, 0).shape;
    add_node(layer, CastLikeOp{convert_options(DType::undefined, DType::undefined)}, {input(layer, 0).name, like.name},
             {result.name});
    return {};
  }

  Result<void> add_promotion(const Layer& layer) {
    TRY(check_layer_attributes(layer, {"promote_unsafe", "pytorch_scalar_promotion", "u64_integer_promotion_target"}));
    const bool unsafe = TRY(bool_attribute(layer, "promote_unsafe"));
    const bool scalars = TRY(bool_attribute(layer, "pytorch_scalar_promotion"));
    PromoteOptions options{.promote_unsafe = unsafe, .pytorch_scalar_promotion = scalars};
    if (find_attribute(layer, "u64_integer_promotion_target") != nullptr) {
      options.u64_integer_promotion_target = TRY(type_attribute(layer, "u64_integer_promotion_target"));
    }
    const Value& a = input(layer, 0);
    const Value& b = input(layer, 1);
    const bool known = a.dtype != DType::undefined && b.dtype != DType::undefined && (!scalars || (a.shape && b.shape));
    if (!known) {  // known at run time only
      if (a.dtype == DType::uint1 || b.dtype == DType::uint1) {
        return unsupported_in(layer, "u1 beside a tensor of unknown type or rank");
      }
      output(layer, 0).shape = a.shape;
      output(layer, 1).shape = b.shape;
      add_promotion_node(layer, options);
      return {};
    }
    const auto operand = [](const Value& value) {
      return PromoteOperand{.dtype = value.dtype, .is_scalar = value.shape && value.shape->empty()};
    };
    const DType common = TRY(at(layer.described(), promote_types(operand(a), operand(b), options)));
    if (a.dtype != DType::uint1 && b.dtype != DType::uint1) {
      for (const std::size_t side : {0, 1}) {
        output(layer, side).dtype = common;
        output(layer, side).shape = input(layer, side).shape;
      }
      add_promotion_node(layer, options);
      return {};
    }
    TRY(convert(layer, a, common, output(layer, 0)));
    return convert(layer, b, common, output(layer, 1));
  }

  void add_promotion_node(const Layer& layer, const PromoteOptions& options) {
    CastOptions cast;
    cast.saturate = false;
    add_node(layer, ConvertPromoteTypesOp{options, cast}, {input(layer, 0).name, input(layer, 1).name},
             {output(layer, 0).name, output(layer, 1).name});
  }

  Result<void> add_result(const Layer& layer) {
    const Value& value = input(layer, 0);
    if (value.dtype == DType::uint1) return unsupported_in(layer, "an output of type u1 cannot be given");
    const std::string& name = output_name_.at(layer.id);
    if (name != value.name) add_node(layer, IdentityOp{}, {value.name}, {name});
    return {};
  }

  // Inputs and outputs in the file's order, which is OpenVINO's.
  Result<void> list_ends() {
    for (const Layer& layer : document_.layers) {
      if (layer.type == "Parameter") {
        const Value& value = output(layer, 0);
        graph_.inputs.push_back({.name = value.name, .dtype = value.dtype, .shape = value.shape});
      } else if (layer.type == "Result") {
        const Value& value = input(layer, 0);
        graph_.outputs.push_back({.name = output_name_.at(layer.id), .dtype = value.dtype, .shape = value.shape});
      }
    }
    if (graph_.outputs.empty()) return parse_error("the model has no Result");
    return {};
  }

  const Document& document_;
  Weights& weights_;
  Wiring wiring_;
  std::map<LayerPort, Value> values_;
  std::map<std::int64_t, std::string> output_name_;  // by the Result's layer
  std::set<std::string> taken_;
  std::set<std::string> outputs_;
  std::size_t next_suffix_ = 2;
  Graph graph_;
};

}  // namespace

Result<Graph> build_graph(const Document& document, Weights& weights) { return Builder(document, weights).build(); }

}  // namespace tensorcast::models::openvino_ir
