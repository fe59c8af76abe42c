// Models of conversion nodes: read one of ONNX, OpenVINO IR or MDF as a Graph, or add a node to an ONNX model.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast {

// How MDF models are read: as the operators' texts say, or with what the reference engine does around each operator.
enum class MdfSemantics { onnx, mdf_reference };

struct LoadModelOptions {
  std::string format = {};  // "onnx", "openvino_ir", "mdf"; empty: by extension and content
  MdfSemantics mdf_semantics = MdfSemantics::onnx;
  // MDF: asked once for each input whose type the model leaves open; `undefined`, or no function: it stays open.
  // Weights of edges, and the reference engine, need types.
  std::function<DType(std::string_view input)> input_type = {};
};

struct Model {
  std::string format;
  Graph graph;
};

// Errors: io; parse: a file that breaks its format; unsupported: a node that is not a conversion, by node, operator and
// file; invalid_argument as Program::compile(). Memory is bounded by the file and the external data that it names.
[[nodiscard]] TENSORCAST_API Result<Model> load_model(const std::string& path, const LoadModelOptions& options = {});

struct AddCastRequest {
  std::string input = {};   // an ONNX model
  std::string output = {};  // where the new one goes; equal to `input` is safe
  std::string tensor = {};  // the value to convert
  DType to = DType::undefined;
  std::string node_name = {};    // empty: made from the tensor's name
  std::string output_name = {};  // of the converted value; empty: made from the tensor's name
  bool saturate = true;
  bool overwrite = false;
};

struct AddCastOutcome {
  std::string node_name;
  std::string output_name;
  std::size_t rewired = 0;  // inputs of nodes that now take the converted value
  bool graph_output_renamed = false;
};

// Puts a Cast behind a value of any ONNX model and gives its result to all nodes that took the value, in subgraphs that
// see it too. Where the value is an output of the model, the result becomes the output in its place, under its own name
// and type. Everything else stays as it is, byte for byte; whether the nodes accept the new type is not checked.
// Errors: io, parse; invalid_argument: no such tensor, a name that is taken, nothing that takes the value; unsupported:
// a type that the model's opset does not have, an output of a subgraph, external data and another folder for the
// output. Cost: reads the model twice; memory is bounded by its depth and the number of changes.
[[nodiscard]] TENSORCAST_API Result<AddCastOutcome> add_cast(const AddCastRequest& request);

}  // namespace tensorcast
