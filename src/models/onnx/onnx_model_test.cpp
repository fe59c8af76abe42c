// SPDX-License-Identifier: Apache-2.0
// Results of the models in testdata/, and errors of files that are not models.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "io/test_folder.hpp"
#include "models/onnx/ir/model_testing.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast {
namespace {

std::string valid(const std::string& name) {
  return std::string(TENSORCAST_SOURCE_DIR) + "/src/models/onnx/testdata/valid/" + name;
}
std::string invalid(const std::string& name) {
  return std::string(TENSORCAST_SOURCE_DIR) + "/src/models/onnx/testdata/invalid/" + name;
}

template <class T>
NamedTensor input(std::string name, DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return {.name = std::move(name),
          .tensor = Tensor::own(dtype, std::move(shape), {bytes.begin(), bytes.end()}).value()};
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> values(tensor.bytes().size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes().data(), tensor.bytes().size());
  return values;
}

std::vector<NamedTensor> run(const std::string& path, const std::vector<NamedTensor>& inputs) {
  Result<Model> model = load_model(path);
  EXPECT_TRUE(model.ok()) << model.error().describe();
  if (!model) return {};
  EXPECT_EQ(model->format, "onnx");
  const Result<Program> program = Program::compile(std::move(model->graph));
  EXPECT_TRUE(program.ok()) << program.error().describe();
  Result<std::vector<NamedTensor>> outputs = program->run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().describe();
  return outputs ? std::move(*outputs) : std::vector<NamedTensor>();
}

const NamedTensor x = input<float>("x", DType::float32, {3}, {1.0f, 2.5f, -3.75f});

TEST(OnnxModel, CastBeforeOpset6NamesItsTypeInWords) {
  for (const char* name : {"cast-1.onnx", "no-opset-before-ir-3.onnx"}) {
    const auto outputs = run(valid(name), {x});
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].tensor.dtype(), DType::float16);
    EXPECT_EQ(values_of<std::uint16_t>(outputs[0].tensor), (std::vector<std::uint16_t>{0x3C00, 0x4100, 0xC380}));
  }
}

// The first operation of a model of one node.
Result<Operation> operation_of(const std::string& node, std::uint64_t opset) {
  namespace made = models::onnx::testing;
  const std::string text =
      made::model({.nodes = {node}, .inputs = {{"x", made::f32}}, .outputs = {{"y", made::untyped}}}, {.opset = opset});
  const Result<Model> model = parse_model(std::as_bytes(std::span(text)));
  if (!model) return model.error();
  return model->graph.nodes.at(0).operation;
}

TEST(OnnxModel, CastBeforeOpset6KnowsTheTypesOfItsTime) {
  const std::pair<const char*, DType> words[] = {
      {"FLOAT", DType::float32},   {"UINT8", DType::uint8},    {"INT8", DType::int8},     {"UINT16", DType::uint16},
      {"INT16", DType::int16},     {"INT32", DType::int32},    {"INT64", DType::int64},   {"BOOL", DType::boolean},
      {"FLOAT16", DType::float16}, {"DOUBLE", DType::float64}, {"UINT32", DType::uint32}, {"UINT64", DType::uint64}};
  const auto cast_to = [](std::string_view word) {
    return models::onnx::encode_node({"Cast", {"x"}, {"y"}, {}, {models::onnx::encode_string_attribute("to", word)}});
  };
  for (const auto& [word, dtype] : words) {
    const Result<Operation> operation = operation_of(cast_to(word), 5);
    ASSERT_TRUE(operation.ok()) << word << operation.error().describe();
    EXPECT_EQ(std::get<CastOp>(*operation).to, dtype) << word;
  }
  for (const char* unknown : {"BFLOAT16", "float", "INT4", "FLOAT64", ""}) {
    EXPECT_EQ(operation_of(cast_to(unknown), 5).error().code, ErrorCode::unsupported) << unknown;
  }
}

TEST(OnnxModel, AConstantNeedNotSpellOutZero) {  // as protobuf's writers may leave it out
  using models::onnx::AttributeType;
  const auto constant = [](std::string_view name, AttributeType type) {
    return models::onnx::encode_node({"Constant", {}, {"y"}, {}, {models::onnx::encode_attribute(name, type, "")}});
  };
  const Result<Operation> real = operation_of(constant("value_float", AttributeType::float_), 21);
  ASSERT_TRUE(real.ok()) << real.error().describe();
  EXPECT_EQ(values_of<float>(std::get<ConstantOp>(*real).value), std::vector<float>{0});
  const Result<Operation> integer = operation_of(constant("value_int", AttributeType::int_), 21);
  ASSERT_TRUE(integer.ok()) << integer.error().describe();
  EXPECT_EQ(values_of<std::int64_t>(std::get<ConstantOp>(*integer).value), std::vector<std::int64_t>{0});
}

