// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "dtype/tensor_testing.hpp"
#include "io/test_folder.hpp"
#include "models/openvino_ir/ir_types.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::openvino_ir {
namespace {

// Layers and edges as the file has them, without what never changes.
std::string port(int id, const std::string& precision, const std::string& dims, const std::string& names = "") {
  std::string text = "<port id=\"" + std::to_string(id) + "\" precision=\"" + precision + "\"";
  if (!names.empty()) text += " names=\"" + names + "\"";
  text += ">";
  for (std::size_t begin = 0; begin < dims.size();) {
    const std::size_t end = std::min(dims.find(',', begin), dims.size());
    text += "<dim>" + dims.substr(begin, end - begin) + "</dim>";
    begin = end + 1;
  }
  return text + "</port>";
}

std::string layer(int id, const std::string& name, const std::string& type, const std::string& data,
                  const std::string& inputs, const std::string& outputs, const std::string& more = "") {
  std::string text =
      "<layer id=\"" + std::to_string(id) + "\" name=\"" + name + "\" type=\"" + type + "\" " + more + ">";
  if (!data.empty()) text += "<data " + data + "/>";
  if (!inputs.empty()) text += "<input>" + inputs + "</input>";
  if (!outputs.empty()) text += "<output>" + outputs + "</output>";
  return text + "</layer>";
}

std::string edge(int from, int from_port, int to, int to_port) {
  return "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"" + std::to_string(from_port) +
         "\" to-layer=\"" + std::to_string(to) + "\" to-port=\"" + std::to_string(to_port) + "\"/>";
}

class OpenVinoIr : public ::testing::Test {
 protected:
  Result<Model> load(const std::string& layers, const std::string& edges, std::string_view weights = {}) {
    io::put_file(folder_ / "m.xml",
                 "<net name=\"m\" version=\"11\"><layers>" + layers + "</layers><edges>" + edges + "</edges></net>");
    if (weights.data() != nullptr) io::put_file(folder_ / "m.bin", weights);
    return load_model(folder_ / "m.xml");
  }
  Result<std::vector<NamedTensor>> run(const std::string& layers, const std::string& edges,
                                       std::vector<NamedTensor> inputs, std::string_view weights = {}) {
    Result<Model> model = load(layers, edges, weights);
    if (!model) return std::move(model).error();
    Result<Program> program = Program::compile(std::move(model->graph));
    if (!program) return std::move(program).error();
    return program->run(inputs);
  }
  // One layer Convert between an input x of one dimension and an output y.
  Result<std::vector<NamedTensor>> convert(const std::string& from, const std::string& from_port, const std::string& to,
                                           const std::string& to_port, Tensor x) {
    const std::string n = std::to_string(x.count());
    return run(
        layer(0, "x", "Parameter", "shape=\"" + n + "\" element_type=\"" + from + "\"", "", port(0, from_port, n)) +
            layer(1, "y", "Convert", "destination_type=\"" + to + "\"", port(0, from_port, n), port(1, to_port, n)) +
            layer(2, "r", "Result", "", port(0, to_port, n), ""),
        edge(0, 0, 1, 0) + edge(1, 1, 2, 0), {{"x", std::move(x)}});
  }

  io::TestFolder folder_;
};

TEST_F(OpenVinoIr, ConvertsWithOpenVinosRules) {
  const float huge = 1e9F;
  auto result = convert("f32", "FP32", "f8e4m3", "F8E4M3", tensor_of<float>(DType::float32, {3}, {465, huge, 448}));
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)[0].name, "y");
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0x7F, 0x7F, 0x7E}));

  result = convert("f32", "FP32", "i8", "I8", tensor_of<float>(DType::float32, {4}, {1.9F, -1.9F, 300, -300}));
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int8_t>((*result)[0].tensor), (std::vector<std::int8_t>{1, -1, 44, -44}));

  const float nan = std::numeric_limits<float>::quiet_NaN();
  result = convert("f32", "FP32", "f4e2m1", "F4E2M1", tensor_of<float>(DType::float32, {2}, {nan, 100}));
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0x77}));

  result = convert("f32", "FP32", "f8e8m0", "F8E8M0", tensor_of<float>(DType::float32, {3}, {2.5F, 0, -1}));
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{128, 0, 0}));

  // OpenVINO does not convert these types; NaN is -0, as in ONNX since opset 24, which is e8m0's first.
  result =
      convert("f8e8m0", "F8E8M0", "f4e2m1", "F4E2M1", tensor_of<std::uint8_t>(DType::float8_e8m0fnu, {2}, {255, 129}));
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0x68}));
}

