// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "graph/graph_testing.hpp"
#include "tensorcast/element.hpp"

namespace tensorcast::graph {
namespace {

// A graph whose scale and zero point are constants; without a zero point if it is undefined.
Graph linear(DType from, Operation operation, Tensor scale, Tensor zero_point = {}) {
  std::vector<GraphNode> nodes = {{"scale", ConstantOp{std::move(scale)}, {}, {"s"}}};
  std::vector<std::string> inputs = {"x", "s"};
  if (zero_point.defined()) {
    nodes.push_back({"zero", ConstantOp{std::move(zero_point)}, {}, {"z"}});
    inputs.emplace_back("z");
  }
  nodes.push_back({"q", std::move(operation), inputs, {"y"}});
  return graph_of(from, std::move(nodes));
}

Tensor scalar(float value) { return tensor_of<float>(DType::float32, {}, {value}); }

TEST(QuantizeLinear, RoundsToEvenAddsTheZeroPointAndSaturates) {
  const Tensor zero = tensor_of<std::uint8_t>(DType::uint8, {}, {128});
  const Program program = compiled(linear(DType::float32, QuantizeLinearOp{}, scalar(2), zero));
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor y = run_one(program, floats({0, 1, 3, -1, 253, 1000, -1000, infinity, std::nanf("")}));
  EXPECT_EQ(elements_of<std::uint8_t>(y), (std::vector<std::uint8_t>{128, 128, 130, 128, 254, 255, 0, 255, 128}));
}

TEST(QuantizeLinear, ScalesOfAnAxisAndOfBlocks) {
  const Tensor x = tensor_of<float>(DType::float32, {2, 3}, {2, 4, 6, 2, 4, 6});
  const Tensor rows = tensor_of<float>(DType::float32, {2}, {1, 2});
  const Program per_axis = compiled(linear(DType::float32, QuantizeLinearOp{.axis = 0}, rows));
  EXPECT_EQ(elements_of<std::uint8_t>(run_one(per_axis, x)), (std::vector<std::uint8_t>{2, 4, 6, 1, 2, 3}));
  const Tensor blocks = tensor_of<float>(DType::float32, {2, 2}, {1, 2, 2, 1});
  const Program blocked = compiled(linear(DType::float32, QuantizeLinearOp{.axis = -1, .block_size = 2}, blocks));
  EXPECT_EQ(elements_of<std::uint8_t>(run_one(blocked, x)), (std::vector<std::uint8_t>{2, 4, 3, 1, 2, 6}));
}

TEST(DequantizeLinear, RoundsTheExactProductOnce) {
  // 16777217 * 3 is 50331651, between the float32 numbers 50331648 and 50331652; 16777216 * 3 is the lower one.
  const Program program = compiled(linear(DType::int32, DequantizeLinearOp{}, scalar(3)));
  const Tensor y = run_one(program, tensor_of<std::int32_t>(DType::int32, {1}, {16777217}));
  EXPECT_EQ(elements_of<float>(y), (std::vector<float>{50331652.0f}));
}

TEST(DequantizeLinear, SubtractsTheZeroPoint) {
  const Tensor zero = tensor_of<std::int8_t>(DType::int8, {}, {-128});
  const Program program = compiled(linear(DType::int8, DequantizeLinearOp{}, scalar(0.5f), zero));
  const Tensor y = run_one(program, tensor_of<std::int8_t>(DType::int8, {2}, {-128, 127}));
  EXPECT_EQ(elements_of<float>(y), (std::vector<float>{0, 127.5f}));
}

TEST(DynamicQuantizeLinear, GivesNumbersScaleAndZeroPoint) {
  Graph graph = graph_of(DType::float32, {{"d", DynamicQuantizeLinearOp{}, {"x"}, {"y", "s", "z"}}});
  graph.outputs.push_back({.name = "s"});
  graph.outputs.push_back({.name = "z"});
  const NamedTensor input{"x", floats({0, 2, -3, -2.5f, 1.34f, 0.5f})};
  const Result<std::vector<NamedTensor>> outputs = compiled(graph).run({&input, 1});
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ(elements_of<std::uint8_t>((*outputs)[0].tensor), (std::vector<std::uint8_t>{153, 255, 0, 26, 221, 179}));
  EXPECT_EQ(elements_of<float>((*outputs)[1].tensor), (std::vector<float>{5.0f / 255.0f}));
  EXPECT_EQ(elements_of<std::uint8_t>((*outputs)[2].tensor), (std::vector<std::uint8_t>{153}));
}

TEST(BitCast, KeepsTheBits) {
  const Program program = compiled(graph_of(DType::float32, {{"b", BitCastOp{DType::uint32}, {"x"}, {"y"}}}));
  EXPECT_EQ(elements_of<std::uint32_t>(run_one(program, floats({1, -0.0f}))),
            (std::vector<std::uint32_t>{0x3f800000, 0x80000000}));
  EXPECT_EQ(compile_error(graph_of(DType::float32, {{"b", BitCastOp{DType::int8}, {"x"}, {"y"}}})),
            "node \"b\" (BitCast): float32 has 32 bits and int8 8; BitCast keeps the width");
}

TEST(LinearErrors, NameTheOpsetThatHasTheTypeOrAttribute) {
  const auto message = [](DType from, Operation operation, Tensor scale, Tensor zero = {}) {
    return compile_error(linear(from, std::move(operation), std::move(scale), std::move(zero)));
  };
  EXPECT_EQ(message(DType::float32, QuantizeLinearOp{.opset = 19, .block_size = 2}, scalar(1)),
            "node \"q\" (QuantizeLinear): the operator has block_size since opset 21; this is opset 19");
  EXPECT_EQ(message(DType::float32, QuantizeLinearOp{.opset = 21, .output_dtype = DType::int2}, scalar(1)),
            "node \"q\" (QuantizeLinear): y is int2, which the operator has since opset 25; this is opset 21");
  EXPECT_EQ(message(DType::float64, QuantizeLinearOp{}, scalar(1)),
            "node \"q\" (QuantizeLinear): x is not of a type that the operator has: float64");
  EXPECT_EQ(message(DType::float16, QuantizeLinearOp{.opset = 21}, scalar(1)),
            "node \"q\" (QuantizeLinear): x is float16 and the scale float32; they may differ since opset 23");
  EXPECT_EQ(message(DType::int8, DequantizeLinearOp{}, scalar(1), tensor_of<std::uint8_t>(DType::uint8, {}, {0})),
            "node \"q\" (DequantizeLinear): x is int8, but its zero point uint8");
  const Tensor e8m0 = tensor_of<std::uint8_t>(DType::float8_e8m0fnu, {}, {127});
  EXPECT_EQ(message(DType::int8, DequantizeLinearOp{}, e8m0),
            "node \"q\" (DequantizeLinear): the scale is float8_e8m0fnu, which is not a type of y: output_dtype must "
            "name one");
}

TEST(LinearErrors, ShapesAreCheckedInTheRunIfTheyAreNotKnownBefore) {
  const Tensor scales = tensor_of<float>(DType::float32, {2}, {1, 2});
  const Program program = compiled(linear(DType::float32, QuantizeLinearOp{}, scales));
  EXPECT_EQ(run_error(program, {{"x", tensor_of<float>(DType::float32, {1, 3}, {1, 2, 3})}}),
            "node \"q\" (QuantizeLinear): there are 2 scales for the 3 indices of axis 1");
  const Program int32 =
      compiled(linear(DType::int32, DequantizeLinearOp{}, scalar(1), tensor_of<std::int32_t>(DType::int32, {}, {1})));
  EXPECT_EQ(run_error(int32, {{"x", tensor_of<std::int32_t>(DType::int32, {1}, {3})}}),
            "node \"q\" (DequantizeLinear): the zero point of int32 must be 0");
}

}  // namespace
}  // namespace tensorcast::graph
