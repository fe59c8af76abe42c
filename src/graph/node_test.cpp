// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/node.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "graph/graph_testing.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
namespace {

using graph::floats;
using graph::strings;
using graph::texts_of;

CastNode node_of(CastNodeParameters parameters) {
  Result<CastNode> node = CastNode::create(std::move(parameters));
  if (!node) ADD_FAILURE() << node.error().describe();
  return *std::move(node);
}

template <class T>
std::string words_of(const Result<T>& result) {
  return result.ok() ? "no error" : result.error().describe();
}

Tensor converted(const Tensor& src, DType to, const CastOptions& options = {}) {
  Result<Tensor> done = cast(src, to, options);
  if (!done) ADD_FAILURE() << done.error().describe();
  return done.value_or(Tensor());
}

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::ranges::equal(a.shape(), b.shape()) && std::ranges::equal(a.bytes(), b.bytes());
}

TEST(CastNode, RefusesWhatItCannotDo) {
  EXPECT_EQ(words_of(CastNode::create({})),
            "Cast node: the type to cast to is undefined; set `to` to one of the types of Cast");
  EXPECT_EQ(words_of(CastNode::create({.name = "n", .to = DType::uint1})),
            "node \"n\" (Cast): uint1 can be promoted but not cast");
  EXPECT_EQ(words_of(CastNode::create({.name = "n", .to = DType::float8_e4m3})),
            "node \"n\" (Cast): float8_e4m3 is not a type of ONNX, so no node has it; cast arrays and files to it");
  EXPECT_EQ(words_of(CastNode::create({.specified_outputs_name = {"a", "b"}, .name = "n", .to = DType::int8})),
            "node \"n\" (Cast): specified_outputs_name has 2 names, but the node has 1 output");
  EXPECT_EQ(words_of(CastNode::create({.specified_outputs_name = {""}, .name = "n", .to = DType::int8})),
            "node \"n\" (Cast): specified_outputs_name has an empty name");
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(words_of(CastNode::create({.name = "n", .to = DType::int8, .lda_coeff = bad})),
              "node \"n\" (Cast): lda_coeff must be a finite number");
  }
  EXPECT_EQ(words_of(CastNode::create({.name = "n", .to = DType::int2, .options = {.opset = 24}})),
            "node \"n\" (Cast): int2 is a type of Cast since opset 25; opset 24 was asked for");
  EXPECT_EQ(words_of(CastLikeNode::create({.name = "n", .to = DType::int8})),
            "node \"n\" (CastLike): CastLike has no `to`, but it is int8; its second input gives the type");
  EXPECT_EQ(words_of(CastLikeNode::create({.name = "n", .options = {.opset = 14}})),
            "node \"n\" (CastLike): CastLike exists since opset 15; opset 14 was asked for");
}

TEST(CastNode, NamesItsOutput) {
  const auto name_of = [](CastNodeParameters parameters) {
    parameters.to = DType::int8;
    CastNode node = node_of(std::move(parameters));
    return (*node.forward(floats({1})))[0].name;
  };
  EXPECT_EQ(name_of({.specified_outputs_name = {"mine"}, .name = "n"}), "mine");
  EXPECT_EQ(name_of({.name = "n"}), "n_output");
  EXPECT_EQ(name_of({}), "Cast_output");
  EXPECT_EQ((*CastLikeNode::create({})).output_name(), "CastLike_output");
}

TEST(CastNode, CastsAllTypesForward) {
  for (const DType from : all_dtypes()) {
    if (!is_onnx(from)) continue;
    const Tensor source = from == DType::string ? strings({"0", "1"}) : converted(floats({0, 1}), from);
    for (const DType to : all_dtypes()) {
      if (!is_onnx(to)) continue;
      CastNode node = node_of({.name = "n", .to = to});
      const auto outputs = node.forward(source);
      ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
      const Tensor& output = (*outputs)[0].tensor;
      EXPECT_EQ(output.dtype(), to);
      if (from != DType::string && to != DType::string) {
        EXPECT_TRUE(equal_bits(output, converted(source, to)));
      }
      if (from == to) {
        EXPECT_EQ(output.use_count(), source.use_count()) << "shared, not copied";
      }
    }
  }
  CastNode print = node_of({.to = DType::string});
  EXPECT_EQ(texts_of((*print.forward(floats({0.5F})))[0].tensor), (std::vector<std::string>{"0.5"}));
}

