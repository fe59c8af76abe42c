// SPDX-License-Identifier: Apache-2.0
// Small graphs and tensors for the tests of this layer.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "dtype/tensor_testing.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::graph {

inline Tensor floats(std::vector<float> elements) {
  const auto count = static_cast<std::int64_t>(elements.size());
  return tensor_of(DType::float32, {count}, elements);
}

inline Tensor boolean(bool value) { return tensor_of<unsigned char>(DType::boolean, {}, {value}); }

inline Tensor strings(const std::vector<std::string>& texts) {
  StringBuffer buffer{{}, {0}};
  for (const std::string& text : texts) {
    buffer.data.insert(buffer.data.end(), text.begin(), text.end());
    buffer.offsets.push_back(static_cast<std::int64_t>(buffer.data.size()));
  }
  Result<Tensor> tensor = Tensor::own({static_cast<std::int64_t>(texts.size())}, std::move(buffer));
  return *tensor;
}

inline std::vector<std::string> texts_of(const Tensor& tensor) {
  std::vector<std::string> texts;
  const StringView view = tensor.strings();
  for (std::size_t i = 0; i + 1 < view.offsets.size(); ++i) {
    texts.emplace_back(view.data.data() + view.offsets[i], view.data.data() + view.offsets[i + 1]);
  }
  return texts;
}

inline GraphNode cast_node(std::string name, std::string input, std::string output, DType to,
                           CastOptions options = {}) {
  return {std::move(name), CastOp{to, options}, {std::move(input)}, {std::move(output)}};
}

inline GraphNode identity_node(std::string name, std::string input, std::string output) {
  return {std::move(name), IdentityOp{}, {std::move(input)}, {std::move(output)}};
}

inline std::shared_ptr<const Graph> branch(std::vector<GraphNode> nodes, std::string output) {
  return std::make_shared<const Graph>(
      Graph{.name = "branch", .inputs = {}, .nodes = std::move(nodes), .outputs = {{.name = std::move(output)}}});
}

// Returns a graph with the input x of type `from`, the nodes, and the output y.
inline Graph graph_of(DType from, std::vector<GraphNode> nodes) {
  return {
      .name = "test", .inputs = {{.name = "x", .dtype = from}}, .nodes = std::move(nodes), .outputs = {{.name = "y"}}};
}

inline Program compiled(Graph graph) {
  Result<Program> program = Program::compile(std::move(graph));
  if (!program) ADD_FAILURE() << program.error().describe();
  return *std::move(program);
}

inline std::string compile_error(Graph graph) {
  const Result<Program> program = Program::compile(std::move(graph));
  return program.ok() ? "no error" : program.error().describe();
}

// Runs the program on x and returns y.
inline Tensor run_one(const Program& program, const Tensor& x, int threads = 1) {
  const NamedTensor input{"x", x};
  Result<std::vector<NamedTensor>> outputs = program.run({&input, 1}, {.threads = threads});
  if (!outputs) ADD_FAILURE() << outputs.error().describe();
  return outputs ? (*outputs)[0].tensor : Tensor();
}

inline std::string run_error(const Program& program, const std::vector<NamedTensor>& inputs,
                             const Execution& execution = {}) {
  const Result<std::vector<NamedTensor>> outputs = program.run(inputs, execution);
  return outputs.ok() ? "no error" : outputs.error().describe();
}

}  // namespace tensorcast::graph
