// SPDX-License-Identifier: Apache-2.0
// Types of values from the operators that make and take them.
#include "models/onnx/ir/type_inference.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/onnx/ir/model_testing.hpp"

namespace tensorcast::models::onnx {
namespace {

using namespace testing;

TEST(TypeInference, ResultsHaveTheTypesOfTheSchema) {
  const TestModel model({.nodes = {node("Shape", {"x"}, {"s"}), node("Add", {"x", "x"}, {"a"}), cast("a", "c", f16),
                                   node("Greater", {"x", "a"}, {"g"}), node("Neg", {"c"}, {"y"})},
                         .inputs = {{"x", f32}},
                         .outputs = {{"y", untyped}}});
  EXPECT_EQ(model.element("s"), i64);
  EXPECT_EQ(model.element("a"), f32);
  EXPECT_EQ(model.element("c"), f16);
  EXPECT_EQ(model.element("g"), boolean);
  EXPECT_EQ(model.element("y"), f16);
}

TEST(TypeInference, WhatMakesAValueDecidesNotItsDeclaration) {
  const TestModel model({.nodes = {node("Neg", {"x"}, {"y"})}, .inputs = {{"x", f16}}, .outputs = {{"y", f32}}});
  EXPECT_EQ(model.element("y"), f16);
}

TEST(TypeInference, AConsumerRevealsTheTypeOfAnUnknownValue) {
  const TestModel model({.nodes = {node("Own", {"x"}, {"u"}, {.domain = "own"}), node("Not", {"u"}, {"n"}),
                                   node("Own", {"x"}, {"v"}, {.domain = "own"}), node("Add", {"v", "x"}, {"y"})},
                         .inputs = {{"x", f32}},
                         .outputs = {{"y", untyped}}});
  EXPECT_EQ(model.element("u"), boolean);  // all that Not takes
  EXPECT_EQ(model.element("v"), f32);      // the other input of Add
}

TEST(TypeInference, ConstantsOfAllForms) {
  const auto constant = [](std::string_view name, const std::string& attribute) {
    return node("Constant", {}, {std::string(name)}, {.attributes = {attribute}});
  };
  const TestModel model(
      {.nodes = {constant("i", encode_int_attribute("value_int", 3)),
                 constant("f", encode_attribute("value_float", AttributeType::float_, "")),
                 constant("s", encode_string_attribute("value_string", "word")),
                 constant("t", encode_attribute("value", AttributeType::tensor,
                                                encode_field(attribute_field::t, encode_varint_field(2, f64)))),
                 node("ConstantOfShape", {"i"}, {"z"}), node("RandomNormal", {}, {"r"})},
       .inputs = {{"x", f32}},
       .outputs = {{"f", untyped}}});
  EXPECT_EQ(model.element("i"), i64);
  EXPECT_EQ(model.element("f"), f32);
  EXPECT_EQ(model.element("s"), DType::string);
  EXPECT_EQ(model.element("t"), f64);
  EXPECT_EQ(model.element("z"), f32);
  EXPECT_EQ(model.element("r"), f32);
}

TEST(TypeInference, BodiesGetAndGiveTypes) {
  const std::string body = graph({.nodes = {node("Identity", {"go"}, {"more"}), cast("a", "b", f16)},
                                  .inputs = {{"k", i64}, {"go", boolean}, {"a", untyped}},
                                  .outputs = {{"more", untyped}, {"a", untyped}, {"b", untyped}}});
  const TestModel model(
      {.nodes = {node("Loop", {"n", "c", "x"}, {"last", "all"}, {.attributes = {graph_attribute("body", body)}})},
       .inputs = {{"x", f64}, {"n", i64}, {"c", boolean}},
       .outputs = {{"last", untyped}, {"all", untyped}}});
  EXPECT_EQ(model.element("a"), f64);
  EXPECT_EQ(model.element("last"), f64);
  EXPECT_EQ(model.element("all"), f16);
}

std::string call(std::string_view name, const std::string& input, const std::string& output) {
  return node(name, {input}, {output}, {.domain = "mine"});
}

TEST(TypeInference, AFunctionHasTheTypesOfItsCallsIfTheyAgree) {
  const Names twice = {function("Twice", {"p"}, {"q"}, {node("Add", {"p", "p"}, {"q"})})};
  const TestModel one({.nodes = {call("Twice", "x", "a"), call("Twice", "a", "y")},
                       .inputs = {{"x", f16}},
                       .outputs = {{"y", untyped}}},
                      {.functions = twice});
  EXPECT_EQ(one.element("q"), f16);
  EXPECT_EQ(one.element("y"), f16);
  const TestModel two({.nodes = {call("Twice", "x", "a"), cast("a", "b", f64), call("Twice", "b", "y")},
                       .inputs = {{"x", f16}},
                       .outputs = {{"y", untyped}}},
                      {.functions = twice});
  EXPECT_EQ(two.element("a"), f16);
  EXPECT_EQ(two.element("y"), f64);
  EXPECT_EQ(two.element("q"), untyped);  // both, so unknown
}

// The second input is left out, so its type is unknown in both calls; that of the first differs.
TEST(TypeInference, CallsThatLeaveAnInputOutMayDisagreeToo) {
  const TestModel model({.nodes = {call("F", "x", "a"), cast("x", "b", f64), call("F", "b", "y")},
                         .inputs = {{"x", f16}},
                         .outputs = {{"y", untyped}}},
                        {.functions = {function("F", {"p", "o"}, {"q"}, {node("Neg", {"p"}, {"q"})})}});
  EXPECT_EQ(model.element("a"), f16);
  EXPECT_EQ(model.element("y"), f64);
  EXPECT_EQ(model.element("q"), untyped);
}

// Each function calls the next one twice: 2^60 calls, of which each body is inferred once.
TEST(TypeInference, CallsOfCallsAreInferredOnce) {
  constexpr int depth = 60;
  Names functions = {function(fmt::format("F{}", depth), {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})})};
  for (int i = 0; i < depth; ++i) {
    const std::string next = fmt::format("F{}", i + 1);
    functions.push_back(function(fmt::format("F{}", i), {"a"}, {"b"}, {call(next, "a", "t"), call(next, "t", "b")}));
  }
  const TestModel model({.nodes = {call("F0", "x", "y")}, .inputs = {{"x", f16}}, .outputs = {{"y", untyped}}},
                        {.functions = functions});
  EXPECT_EQ(model.element("y"), f16);
  for (const Value& value : model->values) EXPECT_EQ(value.type.element, f16) << value.name;
}

TEST(TypeInference, FunctionsThatCallThemselvesEnd) {
  const TestModel model({.nodes = {call("F", "x", "y")}, .inputs = {{"x", f16}}, .outputs = {{"y", f16}}},
                        {.functions = {function("F", {"a"}, {"b"}, {call("F", "a", "b")})}});
  EXPECT_EQ(model.element("y"), f16);
}

}  // namespace
}  // namespace tensorcast::models::onnx