TEST(CastNode, KeepsNothingOfTheData) {
  const Tensor x = floats(std::vector<float>(1000, 1000.0F));
  CastNode node = node_of({.to = DType::float8_e4m3fn});
  ASSERT_TRUE(node.forward(x).ok());
  EXPECT_EQ(x.use_count(), 1);
  EXPECT_EQ(node.saved_bytes(), 0U);
  CastNode masking = node_of({.to = DType::float8_e4m3fn, .zero_saturated_gradient = true});
  ASSERT_TRUE(masking.forward(x).ok());
  EXPECT_EQ(x.use_count(), 1);
  EXPECT_EQ(masking.saved_bytes(), 125U);
  ASSERT_TRUE(masking.forward(floats({1, 2})).ok());
  EXPECT_EQ(masking.saved_bytes(), 0U) << "nothing saturated";
}

TEST(CastNode, GivesTheGradientTheTypeOfTheInput) {
  CastNode node = node_of({.to = DType::float16});
  ASSERT_TRUE(node.forward(tensor_of<double>(DType::float64, {2, 1}, {1, 2})).ok());
  const Tensor grad = converted(*floats({0.1F, -3}).reshaped({2, 1}), DType::float16);
  const Result<Tensor> result = node.backward(grad);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_TRUE(equal_bits(*result, converted(grad, DType::float64)));
  EXPECT_TRUE(equal_bits(*node.backward(grad), *result)) << "any number of times";
  // A gradient of another floating type is allowed.
  EXPECT_EQ(elements_of<double>(*node.backward(*floats({0.5F, 2}).reshaped({2, 1}))), (std::vector<double>{0.5, 2}));
}

TEST(CastNode, MultipliesByLdaCoeffWithOneRounding) {
  std::mt19937 random(7);
  std::vector<float> elements;
  for (int i = 0; i < 5000; ++i) elements.push_back(std::ldexp(static_cast<float>(random()), -40));
  const Tensor grad = floats(elements);
  for (const double coefficient : {0.1, -1.5, 0.0, 1.0, 1.0 / 3.0}) {
    CastNode node = node_of({.to = DType::float32, .lda_coeff = coefficient});
    ASSERT_TRUE(node.forward(converted(grad, DType::float16)).ok());
    EXPECT_TRUE(equal_bits(*node.backward(grad), converted(grad, DType::float16, {.scale = coefficient})));
  }
  // 1 + 2^-11 is half a step above 1 for float16. Times 1 + 2^-30 it is above half, and one rounding goes up; a product
  // that was rounded to float32 first would go down to even.
  CastNode node = node_of({.to = DType::float32, .lda_coeff = 1.0 + std::ldexp(1.0, -30)});
  ASSERT_TRUE(node.forward(tensor_of<std::uint16_t>(DType::float16, {1}, {0})).ok());
  EXPECT_EQ(elements_of<std::uint16_t>(*node.backward(floats({1.0F + std::ldexp(1.0F, -11)}))),
            (std::vector<std::uint16_t>{0x3C01}));
}

TEST(CastNode, SharesAGradientThatDoesNotChange) {
  CastNode node = node_of({.to = DType::float32});
  ASSERT_TRUE(node.forward(floats({1, 2})).ok());
  const Tensor grad = floats({3, 4});
  const Result<Tensor> back = node.backward(grad);
  EXPECT_EQ(back->bytes().data(), grad.bytes().data());
}

