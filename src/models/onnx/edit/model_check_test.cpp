// SPDX-License-Identifier: Apache-2.0
// Each fault that a new model might have, in models that are made here.
#include "models/onnx/edit/model_check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/test_folder.hpp"
#include "models/onnx/ir/model_testing.hpp"

namespace tensorcast::models::onnx {
namespace {

using namespace testing;

std::vector<std::string> faults_of(const GraphParts& main_graph) {
  const io::TestFolder folder;
  io::put_file(folder / "m.onnx", model(main_graph));
  const io::InputFile file = io::InputFile::open(folder / "m.onnx").value();
  std::vector<std::string> texts;
  for (const Fault& fault : find_faults(*read_model(file).value())) texts.push_back(fault.text);
  return texts;
}

GraphParts one_node(std::string_view op_type, std::string_view name, const Names& inputs, DType element,
                    DType declared) {
  return {.nodes = {node(op_type, inputs, {"y"}, {.name = std::string(name)})},
          .inputs = {{"x", element}},
          .outputs = {{"y", declared}}};
}

using Texts = std::vector<std::string>;

TEST(ModelCheck, AcceptsARightModel) { EXPECT_EQ(faults_of(one_node("Add", "a", {"x", "x"}, f16, f16)), Texts()); }

TEST(ModelCheck, FindsTypesThatTheOperatorDoesNotTake) {
  EXPECT_EQ(faults_of(one_node("Sin", "s", {"x"}, i64, i64)),
            (Texts{"Sin \"s\" takes int64, which the operator does not allow there",
                   "Sin \"s\" gives int64, which the operator does not allow there"}));
}

TEST(ModelCheck, FindsTwoTypesWhereOneIsNeeded) {
  GraphParts both = one_node("Add", "a", {"x", "h"}, f32, f32);
  both.inputs.emplace_back("h", f16);
  EXPECT_EQ(faults_of(both), Texts{"Add \"a\" takes float32 and float16 where it needs one type"});
}

TEST(ModelCheck, FindsDeclarationsThatAreWrong) {
  EXPECT_EQ(faults_of(one_node("Neg", "n", {"x"}, f16, f32)), Texts{"\"y\" is declared as float32 and is float16"});
}

TEST(ModelCheck, FindsValuesThatAreUsedBeforeTheyAreMade) {
  GraphParts late = one_node("Neg", "n", {"t"}, f32, f32);
  late.nodes.push_back(node("Sin", {"x"}, {"t"}, {.name = "s"}));
  EXPECT_EQ(faults_of(late), Texts{"Neg \"n\" takes \"t\" before it is made"});
}

TEST(ModelCheck, FindsBranchesOfTwoTypes) {
  const std::string one = graph({.nodes = {node("Neg", {"x"}, {"a"})}, .outputs = {{"a", f32}}});
  const std::string other = graph({.nodes = {node("Neg", {"h"}, {"b"})}, .outputs = {{"b", f16}}});
  const Names branches = {graph_attribute("then_branch", one), graph_attribute("else_branch", other)};
  EXPECT_EQ(faults_of({.nodes = {node("If", {"c"}, {"y"}, {.attributes = branches, .name = "i"})},
                       .inputs = {{"x", f32}, {"h", f16}, {"c", boolean}},
                       .outputs = {{"y", f16}}}),
            Texts{"If \"i\" needs float16 from \"then_branch\", which gives float32"});
}

TEST(ModelCheck, RefusesOnlyFaultsThatAreNew) {
  const io::TestFolder folder;
  io::put_file(folder / "right.onnx", model(one_node("Sin", "s", {"x"}, f32, f32)));
  io::put_file(folder / "wrong.onnx", model(one_node("Sin", "s", {"x"}, i64, i64)));
  const io::InputFile right_file = io::InputFile::open(folder / "right.onnx").value();
  const io::InputFile wrong_file = io::InputFile::open(folder / "wrong.onnx").value();
  EXPECT_TRUE(check_new_model(right_file, folder / "right.onnx").ok());
  EXPECT_TRUE(check_new_model(wrong_file, folder / "wrong.onnx").ok());
  EXPECT_TRUE(check_new_model(wrong_file, folder / "right.onnx").ok());
  const Result<void> refused = check_new_model(right_file, folder / "wrong.onnx");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::internal);
  EXPECT_EQ(refused.error().message,
            "the new model would be wrong: Sin \"s\" takes int64, which the operator does not allow there");
}

TEST(ModelCheck, RefusesWhatIsNoModel) {
  const io::TestFolder folder;
  io::put_file(folder / "right.onnx", model(one_node("Sin", "s", {"x"}, f32, f32)));
  const io::InputFile file = io::InputFile::open(folder / "right.onnx").value();
  io::put_file(folder / "broken", "not a model");
  EXPECT_FALSE(check_new_model(file, folder / "broken").ok());
}

}  // namespace
}  // namespace tensorcast::models::onnx
