// SPDX-License-Identifier: Apache-2.0
#include "models/openvino_ir/ir_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <new>
#include <pugixml.hpp>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "io/memory_budget.hpp"

namespace tensorcast::models::openvino_ir {
namespace {

constexpr int oldest_version = 10;
constexpr int newest_version = 11;

// Quotes a text of any length from the file, shortened for a message.
std::string quoted_text(std::string_view text) {
  constexpr std::size_t limit = 60;
  return text.size() <= limit ? fmt::format("\"{}\"", text) : fmt::format("\"{}...\"", text.substr(0, limit));
}

Result<std::int64_t> integer_attribute(const pugi::xml_node& element, const char* name, const std::string& where) {
  const pugi::xml_attribute attribute = element.attribute(name);
  if (!attribute) return parse_error(fmt::format("{}: <{}> has no attribute {}", where, element.name(), name));
  if (const auto value = parse_whole<std::int64_t>(attribute.value()); value && *value >= 0) return *value;
  return parse_error(fmt::format("{}: {}={} of <{}> is not a non-negative integer", where, name,
                                 quoted_text(attribute.value()), element.name()));
}

// Tensor names are separated by commas; one inside a name has a backslash before it.
std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  std::string current;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      current += ',';
      ++i;
    } else if (text[i] == ',') {
      names.push_back(std::move(current));
      current.clear();
    } else {
      current += text[i];
    }
  }
  names.push_back(std::move(current));
  std::erase(names, "");
  return names;
}

Result<std::vector<Port>> parse_ports(const pugi::xml_node& list, const std::string& where) {
  std::vector<Port> ports;
  for (const pugi::xml_node& element : list.children("port")) {
    std::int64_t id = TRY(integer_attribute(element, "id", where));
    Port port{.id = id,
              .precision = element.attribute("precision").value(),
              .dims = {},
              .names = split_names(element.attribute("names").value())};
    for (const pugi::xml_node& dim : element.children("dim")) {
      const auto length = parse_whole<std::int64_t>(dim.child_value());
      if (!length || *length < -1) {
        return parse_error(fmt::format("{}: port {} has the dimension {}, which is neither a length nor -1", where,
                                       port.id, quoted_text(dim.child_value())));
      }
      port.dims.push_back(*length);
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

Result<void> check_element_attributes(const pugi::xml_node& element, const std::string& where) {
  std::vector<std::string_view> names;
  for (const pugi::xml_attribute& attribute : element.attributes()) names.emplace_back(attribute.name());
  if (const auto twice = find_repeated(std::move(names))) {
    return parse_error(fmt::format("{}: <{}> has the attribute {} twice", where, element.name(), quoted_text(*twice)));
  }
  return {};
}

// Rejects a second <data> or <input>, which some readers would use and others ignore.
Result<void> check_children(const pugi::xml_node& element, std::initializer_list<const char*> once,
                            const std::string& where) {
  for (const char* name : once) {
    if (element.child(name).next_sibling(name)) {
      return parse_error(fmt::format("{}: <{}> occurs twice", where, name));
    }
  }
  return {};
}

Result<Layer> parse_layer(const pugi::xml_node& element) {
  std::int64_t id = TRY(integer_attribute(element, "id", "a layer"));
  Layer layer{.id = id,
              .name = element.attribute("name").value(),
              .type = element.attribute("type").value(),
              .version = element.attribute("version").value(),
              .data = {},
              .inputs = {},
              .outputs = {},
              .output_names = split_names(element.attribute("output_names").value())};
  const std::string where = layer.described();
  if (layer.type.empty()) return parse_error(where + " has no type");
  const pugi::xml_node data = element.child("data");
  for (const pugi::xml_node& part : {element, data}) {
    TRY(check_element_attributes(part, where));
  }
  TRY(check_children(element, {"data", "input", "output"}, where));
  for (const pugi::xml_attribute& attribute : data.attributes()) layer.data[attribute.name()] = attribute.value();
  layer.inputs = TRY(parse_ports(element.child("input"), where));
  layer.outputs = TRY(parse_ports(element.child("output"), where));
  return layer;
}

Result<LayerEdge> parse_edge(const pugi::xml_node& element) {
  LayerEdge edge;
  const std::string where = "an edge";
  for (const auto& [name, target] : {std::pair("from-layer", &edge.from.layer), std::pair("from-port", &edge.from.port),
                                     std::pair("to-layer", &edge.to.layer), std::pair("to-port", &edge.to.port)}) {
    *target = TRY(integer_attribute(element, name, where));
  }
  return edge;
}

}  // namespace

std::string Layer::described() const {
  return fmt::format("layer {} {} ({})", id, quoted_text(name), quoted_text(type));
}

Result<Document> parse_document(std::string_view xml) {
  if (xml.size() > max_xml_bytes) {
    return unsupported(fmt::format("the XML has {} bytes; at most {} are read", xml.size(), max_xml_bytes),
                       "weights belong into the .bin file");
  }
  // Memory of one node of pugixml's tree with the reader's and the graph's own data.
  constexpr std::uint64_t markup_bytes = 160;
  const auto markup = std::ranges::count_if(xml, [](char c) { return c == '<' || c == '='; });
  io::MemoryBudget budget(xml.size());
  TRY(budget.take(2 * xml.size() + static_cast<std::uint64_t>(markup) * markup_bytes));
  // pugixml neither resolves entities of a document type nor loads files; it keeps the declaration so that this reader
  // can reject it.
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(xml.data(), xml.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (parsed.status == pugi::status_out_of_memory) throw std::bad_alloc();
  if (!parsed) return parse_error(fmt::format("not XML at byte {}: {}", parsed.offset, parsed.description()));
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() == pugi::node_doctype) {
      return unsupported("the XML has a document type declaration, which an IR does not have",
                         "remove <!DOCTYPE ...>; its entities are not expanded");
    }
  }
  const pugi::xml_node net = document.child("net");
  if (!net) return parse_error("no <net>: not an OpenVINO IR");
  if (net.next_sibling("net")) return parse_error("two models in one file");
  const auto version = parse_whole<std::int64_t>(net.attribute("version").value());
  if (!version) return parse_error("<net> has no version");
  if (*version < oldest_version || *version > newest_version) {
    return unsupported(
        fmt::format("IR version {}; versions {} and {} are read", *version, oldest_version, newest_version),
        "save the model again with a current OpenVINO");
  }
  TRY(check_children(net, {"layers", "edges"}, "<net>"));

  Document result{.name = net.attribute("name").value(), .layers = {}, .edges = {}};
  for (const pugi::xml_node& element : net.child("layers").children("layer")) {
    Layer layer = TRY(parse_layer(element));
    result.layers.push_back(std::move(layer));
  }
  for (const pugi::xml_node& element : net.child("edges").children("edge")) {
    LayerEdge edge = TRY(parse_edge(element));
    result.edges.push_back(edge);
  }
  if (result.layers.empty()) return parse_error("the model has no layers");
  return result;
}

}  // namespace tensorcast::models::openvino_ir
