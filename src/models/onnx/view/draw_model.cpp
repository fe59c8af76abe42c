// SPDX-License-Identifier: Apache-2.0
// tensorcast::onnx::draw(): a picture of a model in the DOT language. https://graphviz.org/doc/info/lang.html
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/type_inference.hpp"
#include "models/onnx/precision/cast_elision.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using ::tensorcast::onnx::DrawRequest;

enum class Shade : std::uint8_t { float64, float32, bfloat16, float16, float8, narrower, other, unknown };

struct Colours {
  std::string_view label;
  std::string_view fill;
  std::string_view line;
};

constexpr std::array<Colours, 8> colours = {{
    {"float64", "#ce93d8", "#8e24aa"},
    {"float32", "#90caf9", "#1976d2"},
    {"bfloat16", "#ffcc80", "#ef6c00"},
    {"float16", "#a5d6a7", "#388e3c"},
    {"float8", "#fff176", "#c0a000"},
    {"float6, float4", "#ffab91", "#d84315"},
    {"integers, bool, string", "#e0e0e0", "#757575"},
    {"unknown type", "#ffffff", "#000000"},
}};

constexpr std::string_view cast_line = "#c62828";

const Colours& colours_of(Shade shade) { return colours[static_cast<std::size_t>(shade)]; }

Shade shade_of(const ValueType& type) {
  const DType dtype = type.element;
  if (type.kind == ValueType::Kind::unknown || dtype == DType::undefined) return Shade::unknown;
  if (!is_onnx(dtype) || family(dtype) != Family::floating) return Shade::other;
  switch (dtype) {
    case DType::float64:
      return Shade::float64;
    case DType::float32:
      return Shade::float32;
    case DType::bfloat16:
      return Shade::bfloat16;
    case DType::float16:
      return Shade::float16;
    default:
      return bit_width(dtype) == 8 ? Shade::float8 : Shade::narrower;
  }
}

