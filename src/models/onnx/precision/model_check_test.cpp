// Each fault that a new model might have, in models that are made here.
#include "models/onnx/precision/model_check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/test_folder.hpp"
#include "models/onnx/message_edits.hpp"

namespace tensorcast::models::onnx::precision {
namespace {

constexpr std::uint64_t float32 = 1, int64 = 7, boolean = 9, float16 = 10;

std::string node(std::string_view op_type, std::string_view name, const std::vector<std::string>& inputs,
                 const std::string& output, const std::string& attribute = {}) {
  std::string text;
  for (const std::string& input : inputs) text += encode_field(node_field::input, input);
  text += encode_field(node_field::output, output) + encode_field(node_field::name, name) +
          encode_field(node_field::op_type, op_type);
  return text + (attribute.empty() ? "" : encode_field(node_field::attribute, attribute));
}

std::string value(std::string_view name, std::uint64_t element) {
  const std::string tensor = encode_varint_field(tensor_type_field::elem_type, element);
  return encode_field(value_field::name, name) +
         encode_field(value_field::type, encode_field(type_field::tensor, tensor));
}

std::string graph(const std::vector<std::string>& nodes, const std::vector<std::string>& inputs,
                  const std::string& output) {
  std::string text;
  for (const std::string& each : nodes) text += encode_field(graph_field::node, each);
  for (const std::string& each : inputs) text += encode_field(graph_field::input, each);
  return text + encode_field(graph_field::output, output);
}

std::string branch(std::string_view name, const std::string& body) {
  return encode_field(attribute_field::name, name) + encode_field(attribute_field::g, body) +
         encode_varint_field(attribute_field::type, static_cast<std::uint64_t>(AttributeType::graph));
}

std::string put_model(const std::string& path, const std::string& main_graph) {
  const std::string opset = encode_varint_field(opset_field::version, 21);
  io::put_file(path, encode_varint_field(model_field::ir_version, 10) + encode_field(model_field::graph, main_graph) +
                         encode_field(model_field::opset_import, opset));
  return path;
}

std::vector<std::string> faults_of(const std::string& main_graph) {
  const io::TestFolder folder;
  const io::InputFile file = io::InputFile::open(put_model(folder / "m.onnx", main_graph)).value();
  std::vector<std::string> texts;
  for (const Fault& fault : find_faults(*read_model(file).value())) texts.push_back(fault.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ModelCheck, AcceptsARightModel) {
  EXPECT_EQ(faults_of(graph({node("Add", "a", {"x", "x"}, "y")}, {value("x", float16)}, value("y", float16))), Texts());
}

TEST(ModelCheck, FindsTypesThatTheOperatorDoesNotTake) {
  EXPECT_EQ(faults_of(graph({node("Sin", "s", {"x"}, "y")}, {value("x", int64)}, value("y", int64))),
            (Texts{"Sin \"s\" takes int64, which the operator does not allow there",
                   "Sin \"s\" gives int64, which the operator does not allow there"}));
}

TEST(ModelCheck, FindsTwoTypesWhereOneIsNeeded) {
  EXPECT_EQ(faults_of(graph({node("Add", "a", {"x", "h"}, "y")}, {value("x", float32), value("h", float16)},
                            value("y", float32))),
            Texts{"Add \"a\" takes float32 and float16 where it needs one type"});
}

TEST(ModelCheck, FindsDeclarationsThatAreWrong) {
  EXPECT_EQ(faults_of(graph({node("Neg", "n", {"x"}, "y")}, {value("x", float16)}, value("y", float32))),
            Texts{"\"y\" is declared as float32 and is float16"});
}

TEST(ModelCheck, FindsValuesThatAreUsedBeforeTheyAreMade) {
  EXPECT_EQ(faults_of(graph({node("Neg", "n", {"t"}, "y"), node("Sin", "s", {"x"}, "t")}, {value("x", float32)},
                            value("y", float32))),
            Texts{"Neg \"n\" takes \"t\" before it is made"});
}

TEST(ModelCheck, FindsBranchesOfTwoTypes) {
  const std::string one = graph({node("Neg", "n", {"x"}, "a")}, {}, value("a", float32));
  const std::string other = graph({node("Neg", "m", {"h"}, "b")}, {}, value("b", float16));
  std::string both = node("If", "i", {"c"}, "y", branch("then_branch", one));
  both += encode_field(node_field::attribute, branch("else_branch", other));
  EXPECT_EQ(
      faults_of(graph({both}, {value("x", float32), value("h", float16), value("c", boolean)}, value("y", float16))),
      Texts{"If \"i\" needs float16 from \"then_branch\", which gives float32"});
}

TEST(ModelCheck, RefusesOnlyFaultsThatAreNew) {
  const io::TestFolder folder;
  const std::string right = graph({node("Sin", "s", {"x"}, "y")}, {value("x", float32)}, value("y", float32));
  const std::string wrong = graph({node("Sin", "s", {"x"}, "y")}, {value("x", int64)}, value("y", int64));
  const io::InputFile right_file = io::InputFile::open(put_model(folder / "right.onnx", right)).value();
  const io::InputFile wrong_file = io::InputFile::open(put_model(folder / "wrong.onnx", wrong)).value();
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
  const std::string right = graph({node("Sin", "s", {"x"}, "y")}, {value("x", float32)}, value("y", float32));
  const io::InputFile file = io::InputFile::open(put_model(folder / "right.onnx", right)).value();
  io::put_file(folder / "broken", "not a model");
  EXPECT_FALSE(check_new_model(file, folder / "broken").ok());
}

}  // namespace
}  // namespace tensorcast::models::onnx::precision