TEST_F(OpenVinoIr, ConstantsAreReadFromTheFileBeside) {
  const std::string weights("\x01\x00\x02\x00", 4);
  const std::string layers =
      layer(0, "c", "Const", "element_type=\"i16\" shape=\"2\" offset=\"0\" size=\"4\"", "", port(0, "I16", "2")) +
      layer(1, "y", "Convert", "destination_type=\"f32\"", port(0, "I16", "2"), port(1, "FP32", "2")) +
      layer(2, "r", "Result", "", port(0, "FP32", "2"), "");
  const auto result = run(layers, edge(0, 0, 1, 0) + edge(1, 1, 2, 0), {}, weights);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<float>((*result)[0].tensor), (std::vector<float>{1, 2}));
}

TEST_F(OpenVinoIr, OneBitConstantsBeginAtTheHighestBit) {
  const std::string weights("\xB3\x80", 2);
  const std::string layers =
      layer(0, "c", "Const", "element_type=\"u1\" shape=\"10\" offset=\"0\" size=\"2\"", "", port(0, "BIN", "10")) +
      layer(1, "y", "Convert", "destination_type=\"i32\"", port(0, "BIN", "10"), port(1, "I32", "10")) +
      layer(2, "r", "Result", "", port(0, "I32", "10"), "");
  const auto result = run(layers, edge(0, 0, 1, 0) + edge(1, 1, 2, 0), {}, weights);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int32_t>((*result)[0].tensor), (std::vector<std::int32_t>{1, 0, 1, 1, 0, 0, 1, 1, 1, 0}));
}

TEST_F(OpenVinoIr, OneBitConstantsArePromoted) {
  const std::string weights("\xA0", 1);
  const std::string layers =
      layer(0, "c", "Const", "element_type=\"u1\" shape=\"3\" offset=\"0\" size=\"1\"", "", port(0, "BIN", "3")) +
      layer(1, "x", "Parameter", "shape=\"2\" element_type=\"f16\"", "", port(0, "FP16", "2")) +
      layer(2, "p", "ConvertPromoteTypes", "", port(0, "BIN", "3") + port(1, "FP16", "2"),
            port(2, "FP16", "3", "p0") + port(3, "FP16", "2", "p1")) +
      layer(3, "r", "Result", "", port(0, "FP16", "3"), "") + layer(4, "s", "Result", "", port(0, "FP16", "2"), "");
  const auto result = run(layers, edge(0, 0, 2, 0) + edge(1, 0, 2, 1) + edge(2, 2, 3, 0) + edge(2, 3, 4, 0),
                          {{"x", tensor_of<std::uint16_t>(DType::float16, {2}, {1, 2})}}, weights);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint16_t>((*result)[0].tensor), (std::vector<std::uint16_t>{0x3C00, 0, 0x3C00}));
  EXPECT_EQ(elements_of<std::uint16_t>((*result)[1].tensor), (std::vector<std::uint16_t>{1, 2}));
}

TEST_F(OpenVinoIr, ConvertLikeTakesTheTypeOnly) {
  const std::string layers =
      layer(0, "x", "Parameter", "shape=\"?\" element_type=\"i32\"", "", port(0, "I32", "-1")) +
      layer(1, "like", "Parameter", "shape=\"2,2\" element_type=\"u4\"", "", port(0, "U4", "2,2")) +
      layer(2, "y", "ConvertLike", "", port(0, "I32", "-1") + port(1, "U4", "2,2"), port(2, "U4", "-1")) +
      layer(3, "r", "Result", "", port(0, "U4", "-1"), "");
  const auto result = run(layers, edge(0, 0, 2, 0) + edge(1, 0, 2, 1) + edge(2, 2, 3, 0),
                          {{"x", tensor_of<std::int32_t>(DType::int32, {3}, {1, 18, -1})},
                           {"like", tensor_of<std::uint8_t>(DType::uint4, {2, 2}, {0, 0})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0x21, 0x0F}));
}

TEST_F(OpenVinoIr, ScalarsYieldToTensorsWhereAskedTo) {
  const std::string layers =
      layer(0, "a", "Parameter", "shape=\"\" element_type=\"i64\"", "", port(0, "I64", "")) +
      layer(1, "b", "Parameter", "shape=\"2\" element_type=\"u8\"", "", port(0, "U8", "2")) +
      layer(2, "p", "ConvertPromoteTypes", "promote_unsafe=\"true\" pytorch_scalar_promotion=\"true\"",
            port(0, "I64", "") + port(1, "U8", "2"), port(2, "U8", "", "s") + port(3, "U8", "2", "t")) +
      layer(3, "r", "Result", "", port(0, "U8", ""), "") + layer(4, "q", "Result", "", port(0, "U8", "2"), "");
  const auto result = run(layers, edge(0, 0, 2, 0) + edge(1, 0, 2, 1) + edge(2, 2, 3, 0) + edge(2, 3, 4, 0),
                          {{"a", tensor_of<std::int64_t>(DType::int64, {}, {257})},
                           {"b", tensor_of<std::uint8_t>(DType::uint8, {2}, {3, 4})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)[0].name, "s");
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{1}));
}

