// SPDX-License-Identifier: Apache-2.0
// Touches every header of the component models, so that each must be linkable from an installed library.
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"
#include "tensorcast/node.hpp"

namespace tc = tensorcast;

namespace {

tc::Tensor float_of(float number) {
  std::vector<std::byte> bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  tc::Result<tc::Tensor> tensor = tc::Tensor::own(tc::DType::float32, {1}, bytes);
  return tensor.ok() ? *tensor : tc::Tensor();
}

void graphs() {
  tc::Graph graph;
  graph.inputs = {{.name = "x", .dtype = tc::DType::float32}};
  graph.nodes = {{"n", tc::CastOp{.to = tc::DType::float16}, {"x"}, {"y"}}};
  graph.outputs = {{.name = "y"}};
  const tc::Result<tc::Program> program = tc::Program::compile(graph);
  check(program.ok(), "compile");
  if (!program) return;
  const std::array<tc::NamedTensor, 1> inputs = {{{"x", float_of(1.5f)}}};
  const tc::Result<std::vector<tc::NamedTensor>> outputs = program->run(inputs, {});
  check(outputs.ok() && (*outputs)[0].tensor.dtype() == tc::DType::float16, "run");
}

void nodes() {
  tc::Result<tc::CastNode> node = tc::CastNode::create({.to = tc::DType::float16});
  check(node.ok() && node->forward(float_of(1.5f)).ok(), "node");
}

}  // namespace

int main() {
  check(!tc::load_model("no such file.onnx").ok(), "a model that is not there");
  graphs();
  nodes();
  return finish();
}
