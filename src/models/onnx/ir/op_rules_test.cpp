// SPDX-License-Identifier: Apache-2.0
// What the schemas do not say about operators.
#include "models/onnx/ir/op_rules.hpp"

#include <gtest/gtest.h>

#include "models/onnx/ir/model_testing.hpp"

namespace tensorcast::models::onnx {
namespace {

Node node_of(std::string_view op, std::vector<std::string> inputs = {}, std::string_view domain = "") {
  Node node;
  node.op_type = op;
  node.domain = domain;
  node.input_names = std::move(inputs);
  return node;
}

TEST(OpRules, OperatorsOfTheRulesExist) {
  for (const std::string_view op :
       {"Cast", "RandomNormal", "EyeLike", "SequenceEmpty", "DequantizeLinear", "HannWindow"}) {
    ASSERT_NE(type_attribute(op), nullptr) << op;
    EXPECT_NE(find_schema("", op, schema_table_opset), nullptr) << op;
  }
  EXPECT_EQ(type_attribute("Cast")->attribute, "to");
  EXPECT_EQ(type_attribute("RandomNormal")->absent, DType::float32);        // float32 by default
  EXPECT_EQ(type_attribute("RandomNormalLike")->absent, DType::undefined);  // as its input
  EXPECT_EQ(type_attribute("Relu"), nullptr);
  EXPECT_EQ(type_attribute(""), nullptr);
}

TEST(OpRules, SchemasAreThoseOfTheOpset) {
  const auto float16_bit = std::uint64_t{1} << 10;
  const auto bfloat16_bit = std::uint64_t{1} << 16;
  const auto elements = [](std::string_view op, std::int64_t opset) {
    const Schema* schema = find_schema("", op, opset);
    return schema == nullptr ? 0 : schema->variables[schema->inputs.at(0).variable].tensors;
  };
  EXPECT_NE(elements("Relu", 6) & float16_bit, 0u);
  EXPECT_EQ(elements("Relu", 12) & bfloat16_bit, 0u);
  EXPECT_NE(elements("Relu", 13) & bfloat16_bit, 0u);
  EXPECT_EQ(find_schema("", "GroupNormalization", 17), nullptr);
  EXPECT_EQ(find_schema("", "LayerNormalization", 16)->since, 1);  // ONNX Runtime's, before ONNX had one
  EXPECT_EQ(find_schema("", "LayerNormalization", 17)->since, 17);
  EXPECT_EQ(find_schema("", "LayerNormalization", 20)->since, 17);
  EXPECT_EQ(find_schema("own", "Relu", 13), nullptr);
  EXPECT_NE(find_schema("ai.onnx.ml", "Scaler", 1), nullptr);
}

TEST(OpRules, FusedOperatorsHaveSchemas) {
  for (const std::string_view op : {"Attention", "BiasGelu", "EmbedLayerNormalization", "FastGelu", "FusedMatMul",
                                    "Gelu", "GroupQueryAttention", "MultiHeadAttention", "QuickGelu", "RotaryEmbedding",
                                    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}) {
    ASSERT_NE(find_schema(fused_domain, op, 1), nullptr) << op;
  }
  EXPECT_NE(find_schema("", "SimplifiedLayerNormalization", 13), nullptr);
  EXPECT_EQ(find_schema(fused_domain, "Inverse", 1), nullptr);
  EXPECT_TRUE(has_one_type("GroupQueryAttention") && outputs_have_one_type("GroupQueryAttention"));
  EXPECT_FALSE(outputs_have_one_type("LinearAttention"));  // its state may have a type of its own
}

TEST(OpRules, TheLastParameterMayRepeat) {
  const Schema* concat = find_schema("", "Concat", 13);
  ASSERT_NE(concat, nullptr);
  EXPECT_EQ(Schema::at(concat->inputs, 0), Schema::at(concat->inputs, 100));
  const Schema* relu = find_schema("", "Relu", 13);
  EXPECT_NE(Schema::at(relu->inputs, 0), nullptr);
  EXPECT_EQ(Schema::at(relu->inputs, 1), nullptr);
}

TEST(OpRules, SizesAreNamedByInput) {
  EXPECT_FALSE(is_size_input("Resize", 0));
  for (std::size_t i = 1; i < 4; ++i) EXPECT_TRUE(is_size_input("Resize", i));
  EXPECT_TRUE(is_size_input("Range", 0));
  EXPECT_TRUE(is_size_input("OneHot", 1));
  EXPECT_FALSE(is_size_input("OneHot", 2));
  EXPECT_FALSE(is_size_input("Add", 0));
  EXPECT_TRUE(only_moves_elements("Gather") && !only_moves_elements("Add"));
  EXPECT_TRUE(may_compute_sizes("Floor") && !may_compute_sizes("MatMul"));
  EXPECT_TRUE(is_container_operator("SequenceAt") && !is_container_operator("Concat"));
}

TEST(OpRules, ControlFlowIsThatOfOnnx) {
  EXPECT_TRUE(is_control_flow(node_of("Loop")));
  EXPECT_FALSE(is_control_flow(node_of("Loop", {}, "own")));
  EXPECT_FALSE(is_control_flow(node_of("Add")));
}

TEST(OpRules, BodiesAreWiredByOperator) {
  Node loop = node_of("Loop", {"count", "go", "a", "b"});
  const BodyWiring wiring = body_wiring(loop, 21);
  EXPECT_EQ(wiring.carried, 2u);
  EXPECT_EQ(wiring.input_of(0), BodyWiring::npos);  // the iteration
  EXPECT_EQ(wiring.input_of(1), BodyWiring::npos);  // the condition
  EXPECT_EQ(wiring.input_of(3), 3u);
  EXPECT_EQ(wiring.output_of(0), BodyWiring::npos);
  EXPECT_EQ(wiring.output_of(2), 1u);
  loop.input_names.resize(1);
  EXPECT_EQ(body_wiring(loop, 21).carried, 0u);

  Node scan = node_of("Scan", {"state", "x"});
  scan.attributes.resize(1);
  scan.attributes[0].name = "num_scan_inputs";
  scan.attributes[0].i = 1;
  EXPECT_EQ(body_wiring(scan, 9).carried, 1u);
  EXPECT_EQ(body_wiring(scan, 9).input_of(0), 0u);
  EXPECT_EQ(body_wiring(scan, 8).input_of(0), 1u);  // behind the lengths
  EXPECT_EQ(body_wiring(scan, 8).carried, 0u);
  scan.attributes[0].i = -1;  // from a malformed file
  EXPECT_EQ(body_wiring(scan, 9).carried, 0u);
}

}  // namespace
}  // namespace tensorcast::models::onnx
