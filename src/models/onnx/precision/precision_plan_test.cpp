// SPDX-License-Identifier: Apache-2.0
// Which values change their type: slots of operators, and what holds them.
#include "models/onnx/precision/precision_plan.hpp"

#include <gtest/gtest.h>

#include "models/onnx/ir/model_testing.hpp"
#include "models/onnx/precision/node_selection.hpp"

namespace tensorcast::models::onnx {
namespace {

using namespace testing;
using ::tensorcast::onnx::ConvertRequest;
using ::tensorcast::onnx::Runtime;

// A conversion of float32 to `to`, for any runtime.
struct Planned {
  explicit Planned(const GraphParts& main, const ModelParts& parts = {}, ConvertRequest asked = {}, DType to = f16)
      : request(std::move(asked)), model(main, parts) {
    request.runtime = Runtime::any;
    PrecisionPlan::Settings settings{.to = to, .from = std::uint64_t{1} << static_cast<int>(f32), .request = &request};
    settings.blocked = select_nodes(*model, request.keep, "keep").value();
    plan = std::make_unique<PrecisionPlan>(*model, settings);
    plan->decide();
  }
  DType made(std::string_view value) const { return plan->produced(model.id(value)); }
  // What the maker of `value` takes as input `i`.
  DType taken(std::string_view value, std::size_t i = 0) const { return plan->taken(model.maker(value), i); }
  std::string reason(std::string_view value) const {
    for (const auto& kept : plan->kept_nodes()) {
      if (kept.name == value) return std::string(kept.reason);
    }
    return "";
  }