// Shortens a name from the file, and keeps it on one line.
std::string plain(std::string_view name) {
  std::string text = shown(name);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

// Quotes a text as DOT and JSON have it: \" and \\ and \n. Bytes that are not UTF-8 become U+FFFD.
std::string dot_string(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

class Drawing {
 public:
  Drawing(const Model& model, std::size_t max_vertices)
      : model_(model), scopes_(graph_scopes(model)), max_vertices_(max_vertices) {}

  Result<std::string> draw() {
    TRY(count());
    add_graph(*model_.graph, 1);
    for (const auto& function : model_.functions) add_cluster(function->body, 1);
    text_ += edges_;
    add_legend();
    return fmt::format(
               "digraph model {{\n"
               "  graph [compound=true, fontname=\"Helvetica\", fontsize=11]\n"
               "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10]\n"
               "  edge [arrowsize=0.7]\n") +
           text_ + "}\n";
  }

 private:
  // Counts what would be drawn.
  struct Size {
    std::size_t vertices = 0;
    std::size_t initializers = 0;
    std::size_t edges = 0;
  };

  static void measure(const Graph& graph, Size& size) {
    size.vertices += graph.nodes.size() + graph.inputs.size() + graph.outputs.size();
    size.initializers += graph.initializers.size();
    size.edges += graph.outputs.size();
    for (const Node& node : graph.nodes) {
      size.edges += node.inputs.size();
      for (const Graph* inner : node.bodies()) {
        ++size.vertices;  // its frame
        measure(*inner, size);
      }
    }
  }

  Result<void> count() {
    constexpr std::size_t edges_each = 8;
    Size size;
    measure(*model_.graph, size);
    for (const auto& function : model_.functions) measure(function->body, size);
    if (size.vertices > max_vertices_ || size.edges / edges_each > max_vertices_) {
      return unsupported(
          fmt::format("the model has {} nodes, inputs and outputs and {} edges, and a picture of more "
                      "than {} and {} cannot be read",
                      size.vertices, size.edges, max_vertices_, edges_each * max_vertices_));
    }
    has_initializers_ = size.vertices + size.initializers <= max_vertices_;
    left_out_ = has_initializers_ ? 0 : size.initializers;
    return {};
  }

  void line(int depth, std::string_view text) {
    text_.append(2 * static_cast<std::size_t>(depth), ' ');
    text_ += text;
    text_ += '\n';
  }

  void vertex(int depth, const std::string& id, const std::string& label, Shade shade, std::string_view more) {
    used_[static_cast<std::size_t>(shade)] = true;
    line(depth, fmt::format("{} [label={}, fillcolor=\"{}\"{}]", id, dot_string(label), colours_of(shade).fill, more));
  }

  void edge(const std::string& from, const std::string& to, ValueId id, std::string_view more = "") {
    const Value& value = model_.values[id];
    edges_ += fmt::format("  {} -> {} [color=\"{}\", tooltip={}{}]\n", from, to, colours_of(shade_of(value.type)).line,
                          dot_string(plain(value.name) + ": " + type_text(value.type)), more);
  }

  // What makes a value: a node, or an input or initializer.
  std::string source_of(ValueId id) const {
    const Value& value = model_.values[id];
    return value.producer != nullptr ? fmt::format("n{}", value.producer->id) : fmt::format("v{}", id);
  }
  bool is_drawn(ValueId id) const {
    if (id == no_value) return false;
    const Value& value = model_.values[id];
    return value.producer != nullptr || value.is_input || has_initializers_;
  }

  std::string named_type(ValueId id, std::string_view name) const {
    return plain(name) + "\n" + type_text(model_.values[id].type);
  }

  Shade shade_of_node(const Node& node) const {
    Shade found = Shade::unknown;
    for (const auto* values : {&node.outputs, &node.inputs}) {
      for (const ValueId id : *values) {
        if (id == no_value) continue;
        const Shade shade = shade_of(model_.values[id].type);
        if (shade < Shade::other) return shade;
        if (shade == Shade::other) found = shade;
      }
    }
    return found;
  }

  void add_cluster(const Graph& graph, int depth) {
    line(depth, fmt::format("subgraph cluster_{} {{", graph.id));
    const std::string label = graph.is_function ? "function " + plain(scopes_[graph.id]) : plain(scopes_[graph.id]);
    line(depth + 1, fmt::format("label={}", dot_string(label)));
    line(depth + 1, "color=\"#9e9e9e\"");
    add_graph(graph, depth + 1);
    line(depth, "}");
  }

  void add_graph(const Graph& graph, int depth) {
    for (const Declaration& input : graph.inputs) {
      vertex(depth, source_of(input.value), named_type(input.value, input.name),
             shade_of(model_.values[input.value].type), ", shape=ellipse, style=filled");
    }
    for (const Initializer& initializer : graph.initializers) {
      if (!has_initializers_ || model_.values[initializer.value].is_input) continue;
      vertex(depth, source_of(initializer.value), named_type(initializer.value, initializer.name),
             shade_of(model_.values[initializer.value].type), ", shape=note, style=filled");
    }
    for (const Node& node : graph.nodes) add_node(node, depth);
    for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
      const ValueId id = graph.outputs[k].value;
      const std::string name = fmt::format("o{}_{}", graph.id, k);
      vertex(depth, name, named_type(id, graph.outputs[k].name), shade_of(model_.values[id].type),
             ", shape=ellipse, style=filled");
      if (is_drawn(id)) edge(source_of(id), name, id);
    }
  }

  void add_node(const Node& node, int depth) {
    const std::string id = fmt::format("n{}", node.id);
    const std::string op = node.domain.empty() ? plain(node.op_type) : plain(node.domain) + "::" + plain(node.op_type);
    std::string label = op;
    const bool marked = is_cast(node);
    if (marked && !node.inputs.empty() && node.inputs[0] != no_value && !node.outputs.empty() &&
        node.outputs[0] != no_value) {
      label += "\n" + type_text(model_.values[node.inputs[0]].type) + " to " +
               type_text(model_.values[node.outputs[0]].type);
    }
    if (!shown_name(node).empty()) label += "\n" + plain(shown_name(node));
    vertex(depth, id, label, shade_of_node(node),
           marked ? fmt::format(", shape=hexagon, style=filled, penwidth=2, color=\"{}\"", cast_line) : std::string());
    for (const ValueId input : node.inputs) {
      if (is_drawn(input)) edge(source_of(input), id, input);
    }
    for (const Graph* inner : node.bodies()) {
      add_cluster(*inner, depth);
      if (inner->outputs.empty()) continue;
      edge(fmt::format("o{}_0", inner->id), id, inner->outputs[0].value,
           fmt::format(", style=dashed, ltail=cluster_{}", inner->id));
    }
  }

  void add_legend() {
    line(1, "subgraph cluster_legend {");
    line(2, R"(label="precision")");
    line(2, "color=\"#9e9e9e\"");
    for (std::size_t k = 0; k < colours.size(); ++k) {
      if (!used_[k]) continue;
      line(2, fmt::format("legend{} [label={}, fillcolor=\"{}\"]", k, dot_string(std::string(colours[k].label)),
                          colours[k].fill));
    }
    line(2, fmt::format("legend_cast [label=\"Cast\", shape=hexagon, style=filled, penwidth=2, color=\"{}\", "
                        "fillcolor=\"#ffffff\"]",
                        cast_line));
    if (left_out_ > 0) {
      line(2, fmt::format(R"(legend_left_out [label="{} initializers are left out", shape=plaintext, style=""])",
                          left_out_));
    }
    line(1, "}");
  }

  const Model& model_;
  std::vector<std::string> scopes_;
  std::size_t max_vertices_;
  bool has_initializers_ = true;
  std::size_t left_out_ = 0;
  std::array<bool, colours.size()> used_ = {};
  std::string text_;
  std::string edges_;
};

Result<std::string> draw(const DrawRequest& request) {
  const OpenModel opened = TRY(open_model(request.input));
  infer_types(*opened.model);
  return Drawing(*opened.model, request.max_vertices).draw();
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

Result<std::string> draw(const DrawRequest& request) {
  return models::onnx::guarded_for_file(request.input, [&] { return models::onnx::draw(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
