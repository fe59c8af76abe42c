// SPDX-License-Identifier: Apache-2.0
// Errors of graphs and runs name the node.
#include <limits>

#include "graph/graph_testing.hpp"

namespace tensorcast::graph {
namespace {

TEST(ProgramErrors, ValuesThatNobodyDefines) {
  EXPECT_EQ(compile_error(graph_of(DType::float32, {cast_node("c", "gone", "y", DType::int8)})),
            "node \"c\" (Cast): its input \"gone\" is neither an input of the graph nor made by a node");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {cast_node("", "", "y", DType::int8)})),
            "node 0 (Cast of \"y\"): an input has no name");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {})),
            "output \"y\": it is neither an input of the graph nor made by a node");
  Graph unnamed = graph_of(DType::float32, {});
  unnamed.outputs = {{.name = ""}};
  EXPECT_EQ(compile_error(unnamed), "output \"\": it is neither an input of the graph nor made by a node");
}

TEST(ProgramErrors, ValuesThatAreDefinedTwice) {
  EXPECT_EQ(compile_error(graph_of(DType::float32,
                                   {cast_node("a", "x", "y", DType::int8), cast_node("b", "x", "y", DType::int8)})),
            "node \"b\" (Cast): it defines \"y\", as node \"a\" (Cast) does");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {cast_node("a", "x", "x", DType::int8)})),
            "node \"a\" (Cast): it defines \"x\", as an input of the graph does");
  Graph inputs = graph_of(DType::float32, {identity_node("", "x", "y")});
  inputs.inputs.push_back({.name = "x"});
  EXPECT_EQ(compile_error(inputs), "input \"x\": it is defined twice");
  Graph outputs = graph_of(DType::float32, {identity_node("", "x", "y")});
  outputs.outputs.push_back({.name = "y"});
  EXPECT_EQ(compile_error(outputs), "output \"y\": it is listed twice; put an Identity between");
  Graph both_of_one = graph_of(DType::float32, {{"p", ConvertPromoteTypesOp{}, {"x", "x"}, {"y", "y"}}});
  EXPECT_EQ(compile_error(both_of_one),
            "node \"p\" (ConvertPromoteTypes): it defines \"y\", as node \"p\" (ConvertPromoteTypes) does");
}

TEST(ProgramErrors, Cycles) {
  EXPECT_EQ(compile_error(graph_of(DType::float32, {identity_node("free", "x", "f"), identity_node("a", "c", "y"),
                                                    identity_node("b", "y", "b"), identity_node("c", "b", "c")})),
            "nodes need each other in a cycle: node \"b\" (Identity) -> node \"c\" (Identity) -> node \"a\" (Identity) "
            "-> back to the first");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {identity_node("self", "y", "y")})),
            "nodes need each other in a cycle: node \"self\" (Identity) -> back to the first");
  // A cycle through a branch.
  Graph graph = graph_of(DType::boolean,
                         {{"choice",
                           IfOp{branch({identity_node("", "y", "r")}, "r"), branch({identity_node("", "x", "r")}, "r")},
                           {"x"},
                           {"y"}}});
  EXPECT_EQ(compile_error(graph), "nodes need each other in a cycle: node \"choice\" (If) -> back to the first");
  // A long cycle is shortened.
  std::vector<GraphNode> ring;
  for (int i = 0; i < 50000; ++i) {
    ring.push_back(identity_node("", "v" + std::to_string(i), i == 49999 ? "v0" : "v" + std::to_string(i + 1)));
  }
  ring.push_back(identity_node("", "v0", "y"));
  const std::string message = compile_error(graph_of(DType::float32, ring));
  EXPECT_NE(message.find("49994 more"), std::string::npos) << message;
}

TEST(ProgramErrors, Arity) {
  EXPECT_EQ(compile_error(graph_of(DType::float32, {{"c", CastOp{DType::int8, {}}, {"x", "x"}, {"y"}}})),
            "node \"c\" (Cast): 2 inputs, but the operation has 1");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {{"c", CastLikeOp{}, {"x"}, {"y"}}})),
            "node \"c\" (CastLike): 1 input, but the operation has 2");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {{"c", ConvertPromoteTypesOp{}, {"x", "x"}, {"y"}}})),
            "node \"c\" (ConvertPromoteTypes): 1 output, but the operation has 2");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {{"", IdentityOp{}, {}, {}}})),
            "node 0 (Identity): 0 inputs, but the operation has 1");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {{"k", ConstantOp{}, {}, {"y"}}})),
            "node \"k\" (Constant): the constant has no value");
}

