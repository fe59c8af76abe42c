#include <array>
#include <bit>
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
}

TEST(Program, RunsTheChosenBranchWithValuesFromAround) {
  Graph graph = graph_of(DType::float32, {cast_node("half", "x", "h", DType::float16),
                                          {"choice",
                                           IfOp{branch({cast_node("t", "h", "r", DType::int8)}, "r"),
                                                branch({cast_node("e", "x", "q", DType::int8)}, "q")},
                                           {"condition"},
                                           {"y"}}});
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

}  // namespace
}  // namespace tensorcast::graph
