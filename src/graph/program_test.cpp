// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <thread>

#include "graph/graph_testing.hpp"

namespace tensorcast::graph {
namespace {

TEST(Program, RunsNodesThatStandInAnyOrder) {
  const Program program = compiled(
      graph_of(DType::float32, {cast_node("last", "b", "y", DType::string), cast_node("middle", "a", "b", DType::int32),
                                cast_node("first", "x", "a", DType::float16)}));
  EXPECT_EQ(texts_of(run_one(program, floats({1.5F, -2.75F, 3000.5F}))), (std::vector<std::string>{"1", "-2", "3000"}));
  ASSERT_EQ(program.outputs().size(), 1U);
  EXPECT_EQ(program.outputs()[0].dtype, DType::string);
}

TEST(Program, CastsFromAndToStrings) {
  const Program program = compiled(graph_of(DType::string, {cast_node("parse", "x", "n", DType::float8_e4m3fn),
                                                            cast_node("print", "n", "y", DType::string)}));
  EXPECT_EQ(texts_of(run_one(program, strings({"1.06", "-7", "1e9", "nan"}))),
            (std::vector<std::string>{"1.0", "-7.0", "448.0", "NaN"}));
  EXPECT_EQ(run_error(program, {{"x", strings({"1", "one"})}}),
            "element 1: node \"parse\" (Cast): \"one\" is not a number");
  const Program scaled = compiled(graph_of(DType::string, {cast_node("s", "x", "y", DType::int8, {.scale = 10.0})}));
  EXPECT_EQ(elements_of<std::int8_t>(run_one(scaled, strings({"1.25", "-3"}))), (std::vector<std::int8_t>{12, -30}));
}

TEST(Program, CastsLikeAnotherValue) {
  Graph graph = graph_of(DType::float32, {{"like", CastLikeOp{}, {"x", "t"}, {"y"}}});
  graph.inputs.push_back({.name = "t"});
  const Program by_run = compiled(graph);
  EXPECT_EQ(by_run.outputs()[0].dtype, DType::undefined);
  graph.inputs[1].dtype = DType::int8;
  const Program by_type = compiled(graph);
  EXPECT_EQ(by_type.outputs()[0].dtype, DType::int8);
  for (const Program& program : {by_run, by_type}) {
    const std::vector<NamedTensor> inputs = {{"x", floats({1.9F, -1.9F})},
                                             {"t", tensor_of<std::int8_t>(DType::int8, {0}, {})}};
    const auto outputs = program.run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
    EXPECT_EQ(elements_of<std::int8_t>((*outputs)[0].tensor), (std::vector<std::int8_t>{1, -1}));
  }
}

TEST(Program, PromotesAScalarByTheRankOfTheRun) {
  Graph graph =
      graph_of(DType::float32, {{"p",
                                 ConvertPromoteTypesOp{{.promote_unsafe = true, .pytorch_scalar_promotion = true}, {}},
                                 {"x", "h"},
                                 {"y", "z"}}});
  graph.inputs.push_back({.name = "h", .dtype = DType::float16});
  graph.outputs.push_back({.name = "z"});
  const Program program = compiled(graph);
  EXPECT_EQ(program.outputs()[0].dtype, DType::undefined);
  const Tensor half = tensor_of<std::uint16_t>(DType::float16, {1}, {0x3C00});
  for (const bool is_scalar : {true, false}) {
    const Tensor x = is_scalar ? tensor_of<float>(DType::float32, {}, {2}) : floats({2});
    const std::vector<NamedTensor> inputs = {{"x", x}, {"h", half}};
    const auto outputs = program.run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
    EXPECT_EQ((*outputs)[1].tensor.dtype(), is_scalar ? DType::float16 : DType::float32);
    EXPECT_EQ((*outputs)[0].tensor.dtype(), is_scalar ? DType::float16 : DType::float32);
  }
  graph.inputs[0].shape = std::vector<std::int64_t>{};
  graph.inputs[1].shape = {{-1}};
  EXPECT_EQ(compiled(graph).outputs()[0].dtype, DType::float16);  // ranks are known
}

TEST(Program, PromotesAValueWithItself) {
  Graph graph = graph_of(DType::float32, {cast_node("c", "x", "v", DType::float16),
                                          {"p", ConvertPromoteTypesOp{}, {"v", "v"}, {"y", "z"}}});
  graph.outputs.push_back({.name = "z"});
  const NamedTensor x{"x", floats({1, 2})};
  const auto outputs = compiled(graph).run({&x, 1});
  ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
  EXPECT_EQ((*outputs)[0].tensor.bytes().data(), (*outputs)[1].tensor.bytes().data());
}

TEST(Program, UsesDefaultsWhereARunGivesNothing) {
  Graph graph = graph_of(DType::float32, {cast_node("c", "x", "y", DType::int8)});
  graph.inputs[0].default_value = floats({7});
  const Program program = compiled(graph);
  const auto by_default = program.run({});
  ASSERT_TRUE(by_default.ok());
  EXPECT_EQ(elements_of<std::int8_t>((*by_default)[0].tensor), (std::vector<std::int8_t>{7}));
  EXPECT_EQ(elements_of<std::int8_t>(run_one(program, floats({8, 9}))), (std::vector<std::int8_t>{8, 9}));
}

TEST(Program, GivesInputsThatAreOutputs) {
  Graph graph = graph_of(DType::undefined, {});
  graph.outputs[0].name = "x";
  const Tensor x = floats({1});
  const Tensor y = run_one(compiled(graph), x);
  EXPECT_EQ(y.bytes().data(), x.bytes().data());
}

TEST(Program, RunsTheChosenBranchWithValuesFromAround) {
  Graph graph = graph_of(DType::float32, {{"choice",
                                           IfOp{branch({cast_node("t", "h", "r", DType::int8)}, "r"),
                                                branch({cast_node("e", "x", "q", DType::int8)}, "q")},
                                           {"condition"},
                                           {"y"}},
                                          cast_node("half", "x", "h", DType::float16)});
  graph.inputs.push_back({.name = "condition", .dtype = DType::boolean});
  const Program program = compiled(graph);
  EXPECT_EQ(program.outputs()[0].dtype, DType::int8);
  for (const bool condition : {true, false}) {
    const std::vector<NamedTensor> inputs = {{"condition", boolean(condition)}, {"x", floats({5.0F, 70000.0F})}};
    const auto outputs = program.run(inputs, {});
    ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
    // 70000 is infinite as float16, and infinity is 0; 70000 mod 256 is 112.
    EXPECT_EQ(elements_of<std::int8_t>((*outputs)[0].tensor),
              (std::vector<std::int8_t>{5, static_cast<std::int8_t>(condition ? 0 : 112)}));
  }
}

TEST(Program, RunsOnlyTheChosenBranch) {
  Graph graph = graph_of(
      DType::string, {{"choice",
                       IfOp{branch({cast_node("t", "x", "r", DType::int8)}, "r"),
                            branch({{"e", ConstantOp{tensor_of<std::int8_t>(DType::int8, {1}, {4})}, {}, {"k"}}}, "k")},
                       {"condition"},
                       {"y"}}});
  graph.inputs.push_back({.name = "condition"});
  const Program program = compiled(graph);
  EXPECT_EQ(program.outputs()[0].dtype, DType::int8);
  EXPECT_EQ(run_error(program, {{"x", strings({"?"})}, {"condition", boolean(false)}}), "no error");
  EXPECT_EQ(run_error(program, {{"x", strings({"?"})}, {"condition", boolean(true)}}),
            "element 0: node \"choice\" (If): then branch: node \"t\" (Cast): \"?\" is not a number");
}

TEST(Program, ReachesThroughBranchesOfBranches) {
  // The inner branch names x, which only the outermost graph has, and hides p by a value of its own.
  const auto inner = branch({cast_node("", "x", "p", DType::int16), cast_node("", "p", "r", DType::int8)}, "r");
  const auto other = branch({cast_node("", "p", "r", DType::int8)}, "r");
  const auto outer = branch({{"inner", IfOp{inner, other}, {"c"}, {"r"}}}, "r");
  Graph graph =
      graph_of(DType::float32, {cast_node("", "x", "p", DType::float64), {"outer", IfOp{outer, other}, {"c"}, {"y"}}});
  graph.inputs.push_back({.name = "c", .dtype = DType::boolean});
  const Program program = compiled(graph);
  for (const bool condition : {true, false}) {
    const std::vector<NamedTensor> inputs = {{"c", boolean(condition)}, {"x", floats({-3.5F})}};
    const auto outputs = program.run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
    EXPECT_EQ(elements_of<std::int8_t>((*outputs)[0].tensor), (std::vector<std::int8_t>{-3}));
  }
}

TEST(Program, MergesWhatBranchesSay) {
  const auto constant = [](Tensor value) { return branch({{"", ConstantOp{std::move(value)}, {}, {"r"}}}, "r"); };
  const Graph graph = graph_of(DType::boolean, {{"choice",
                                                 IfOp{constant(tensor_of<float>(DType::float32, {2, 1}, {1, 2})),
                                                      constant(tensor_of<float>(DType::float32, {3, 1}, {1, 2, 3}))},
                                                 {"x"},
                                                 {"y"}}});
  const Program program = compiled(graph);
  EXPECT_EQ(program.outputs()[0].shape, (std::vector<std::int64_t>{-1, 1}));
  EXPECT_EQ(run_one(program, boolean(false)).count(), 3U);
}

TEST(Program, MayBeRunByManyThreadsAtOnce) {
  const Program program = compiled(
      graph_of(DType::float32, {cast_node("a", "x", "p", DType::float16), cast_node("b", "p", "q", DType::float32),
                                cast_node("c", "q", "y", DType::string)}));
  std::array<std::thread, 4> threads;
  std::array<int, 4> wrong{};
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads[t] = std::thread([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(static_cast<int>(t) * 50 + i);
        const NamedTensor input{"x", floats(std::vector<float>(200, value))};
        const auto outputs = program.run({&input, 1}, {.threads = i % 2});
        const bool right =
            outputs.ok() && texts_of((*outputs)[0].tensor).back() == std::to_string(static_cast<int>(value)) + ".0";
        wrong[t] += right ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

TEST(Program, SlowRunsLongChains) {
  constexpr int length = 100000;  // deep recursion would not survive it
  std::vector<GraphNode> nodes;
  for (int i = length; i-- > 0;) {
    nodes.push_back(
        identity_node("", i == 0 ? "x" : "v" + std::to_string(i), i == length - 1 ? "y" : "v" + std::to_string(i + 1)));
  }
  const Tensor x = floats({1});
  const Tensor y = run_one(compiled(graph_of(DType::float32, nodes)), x);
  EXPECT_EQ(y.bytes().data(), x.bytes().data());
}

}  // namespace
}  // namespace tensorcast::graph