TEST(ProgramErrors, TypesAndVersions) {
  EXPECT_EQ(compile_error(graph_of(DType::float32, {cast_node("c", "x", "y", DType::undefined)})),
            "node \"c\" (Cast): the type to cast to is undefined; set `to` to one of the types of Cast");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {cast_node("c", "x", "y", DType::int4, {.opset = 19})})),
            "node \"c\" (Cast): int4 is a type of Cast since opset 21; opset 19 was asked for");
  EXPECT_EQ(compile_error(graph_of(DType::undefined, {cast_node("c", "x", "y", DType::int4, {.opset = 19})})),
            "node \"c\" (Cast): int4 is a type of Cast since opset 21; opset 19 was asked for");
  EXPECT_EQ(compile_error(graph_of(DType::bfloat16, {cast_node("c", "x", "y", DType::int8, {.opset = 9})})),
            "node \"c\" (Cast): bfloat16 is a type of Cast since opset 13; opset 9 was asked for");
  EXPECT_EQ(compile_error(graph_of(DType::undefined, {{"c", CastLikeOp{{.opset = 13}}, {"x", "x"}, {"y"}}})),
            "node \"c\" (CastLike): CastLike exists since opset 15; opset 13 was asked for");
  EXPECT_EQ(compile_error(graph_of(DType::float32, {cast_node("c", "x", "y", DType::string, {.scale = 2.0})})),
            "node \"c\" (Cast): a cast to string has no scale");
  EXPECT_EQ(compile_error(graph_of(DType::uint1, {identity_node("", "x", "y")})),
            "input \"x\": uint1 can be promoted but not cast");
  EXPECT_EQ(compile_error(graph_of(static_cast<DType>(99), {identity_node("", "x", "y")})),
            "input \"x\": dtype number 99 does not exist");
  Graph promotion = graph_of(DType::float16, {{"p", ConvertPromoteTypesOp{}, {"x", "b"}, {"y", ""}}});
  promotion.inputs.push_back({.name = "b", .dtype = DType::int64});
  EXPECT_EQ(compile_error(promotion),
            "node \"p\" (ConvertPromoteTypes): float16 cannot hold int64 safely: needs at least 128 bits; "
            "pass promote_unsafe to allow it");
}

TEST(ProgramErrors, DeclarationsThatDisagree) {
  Graph type = graph_of(DType::float32, {cast_node("c", "x", "y", DType::int8)});
  type.outputs[0].dtype = DType::int16;
  EXPECT_EQ(compile_error(type), "output \"y\": int8, any shape is not int16, any shape");
  Graph shape = graph_of(DType::float32, {cast_node("c", "x", "y", DType::int8)});
  shape.inputs[0].shape = {{2, -1}};
  shape.outputs[0].shape = {{-1, 3}};
  const Program program = compiled(shape);
  EXPECT_EQ(program.outputs()[0].shape, (std::vector<std::int64_t>{2, 3}));
  shape.outputs[0].shape = {{3, -1}};
  EXPECT_EQ(compile_error(shape), "output \"y\": int8 [2, ?] is not any type [3, ?]");
  shape.outputs[0].shape = {{2}};
  EXPECT_EQ(compile_error(shape), "output \"y\": int8 [2, ?] is not any type [2]");
  shape.outputs[0].shape = {{-2, 1}};
  EXPECT_EQ(compile_error(shape), "output \"y\": dimension -2 is negative; -1 stands for any length");
  Graph fallback = graph_of(DType::float32, {identity_node("", "x", "y")});
  fallback.inputs[0].default_value = boolean(true);
  EXPECT_EQ(compile_error(fallback), "input \"x\": default value: bool [] is not float32, any shape");
  fallback.inputs[0].default_value = Tensor();
  EXPECT_EQ(compile_error(fallback), "input \"x\": its default value is an undefined tensor");
}

Graph choice_of(std::shared_ptr<const Graph> then_branch, std::shared_ptr<const Graph> else_branch) {
  Graph graph =
      graph_of(DType::boolean, {{"choice", IfOp{std::move(then_branch), std::move(else_branch)}, {"x"}, {"y"}}});
  graph.inputs.push_back({.name = "value", .dtype = DType::float32});
  return graph;
}