TEST(CastNode, GradientsFollowTheNodesSaturation) {
  const Tensor grad = floats({1e6F, -1e6F});
  for (const bool saturate : {true, false}) {
    CastNode node = node_of({.to = DType::float32, .options = {.saturate = saturate}});
    ASSERT_TRUE(node.forward(tensor_of<std::uint8_t>(DType::float8_e4m3fn, {2}, {0, 0})).ok());
    EXPECT_EQ(elements_of<std::uint8_t>(*node.backward(grad)),
              saturate ? (std::vector<std::uint8_t>{0x7E, 0xFE}) : (std::vector<std::uint8_t>{0x7F, 0xFF}));
  }
  // An opset that has no float8 limits forward, not the gradient.
  CastNode old = node_of({.to = DType::float16, .options = {.opset = 13}});
  ASSERT_TRUE(old.forward(floats({1})).ok());
  EXPECT_EQ(elements_of<float>(*old.backward(tensor_of<std::uint8_t>(DType::float8_e5m2, {1}, {0x3C}))),
            (std::vector<float>{1}));
}

TEST(CastNode, SaysWhenThereIsNoGradient) {
  CastNode node = node_of({.name = "n", .to = DType::float16});
  EXPECT_EQ(words_of(node.backward(floats({1}))), "node \"n\" (Cast): backward needs a forward before it");
  EXPECT_FALSE(node.forward(strings({"x"})).ok());
  EXPECT_EQ(words_of(node.backward(floats({1}))), "node \"n\" (Cast): backward needs a forward that succeeded");
  ASSERT_TRUE(node.forward(floats({1, 2})).ok());
  EXPECT_EQ(words_of(node.backward(floats({1}))),
            "node \"n\" (Cast): the gradient is float32 [1], but the output was float16 [2]");
  EXPECT_EQ(words_of(node.backward(*floats({1, 2}).reshaped({2, 1}))),
            "node \"n\" (Cast): the gradient is float32 [2, 1], but the output was float16 [2]");
  EXPECT_EQ(words_of(node.backward(tensor_of<std::int8_t>(DType::int8, {2}, {1, 2}))),
            "node \"n\" (Cast): a gradient is of a floating-point type, not int8");
  EXPECT_EQ(words_of(node.backward(Tensor())), "node \"n\" (Cast): the gradient is an undefined tensor");
  EXPECT_EQ(words_of(node.forward(Tensor())), "node \"n\" (Cast): the input is an undefined tensor");

  CastNode inference = node_of({.name = "n", .to = DType::float16, .training = false});
  ASSERT_TRUE(inference.forward(floats({1})).ok());
  EXPECT_EQ(words_of(inference.backward(floats({1}))),
            "node \"n\" (Cast): backward needs a forward in training mode; set training, and run forward again");
}

TEST(CastNode, HasNoGradientForEndsThatAreNotFloatingPoint) {
  const struct {
    Tensor input;
    DType to;
    const char* words;
  } cases[] = {
      {floats({1}), DType::int8, "float32 to int8 has no gradient, because int8"},
      {floats({1}), DType::boolean, "float32 to bool has no gradient, because bool"},
      {floats({1}), DType::string, "float32 to string has no gradient, because string"},
      {strings({"1"}), DType::float32, "string to float32 has no gradient, because string"},
      {tensor_of<std::int64_t>(DType::int64, {1}, {1}), DType::float64,
       "int64 to float64 has no gradient, because int64"},
  };
  for (const auto& one : cases) {
    CastNode node = node_of({.name = "n", .to = one.to});
    ASSERT_TRUE(node.forward(one.input).ok());
    const Result<Tensor> gradient = node.backward(floats({1}));
    EXPECT_EQ(words_of(gradient),
              "node \"n\" (Cast): a conversion from " + std::string(one.words) + " is not floating point");
    EXPECT_EQ(gradient.error().code, ErrorCode::unsupported);
  }
}