TEST(OnnxModel, IsReadFromMemoryAsFromItsFile) {
  for (const char* name : {"cast-1.onnx", "no-opset-before-ir-3.onnx"}) {
    const std::string bytes = io::file_contents(valid(name));
    Result<Model> model = parse_model(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(model.ok()) << model.error().describe();
    EXPECT_EQ(model->format, "onnx");
    const Result<Program> program = Program::compile(std::move(model->graph));
    ASSERT_TRUE(program.ok()) << program.error().describe();
    const auto outputs = program->run({&x, 1});
    ASSERT_TRUE(outputs.ok()) << outputs.error().describe();
    EXPECT_EQ(values_of<std::uint16_t>(outputs->at(0).tensor), (std::vector<std::uint16_t>{0x3C00, 0x4100, 0xC380}));
  }
  EXPECT_EQ(parse_model({}).error().code, ErrorCode::parse);
  EXPECT_EQ(parse_model({}, {.format = "mdf"}).error().code, ErrorCode::unsupported);
  EXPECT_EQ(parse_model({}, {.format = "nothing"}).error().code, ErrorCode::invalid_argument);
}

TEST(OnnxModel, ConstantsOfAllKinds) {
  const auto outputs = run(valid("constants.onnx"), {});
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_EQ(values_of<std::int64_t>(outputs[0].tensor), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(values_of<float>(outputs[1].tensor), std::vector<float>{1.5f});
  EXPECT_TRUE(outputs[1].tensor.shape().empty());
  EXPECT_EQ(values_of<std::uint16_t>(outputs[2].tensor), (std::vector<std::uint16_t>{0x3C00, 0x4100}));  // from strings
  EXPECT_EQ(values_of<std::int8_t>(outputs[3].tensor), (std::vector<std::int8_t>{0, 1, 2}));
}

TEST(OnnxModel, AnInitializerOfAnInputIsItsDefault) {
  const std::string path = valid("initializer-and-default.onnx");
  EXPECT_EQ(values_of<std::int8_t>(run(path, {})[1].tensor), std::vector<std::int8_t>{3});
  EXPECT_EQ(values_of<std::int8_t>(run(path, {x})[1].tensor), (std::vector<std::int8_t>{1, 2, -3}));
}

TEST(OnnxModel, TensorsOfTheSameExternalBytesShareThem) {
  const Result<Model> model = load_model(valid("external.onnx"));
  ASSERT_TRUE(model.ok()) << model.error().describe();
  std::vector<const std::byte*> data;
  for (const GraphNode& node : model->graph.nodes) {
    if (const auto* constant = std::get_if<ConstantOp>(&node.operation)) data.push_back(constant->value.bytes().data());
  }
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0], data[1]);
}

TEST(OnnxModel, BranchesAndFunctions) {
  const auto condition = [](bool value) {
    return input<std::uint8_t>("b", DType::boolean, {}, {static_cast<std::uint8_t>(value)});
  };
  EXPECT_EQ(values_of<std::int8_t>(run(valid("if.onnx"), {x, condition(true)})[0].tensor),
            (std::vector<std::int8_t>{1, 2, -3}));
  EXPECT_EQ(values_of<std::int8_t>(run(valid("if.onnx"), {x, condition(false)})[0].tensor),
            std::vector<std::int8_t>{7});

  const auto nested = run(valid("functions-nested.onnx"), {x});
  EXPECT_EQ(values_of<std::int8_t>(nested[0].tensor), (std::vector<std::int8_t>{1, 2, -3}));
  EXPECT_EQ(values_of<float>(nested[1].tensor), values_of<float>(x.tensor));
  EXPECT_EQ(run(valid("function.onnx"), {x})[0].tensor.dtype(), DType::float32);

  // Two calls of one function, whose branches have values of the same name.
  for (const auto& output : run(valid("if-in-function.onnx"), {x, condition(true)})) {
    EXPECT_EQ(values_of<std::int8_t>(output.tensor), (std::vector<std::int8_t>{1, 2, -3}));
  }
}

TEST(OnnxModel, IsKnownByItsContent) {
  const io::TestFolder folder;
  std::filesystem::copy_file(valid("cast.onnx"), folder / "model.bin");
  EXPECT_TRUE(load_model(folder / "model.bin").ok());
  io::put_file(folder / "text.bin", "something else");
  const Result<Model> other = load_model(folder / "text.bin");
  EXPECT_EQ(other.error().code, ErrorCode::unsupported);
  EXPECT_EQ(other.error().file, folder / "text.bin");
  EXPECT_EQ(load_model(folder / "missing.onnx").error().code, ErrorCode::io);
  LoadModelOptions options;
  options.format = "keras";
  EXPECT_EQ(load_model(valid("cast.onnx"), options).error().code, ErrorCode::invalid_argument);
}

TEST(OnnxModel, ErrorsNameNodeOperatorAndFile) {
  const Result<Model> model = load_model(invalid("unsupported--other-operator-in-function.onnx"));
  EXPECT_EQ(model.error().message, "call/node \"deep\" (Relu): Relu is not an operator that is run here");
  EXPECT_EQ(model.error().file, invalid("unsupported--other-operator-in-function.onnx"));
}

