// SPDX-License-Identifier: Apache-2.0
// Component models. Models of conversion nodes: reads ONNX, OpenVINO IR and MDF as a Graph, and adds a Cast to an ONNX
// model.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// How MDF models are read: as the operators' texts define them, or with the conversions that the reference engine adds.
enum class MdfSemantics { onnx, mdf_reference };

struct LoadModelOptions {
  std::string format = {};  // "onnx", "openvino_ir", "mdf"; empty: by extension and content
  MdfSemantics mdf_semantics = MdfSemantics::onnx;
  // MDF: asked once for each input whose type the model leaves open; `undefined`, or no function: it stays open.
  // Weights of edges, and the reference engine, need types.
  std::function<DType(std::string_view input)> input_type = {};
};

struct Model {
  std::string format = {};
  Graph graph = {};
};

// Reads a model. Errors: io; parse: the file breaks its format; unsupported: a node is not a conversion (names the
// node, the operator and the file); invalid_argument as Program::compile(). Memory is bounded by the file and the
// external data that it names.
[[nodiscard]] TENSORCAST_API Result<Model> load_model(const std::string& path, const LoadModelOptions& options = {});

// Reads a model from memory: `bytes` are the contents of an ONNX file, and are not used after the call.
// Errors: as load_model(); unsupported: another format, external data.
[[nodiscard]] TENSORCAST_API Result<Model> parse_model(std::span<const std::byte> bytes,
                                                       const LoadModelOptions& options = {});

struct AddCastRequest {
  std::string input = {};   // an ONNX model
  std::string output = {};  // where the new one goes; equal to `input` is safe
  std::string tensor = {};  // the value to convert
  DType to = DType::undefined;
  std::string node_name = {};    // empty: made from the tensor's name
  std::string output_name = {};  // of the converted value; empty: made from the tensor's name
  bool saturate = true;
  bool overwrite = false;
  // Called before the output is created, now and then while it is written, and before it gets its name; returning false
  // cancels.
  std::function<bool()> on_progress = {};
};

struct AddCastOutcome {
  std::string node_name = {};
  std::string output_name = {};
  std::size_t rewired = 0;  // inputs of nodes that now take the converted value
  bool graph_output_renamed = false;
};

// Adds a Cast of a value to any ONNX model and connects all consumers of the value to the Cast's output, also those in
// subgraphs. If the value is an output of the model, the Cast's output replaces it, under its own name and type. All
// other bytes of the model stay as they are. Whether the consumers accept the new type is not checked.
// Errors: io, parse; invalid_argument: no such tensor, a name that is taken, a value without consumers; unsupported:
// a type that the model's opset does not have, an output of a subgraph, external data and another folder for the
// output. Cost: reads the model twice; memory is bounded by its depth and the number of changes.
[[nodiscard]] TENSORCAST_API Result<AddCastOutcome> add_cast(const AddCastRequest& request);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
