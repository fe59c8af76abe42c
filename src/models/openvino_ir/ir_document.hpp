// SPDX-License-Identifier: Apache-2.0
// The XML of an OpenVINO IR model as plain data: layers with their ports, and edges between ports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::models::openvino_ir {

struct Port {
  std::int64_t id = 0;
  std::string precision;           // "FP32"; may be missing on inputs
  std::vector<std::int64_t> dims;  // -1: any length
  std::vector<std::string> names;  // names of the tensor, in the file's order
};

struct Layer {
  std::int64_t id = 0;
  std::string name;
  std::string type;
  std::string version;                      // "opset1"; may be missing
  std::map<std::string, std::string> data;  // attributes of <data>
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::string> output_names;  // results only

  // Returns `layer 3 "NAME" (Convert)`, for messages.
  [[nodiscard]] std::string described() const;
};

struct LayerPort {
  std::int64_t layer = 0;
  std::int64_t port = 0;
  friend auto operator<=>(const LayerPort&, const LayerPort&) = default;
};

struct LayerEdge {
  LayerPort from;
  LayerPort to;
};

struct Document {
  std::string name;
  std::vector<Layer> layers;
  std::vector<LayerEdge> edges;
};

// Errors: parse: not XML, or not the structure of an IR; unsupported: another version of the IR, a document type
// declaration. Memory is bounded: tags and attributes that would take too much fail before they are parsed.
[[nodiscard]] Result<Document> parse_document(std::string_view xml);

inline constexpr std::size_t max_xml_bytes = std::size_t{256} << 20;

}  // namespace tensorcast::models::openvino_ir
