// SPDX-License-Identifier: Apache-2.0
// Memory of the values of a run: reuse, aliasing, lifetimes.
#include "graph/run_plan.hpp"

#include <algorithm>
#include <memory>
#include <thread>

#include "graph/graph_testing.hpp"

namespace tensorcast::graph {
namespace {

struct Ran {
  std::vector<Tensor> outputs;
  std::size_t allocations = 0;
};

Ran run_graph(const Graph& graph, const std::vector<Tensor>& inputs, int threads = 1, bool fuse = false) {
  const Result<Block> plan = build_plan(graph, {.fuse = fuse});
  if (!plan) ADD_FAILURE() << plan.error().describe();
  BufferPool pool;
  RunContext context{{.threads = threads}, pool};
  Result<std::vector<Tensor>> outputs = run_plan(*plan, inputs, context);
  if (!outputs) ADD_FAILURE() << outputs.error().describe();
  return {outputs ? *outputs : std::vector<Tensor>{}, pool.allocations()};
}

const Tensor& numbers() {
  static const Tensor tensor = [] {
    std::vector<float> elements(1000);
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i) - 500.0F;
    return floats(elements);
  }();
  return tensor;
}

TEST(Run, SharesWhatDoesNotChange) {
  const Tensor x = numbers();
  const Ran ran =
      run_graph(graph_of(DType::float32, {identity_node("i", "x", "a"), cast_node("same", "a", "b", DType::float32),
                                          identity_node("j", "b", "y")}),
                {x});
  EXPECT_EQ(ran.outputs[0].bytes().data(), x.bytes().data());
  EXPECT_EQ(ran.allocations, 0U);
  const Tensor text = strings({"a", "b"});
  EXPECT_EQ(run_graph(graph_of(DType::string, {cast_node("same", "x", "y", DType::string)}), {text})
                .outputs[0]
                .strings()
                .data.data(),
            text.strings().data.data());
}

TEST(Run, SharesTheSideThatHasTheCommonType) {
  Graph graph = graph_of(DType::undefined, {{"promote", ConvertPromoteTypesOp{}, {"x", "b"}, {"y", "z"}}});
  graph.inputs.push_back({.name = "b"});
  graph.outputs.push_back({.name = "z"});
  const Tensor x = numbers();
  const Tensor b = tensor_of<std::int16_t>(DType::int16, {3}, {1, -2, 3});
  const Ran ran = run_graph(graph, {x, b});
  EXPECT_EQ(ran.outputs[0].bytes().data(), x.bytes().data());
  EXPECT_EQ(ran.outputs[1].dtype(), DType::float32);
  EXPECT_EQ(elements_of<float>(ran.outputs[1]), (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(ran.allocations, 1U);
}

TEST(Run, SharesTheValueOfAConstantAndOfADefault) {
  const Tensor value = numbers();
  Graph graph = graph_of(DType::float32, {{"c", ConstantOp{value}, {}, {"k"}}, identity_node("i", "k", "y")});
  graph.inputs[0].default_value = value;
  graph.outputs.push_back({.name = "x"});
  const auto outputs = compiled(graph).run({});
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0].tensor.bytes().data(), value.bytes().data());
  EXPECT_EQ((*outputs)[1].tensor.bytes().data(), value.bytes().data());
}

TEST(Run, CleansTheTailOfASubByteTypeThatItWouldShare) {
  const Graph graph = graph_of(DType::int4, {cast_node("same", "x", "y", DType::int4)});
  const Tensor dirty = tensor_of<std::uint8_t>(DType::int4, {3}, {0x21, 0xF3});
  const Ran ran = run_graph(graph, {dirty});
  EXPECT_EQ(elements_of<std::uint8_t>(ran.outputs[0]), (std::vector<std::uint8_t>{0x21, 0x03}));
  const Tensor clean = tensor_of<std::uint8_t>(DType::int4, {3}, {0x21, 0x03});
  EXPECT_EQ(run_graph(graph, {clean}).outputs[0].bytes().data(), clean.bytes().data());
}

TEST(Run, ConvertsInPlaceOnlyWhatIsItsOwn) {
  const Tensor x = numbers();
  const std::vector<float> before = elements_of<float>(x);
  // The input is the caller's: int32 goes elsewhere. From there on the same memory serves, in equal width.
  const Graph chain =
      graph_of(DType::float32, {cast_node("a", "x", "p", DType::int32), cast_node("b", "p", "q", DType::float32),
                                cast_node("c", "q", "y", DType::uint32)});
  EXPECT_EQ(run_graph(chain, {x}).allocations, 1U);
  EXPECT_EQ(elements_of<float>(x), before);
  // A value that is used again is not overwritten.
  Graph twice = chain;
  twice.outputs.push_back({.name = "p"});
  const Ran ran = run_graph(twice, {x});
  EXPECT_EQ(ran.allocations, 2U);
  EXPECT_EQ(elements_of<std::int32_t>(ran.outputs[1])[0], -500);
  // A value shared by an Identity is not overwritten either.
  Graph shared = chain;
  shared.nodes.push_back(identity_node("i", "p", "s"));
  shared.nodes.push_back(cast_node("d", "s", "z", DType::float32));
  shared.outputs.push_back({.name = "z"});
  const Ran both = run_graph(shared, {x});
  EXPECT_EQ(elements_of<std::uint32_t>(both.outputs[0])[999], 499U);
  EXPECT_EQ(elements_of<float>(both.outputs[1])[0], -500.0F);
}

TEST(Run, NarrowsInPlaceOnlyWhatIsNotKept) {
  const Graph chain =
      graph_of(DType::float32, {cast_node("a", "x", "p", DType::int32), cast_node("b", "p", "q", DType::int8),
                                cast_node("c", "q", "y", DType::uint8)});
  const Ran ran = run_graph(chain, {numbers()});
  EXPECT_EQ(ran.allocations, 2U);  // p and q share memory; y gets some that fits
  EXPECT_EQ(elements_of<std::uint8_t>(ran.outputs[0])[1], static_cast<std::uint8_t>(-499));
}

TEST(Run, ReusesTheMemoryOfReleasedValues) {
  // Widening is never in place: without reuse there would be one allocation for each of the 20 casts.
  std::vector<GraphNode> nodes;
  std::string last = "x";
  for (int i = 0; i < 20; ++i) {
    const std::string next = i == 19 ? "y" : "v" + std::to_string(i);
    nodes.push_back(cast_node("", last, next, i % 2 == 0 ? DType::float64 : DType::float32));
    last = next;
  }
  std::vector<float> elements(std::size_t{1} << 19);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i) * 0.25F;
  const Tensor x = floats(elements);
  for (const int threads : {1, 2}) {
    const Ran ran = run_graph(graph_of(DType::float32, nodes), {x}, threads);
    EXPECT_LE(ran.allocations, 3U);
    EXPECT_EQ(elements_of<float>(ran.outputs[0]), elements);
  }
}