TEST_F(OpenVinoIr, NamesAreThoseOfTensorsElseOfLayers) {
  // One tensor with three names, two of which have a comma or a quote; two results of one tensor; an input that is an
  // output.
  const std::string layers =
      layer(0, "x", "Parameter", "shape=\"1\" element_type=\"f32\"", "", port(0, "FP32", "1", "zz,a\\,b,m&quot;m")) +
      layer(1, "y", "Convert", "destination_type=\"f16\"", port(0, "FP32", "1"), port(1, "FP16", "1")) +
      layer(2, "r", "Result", "", port(0, "FP16", "1"), "") + layer(3, "s", "Result", "", port(0, "FP16", "1"), "") +
      layer(4, "t", "Result", "", port(0, "FP32", "1"), "") +
      layer(5, "u", "Result", "", port(0, "FP32", "1"), "", "output_names=\"q,p\"");
  const Result<Model> model =
      load(layers, edge(0, 0, 1, 0) + edge(1, 1, 2, 0) + edge(1, 1, 3, 0) + edge(0, 0, 4, 0) + edge(0, 0, 5, 0));
  ASSERT_TRUE(model.ok()) << model.error().describe();
  ASSERT_EQ(model->graph.inputs.size(), 1u);
  EXPECT_EQ(model->graph.inputs[0].name, "a,b");
  std::vector<std::string> outputs;
  for (const ValueInfo& value : model->graph.outputs) outputs.push_back(value.name);
  EXPECT_EQ(outputs, (std::vector<std::string>{"y", "s", "a,b", "p"}));
}

TEST_F(OpenVinoIr, ErrorsNameFileAndLayer) {
  const Result<Model> model = load(layer(7, "relu_3", "Relu", "", "", port(0, "FP32", "1")), "");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::unsupported);
  EXPECT_EQ(model.error().file, folder_ / "m.xml");
  EXPECT_NE(model.error().message.find("layer 7 \"relu_3\" (\"Relu\")"), std::string::npos) << model.error().message;
}

TEST_F(OpenVinoIr, SlowALongChainNeedsNoDeepStack) {
  std::string layers = layer(0, "x", "Parameter", "shape=\"1\" element_type=\"f32\"", "", port(0, "FP32", "1"));
  std::string edges;
  constexpr int length = 20000;
  for (int i = 1; i <= length; ++i) {
    const bool half = i % 2 == 1;
    layers +=
        layer(i, "c" + std::to_string(i), "Convert", std::string("destination_type=\"") + (half ? "f16" : "f32") + "\"",
              port(0, half ? "FP32" : "FP16", "1"), port(1, half ? "FP16" : "FP32", "1"));
    edges += edge(i - 1, i == 1 ? 0 : 1, i, 0);
  }
  layers += layer(length + 1, "r", "Result", "", port(0, "FP32", "1"), "");
  const auto result =
      run(layers, edges + edge(length, 1, length + 1, 0), {{"x", tensor_of<float>(DType::float32, {1}, {0.1F})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<float>((*result)[0].tensor), (std::vector<float>{0.099975586F}));
}

TEST_F(OpenVinoIr, WeightsBesideAreNamedAfterTheModel) {
  io::put_file(folder_ / "other.bin", "1234");
  const Result<Model> model =
      load(layer(0, "c", "Const", "element_type=\"i8\" shape=\"4\" offset=\"0\" size=\"4\"", "", port(0, "I8", "4")) +
               layer(1, "r", "Result", "", port(0, "I8", "4"), ""),
           edge(0, 0, 1, 0));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::io);
  EXPECT_NE(model.error().describe().find("m.bin"), std::string::npos) << model.error().describe();
}

TEST(OpenVinoTypes, EveryNameIsReadBack) {
  for (const DType dtype : all_dtypes()) {
    const std::string name(element_type_name(dtype));
    const Result<DType> read = parse_element_type(name);
    if (read) {
      EXPECT_EQ(*read, dtype) << name;
    }
  }
  EXPECT_EQ(parse_element_type("f8e4m3").value(), DType::float8_e4m3fn);
  EXPECT_EQ(parse_precision("BIN").value(), DType::uint1);
  EXPECT_EQ(parse_element_type("nf4").error().code, ErrorCode::unsupported);
  EXPECT_EQ(parse_element_type("float32").error().code, ErrorCode::parse);
}

}  // namespace
}  // namespace tensorcast::models::openvino_ir
