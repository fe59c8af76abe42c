// SPDX-License-Identifier: Apache-2.0
// Which Casts and Identities can go.
#include "models/onnx/precision/cast_elision.hpp"

#include <gtest/gtest.h>

#include "models/onnx/ir/model_testing.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using namespace testing;

// A plan that changes no type.
struct Elided {
  explicit Elided(const GraphParts& main, const ModelParts& parts = {},
                  CastElision::Options options = {.identities = true})
      : model(main, parts), plan(*model, {.request = &request}) {
    plan.decide();
    elision = std::make_unique<CastElision>(plan, options);
  }
  Removal operator[](std::string_view made) const { return elision->removal(model.maker(made)); }
  std::string source(std::string_view value) const { return model->values[elision->source(model.id(value))].name; }

  ::tensorcast::onnx::ConvertRequest request;
  TestModel model;
  PrecisionPlan plan;
  std::unique_ptr<CastElision> elision;
};

// x is float32, h float16; y is an output that a Neg makes of `last`.
GraphParts chain(Names nodes, const std::string& last) {
  nodes.push_back(node("Neg", {last}, {"y"}));
  return {.nodes = std::move(nodes), .inputs = {{"x", f32}, {"h", f16}}, .outputs = {{"y", untyped}}};
}

TEST(CastElision, CastsToTheTypeThatTheyTakeGo) {
  const Elided elided(chain({cast("x", "a", f32)}, "a"));
  EXPECT_EQ(elided["a"], Removal::identity_cast);
  EXPECT_EQ(elided.source("a"), "x");
  EXPECT_EQ(elided.elision->removed_casts(), 1u);
}

TEST(CastElision, UpAndDownGoesDownAndUpStays) {
  const Elided up(chain({cast("h", "a", f32), cast("a", "b", f16)}, "b"));
  EXPECT_EQ(up["b"], Removal::round_trip);
  EXPECT_EQ(up["a"], Removal::dead);  // nothing else took it
  EXPECT_EQ(up.source("b"), "h");
  const GraphParts down = chain({cast("x", "a", f16), cast("a", "b", f32)}, "b");
  EXPECT_EQ(Elided(down)["b"], Removal::none);
  const Elided lossy(down, {}, {.lossy = true});
  EXPECT_EQ(lossy["b"], Removal::lossy_round_trip);
  EXPECT_EQ(lossy["a"], Removal::dead);
}

TEST(CastElision, AFirstCastWithAnotherConsumerStays) {
  GraphParts graph = chain({cast("h", "a", f32), cast("a", "b", f16)}, "b");
  graph.nodes.push_back(node("Neg", {"a"}, {"z"}));
  graph.outputs.emplace_back("z", untyped);
  const Elided elided(graph);
  EXPECT_EQ(elided["b"], Removal::round_trip);
  EXPECT_EQ(elided["a"], Removal::none);
}

TEST(CastElision, SecondCastsOfAValueGo) {
  const Elided elided({.nodes = {cast("x", "a", f16), cast("x", "b", f16), node("Add", {"a", "b"}, {"y"})},
                       .inputs = {{"x", f32}},
                       .outputs = {{"y", untyped}}});
  EXPECT_EQ(elided["a"], Removal::none);
  EXPECT_EQ(elided["b"], Removal::duplicate);
  EXPECT_EQ(elided.source("b"), "a");
}

TEST(CastElision, CastsWithOtherAttributesAreNoDuplicates) {
  const std::string other =
      node("Cast", {"x"}, {"b"}, {.attributes = {encode_int_attribute("to", 19), encode_int_attribute("saturate", 0)}});
  const Elided elided({.nodes = {cast("x", "a", DType::float8_e5m2), other, node("Concat", {"a", "b"}, {"y"})},
                       .inputs = {{"x", f32}},
                       .outputs = {{"y", untyped}}});
  EXPECT_EQ(elided["b"], Removal::none);
}