TEST(Run, ReleasesValuesAfterTheirLastUse) {
  // The constant is all that holds the watched memory; the run must not hold it longer than it needs.
  auto memory = std::make_shared<std::vector<std::byte>>(400);
  const std::int64_t shape[] = {100};
  const Result<Tensor> watched = Tensor::share({DType::float32, shape, *memory}, memory);
  const Program program = compiled(
      graph_of(DType::float32, {cast_node("a", "x", "p", DType::float16), cast_node("b", "p", "y", DType::float32)}));
  const long before = memory.use_count();
  const Tensor y = run_one(program, *watched);
  EXPECT_EQ(memory.use_count(), before);
  EXPECT_EQ(y.use_count(), 1);
}

TEST(Run, DoesNotRunWhatNobodyNeeds) {
  Graph graph = graph_of(DType::string, {cast_node("bad", "x", "unused", DType::int8), identity_node("i", "x", "y")});
  EXPECT_EQ(texts_of(run_graph(graph, {strings({"no number"})}).outputs[0]), (std::vector<std::string>{"no number"}));
}

TEST(Run, OutputsOutliveRunAndProgram) {
  Tensor y;
  {
    const Program program = compiled(graph_of(DType::float32, {cast_node("a", "x", "y", DType::float64)}));
    y = run_one(program, numbers());
  }
  EXPECT_EQ(elements_of<double>(y)[999], 499.0);
  std::thread([tensor = std::move(y)]() mutable { tensor = Tensor(); }).join();
}

TEST(Run, HandlesEmptyAndScalarTensors) {
  const Graph graph =
      graph_of(DType::float32, {cast_node("a", "x", "p", DType::int4), cast_node("b", "p", "y", DType::float64)});
  const Tensor empty = tensor_of<float>(DType::float32, {2, 0, 3}, {});
  const Ran none = run_graph(graph, {empty});
  EXPECT_EQ(none.outputs[0].count(), 0U);
  EXPECT_EQ(none.outputs[0].shape().size(), 3U);
  const Ran one = run_graph(graph, {tensor_of<float>(DType::float32, {}, {-3.5F})});
  EXPECT_TRUE(one.outputs[0].shape().empty());
  EXPECT_EQ(elements_of<double>(one.outputs[0]), (std::vector<double>{-3}));
}

TEST(BufferPool, GivesAlignedMemoryAndTakesItBack) {
  BufferPool pool;
  std::shared_ptr<Buffer> a = pool.acquire(100, false);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a->data) % 64, 0U);
  EXPECT_GE(a->capacity, 100U);
  const std::byte* memory = a->data;
  a.reset();
  a = pool.acquire(90, true);
  EXPECT_EQ(a->data, memory);
  EXPECT_EQ(pool.allocations(), 1U);
  const std::shared_ptr<Buffer> b = pool.acquire(90, true);
  EXPECT_NE(b->data, memory);
  EXPECT_EQ(pool.allocations(), 2U);
}

TEST(BufferPool, DoesNotWasteMemory) {
  BufferPool pool;
  (void)pool.acquire(100000, false);
  EXPECT_LT(pool.acquire(10, false)->capacity, 200U);
  (void)pool.acquire(1000, false);
  EXPECT_LT(pool.acquire(700, true)->capacity, 800U);  // what is kept must fit
  EXPECT_NE(pool.acquire(0, true)->data, nullptr);
  EXPECT_EQ(pool.acquire(static_cast<std::size_t>(-1), false), nullptr);
}

TEST(BufferPool, BuffersMayOutliveIt) {
  std::shared_ptr<Buffer> buffer;
  {
    BufferPool pool;
    buffer = pool.acquire(64, false);
  }
  buffer->data[0] = std::byte{1};
}

}  // namespace
}  // namespace tensorcast::graph