TEST(ProgramErrors, Branches) {
  const auto good = branch({identity_node("", "value", "r")}, "r");
  EXPECT_EQ(compile_error(choice_of(good, good)), "no error");
  EXPECT_EQ(compile_error(choice_of(good, nullptr)), "node \"choice\" (If): a branch is missing");
  EXPECT_EQ(
      compile_error(choice_of(good, branch({identity_node("i", "nowhere", "r")}, "r"))),
      "node \"choice\" (If): else branch: node \"i\" (Identity): its input \"nowhere\" is neither an input of the "
      "graph nor made by a node");
  EXPECT_EQ(compile_error(choice_of(branch({cast_node("t", "value", "r", DType::int8)}, "r"), good)),
            "node \"choice\" (If): output 0 of its branches: int8 on one side and float32 on the other");
  Graph two = *good;
  two.outputs.push_back({.name = "value"});
  EXPECT_EQ(compile_error(choice_of(good, std::make_shared<const Graph>(two))),
            "node \"choice\" (If): else branch: it gives 2 values, but the node has 1 outputs");
  Graph with_input = *good;
  with_input.inputs.push_back({.name = "own"});
  EXPECT_EQ(compile_error(choice_of(std::make_shared<const Graph>(with_input), good)),
            "node \"choice\" (If): then branch: a branch has no inputs of its own, but this one has \"own\"; "
            "name values of the graph around it instead");
  Graph condition = choice_of(good, good);
  condition.inputs[0].dtype = DType::int8;
  EXPECT_EQ(compile_error(condition),
            "node \"choice\" (If): its condition is a bool of one element, not int8, any shape");
  condition.inputs[0] = {.name = "x", .dtype = DType::boolean, .shape = {{2}}};
  EXPECT_EQ(compile_error(condition), "node \"choice\" (If): its condition is a bool of one element, not bool [2]");
}

TEST(ProgramErrors, SlowBranchesThatNestTooDeep) {
  const auto nested = [](int depth) {
    auto inner = branch({identity_node("", "value", "r")}, "r");
    for (int i = 1; i < depth; ++i) inner = branch({{"", IfOp{inner, inner}, {"x"}, {"r"}}}, "r");
    return inner;
  };
  const auto leaf = branch({identity_node("", "value", "r")}, "r");
  EXPECT_EQ(compile_error(choice_of(nested(8), leaf)), "no error");
  auto chain = leaf;
  for (int i = 1; i < 32; ++i) chain = branch({{"", IfOp{chain, leaf}, {"x"}, {"r"}}}, "r");
  EXPECT_EQ(compile_error(choice_of(chain, leaf)), "no error");
  chain = branch({{"", IfOp{chain, leaf}, {"x"}, {"r"}}}, "r");
  EXPECT_NE(compile_error(choice_of(chain, leaf)).find("branches are nested deeper than 32"), std::string::npos);
  // 2^30 branches in 30 graphs.
  EXPECT_NE(compile_error(choice_of(nested(30), leaf)).find("come to more than 1048576 nodes and outputs"),
            std::string::npos);
  // A branch that contains itself.
  const auto self = std::make_shared<Graph>(*leaf);
  self->nodes = {{"", IfOp{self, leaf}, {"x"}, {"r"}}};
  EXPECT_NE(compile_error(choice_of(self, leaf)).find("branches are nested deeper than 32"), std::string::npos);
  self->nodes.clear();  // breaks the reference cycle
}

