// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/run/check_runnable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"

namespace tensorcast::models::onnx {
namespace {

// Memory that a node needs later: as a node of a graph, and as a step of a program.
constexpr std::uint64_t compiled_node_bytes = 1024;

constexpr std::uint32_t bit_of(AttributeType type) { return 1u << static_cast<unsigned>(type); }

class Check {
 public:
  explicit Check(io::MemoryBudget& budget) : budget_(budget) {}

  Result<void> look(std::vector<Node>& nodes) {
    for (Node& node : nodes) {
      TRY(budget_.take(compiled_node_bytes));
      if (node.op_type.empty()) return parse_error(fmt::format("node \"{}\" has no op_type", shown(node.name)));
      TRY(look(node.attributes));
    }
    return {};
  }

  Result<void> look(std::vector<Attribute>& attributes) {
    for (Attribute& attribute : attributes) {
      TRY(settle_type(attribute));
      for (const auto& inner : attribute.graphs) {
        TRY(look(*inner));
      }
    }
    return {};
  }

  Result<void> look(Graph& graph) {
    const auto sparse = [](const Initializer& initializer) { return initializer.sparse; };
    if (std::ranges::any_of(graph.initializers, sparse)) {
      return unsupported("sparse initializers are not supported");
    }
    for (const Declaration& input : graph.inputs) {
      TRY(look(input, "input"));
    }
    for (const Declaration& output : graph.outputs) {
      TRY(look(output, "output"));
    }
    return look(graph.nodes);
  }

 private:
  // Models of IR version 1 have no type field; later ones have it, and may set only the field of that type.
  static Result<void> settle_type(Attribute& attribute) {
    if (attribute.type < AttributeType::undefined || attribute.type > AttributeType::type_protos) {
      return parse_error(fmt::format("attribute \"{}\" has the unknown type {}", shown(attribute.name),
                                     static_cast<std::int64_t>(attribute.type)));
    }
    if (attribute.type == AttributeType::undefined && std::has_single_bit(attribute.present)) {
      attribute.type = static_cast<AttributeType>(std::countr_zero(attribute.present));
    }
    if (attribute.type == AttributeType::graph && attribute.graphs.size() > 1) {
      return parse_error(fmt::format("attribute \"{}\" has two graphs", shown(attribute.name)));
    }
    const std::uint32_t allowed = attribute.reference.empty() ? bit_of(attribute.type) : 0;
    if ((attribute.present & ~allowed) == 0) return {};
    return parse_error(fmt::format("attribute \"{}\" has values that are not of its type", shown(attribute.name)));
  }

  static std::string_view kind_of(const Declaration& declared) {
    constexpr std::pair<std::uint32_t, std::string_view> kinds[] = {{type_field::sequence, "a sequence"},
                                                                    {type_field::map, "a map"},
                                                                    {type_field::opaque, "opaque"},
                                                                    {type_field::sparse_tensor, "a sparse tensor"},
                                                                    {type_field::optional, "optional"}};
    const auto* found = find_row(
        kinds, [](const auto& row) { return row.first; }, declared.type_field);
    return found == nullptr ? std::string_view() : found->second;
  }

  static Result<void> look(const Declaration& declared, std::string_view role) {
    if (declared.name.empty()) return parse_error(fmt::format("an {} of a graph has no name", role));
    const std::string place = fmt::format("{} \"{}\"", role, shown(declared.name));
    for (const std::int64_t length : declared.shape.value_or(std::vector<std::int64_t>())) {
      if (length < -1) return parse_error(fmt::format("{}: the shape has the dimension {}", place, length));
    }
    if (const std::string_view kind = kind_of(declared); !kind.empty()) {
      return unsupported(fmt::format("{} is {}; only tensors are run", place, kind));
    }
    if (declared.type.element == DType::undefined) return {};
    TRY(at(place, formats::onnx::parse_data_type(static_cast<std::uint32_t>(declared.type.element))));
    return {};
  }

  io::MemoryBudget& budget_;
};

}  // namespace

Result<void> check_runnable(Model& model, io::MemoryBudget& budget) {
  Check check(budget);
  TRY(check.look(*model.graph));
  for (const auto& function : model.functions) {
    TRY(check.look(function->defaults));
    TRY(check.look(function->body.nodes));
  }
  return {};
}

}  // namespace tensorcast::models::onnx