// A saturating Cast to float8_e5m2 makes the largest finite number of an infinity.
TEST(CastElision, AnInfinityThatWouldBecomeFiniteKeepsItsCasts) {
  constexpr DType e5m2 = DType::float8_e5m2;
  for (const std::uint64_t saturate : {0u, 1u}) {
    const std::string down =
        node("Cast", {"a"}, {"b"},
             {.attributes = {encode_int_attribute("to", e5m2), encode_int_attribute("saturate", saturate)}});
    const Elided elided({.nodes = {cast("x", "a", f32), down, node("Identity", {"b"}, {"y"})},
                         .inputs = {{"x", e5m2}},
                         .outputs = {{"y", untyped}}},
                        {}, {});
    EXPECT_EQ(elided["b"], saturate == 0 ? Removal::round_trip : Removal::none) << saturate;
  }
}

TEST(CastElision, AnOutputKeepsItsName) {
  // What makes the source takes the name of the output.
  const Elided renamed(
      {.nodes = {node("Neg", {"x"}, {"a"}), cast("a", "y", f32)}, .inputs = {{"x", f32}}, .outputs = {{"y", f32}}});
  EXPECT_EQ(renamed["y"], Removal::identity_cast);
  EXPECT_EQ(renamed.elision->name(renamed.model.id("a")), "y");
  // An input cannot.
  const Elided input({.nodes = {cast("x", "y", f32)}, .inputs = {{"x", f32}}, .outputs = {{"y", f32}}});
  EXPECT_EQ(input["y"], Removal::none);
  // Nor can a value be two outputs.
  const Elided both({.nodes = {node("Neg", {"x"}, {"a"}), cast("a", "y", f32)},
                     .inputs = {{"x", f32}},
                     .outputs = {{"a", f32}, {"y", f32}}});
  EXPECT_EQ(both["y"], Removal::none);
}

TEST(CastElision, WhatNothingTakesGoes) {
  const Elided elided(chain({cast("x", "a", f16), node("Identity", {"a"}, {"b"})}, "x"));
  EXPECT_EQ(elided["b"], Removal::dead);
  EXPECT_EQ(elided["a"], Removal::dead);
}

TEST(CastElision, IdentitiesGoOnlyIfAsked) {
  const GraphParts graph = chain({node("Identity", {"x"}, {"a"})}, "a");
  EXPECT_EQ(Elided(graph)["a"], Removal::identity);
  EXPECT_EQ(Elided(graph, {}, {})["a"], Removal::none);
}

TEST(CastElision, AnnotatedValuesAndModelsWithTrainingStay) {
  GraphParts graph = chain({cast("x", "a", f32)}, "a");
  graph.annotated = {"a"};
  EXPECT_EQ(Elided(graph)["a"], Removal::none);
  graph.annotated.clear();
  EXPECT_EQ(Elided(graph, {.has_training = true})["a"], Removal::none);
}

TEST(CastElision, AConsumerInASubgraphTakesTheSource) {
  const std::string then = graph({.nodes = {node("Neg", {"a"}, {"t"})}, .outputs = {{"t", untyped}}});
  const std::string other = graph({.nodes = {node("Abs", {"a"}, {"e"})}, .outputs = {{"e", untyped}}});
  const Elided elided({.nodes = {cast("x", "a", f32), node("If", {"c"}, {"y"},
                                                           {.attributes = {graph_attribute("then_branch", then),
                                                                           graph_attribute("else_branch", other)}})},
                       .inputs = {{"x", f32}, {"c", boolean}},
                       .outputs = {{"y", untyped}}});
  EXPECT_EQ(elided["a"], Removal::identity_cast);
  // A value of the subgraph that hides the source's name keeps the Cast.
  const std::string hiding =
      graph({.nodes = {node("Neg", {"a"}, {"x"}), node("Neg", {"x"}, {"t"})}, .outputs = {{"t", untyped}}});
  const Elided hidden({.nodes = {cast("x", "a", f32), node("If", {"c"}, {"y"},
                                                           {.attributes = {graph_attribute("then_branch", hiding),
                                                                           graph_attribute("else_branch", other)}})},
                       .inputs = {{"x", f32}, {"c", boolean}},
                       .outputs = {{"y", untyped}}});
  EXPECT_EQ(hidden["a"], Removal::none);
}

}  // namespace
}  // namespace tensorcast::models::onnx