// The report counts what saturated; the mask must zero exactly those, and change nothing else.
TEST(CastNode, ZeroesTheGradientWhereForwardSaturated) {
  std::mt19937 random(11);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> elements = {
      0,    -0.0F, 448,    -448, 463.99F, 464, 464.01F,  -465,      57344,         61439,  61440, -61440, 6,
      6.5F, 7.0F,  -7.01F, 240,  247.9F,  248, infinity, -infinity, std::nanf(""), 1e-40F, 1e38F, 3e38F};
  while (elements.size() < 1001)
    elements.push_back(std::ldexp(static_cast<float>(random()) - 2e9F, -16 - static_cast<int>(random() % 20)));
  const Tensor x = floats(elements);
  const Tensor grad = floats(std::vector<float>(elements.size(), 2.5F));
  std::size_t masked = 0;
  for (const DType to : all_dtypes()) {
    if (!is_onnx(to) || family(to) != Family::floating) continue;
    for (const CastOptions& options : {CastOptions{}, CastOptions{.saturate = false},
                                       CastOptions{.saturate = false, .out_of_range = OutOfRange::saturate}}) {
      CastNode node = node_of({.to = to, .options = options, .zero_saturated_gradient = true});
      ASSERT_TRUE(node.forward(x).ok());
      const Result<Tensor> result = node.backward(grad);
      ASSERT_TRUE(result.ok()) << result.error().describe();
      for (std::size_t i = 0; i < elements.size(); ++i) {
        CastReport report;
        const Tensor one = floats({elements[i]});
        ASSERT_TRUE(cast(one, to, options, report).ok());
        EXPECT_EQ(elements_of<float>(*result)[i], report.saturated != 0 ? 0.0F : 2.5F)
            << elements[i] << " to " << name(to) << (options.saturate ? "" : " without saturation");
        masked += report.saturated;
      }
      EXPECT_EQ(elements_of<float>(grad)[0], 2.5F) << "the given gradient is not written to";
    }
  }
  EXPECT_GT(masked, 200U);
}

TEST(CastNode, ZeroesPackedGradientsToo) {
  CastNode node = node_of({.to = DType::float4_e2m1fn, .options = {.scale = 100.0}, .zero_saturated_gradient = true});
  ASSERT_TRUE(node.forward(tensor_of<std::uint8_t>(DType::float4_e2m1fn, {3}, {0x10, 0x01})).ok());  // 0, 0.5, 0.5
  const Result<Tensor> result = node.backward(tensor_of<std::uint8_t>(DType::float4_e2m1fn, {3}, {0x77, 0x07}));
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>(*result), (std::vector<std::uint8_t>{0x07, 0x00}));
}

TEST(CastLikeNode, CastsLikeItsSecondInputAndBack) {
  Result<CastLikeNode> node = CastLikeNode::create({.name = "l", .lda_coeff = 0.5, .zero_saturated_gradient = true});
  ASSERT_TRUE(node.ok());
  const Tensor like = tensor_of<std::uint8_t>(DType::float8_e5m2, {0}, {});
  const auto outputs = node->forward(floats({1, 1e9F}), like);
  ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
  EXPECT_EQ((*outputs)[0].name, "l_output");
  EXPECT_EQ(elements_of<std::uint8_t>((*outputs)[0].tensor), (std::vector<std::uint8_t>{0x3C, 0x7B}));
  const Result<Tensor> gradient = node->backward(floats({3, 3}));
  ASSERT_TRUE(gradient.ok()) << gradient.error().describe();
  EXPECT_EQ(elements_of<float>(*gradient), (std::vector<float>{1.5F, 0}));
  EXPECT_EQ(words_of(node->forward(floats({1}), Tensor())),
            "node \"l\" (CastLike): target_type is an undefined tensor");
  // The type may change from call to call.
  ASSERT_TRUE(node->forward(floats({1}), strings({"as text"})).ok());
  EXPECT_EQ(
      words_of(node->backward(floats({1}))),
      "node \"l\" (CastLike): a conversion from float32 to string has no gradient, because string is not floating "
      "point");
}

TEST(CastNode, CopiesAreIndependent) {
  CastNode a = node_of({.to = DType::float16});
  ASSERT_TRUE(a.forward(floats({1})).ok());
  CastNode b = a;
  ASSERT_TRUE(b.forward(tensor_of<double>(DType::float64, {2}, {1, 2})).ok());
  EXPECT_EQ((*a.backward(floats({1}))).dtype(), DType::float32);
  EXPECT_EQ((*b.backward(floats({1, 2}))).dtype(), DType::float64);
}

}  // namespace
}  // namespace tensorcast