TEST(OnnxModel, TwoGibibytesAreTooMuch) {
  const io::TestFolder folder;
  io::put_file(folder / "huge.onnx", "\x08\x0A\x3A");
  ASSERT_EQ(::truncate((folder / "huge.onnx").c_str(), std::int64_t{1} << 31), 0);  // a hole
  EXPECT_EQ(load_model(folder / "huge.onnx").error().code, ErrorCode::parse);
  EXPECT_EQ(add_cast({.input = folder / "huge.onnx", .output = folder / "out.onnx", .tensor = "x", .to = DType::int8})
                .error()
                .code,
            ErrorCode::parse);
}

TEST(AddCast, GivesAModelThatRuns) {
  const io::TestFolder folder;
  const std::string path = folder / "out.onnx";
  const Result<AddCastOutcome> outcome =
      add_cast({.input = valid("if.onnx"), .output = path, .tensor = "x", .to = DType::int4});
  ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
  EXPECT_EQ(outcome->rewired, 1u);  // in a branch
  EXPECT_EQ(outcome->output_name, "x_int4");
  EXPECT_EQ(outcome->node_name, "Cast_x_int4");
  EXPECT_FALSE(outcome->graph_output_renamed);
  const auto outputs =
      run(path, {input<float>("x", DType::float32, {1}, {5.5f}), input<std::uint8_t>("b", DType::boolean, {}, {1})});
  EXPECT_EQ(values_of<std::int8_t>(outputs[0].tensor), std::vector<std::int8_t>{5});
}

TEST(AddCast, ReplacesTheModelItselfOnlyWhenAsked) {
  const io::TestFolder folder;
  const std::string path = folder / "model.onnx";
  std::filesystem::copy_file(valid("unknown-fields.onnx"), path);
  const std::string before = io::file_contents(path);
  AddCastRequest request{.input = path, .output = path, .tensor = "y", .to = DType::float64};
  EXPECT_EQ(add_cast(request).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(io::file_contents(path), before);
  request.overwrite = true;
  const Result<AddCastOutcome> outcome = add_cast(request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
  EXPECT_TRUE(outcome->graph_output_renamed);
  EXPECT_EQ(folder.entries(), 1u);
  const std::string after = io::file_contents(path);
  EXPECT_TRUE(after.ends_with(before.substr(before.size() - 9)));  // fields that nobody knows
  const auto outputs = run(path, {x});
  EXPECT_EQ(outputs[0].name, "y_float64");
  EXPECT_EQ(values_of<double>(outputs[0].tensor), (std::vector<double>{1.0, 2.5, -3.75}));
}

TEST(AddCast, RefusesWhatCannotBe) {
  const io::TestFolder folder;
  const auto code = [&](AddCastRequest request) {
    if (request.input.empty()) request.input = valid("cast.onnx");
    request.output = folder / "out.onnx";
    const Result<AddCastOutcome> outcome = add_cast(request);
    EXPECT_FALSE(outcome.ok());
    EXPECT_EQ(folder.entries(), 0u);
    return outcome.error().code;
  };
  EXPECT_EQ(code({.tensor = "nothing", .to = DType::int8}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.tensor = "", .to = DType::int8}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.tensor = "y", .to = DType::undefined}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.tensor = "y", .to = DType::uint1}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.tensor = "y", .to = DType::int8, .output_name = "x"}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.tensor = "y", .to = DType::int8, .node_name = "c"}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.tensor = "y", .to = DType::int8, .output_name = "\xFF"}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.tensor = "y", .to = DType::int8, .node_name = "\xED\xA0\x80"}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.input = valid("cast-1.onnx"), .tensor = "y", .to = DType::bfloat16}), ErrorCode::unsupported);
  EXPECT_EQ(code({.input = valid("external.onnx"), .tensor = "w", .to = DType::int8}), ErrorCode::unsupported);
  EXPECT_EQ(code({.input = valid("if.onnx"), .tensor = "t", .to = DType::int4}), ErrorCode::unsupported);
  EXPECT_EQ(code({.input = folder / "missing.onnx", .tensor = "y", .to = DType::int8}), ErrorCode::io);
}

// For any file, adding a Cast either works, and the result is readable, or changes nothing.
TEST(AddCast, HostileModelsAreErrorsOrStayReadable) {
  const io::TestFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(invalid(""))) {
    if (entry.path().extension() != ".onnx") continue;
    for (const char* tensor : {"x", "y", "w"}) {
      const Result<AddCastOutcome> outcome = add_cast({.input = entry.path().string(),
                                                       .output = folder / "out.onnx",
                                                       .tensor = tensor,
                                                       .to = DType::float32,
                                                       .overwrite = true});
      if (!outcome) {
        EXPECT_NE(outcome.error().code, ErrorCode::internal) << outcome.error().describe();
        EXPECT_FALSE(outcome.error().message.empty());
        continue;
      }
      // A second Cast finds the result of the first.
      const Result<AddCastOutcome> again = add_cast({.input = folder / "out.onnx",
                                                     .output = folder / "again.onnx",
                                                     .tensor = outcome->output_name,
                                                     .to = DType::float32,
                                                     .overwrite = true});
      EXPECT_TRUE(again.ok()) << entry.path() << again.error().describe();
    }
  }
}

}  // namespace
}  // namespace tensorcast
