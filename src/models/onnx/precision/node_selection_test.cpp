// SPDX-License-Identifier: Apache-2.0
// Entries that name nodes, and types of operators.
#include "models/onnx/precision/node_selection.hpp"

#include <gtest/gtest.h>

#include "models/onnx/ir/model_testing.hpp"
#include "models/onnx/precision/operator_types.hpp"

namespace tensorcast::models::onnx {
namespace {

using namespace testing;

// Nodes by id: /head/A, /head/B, /tail (own::Neg), if_1, its branches' /head/inner and one without a name, and F's
// body.
const TestModel& sample() {
  static const TestModel model([] {
    const std::string then =
        graph({.nodes = {node("Neg", {"b"}, {"t"}, {.name = "/head/inner"})}, .outputs = {{"t", untyped}}});
    const std::string other = graph({.nodes = {node("Abs", {"b"}, {"e"})}, .outputs = {{"e", untyped}}});
    return testing::model(
        {.nodes = {node("Abs", {"x"}, {"a"}, {.name = "/head/A"}), node("Neg", {"a"}, {"b"}, {.name = "/head/B"}),
                   node("Neg", {"b"}, {"c"}, {.name = "/tail", .domain = "own"}),
                   node("If", {"k"}, {"y"},
                        {.attributes = {graph_attribute("then_branch", then), graph_attribute("else_branch", other)},
                         .name = "if_1"})},
         .inputs = {{"x", f32}, {"k", boolean}},
         .outputs = {{"y", f32}}},
        {.functions = {function("F", {"p"}, {"q"}, {node("Exp", {"p"}, {"q"}, {.name = "body"})})}});
  }());
  return model;
}

// The names of the selected nodes, or of their first outputs.
std::string selected(const Names& entries) {
  const Result<std::vector<bool>> found = select_nodes(*sample(), entries, "keep");
  if (!found) return "! " + found.error().message;
  std::string text;
  const auto add = [&](const Graph& graph, const auto& self) -> void {
    for (const Node& each : graph.nodes) {
      if ((*found)[each.id]) text += (each.name.empty() ? each.output_names[0] : each.name) + " ";
      for (const Attribute& attribute : each.attributes) {
        for (const auto& inner : attribute.graphs) self(*inner, self);
      }
    }
  };
  add(*sample()->graph, add);
  for (const auto& each : sample()->functions) add(each->body, add);
  return text;
}

TEST(NodeSelection, EachKindOfEntry) {
  EXPECT_EQ(selected({}), "");
  EXPECT_EQ(selected({"op:Neg"}), "/head/B /tail /head/inner ");
  EXPECT_EQ(selected({"name:/head/A"}), "/head/A ");
  EXPECT_EQ(selected({"glob:/head/*"}), "/head/A /head/B /head/inner ");
  EXPECT_EQ(selected({"glob:/head/?"}), "/head/A /head/B ");
  EXPECT_EQ(selected({"glob:e"}), "e ");  // a node without a name has that of its output
  EXPECT_EQ(selected({"re:^/head/[AB]$"}), "/head/A /head/B ");
  EXPECT_EQ(selected({"domain:own"}), "/tail ");
  EXPECT_EQ(selected({"domain:ai.onnx"}), "/head/A /head/B if_1 /head/inner e body ");
  EXPECT_EQ(selected({"graph:if_1.*"}), "/head/inner e ");
  EXPECT_EQ(selected({"graph:mine::F"}), "body ");
  EXPECT_EQ(selected({"tensor:b"}), "/head/B /tail /head/inner e ");
  EXPECT_EQ(selected({"producer-of:b"}), "/head/B ");
  EXPECT_EQ(selected({"consumer-of:a"}), "/head/B ");
  EXPECT_EQ(selected({"op:Exp", "name:/tail"}), "/tail body ");
}

TEST(NodeSelection, ADotOrBracketOfAGlobIsItself) {
  EXPECT_EQ(selected({"glob:if_1*", "graph:if_1.then_branch"}), "if_1 /head/inner ");
  EXPECT_EQ(selected({"graph:if_1?then[_]branch"}),
            "! no node of the model matches \"graph:if_1?then[_]branch\" of `keep`");
}

TEST(NodeSelection, WhatSelectsNothingIsAnError) {
  EXPECT_EQ(selected({"op:Conv"}), "! no node of the model matches \"op:Conv\" of `keep`");
  EXPECT_EQ(selected({"op:Neg", "name:nobody"}), "! no node of the model matches \"name:nobody\" of `keep`");
  EXPECT_EQ(selected({"Neg"}), "! \"Neg\" selects no nodes");
  EXPECT_EQ(selected({"kind:Neg"}), "! \"kind:Neg\" selects no nodes");
  EXPECT_EQ(selected({"re:("}).substr(0, 2), "! ");
}

TEST(OperatorTypes, InputsAndOutputsByIndex) {
  const auto parsed = operator_types_of(*sample(), {"own::Neg:in=float16,in2=f64,out0=bfloat16", "Abs:out=f16"});
  ASSERT_TRUE(parsed.ok()) << parsed.error().describe();
  const OperatorTypes& own = parsed->at(0);
  EXPECT_EQ(own.domain, "own");
  EXPECT_EQ(own.input(0), f16);
  EXPECT_EQ(own.input(2), f64);
  EXPECT_EQ(own.output(0), bf16);
  EXPECT_EQ(own.output(1), untyped);
  EXPECT_TRUE(own.names(sample().maker("c")));
  EXPECT_FALSE(own.names(sample().maker("b")));  // Neg of ONNX
  EXPECT_EQ(parsed->at(1).output(7), f16);
  EXPECT_EQ(parsed->at(1).domain, "");
}

TEST(OperatorTypes, WrongEntriesAreErrors) {
  for (const char* entry :
       {"own::Neg", "own::Neg:", "own::Neg:in", "own::Neg:in=", "own::Neg:in=int8", "own::Neg:inx=f16",
        "own::Neg:in-1=f16", "own::Neg:side=f16", "own::Neg:in=f16,", "own::Conv:in=f16", "Neg2:in=f16"}) {
    EXPECT_FALSE(operator_types_of(*sample(), {entry}).ok()) << entry;
  }
}

}  // namespace
}  // namespace tensorcast::models::onnx
