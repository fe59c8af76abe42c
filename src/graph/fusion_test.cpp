// SPDX-License-Identifier: Apache-2.0
// The rule of fusion against every code of every type of 16 bits or fewer.
#include "graph/fusion.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <span>
#include <tuple>

#include "graph/execution_plan.hpp"
#include "graph/graph_testing.hpp"
#include "graph/run_plan.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::graph {
namespace {

std::vector<std::byte> all_codes(DType dtype) {
  const int bits = bit_width(dtype);
  const std::size_t count = std::size_t{1} << bits;
  std::vector<std::byte> bytes(storage_bytes(dtype, count));
  for (std::size_t code = 0; code < count; ++code) {
    const std::size_t bit = code * static_cast<std::size_t>(bits);
    for (std::size_t i = 0; i < 2 && i * 8 < static_cast<std::size_t>(bits); ++i) {
      bytes[bit / 8 + i] |= static_cast<std::byte>((code >> (8 * i)) << (bit % 8));
    }
  }
  return bytes;
}

struct Outcome {
  bool ok = false;
  std::size_t element = 0;
  std::vector<std::byte> bytes = {};
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome cast_bytes(DType from, std::span<const std::byte> bytes, std::int64_t count, DType to,
                   const CastOptions& options) {
  const Tensor source = Tensor::own(from, {count}, {bytes.begin(), bytes.end()}).value();
  const Result<Tensor> result = cast(source, to, options);
  if (!result) return {.element = result.error().element.value_or(static_cast<std::size_t>(-1))};
  return {.ok = true, .bytes = {result->bytes().begin(), result->bytes().end()}};
}

std::vector<CastOptions> option_sets() {
  std::vector<CastOptions> sets;
  for (const int opset : {28, 25, 24, 23, 21, 19, 13}) sets.push_back({.opset = opset});
  sets.push_back({.saturate = false});
  sets.push_back({.opset = 19, .saturate = false});
  sets.push_back({.saturate = false, .round_mode = RoundMode::nearest});
  sets.push_back({.round_mode = RoundMode::down});
  sets.push_back({.out_of_range = OutOfRange::saturate});
  sets.push_back({.out_of_range = OutOfRange::error});
  sets.push_back({.inexact = Inexact::error});
  sets.push_back({.invalid = Invalid::error});
  sets.push_back({.opset = 21, .out_of_range = OutOfRange::wrap, .fnuz_inf = FnuzInf::flt_max});
  sets.push_back({.saturate = false, .out_of_range = OutOfRange::saturate});
  sets.push_back({.opset = 23, .out_of_range = OutOfRange::error});
  sets.push_back(CastOptions::lossless_integers());
  return sets;
}

std::string words(DType from, DType middle, DType to) {
  return std::string(name(from)) + " -> " + std::string(name(middle)) + " -> " + std::string(name(to));
}

TEST(Fusion, SlowEqualsTwoCastsForEveryCodeOfSmallTypes) {
  const std::vector<CastOptions> sets = option_sets();
  constexpr std::size_t saturating = 11;
  ASSERT_EQ(sets[saturating].out_of_range, OutOfRange::saturate);
  std::size_t accepted = 0;
  for (const DType from : all_dtypes()) {
    if (from == DType::string || bit_width(from) > 16) continue;
    const std::vector<std::byte> codes = all_codes(from);
    const std::int64_t count = std::int64_t{1} << bit_width(from);
    for (const DType middle : all_dtypes()) {
      std::map<std::size_t, Outcome> middles;  // by the options of the first cast
      for (const DType to : all_dtypes()) {
        std::map<std::size_t, Outcome> directs;
        for (std::size_t second = 0; second < sets.size(); ++second) {
          // The first cast has the defaults, options that change much, or the same options as the second.
          for (const std::size_t first : {std::size_t{0}, std::size_t{7}, saturating, sets.size() - 1, second}) {
            if (!fusible(from, sets[first], middle, sets[second], to) || to == DType::string) continue;
            const auto [half, is_new] = middles.try_emplace(first);
            if (is_new) half->second = cast_bytes(from, codes, count, middle, sets[first]);
            if (!half->second.ok) {  // a type that the opset does not have: such a graph does not compile
              ASSERT_EQ(half->second.element, static_cast<std::size_t>(-1)) << words(from, middle, to);
              continue;
            }
            const auto [direct, direct_is_new] = directs.try_emplace(second);
            if (direct_is_new) direct->second = cast_bytes(from, codes, count, to, sets[second]);
            const Outcome chained = cast_bytes(middle, half->second.bytes, count, to, sets[second]);
            ASSERT_TRUE(chained == direct->second)
                << words(from, middle, to) << ", options " << first << " and " << second;
            ++accepted;
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 20000U);  // the rule does not reject everything
}

// Wide sources have too many codes: the test takes range ends, powers of two and their neighbours.
TEST(Fusion, EqualsTwoCastsForHardCodesOfWideTypes) {
  std::vector<std::uint64_t> hard;
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t code : {power - 1, power, power + 1, ~power, ~power + 1, power * 3, power * 5 + 1}) {
      hard.push_back(code);
    }
  }
  for (const float value : {0.0F, -0.0F, 1.0F, 464.0F, 61440.0F, 65520.0F, 3e9F, -3e9F, 1e-40F, 2.5F, -2.5F, 3.4e38F}) {
    hard.push_back(std::bit_cast<std::uint32_t>(value));
    hard.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
  }
  for (const std::uint32_t code : {0x7F800000U, 0xFF800000U, 0x7F800001U, 0xFF812345U, 0x7FC00000U, 0xFFFFFFFFU}) {
    hard.push_back(code);
  }
  const std::vector<CastOptions> sets = option_sets();
  std::size_t accepted = 0;
  for (const DType from : {DType::float32, DType::float64, DType::int32, DType::int64, DType::uint32, DType::uint64}) {
    const std::size_t width = storage_bytes(from, 1);
    std::vector<std::byte> codes(hard.size() * width);
    for (std::size_t i = 0; i < hard.size(); ++i) std::memcpy(&codes[i * width], &hard[i], width);
    const auto count = static_cast<std::int64_t>(hard.size());
    for (const DType middle : all_dtypes()) {
      for (const DType to : all_dtypes()) {
        for (const CastOptions& options : sets) {
          for (const CastOptions& first : {options, CastOptions{}, CastOptions{.out_of_range = OutOfRange::saturate}}) {
            if (to == DType::string || !fusible(from, first, middle, options, to)) continue;
            const Outcome half = cast_bytes(from, codes, count, middle, first);
            if (!half.ok) continue;
            ASSERT_TRUE(cast_bytes(middle, half.bytes, count, to, options) ==
                        cast_bytes(from, codes, count, to, options))
                << words(from, middle, to);
            ++accepted;
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 500U);
}

TEST(Fusion, SaysWhatItShouldSay) {
  const CastOptions plain;
  EXPECT_TRUE(fusible(DType::float16, plain, DType::float32, plain, DType::float8_e4m3fn));
  EXPECT_TRUE(fusible(DType::int64, plain, DType::int32, plain, DType::int8));
  EXPECT_TRUE(fusible(DType::uint8, plain, DType::float16, plain, DType::uint8));
  EXPECT_TRUE(fusible(DType::boolean, plain, DType::int64, plain, DType::float32));
  EXPECT_TRUE(fusible(DType::float8_e4m3fn, plain, DType::bfloat16, plain, DType::float8_e4m3fn));

  EXPECT_FALSE(fusible(DType::float32, plain, DType::float16, plain, DType::float32)) << "loses digits";
  EXPECT_FALSE(fusible(DType::float32, plain, DType::float64, plain, DType::float32)) << "signalling NaN becomes quiet";
  EXPECT_FALSE(fusible(DType::float16, plain, DType::float32, plain, DType::float16)) << "signalling NaN becomes quiet";
  EXPECT_FALSE(fusible(DType::float8_e5m2, plain, DType::float32, plain, DType::float8_e5m2)) << "infinity saturates";
  EXPECT_FALSE(fusible(DType::boolean, plain, DType::int8, plain, DType::boolean)) << "a byte of 2 becomes 1";
  EXPECT_FALSE(fusible(DType::float4_e2m1fn, plain, DType::float8_e4m3fnuz, plain, DType::float32)) << "no -0";
  EXPECT_FALSE(fusible(DType::int32, plain, DType::float32, plain, DType::float64)) << "24 bits of digits";
  EXPECT_FALSE(fusible(DType::int8, plain, DType::uint8, plain, DType::int16)) << "-1 became 255";
  EXPECT_FALSE(fusible(DType::int8, plain, DType::boolean, plain, DType::int8));
  EXPECT_FALSE(fusible(DType::uint8, plain, DType::float32, plain, DType::string)) << "5.0 is not 5";
  EXPECT_FALSE(fusible(DType::string, plain, DType::float64, plain, DType::float32)) << "two roundings";
  EXPECT_FALSE(fusible(DType::float8_e8m0fnu, plain, DType::float16, plain, DType::float32)) << "beyond float16";
  const CastOptions saturate{.out_of_range = OutOfRange::saturate};
  EXPECT_TRUE(fusible(DType::int16, plain, DType::float32, saturate, DType::int8));
  EXPECT_TRUE(fusible(DType::float16, saturate, DType::float32, plain, DType::bfloat16)) << "nothing is out of range";
  EXPECT_FALSE(fusible(DType::int64, saturate, DType::int32, plain, DType::int8)) << "saturates first, then wraps";
  EXPECT_FALSE(fusible(DType::int64, plain, DType::int32, saturate, DType::int8)) << "wraps first, then saturates";
  EXPECT_FALSE(fusible(DType::int8, plain, DType::uint8, saturate, DType::int16)) << "-1 became 255";
  EXPECT_FALSE(fusible(DType::int16, plain, DType::float32, {.opset = 21}, DType::int4)) << "saturates from float32";
  EXPECT_FALSE(fusible(DType::float16, {.scale = 2.0}, DType::float32, plain, DType::int8));
  EXPECT_FALSE(fusible(DType::float16, plain, DType::float32, {.scale = 2.0}, DType::int8));
  EXPECT_FALSE(fusible(DType::int2, plain, DType::float32, {.opset = 13}, DType::float16)) << "opset 13 has no int2";
}

std::size_t steps_of(const Graph& graph, bool fuse) {
  const Result<Block> plan = build_plan(graph, {.fuse = fuse});
  if (!plan) ADD_FAILURE() << plan.error().describe();
  return plan ? plan->steps.size() : 0;
}

TEST(Fusion, ShortensChains) {
  const Graph chain = graph_of(
      DType::float16, {cast_node("a", "x", "p", DType::float32), identity_node("i", "p", "q"),
                       cast_node("b", "q", "r", DType::float64), cast_node("c", "r", "y", DType::float8_e4m3fn)});
  EXPECT_EQ(steps_of(chain, false), 4U);
  EXPECT_EQ(steps_of(chain, true), 1U);
}

TEST(Fusion, KeepsValuesThatOthersNeed) {
  Graph graph = graph_of(DType::float16,
                         {cast_node("a", "x", "p", DType::float32), cast_node("b", "p", "y", DType::float8_e4m3fn)});
  EXPECT_EQ(steps_of(graph, true), 1U);
  Graph output = graph;
  output.outputs.push_back({.name = "p"});
  EXPECT_EQ(steps_of(output, true), 2U);
  Graph consumer = graph;
  consumer.nodes.push_back(cast_node("c", "p", "z", DType::int8));
  consumer.outputs.push_back({.name = "z"});
  EXPECT_EQ(steps_of(consumer, true), 3U);
}

TEST(Fusion, LeavesChainsAloneThatLose) {
  EXPECT_EQ(steps_of(graph_of(DType::float32,
                              {cast_node("a", "x", "p", DType::float16), cast_node("b", "p", "y", DType::float32)}),
                     true),
            2U);
  // Casts with unknown types are not fused.
  EXPECT_EQ(steps_of(graph_of(DType::undefined,
                              {cast_node("a", "x", "p", DType::float64), cast_node("b", "p", "y", DType::float32)}),
                     true),
            2U);
}

TEST(Fusion, GivesTheSameBitsThroughAProgram) {
  const std::vector<std::byte> codes = all_codes(DType::bfloat16);
  const Result<Tensor> x = Tensor::own(DType::bfloat16, {65536}, codes);
  for (const DType to : all_dtypes()) {
    if (!is_onnx(to)) continue;
    const Graph graph = graph_of(DType::bfloat16, {cast_node("a", "x", "p", DType::float32),
                                                   identity_node("", "p", "q"), cast_node("b", "q", "y", to)});
    Graph unfused = graph;
    unfused.outputs.push_back({.name = "p"});  // in use, and so computed
    const Tensor a = run_one(compiled(graph), *x);
    const Tensor b = run_one(compiled(unfused), *x);
    if (to == DType::string) {
      EXPECT_EQ(texts_of(a), texts_of(b));
    } else {
      EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes())) << name(to);
    }
  }
}

// A random graph of all operations, in which later nodes take any earlier values.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) add_input();
    const std::size_t count = 4 + below(14);
    for (std::size_t i = 0; i < count; ++i) add_node(i);
    std::shuffle(graph.nodes.begin(), graph.nodes.end(), random_);
  }

  Graph graph;
  std::vector<Tensor> inputs;

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  const std::string& any_value() { return values_[below(values_.size())]; }
  DType any_type() {
    const std::span<const DType> all = all_dtypes();
    DType dtype = DType::string;
    while (dtype == DType::string || !is_onnx(dtype)) dtype = all[below(all.size())];
    return dtype;
  }
  CastOptions any_options() {
    const std::vector<CastOptions> sets = option_sets();
    return below(3) == 0 ? sets[below(sets.size())] : CastOptions{};
  }

  void add_input() {
    const DType dtype = any_type();
    const std::string name = "in" + std::to_string(inputs.size());
    std::vector<std::byte> bytes(storage_bytes(dtype, 97));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    inputs.push_back(*Tensor::own(dtype, {97}, std::move(bytes)));
    graph.inputs.push_back({.name = name, .dtype = below(4) == 0 ? DType::undefined : dtype});
    values_.push_back(name);
  }

  void add_node(std::size_t i) {
    const std::string out = "v" + std::to_string(i);
    const std::string in = below(3) == 0 || i == 0 ? any_value() : values_.back();  // chains
    switch (below(8)) {
      case 0:
        graph.nodes.push_back(identity_node("", in, out));
        break;
      case 1:
        graph.nodes.push_back({"", CastLikeOp{any_options()}, {in, any_value()}, {out}});
        break;
      case 2:
        graph.nodes.push_back(
            {"", ConvertPromoteTypesOp{{.promote_unsafe = true}, any_options()}, {in, any_value()}, {out, out + "b"}});
        if (below(2) == 0) values_.push_back(out + "b");
        break;
      default:
        graph.nodes.push_back(cast_node("", in, out, any_type(), any_options()));
    }
    values_.push_back(out);
    if (below(3) == 0) graph.outputs.push_back({.name = out});
  }

  std::mt19937 random_;
  std::vector<std::string> values_;
};

TEST(Fusion, ChangesNothingInRandomGraphs) {
  int compiled_graphs = 0;
  int shortened = 0;
  int refused = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    const RandomGraph random(seed);
    const Result<Block> plain = build_plan(random.graph, {.fuse = false});
    const Result<Block> fused = build_plan(random.graph, {.fuse = true});
    ASSERT_EQ(plain.ok(), fused.ok()) << "seed " << seed;
    if (!plain) continue;
    ++compiled_graphs;
    shortened += fused->steps.size() < plain->steps.size() ? 1 : 0;
    const auto run = [&](const Block& plan, int threads) {
      BufferPool pool;
      RunContext context{{.threads = threads}, pool};
      return run_plan(plan, random.inputs, context);
    };
    const Result<std::vector<Tensor>> a = run(*plain, 0);
    const Result<std::vector<Tensor>> b = run(*fused, 1);
    ASSERT_EQ(a.ok(), b.ok()) << "seed " << seed << ": " << (a.ok() ? b : a).error().describe();
    if (!a) {
      ++refused;
      continue;
    }
    for (std::size_t i = 0; i < a->size(); ++i) {
      ASSERT_EQ((*a)[i].dtype(), (*b)[i].dtype()) << "seed " << seed;
      ASSERT_TRUE(std::ranges::equal((*a)[i].bytes(), (*b)[i].bytes()))
          << "seed " << seed << ", output " << random.graph.outputs[i].name;
    }
  }
  EXPECT_GT(compiled_graphs, 500);
  EXPECT_GT(shortened, 100);
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace tensorcast::graph