TEST(ProgramErrors, InputsOfARun) {
  Graph graph = graph_of(DType::float32, {cast_node("c", "x", "y", DType::int8)});
  graph.inputs[0].shape = {{2, -1}};
  graph.inputs.push_back({.name = "z", .dtype = DType::int8});
  const Program program = compiled(graph);
  const Tensor x = tensor_of<float>(DType::float32, {2, 1}, {1, 2});
  const Tensor z = tensor_of<std::int8_t>(DType::int8, {}, {1});
  EXPECT_EQ(run_error(program, {{"x", x}, {"z", z}}), "no error");
  EXPECT_EQ(run_error(program, {{"x", x}}), "input \"z\" is missing");
  EXPECT_EQ(run_error(program, {{"x", x}, {"z", z}, {"u", z}}),
            "the graph has no input \"u\"; its inputs are \"x\", \"z\"");
  EXPECT_EQ(run_error(program, {{"x", x}, {"z", z}, {"z", z}}), "input \"z\": it is given twice");
  EXPECT_EQ(run_error(program, {{"x", x}, {"z", Tensor()}}), "input \"z\": it is an undefined tensor");
  EXPECT_EQ(run_error(program, {{"x", x}, {"z", x}}), "input \"z\": float32 [2, 1] is not int8, any shape");
  EXPECT_EQ(run_error(program, {{"x", *x.reshaped({1, 2})}, {"z", z}}),
            "input \"x\": float32 [1, 2] is not float32 [2, ?]");
  EXPECT_EQ(run_error(program, {{"x", x}, {"z", z}}, {.threads = -1}), "threads is 0 (all cores) or more, not -1");
}

TEST(ProgramErrors, WhatOnlyARunCanKnow) {
  const Program old = compiled(graph_of(DType::undefined, {cast_node("c", "x", "y", DType::int8, {.opset = 9})}));
  EXPECT_EQ(run_error(old, {{"x", tensor_of<std::uint16_t>(DType::bfloat16, {1}, {0})}}),
            "node \"c\" (Cast): bfloat16 is a type of Cast since opset 13; opset 9 was asked for");
  const Program shared = compiled(graph_of(DType::undefined, {cast_node("c", "x", "p", DType::int8, {.opset = 9}),
                                                              {"l", CastLikeOp{{.opset = 15}}, {"x", "x"}, {"y"}}}));
  EXPECT_EQ(run_error(shared, {{"x", tensor_of<std::uint8_t>(DType::int4, {1}, {0})}}),
            "node \"l\" (CastLike): int4 is a type of Cast since opset 21; opset 15 was asked for");
  const Program range =
      compiled(graph_of(DType::float32, {cast_node("c", "x", "y", DType::int8, CastOptions::lossless_integers())}));
  const std::string message = run_error(range, {{"x", floats({1, 2, 300})}});
  EXPECT_EQ(message.find("element 2: node \"c\" (Cast): "), 0U) << message;
  Graph output = graph_of(DType::undefined, {identity_node("", "x", "y")});
  output.outputs[0].dtype = DType::int8;
  EXPECT_EQ(run_error(compiled(output), {{"x", floats({1})}}), "output \"y\": float32 [1] is not int8, any shape");
  Graph condition = graph_of(
      DType::undefined, {{"choice",
                          IfOp{branch({identity_node("", "x", "r")}, "r"), branch({identity_node("", "x", "r")}, "r")},
                          {"x"},
                          {"y"}}});
  EXPECT_EQ(run_error(compiled(condition), {{"x", floats({1})}}),
            "node \"choice\" (If): its condition is a bool of one element, not float32 [1]");
}

TEST(ProgramErrors, AProgramThatWasMovedFromRunsNothing) {
  Program program = compiled(graph_of(DType::undefined, {identity_node("", "x", "y")}));
  const Program taken = std::move(program);
  EXPECT_EQ(taken.inputs().size(), 1u);
  EXPECT_EQ(run_error(program, {}), "this Program was moved from");  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(program.inputs().empty());
  EXPECT_TRUE(program.outputs().empty());
}

TEST(ProgramErrors, ABranchThatBreaksItsWordIsNotBelieved) {
  // The branch declares float16 and gives float32; the next cast must not rely on the declaration.
  Graph liar = *branch({identity_node("", "v", "r")}, "r");
  liar.outputs[0].dtype = DType::float16;
  const auto shared = std::make_shared<const Graph>(liar);
  Graph graph = graph_of(DType::boolean, {{"choice", IfOp{shared, shared}, {"x"}, {"p"}},
                                          cast_node("a", "p", "q", DType::float32),
                                          cast_node("b", "q", "y", DType::int8)});
  graph.inputs.push_back({.name = "v"});
  EXPECT_EQ(run_error(compiled(graph), {{"x", boolean(true)}, {"v", floats({1})}}),
            "node \"choice\" (If): then branch: output \"r\": float32 [1] is not float16, any shape");
}

}  // namespace
}  // namespace tensorcast::graph