  ConvertRequest request;
  TestModel model;
  std::unique_ptr<PrecisionPlan> plan;
};

TEST(PrecisionPlan, OperatorsThatTakeTheTypeChange) {
  const Planned planned({.nodes = {node("Neg", {"x"}, {"a"}), node("Add", {"a", "w"}, {"y"})},
                         .inputs = {{"x", f32}},
                         .outputs = {{"y", f32}},
                         .initializers = {{"w", f32}}});
  for (const char* value : {"x", "a", "w", "y"}) EXPECT_EQ(planned.made(value), f16) << value;
  EXPECT_TRUE(planned.plan->kept_nodes().empty());
}

TEST(PrecisionPlan, OtherTypesAreLeftAlone) {
  const Planned planned({.nodes = {node("Neg", {"x"}, {"a"}), node("Add", {"d", "d"}, {"b"})},
                         .inputs = {{"x", f32}, {"d", f64}},
                         .outputs = {{"a", f32}, {"b", f64}}});
  EXPECT_EQ(planned.made("a"), f16);
  EXPECT_EQ(planned.made("b"), f64);
}

TEST(PrecisionPlan, AnOperatorThatDoesNotTakeTheTypeKeepsItsOwn) {
  // Relu takes bfloat16 from opset 13 on.
  const GraphParts graph{.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {{"x", f32}}, .outputs = {{"y", f32}}};
  EXPECT_EQ(Planned(graph, {.opset = 13}, {}, bf16).made("y"), bf16);
  const Planned old(graph, {.opset = 12}, {}, bf16);
  EXPECT_EQ(old.made("y"), f32);
  EXPECT_EQ(old.reason("y"), "the operator does not take the type in this opset");
}

TEST(PrecisionPlan, UnknownOperatorsKeepTheirTypesExactly) {
  const Planned planned(
      {.nodes = {node("Neg", {"x"}, {"a"}), node("Own", {"a"}, {"b"}, {.domain = "own"}), node("Neg", {"b"}, {"y"})},
       .inputs = {{"x", f32}},
       .outputs = {{"y", f32}, {"b", f32}}});
  EXPECT_EQ(planned.made("a"), f16);
  EXPECT_EQ(planned.taken("b"), f32);  // behind a Cast
  EXPECT_EQ(planned.made("b"), f32);
  EXPECT_EQ(planned.taken("y"), f16);
  EXPECT_EQ(planned.reason("b"), "the operator is unknown");
}

TEST(PrecisionPlan, BlockedNodesKeepTheirType) {
  const GraphParts graph{.nodes = {node("Neg", {"x"}, {"a"}, {.name = "first"}), node("Abs", {"a"}, {"y"})},
                         .inputs = {{"x", f32}},
                         .outputs = {{"y", f32}}};
  for (const ConvertRequest& request : {ConvertRequest{.keep_op_types = {"Abs"}}, ConvertRequest{.keep = {"op:Abs"}}}) {
    const Planned planned(graph, {}, request);
    EXPECT_EQ(planned.made("a"), f16);
    EXPECT_EQ(planned.taken("y"), f32);
    EXPECT_EQ(planned.reason("y"), "the request keeps it");
  }
  EXPECT_EQ(Planned(graph, {}, {.keep_nodes = {"first"}}).made("a"), f32);
}

TEST(PrecisionPlan, EdgesOfTheModelKeepTheirTypesIfAsked) {
  const GraphParts graph{.nodes = {node("Neg", {"x"}, {"y"})}, .inputs = {{"x", f32}}, .outputs = {{"y", f32}}};
  const Planned all(graph, {}, {.keep_io_types = true});
  EXPECT_EQ(all.made("x"), f32);
  EXPECT_EQ(all.taken("y"), f16);
  EXPECT_EQ(all.plan->given_back(*all.model->graph, 0), f32);
  const Planned one(graph, {}, {.keep_io_names = {"y"}});
  EXPECT_EQ(one.made("x"), f16);
  EXPECT_EQ(one.plan->given_back(*one.model->graph, 0), f32);
}

TEST(PrecisionPlan, SizesThatAreFloatsStay) {
  // x * s is cast to integers for Reshape; Exp is the first operator that computes something else.
  const Planned planned(
      {.nodes = {node("Exp", {"x"}, {"e"}), node("Mul", {"e", "s"}, {"m"}), node("Floor", {"m"}, {"f"}),
                 cast("f", "n", i64), node("Reshape", {"e", "n"}, {"y"})},
       .inputs = {{"x", f32}, {"s", f32}},
       .outputs = {{"y", f32}}});
  EXPECT_EQ(planned.made("m"), f32);
  EXPECT_EQ(planned.made("f"), f32);
  EXPECT_EQ(planned.made("e"), f16);
  EXPECT_EQ(planned.taken("m"), f32);
  EXPECT_EQ(planned.made("y"), f16);
}

TEST(PrecisionPlan, IdentifiersThatAreFloatsStay) {
  // In a column of `x`, which other columns are computed from.
  const auto looked_up = [](const Names& nodes) {
    GraphParts parts{.nodes = {node("Exp", {"x"}, {"e"}), node("Mul", {"e", "w"}, {"a"})},
                     .inputs = {{"x", f32}, {"go", boolean}},
                     .outputs = {{"y", f32}},
                     .initializers = {{"w", f32}, {"t", f32}, {"k", i64}}};
    parts.nodes.insert(parts.nodes.end(), nodes.begin(), nodes.end());
    parts.nodes.push_back(cast("b", "n", i64));
    parts.nodes.push_back(node("Gather", {"t", "n"}, {"y"}));
    return parts;
  };
  const std::string kept = "it computes sizes or indices";
  for (const char* op : {"Transpose", "Flatten", "Log", "Split", "TopK", "GatherElements", "Tile", "MaxPool"}) {
    const bool takes_index =
        std::string(op) == "TopK" || std::string(op) == "GatherElements" || std::string(op) == "Tile";
    const Planned planned(looked_up({node(op, takes_index ? Names{"a", "k"} : Names{"a"}, {"b"})}));
    const bool is_other = std::string(op) == "Log";
    EXPECT_EQ(planned.made("a"), is_other ? f16 : f32) << op;
    EXPECT_EQ(planned.made("b"), is_other ? f16 : f32) << op;
    EXPECT_EQ(planned.made("e"), f16) << op;
    EXPECT_EQ(planned.made("y"), f16) << op;
  }
  const std::string then = graph({.nodes = {node("Neg", {"a"}, {"p"})}, .outputs = {{"p", f32}}});
  const std::string other = graph({.nodes = {node("Add", {"a", "w"}, {"q"})}, .outputs = {{"q", f32}}});
  const Planned branches(
      looked_up({node("If", {"go"}, {"b"},
                      {.attributes = {graph_attribute("then_branch", then), graph_attribute("else_branch", other)}})}));
  const Planned call(looked_up({node("F", {"a"}, {"b"}, {.domain = "mine"})}),
                     {.functions = {function("F", {"p"}, {"q"}, {node("Neg", {"p"}, {"q"})})}});
  for (const Planned* planned : {&branches, &call}) {
    for (const char* value : {"a", "p", "q", "b"}) EXPECT_EQ(planned->made(value), f32) << value;
    EXPECT_EQ(planned->reason("a"), kept);
    EXPECT_EQ(planned->made("e"), f16);
  }
  const Planned calls(
      looked_up({node("F", {"a"}, {"b"}, {.domain = "mine"}), node("F", {"e"}, {"z"}, {.domain = "mine"})}),
      {.functions = {function("F", {"p"}, {"q"}, {node("Neg", {"p"}, {"q"})})}});
  for (const char* value : {"a", "p", "q", "z"}) EXPECT_EQ(calls.made(value), f16) << value;  // all calls have one type
}

TEST(PrecisionPlan, BucketsOfPositionsStay) {
  // T5's logarithm of a distance; that of other numbers changes.
  const auto buckets = [](const std::string& first) {
    return GraphParts{.nodes = {first, node("Div", {"f", "w"}, {"d"}), node("Log", {"d"}, {"l"}),
                                node("Mul", {"l", "w"}, {"m"}), cast("m", "n", i64), node("Gather", {"t", "n"}, {"y"})},
                      .inputs = {{"k", i64}, {"x", f32}},
                      .outputs = {{"y", f32}},
                      .initializers = {{"w", f32}, {"t", f32}}};
  };
  const Planned positions(buckets(cast("k", "f", f32)));
  for (const char* value : {"f", "d", "l", "m"}) EXPECT_EQ(positions.made(value), f32) << value;
  EXPECT_EQ(positions.made("y"), f16);
  const Planned numbers(buckets(node("Exp", {"x"}, {"f"})));
  for (const char* value : {"f", "d", "l"}) EXPECT_EQ(numbers.made(value), f16) << value;
  EXPECT_EQ(numbers.made("m"), f32);
}

TEST(PrecisionPlan, LengthsStayUpToARoot) {
  // As exports scale queries and keys: by the root of 1 / sqrt(length). Embeddings are no constants.
  const Planned planned(
      {.nodes = {node("Shape", {"x"}, {"s"}), cast("s", "f", f32), node("Abs", {"f"}, {"a"}),
                 node("Sqrt", {"a"}, {"r"}), node("Div", {"w", "r"}, {"d"}), node("Sqrt", {"d"}, {"p"}),
                 node("Mul", {"x", "p"}, {"y"}), node("Gather", {"w", "k"}, {"e"}), node("Mul", {"e", "a"}, {"z"})},
       .inputs = {{"x", f32}, {"k", i64}},
       .outputs = {{"y", f32}, {"z", f32}},
       .initializers = {{"w", f32}}});
  for (const char* value : {"f", "a", "r"}) EXPECT_EQ(planned.made(value), f32) << value;
  for (const char* value : {"d", "p", "y", "e", "z"}) EXPECT_EQ(planned.made(value), f16) << value;
}

TEST(PrecisionPlan, WholeNumbersThatAreComparedStay) {
  const auto compared = [](const std::string& op, const Names& inputs) {
    return GraphParts{
        .nodes = {cast("k", "f", f32), cast("c", "h", f32), node("Exp", {"x"}, {"e"}), node("Ceil", {"e"}, {"g"}),
                  node("Abs", {"f"}, {"a"}), node(op, inputs, {"b"}), node("Mul", {"x", "f"}, {"y"})},
        .inputs = {{"k", i64}, {"x", f32}},
        .outputs = {{"y", f32}, {"b", untyped}},
        .initializers = {{"w", f32}, {"c", i64}}};
  };
  const Planned equal(compared("Equal", {"a", "w"}));
  for (const char* value : {"f", "a", "w"}) EXPECT_EQ(equal.made(value), f32) << value;
  EXPECT_EQ(equal.taken("y", 1), f16);
  EXPECT_EQ(Planned(compared("ArgMax", {"f"})).made("f"), f32);
  const Planned less(compared("Less", {"f", "g"}));  // with lengths that are computed
  for (const char* value : {"f", "g"}) EXPECT_EQ(less.made(value), f32) << value;
  EXPECT_EQ(less.made("e"), f16);
  const Planned limit(compared("Greater", {"g", "h"}));  // with a constant
  for (const char* value : {"f", "g", "h"}) EXPECT_EQ(limit.made(value), f16) << value;
  // Transformers' causal mask, to which the mask of the input is added.
  GraphParts masks = compared("Equal", {"s", "w"});
  masks.nodes.insert(masks.nodes.begin() + 5,
                     {node("Trilu", {"w"}, {"t"}), node("Add", {"t", "f"}, {"s"}), node("Slice", {"t", "c"}, {"z"})});
  masks.outputs.push_back({"z", f32});
  const Planned mask(masks);
  for (const char* value : {"f", "s"}) EXPECT_EQ(mask.made(value), f32) << value;
  for (const char* value : {"t", "z"}) EXPECT_EQ(mask.made(value), f16) << value;
  EXPECT_EQ(Planned(compared("Equal", {"a", "w"}), {}, {}, f64).made("a"), f64);
}

TEST(PrecisionPlan, AnglesOfWholeNumbersStay) {
  const auto angle = [](const Names& nodes) {
    GraphParts parts{
        .nodes = nodes, .inputs = {{"k", i64}, {"x", f32}}, .outputs = {{"y", f32}}, .initializers = {{"w", f32}}};
    parts.nodes.push_back(node("Cos", {"a"}, {"c"}));
    parts.nodes.push_back(node("Mul", {"x", "c"}, {"y"}));
    return parts;
  };
  for (const char* op : {"Einsum", "Mul", "Pow", "MatMul", "Sum"}) {
    const Planned planned(angle({cast("k", "f", f32), node(op, {"f", "w"}, {"a"})}), {}, {}, bf16);
    for (const char* value : {"f", "a", "c"}) EXPECT_EQ(planned.made(value), f32) << op << value;
    EXPECT_EQ(planned.made("y"), bf16);
  }
  const Planned call(angle({cast("k", "f", f32), node("F", {"f", "w"}, {"a"}, {.domain = "mine"})}),
                     {.functions = {function("F", {"p", "q"}, {"r"}, {node("Mul", {"p", "q"}, {"r"})})}});
  for (const char* value : {"f", "p", "r", "a", "c"}) EXPECT_EQ(call.made(value), f32) << value;
  // A time that is an input, and an input that nothing scales.
  const Planned time(angle({node("Unsqueeze", {"x", "k"}, {"u"}), node("Mul", {"u", "w"}, {"a"})}));
  for (const char* value : {"u", "a", "c"}) EXPECT_EQ(time.made(value), f32) << value;
  const Planned computed(angle({node("Exp", {"x"}, {"e"}), node("Mul", {"e", "w"}, {"a"})}));
  for (const char* value : {"e", "a", "c"}) EXPECT_EQ(computed.made(value), f16) << value;
  EXPECT_EQ(Planned(angle({node("Identity", {"x"}, {"a"})})).made("c"), f16);
  EXPECT_EQ(Planned(angle({node("Mul", {"x", "x"}, {"a"})})).made("c"), f16);
}

TEST(PrecisionPlan, ScalesOfResizeStayAndItsImageChanges) {
  const Planned planned({.nodes = {node("Resize", {"x", "", "scales"}, {"y"})},
                         .inputs = {{"x", f32}},
                         .outputs = {{"y", f32}},
                         .initializers = {{"scales", f32}}});
  EXPECT_EQ(planned.made("scales"), f32);
  EXPECT_EQ(planned.made("y"), f16);
}

TEST(PrecisionPlan, AnInitializerThatBothTypesNeedIsStoredTwiceOrCast) {
  const GraphParts graph{.nodes = {node("Add", {"x", "w"}, {"a"}), node("Abs", {"w"}, {"y"})},
                         .inputs = {{"x", f32}},
                         .outputs = {{"a", f32}, {"y", f32}},
                         .initializers = {{"w", f32}}};
  const Planned twice(graph, {}, {.keep_op_types = {"Abs"}});
  EXPECT_EQ(twice.made("w"), f32);
  EXPECT_TRUE(twice.plan->has_copy(twice.model.id("w")));
  const Planned once(graph, {},
                     {.keep_op_types = {"Abs"}, .shared_initializers = ::tensorcast::onnx::SharedInitializers::cast});
  EXPECT_EQ(once.made("w"), f32);
  EXPECT_FALSE(once.plan->has_copy(once.model.id("w")));
}

TEST(PrecisionPlan, BothBranchesGiveOneType) {
  const auto branches_by = [](const std::string& domain) {
    const std::string then = graph({.nodes = {node("Neg", {"x"}, {"t"})}, .outputs = {{"t", f32}}});
    const std::string other =
        graph({.nodes = {node("Abs", {"x"}, {"e"}, {.domain = domain})}, .outputs = {{"e", f32}}});
    return GraphParts{
        .nodes = {node("If", {"c"}, {"a"},
                       {.attributes = {graph_attribute("then_branch", then), graph_attribute("else_branch", other)}}),
                  node("Neg", {"a"}, {"y"})},
        .inputs = {{"x", f32}, {"c", boolean}},
        .outputs = {{"y", f32}}};
  };
  for (const std::string domain : {"", "own"}) {
    const Planned planned(branches_by(domain));
    const auto& branches = planned.model.maker("a").attributes;
    for (const Attribute& branch : branches) {
      EXPECT_EQ(planned.plan->given_back(*branch.graphs[0], 0), planned.made("a")) << domain << branch.name;
    }
    EXPECT_EQ(planned.made("a"), domain.empty() ? f16 : f32);
    EXPECT_EQ(planned.made("t"), f16);
    EXPECT_EQ(planned.taken("y"), f16);
  }
}

TEST(PrecisionPlan, WhatALoopCarriesHasOneType) {
  const auto loop = [](const std::string& op_domain) {
    const std::string body =
        graph({.nodes = {node("Identity", {"go"}, {"more"}), node("Neg", {"a"}, {"b"}, {.domain = op_domain})},
               .inputs = {{"k", i64}, {"go", boolean}, {"a", f32}},
               .outputs = {{"more", boolean}, {"b", f32}}});
    return GraphParts{.nodes = {node("Loop", {"n", "c", "x"}, {"y"}, {.attributes = {graph_attribute("body", body)}})},
                      .inputs = {{"x", f32}, {"n", i64}, {"c", boolean}},
                      .outputs = {{"y", f32}}};
  };
  for (const std::string domain : {"", "own"}) {
    const Planned planned(loop(domain));
    const Graph& body = *planned.model.maker("y").attributes[0].graphs[0];
    EXPECT_EQ(planned.made("a"), planned.made("y")) << domain;
    EXPECT_EQ(planned.taken("y", 2), planned.made("y")) << domain;
    EXPECT_EQ(planned.plan->given_back(body, 1), planned.made("y")) << domain;
    if (domain.empty()) {
      EXPECT_EQ(planned.made("y"), f16);
    }
  }
}

TEST(PrecisionPlan, AFunctionChangesWithItsCallsIfTheyAgree) {
  const auto call = [](const std::string& input, const std::string& output) {
    return node("F", {input}, {output}, {.domain = "mine"});
  };
  const Names functions = {function("F", {"p"}, {"q"}, {node("Neg", {"p"}, {"q"})})};
  const Planned one({.nodes = {call("x", "y")}, .inputs = {{"x", f32}}, .outputs = {{"y", f32}}},
                    {.functions = functions});
  EXPECT_EQ(one.made("q"), f16);
  EXPECT_EQ(one.made("y"), f16);
  const Planned two({.nodes = {call("x", "y"), call("d", "z")},
                     .inputs = {{"x", f32}, {"d", f64}},
                     .outputs = {{"y", f32}, {"z", f64}}},
                    {.functions = functions});
  EXPECT_EQ(two.made("q"), untyped);
  EXPECT_EQ(two.taken("y"), f32);
  EXPECT_EQ(two.made("y"), f32);
}

TEST(PrecisionPlan, MeanAndDeviationOfALayerNormKeepTheTypeOfTheComputation) {
  const Planned planned({.nodes = {node("LayerNormalization", {"x", "s"}, {"y", "mean"})},
                         .inputs = {{"x", f32}, {"s", f32}},
                         .outputs = {{"y", f32}, {"mean", f32}}});
  EXPECT_EQ(planned.made("y"), f16);
  EXPECT_EQ(planned.made("mean"), f32);
}

TEST(PrecisionPlan, WhatOnlyMovesElementsKeepsTheTypeBetweenNodesThatDo) {
  const auto between = [](const std::string& op) {
    return GraphParts{.nodes = {node("Own", {"x"}, {"a"}, {.domain = "own"}), node(op, {"a"}, {"b"}),
                                node("Own", {"b"}, {"y"}, {.domain = "own"})},
                      .inputs = {{"x", f32}},
                      .outputs = {{"y", f32}, {"a", f32}}};
  };
  const Planned moved(between("Transpose"));
  EXPECT_EQ(moved.made("b"), f32);
  EXPECT_EQ(moved.reason("b"), "the operator is unknown");  // that of its source
  EXPECT_EQ(Planned(between("Neg")).made("b"), f16);
}

TEST(PrecisionPlan, ADecisionIsExplained) {
  const Planned planned({.nodes = {node("Own", {"x"}, {"a"}, {.name = "own", .domain = "own"}),
                                   node("Add", {"a", "x"}, {"y"}, {.name = "sum"})},
                         .inputs = {{"x", f32}},
                         .outputs = {{"y", f32}, {"a", f32}}});
  const auto sum = planned.plan->explain(planned.model.maker("y"));
  ASSERT_EQ(sum.values.size(), 3u);
  EXPECT_TRUE(sum.values[0].is_input && sum.values[0].has_cast);
  EXPECT_EQ(sum.values[0].to, DType::float16);
  EXPECT_FALSE(sum.values[2].is_input);
  EXPECT_EQ(sum.values[2].reason, "");
  const auto own = planned.plan->explain(planned.model.maker("a"));
  EXPECT_EQ(own.values[0].to, DType::float32);
  EXPECT_EQ(own.values[0].reason, "its consumer keeps the type");
  EXPECT_EQ(own.values[1].reason, "the operator is unknown");
}

}  // namespace
}  // namespace tensorcast::models::onnx
