// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "dtype/tensor_testing.hpp"
#include "io/test_folder.hpp"
#include "models/mdf/mdf_literal.hpp"
#include "models/mdf/mdf_number.hpp"
#include "models/mdf/mdf_syntax.hpp"
#include "models/mdf/mdf_tree.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::mdf {
namespace {

class Mdf : public ::testing::Test {
 protected:
  // `graph` is the JSON of {"nodes": ..., "edges": ...} without the braces.
  std::string file(const std::string& graph, const std::string& more = "") {
    const std::string path = folder_ / "m.json";
    io::put_file(path, R"({"m": {"format": "ModECI MDF v0.4", )" + more + R"("graphs": {"g": {)" + graph + "}}}}");
    return path;
  }
  Result<std::vector<NamedTensor>> run(const std::string& graph, std::vector<NamedTensor> inputs = {},
                                       const std::string& more = "", MdfSemantics semantics = MdfSemantics::onnx) {
    return run_file(file(graph, more), std::move(inputs), semantics);
  }
  static Result<std::vector<NamedTensor>> run_file(const std::string& path, std::vector<NamedTensor> inputs,
                                                   MdfSemantics semantics = MdfSemantics::onnx) {
    Result<Model> model = load_model(path, {.mdf_semantics = semantics});
    if (!model) return std::move(model).error();
    EXPECT_EQ(model->format, "mdf");
    Result<Program> program = Program::compile(std::move(model->graph));
    if (!program) return std::move(program).error();
    return program->run(inputs);
  }
  Error refused(const std::string& graph, const std::string& more = "", MdfSemantics semantics = MdfSemantics::onnx) {
    const Result<Model> model = load_model(file(graph, more), {.mdf_semantics = semantics});
    EXPECT_FALSE(model.ok()) << graph;
    return model.ok() ? Error{} : model.error();
  }

  io::TestFolder folder_;
};

// A node that casts its port x; the tests vary its parts.
std::string cast_node(const std::string& port, const std::string& to, const std::string& more = "") {
  return R"("nodes": {"n": {"input_ports": {"x": {)" + port + R"(}}, "parameters": {"to": {"value": )" + to +
         R"(}, "onnx_Cast_1": {"function": "onnx::Cast", "args": {"input": "x"}})" + more +
         R"(}, "output_ports": {"y": {"value": "onnx_Cast_1"}}}})";
}

TEST_F(Mdf, CastsItsInput) {
  const auto result = run(cast_node(R"("shape": [3], "type": "float32")", "7"),
                          {{"x", tensor_of<float>(DType::float32, {3}, {1.9F, -1.9F, 3})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  ASSERT_EQ(result->size(), 1u);
  EXPECT_EQ((*result)[0].name, "y");
  EXPECT_EQ((*result)[0].tensor.dtype(), DType::int64);
  EXPECT_EQ(elements_of<std::int64_t>((*result)[0].tensor), (std::vector<std::int64_t>{1, -1, 3}));
}

TEST_F(Mdf, AttributesMayBeTextsOrArgumentsOrReals) {
  for (const char* to : {"\"7\"", "7.0", "[7]"}) {
    const auto result = run(cast_node("", to), {{"x", tensor_of<float>(DType::float32, {1}, {2})}});
    ASSERT_TRUE(result.ok()) << to << result.error().describe();
    EXPECT_EQ((*result)[0].tensor.dtype(), DType::int64) << to;
  }
  const auto result = run(
      R"("nodes": {"n": {"input_ports": {"x": {}}, "functions": {"f": {"function": "onnx::Cast", "args": {"input": "x", "to": 9}}},
         "output_ports": {"y": {"value": "f"}}}})",
      {{"x", tensor_of<float>(DType::float32, {2}, {2, 0})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)[0].tensor.dtype(), DType::boolean);
}

TEST_F(Mdf, PartsOfANodeStandInAnyOrder) {
  // The output names a parameter, that names a function, that takes a port by its name alone; "to" comes last.
  const auto result = run(
      R"("nodes": {"n": {"input_ports": {"input": {"type": "float32"}},
         "parameters": {"last": {"value": "first"}, "first": {"function": "onnx::Cast", "args": {}}, "to": {"value": "kind"}, "kind": {"value": 3}},
         "output_ports": {"out": {"value": "last"}}}})",
      {{"input", tensor_of<float>(DType::float32, {2}, {-1, 300})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int8_t>((*result)[0].tensor), (std::vector<std::int8_t>{-1, 44}));
}

TEST_F(Mdf, CastsParametersWithoutAnyPort) {
  const auto result = run(
      R"j("nodes": {"n": {"parameters": {"_114": {"value": [[0, 1], [2, 0]]}, "to": {"value": 9},
         "onnx::Cast_1": {"function": "onnx::Cast", "args": {"input": "_114"}}},
         "output_ports": {"_115": {"value": "onnx::Cast_1", "shape": "(2, 2)", "type": "bool"}}}})j");
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(shape_of((*result)[0].tensor), (std::vector<std::int64_t>{2, 2}));
}

TEST_F(Mdf, AGraphWithinANodeTakesItsPorts) {
  // As in models from PyTorch: ids with ::, and ports of the inner graph that only the enclosing node has.
  const std::string inner = R"("nodes": {
      "a": {"input_ports": {"p": {"type": "Tensor"}}, "parameters": {"to": {"value": 7}, "onnx::Cast_1": {"function": "onnx::Cast", "args": {"input": "p"}}},
            "output_ports": {"y": {"value": "onnx::Cast_1"}}},
      "b": {"input_ports": {"y": {}}, "parameters": {"to": {"value": 11}, "onnx::Cast_1": {"function": "onnx::Cast", "args": {"input": "y"}}},
            "output_ports": {"z": {"value": "onnx::Cast_1"}}}},
    "edges": {"e": {"sender": "a", "receiver": "b", "sender_port": "y", "receiver_port": "y", "parameters": {"weight": 3}}})";
  const std::string outer =
      R"("nodes": {"first": {"input_ports": {"x": {"type": "float32"}}, "output_ports": {"o": {"value": "x"}}},
    "loop": {"input_ports": {"p": {}}, )" +
      inner;
  const std::string edge =
      R"(}}, "edges": {"f": {"sender": "first", "receiver": "loop", "sender_port": "o", "receiver_port": "p"}})";
  const std::vector<NamedTensor> input{{"x", tensor_of<float>(DType::float32, {2}, {1.5F, -2.5F})}};
  for (const MdfSemantics semantics : {MdfSemantics::onnx, MdfSemantics::mdf_reference}) {
    auto result = run(outer + edge, input, "", semantics);
    ASSERT_TRUE(result.ok()) << result.error().describe();
    ASSERT_EQ(result->size(), 1u);
    EXPECT_EQ((*result)[0].name, "z");
    EXPECT_EQ(elements_of<double>((*result)[0].tensor), (std::vector<double>{3, -6}));

    // The node's own parts may name what the graph within it gives.
    result =
        run(outer + R"(, "parameters": {"to": {"value": 6}, "c": {"function": "onnx::Cast", "args": {"input": "z"}}},
                            "output_ports": {"q": {"value": "c"}})" +
                edge,
            input, "", semantics);
    ASSERT_TRUE(result.ok()) << result.error().describe();
    ASSERT_EQ(result->size(), 1u);
    EXPECT_EQ((*result)[0].name, "q");
    EXPECT_EQ(elements_of<std::int32_t>((*result)[0].tensor), (std::vector<std::int32_t>{3, -6}));
  }
  // If the node has no ports, those of the graph are the model's.
  const auto result = run(R"("nodes": {"loop": {)" + inner + "}}", {{"p", input[0].tensor}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)[0].name, "z");
  // Messages name the path.
  const Error error =
      refused(R"("nodes": {"o": {"nodes": {"i": {"nodes": {"n": {"output_ports": {"y": {"value": "w"}}}}}}}})");
  EXPECT_NE(error.message.find("\"o.i.n\""), std::string::npos) << error.message;
}

TEST_F(Mdf, PortsOfTheNearestNodeAroundComeFirst) {
  const std::string leaf =
      R"("n": {"input_ports": {"x": {}, "w": {}}, "output_ports": {"y": {"value": "x"}, "v": {"value": "w"}}})";
  const auto result = run(
      R"("nodes": {"o": {"input_ports": {"x": {"default_value": [1]}, "w": {"default_value": [2]}},
         "nodes": {"i": {"input_ports": {"x": {"default_value": [3]}, "k": {"default_value": [4]}}, "nodes": {)" +
      leaf + R"(}},
                   "m": {"output_ports": {"y": {"value": 5}}}}}})");
  ASSERT_TRUE(result.ok()) << result.error().describe();
  std::map<std::string, std::int64_t> found;
  for (const NamedTensor& output : *result) found[output.name] = elements_of<std::int64_t>(output.tensor)[0];
  // The inner x has no edge, so it reads the outer one, which only then has a default.
  EXPECT_EQ(found, (std::map<std::string, std::int64_t>{{"i.y", 1}, {"v", 2}, {"m.y", 5}}));
}

TEST_F(Mdf, OfSeveralEdgesIntoOnePortTheLastCounts) {
  const std::string nodes =
      R"("nodes": {"a": {"parameters": {"p": {"value": [1]}}, "output_ports": {"y": {"value": "p"}}},
                   "b": {"parameters": {"p": {"value": [2]}}, "output_ports": {"y": {"value": "p"}}},
                   "c": {"input_ports": {"x": {)";
  const auto edges = [](const std::string& one, const std::string& two) {
    return R"(}}, "output_ports": {"z": {"value": "x"}}}}, "edges": {"e": {"sender": ")" + one +
           R"(", "sender_port": "y", "receiver": "c", "receiver_port": "x"}, "f": {"sender": ")" + two +
           R"(", "sender_port": "y", "receiver": "c", "receiver_port": "x"}})";
  };
  for (const auto& [one, two, last] : {std::tuple("a", "b", 2), std::tuple("b", "a", 1)}) {
    const auto result = run(nodes + edges(one, two));
    ASSERT_TRUE(result.ok()) << result.error().describe();
    EXPECT_EQ(elements_of<std::int64_t>((*result)[0].tensor), std::vector<std::int64_t>{last});
  }
  EXPECT_EQ(refused(nodes + edges("a", "b"), "", MdfSemantics::mdf_reference).code, ErrorCode::unsupported);
  EXPECT_TRUE(run(nodes + edges("a", "a"), {}, "", MdfSemantics::mdf_reference).ok());
  for (const char* reduce : {"add", "multiply"}) {
    EXPECT_EQ(refused(nodes + R"("reduce": ")" + reduce + "\"" + edges("a", "b")).code, ErrorCode::unsupported);
  }
}

TEST_F(Mdf, TypesThatTheModelLeavesOpenAreAskedFor) {
  const std::string path = file(
      R"("nodes": {"a": {"input_ports": {"x": {}}, "output_ports": {"o": {"value": "x"}}},
                   "b": {"input_ports": {"q": {}, "t": {"type": "int8"}}, "output_ports": {"y": {"value": "q"}}}},
         "edges": {"e": {"sender": "a", "receiver": "b", "sender_port": "o", "receiver_port": "q", "parameters": {"weight": 2.5}}})");
  const Result<Model> unknown = load_model(path);
  EXPECT_EQ(unknown.ok() ? ErrorCode::internal : unknown.error().code, ErrorCode::unsupported);
  for (const auto& [dtype, result] :
       {std::pair(DType::float16, DType::float16), std::pair(DType::int32, DType::float64)}) {
    std::vector<std::string> asked;
    LoadModelOptions options;
    options.input_type = [&, dtype = dtype](std::string_view input) {
      asked.emplace_back(input);
      return dtype;
    };
    const Result<Model> model = load_model(path, options);
    ASSERT_TRUE(model.ok()) << model.error().describe();
    EXPECT_EQ(asked, std::vector<std::string>{"x"});
    EXPECT_EQ(model->graph.outputs.at(0).dtype, result);
  }
}

TEST_F(Mdf, AFunctionMayBeAMapOfItsArguments) {
  const auto result = run(
      R"("nodes": {"n": {"input_ports": {"x": {}}, "functions": {"f": {"function": {"onnx::Cast": {"input": "x", "to": 7}}}},
         "output_ports": {"y": {"value": "f"}}}})",
      {{"x", tensor_of<float>(DType::float32, {1}, {2.5F})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int64_t>((*result)[0].tensor), std::vector<std::int64_t>{2});
}

TEST_F(Mdf, EdgesLeadFromNodeToNode) {
  const std::string graph =
      R"("nodes": {
        "b": {"input_ports": {"x": {"type": "int64"}}, "parameters": {"to": {"value": 1}, "c": {"function": "onnx::Cast", "args": {"input": "x"}}},
              "output_ports": {"y": {"value": "c"}}},
        "a": {"input_ports": {"x": {"type": "float32"}}, "parameters": {"to": {"value": 7}, "c": {"function": "onnx::Cast", "args": {"input": "x"}}},
              "output_ports": {"z": {"value": "c"}}}},
      "edges": {"e": {"sender": "a", "receiver": "b", "sender_port": "z", "receiver_port": "x")";
  auto result = run(graph + "}}", {{"x", tensor_of<float>(DType::float32, {2}, {1.5F, -2.5F})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)[0].name, "y");
  EXPECT_EQ(elements_of<float>((*result)[0].tensor), (std::vector<float>{1, -2}));

  result =
      run(graph + R"(, "parameters": {"weight": 3}}})", {{"x", tensor_of<float>(DType::float32, {2}, {1.5F, -2.5F})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<float>((*result)[0].tensor), (std::vector<float>{3, -6}));

  // A real weight converts integers to float64, which the port rejects.
  EXPECT_EQ(refused(graph + R"(, "parameters": {"weight": 0.5}}})").code, ErrorCode::parse);
  EXPECT_EQ(refused(graph + R"(, "parameters": {"weight": [1, 2]}}})").code, ErrorCode::unsupported);
}

TEST_F(Mdf, OneInputServesEveryPortOfItsId) {
  const std::string graph =
      R"("nodes": {
        "a": {"input_ports": {"x": {"type": "float32"}}, "parameters": {"to": {"value": 7}, "c": {"function": "onnx::Cast", "args": {"input": "x"}}},
              "output_ports": {"y": {"value": "c"}}},
        "b": {"input_ports": {"x": {"shape": [2]}}, "parameters": {"to": {"value": 10}, "c": {"function": "onnx::Cast", "args": {"input": "x"}}},
              "output_ports": {"y": {"value": "c"}, "same": {"value": "x"}, "number": {"value": "2.5"}}}})";
  const auto result = run(graph, {{"x", tensor_of<float>(DType::float32, {2}, {1.5F, -2.5F})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  ASSERT_EQ(result->size(), 4u);
  EXPECT_EQ((*result)[0].name, "a.y");
  EXPECT_EQ((*result)[1].name, "b.y");
  EXPECT_EQ((*result)[1].tensor.dtype(), DType::float16);
  EXPECT_EQ((*result)[2].name, "same");
  EXPECT_EQ(elements_of<float>((*result)[2].tensor), (std::vector<float>{1.5F, -2.5F}));
  EXPECT_EQ((*result)[3].name, "number");
  EXPECT_EQ(elements_of<double>((*result)[3].tensor), (std::vector<double>{2.5}));
  EXPECT_EQ(shape_of((*result)[3].tensor), (std::vector<std::int64_t>{}));
}

TEST_F(Mdf, PortsThatCannotShareAnInputHaveTheirOwn) {
  const auto result = run(
      R"("nodes": {
        "a": {"input_ports": {"x": {"type": "float32"}}, "output_ports": {"y": {"value": "x"}}},
        "b": {"input_ports": {"x": {"type": "int64"}}, "output_ports": {"y": {"value": "x"}}}})",
      {{"a.x", tensor_of<float>(DType::float32, {1}, {1})}, {"b.x", tensor_of<std::int64_t>(DType::int64, {1}, {1})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
}

TEST_F(Mdf, DefaultsAreUsedUnlessAnInputIsGiven) {
  const std::string graph = cast_node(R"("type": "float32", "default_value": [1.5, 2])", "6");
  auto result = run(graph);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int32_t>((*result)[0].tensor), (std::vector<std::int32_t>{1, 2}));
  result = run(graph, {{"x", tensor_of<float>(DType::float32, {2}, {7, 8})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int32_t>((*result)[0].tensor), (std::vector<std::int32_t>{7, 8}));
  // Without a default the input has to be given; the reference engine takes zeros.
  const std::string bare = cast_node(R"("type": "float32", "shape": [2])", "6");
  EXPECT_EQ(run(bare).error().code, ErrorCode::invalid_argument);
  result = run(bare, {}, "", MdfSemantics::mdf_reference);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int32_t>((*result)[0].tensor), (std::vector<std::int32_t>{0, 0}));
}

TEST_F(Mdf, TextsAreUtf8) {
  for (const std::string_view yaml : {"a: \xff", "\xff: 1", "a: [b, \"\xc3\"]", "a: !x\xff b", "a: !!int \xff"}) {
    const Result<Tree> tree = parse_yaml(yaml);
    ASSERT_FALSE(tree.ok());
    EXPECT_EQ(tree.error().describe(), "a text that is not UTF-8") << yaml;
  }
  EXPECT_TRUE(parse_yaml("\xc3\xa4: \xc3\xa4").ok());
  const std::string bson(
      "\x0e\0\0\0\x02"
      "a\0\x02\0\0\0\xff\0\0",
      14);
  EXPECT_EQ(parse_json(bson, true).error().describe(), "a text that is not UTF-8");
}

TEST_F(Mdf, TheModelsOpsetDecides) {
  const std::string graph = cast_node(R"("type": "float32")", "17", R"(, "saturate": {"value": 0})");
  EXPECT_EQ(refused(graph).code, ErrorCode::unsupported) << "float8 came with opset 19; the model's is 15";
  const auto result =
      run(graph, {{"x", tensor_of<float>(DType::float32, {2}, {1, 1000})}}, R"("onnx_opset_version": "21", )");
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0x38, 0x7F}));

  const auto rounded = run(cast_node(R"("type": "float32")", "24", R"(, "round_mode": {"value": "down"})"),
                           {{"x", tensor_of<float>(DType::float32, {1}, {3})}}, R"("onnx_opset_version": 25, )");
  ASSERT_TRUE(rounded.ok()) << rounded.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*rounded)[0].tensor), (std::vector<std::uint8_t>{128}));
}

TEST_F(Mdf, CastLikeTakesTheTypeOfItsSecondInput) {
  const std::string graph =
      R"("nodes": {"n": {"input_ports": {"x": {}, "like": {}},
         "parameters": {"c": {"function": "onnx::CastLike", "args": {"input": "x", "target_type": "like"}}},
         "output_ports": {"y": {"value": "c"}}}})";
  const auto result = run(graph, {{"x", tensor_of<float>(DType::float32, {2}, {1.5F, 2})},
                                  {"like", tensor_of<std::int8_t>(DType::int8, {0}, {})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int8_t>((*result)[0].tensor), (std::vector<std::int8_t>{1, 2}));
}

TEST_F(Mdf, TheReferenceEngineGoesThroughFloat32) {
  const double value = 16777217;  // no float32
  const std::string graph = cast_node(R"("type": "float64")", "7");
  const std::vector<NamedTensor> inputs = {{"x", tensor_of<double>(DType::float64, {}, {value})}};
  auto result = run(graph, inputs);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int64_t>((*result)[0].tensor), (std::vector<std::int64_t>{16777217}));
  result = run(graph, inputs, R"("onnx_opset_version": 25, )", MdfSemantics::mdf_reference);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::int64_t>((*result)[0].tensor), (std::vector<std::int64_t>{16777216}));
}

TEST_F(Mdf, TheReferenceEngineGivesFloat64ForFloat32AndArraysForNumbers) {
  const std::string graph =
      R"("nodes": {"n": {"parameters": {"x": {"value": 3}, "to": {"value": 1}, "c": {"function": "onnx::Cast", "args": {"input": "x"}}},
         "output_ports": {"y": {"value": "c"}}}})";
  auto result = run(graph, {}, "", MdfSemantics::mdf_reference);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)[0].tensor.dtype(), DType::float64);
  EXPECT_EQ(shape_of((*result)[0].tensor), (std::vector<std::int64_t>{1}));
  result = run(graph);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)[0].tensor.dtype(), DType::float32);
  EXPECT_EQ(shape_of((*result)[0].tensor), (std::vector<std::int64_t>{}));
}

TEST_F(Mdf, YamlAndBsonAreTheSameTree) {
  const std::string yaml = R"(m:
    format: ModECI MDF v0.4
    graphs:
        g:
            nodes:
                n:
                    input_ports:
                        x: &port
                            shape:
                            - 2
                            type: float32
                    parameters:
                        to: {value: 9}
                        onnx::Cast_1:
                            function: 'onnx::Cast'
                            args: {input: x}
                    output_ports:
                        y: {value: "onnx::Cast_1"}
                m:
                    input_ports: {x: *port}
                    output_ports: {z: {value: x}}
)";
  io::put_file(folder_ / "m.yaml", yaml);
  const std::vector<NamedTensor> inputs = {{"x", tensor_of<float>(DType::float32, {2}, {0, 2})}};
  auto result = run_file(folder_ / "m.yaml", inputs);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0, 1}));

  const auto json = nlohmann::json::parse(io::file_contents(file(cast_node(R"("type": "float32")", "9"))));
  const std::vector<std::uint8_t> bson = nlohmann::json::to_bson(json);
  io::put_file(folder_ / "m.bson", {reinterpret_cast<const char*>(bson.data()), bson.size()});
  result = run_file(folder_ / "m.bson", inputs);
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ(elements_of<std::uint8_t>((*result)[0].tensor), (std::vector<std::uint8_t>{0, 1}));
}

TEST_F(Mdf, ErrorsNameFileNodeAndFunction) {
  const Error error = refused(
      R"("nodes": {"Conv_3": {"input_ports": {"x": {}}, "parameters": {"c": {"function": "onnx::Conv", "args": {"X": "x"}}},
         "output_ports": {"y": {"value": "c"}}}})");
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.file, folder_ / "m.json");
  EXPECT_NE(error.message.find("Conv_3"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("onnx::Conv"), std::string::npos) << error.message;
}

TEST_F(Mdf, SlowALongChainOfParametersNeedsNoDeepStack) {
  constexpr int length = 50000;
  std::string parameters;
  for (int i = length; i > 0; --i) {
    parameters += "\"p" + std::to_string(i) + R"(": {"value": "p)" + std::to_string(i - 1) + "\"}, ";
  }
  parameters += R"("p0": {"value": "x"})";
  const auto result = run(R"("nodes": {"n": {"input_ports": {"x": {}}, "parameters": {)" + parameters +
                              R"(}, "output_ports": {"y": {"value": "p)" + std::to_string(length) + R"("}}}})",
                          {{"x", tensor_of<float>(DType::float32, {1}, {1})}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
}

TEST(MdfTree, AliasesThatExplodeAreRefused) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) yaml += before + ", ";
    yaml += "]\n";
  }
  const Result<Tree> tree = parse_tree(Syntax::yaml, yaml);
  ASSERT_FALSE(tree.ok());
  EXPECT_EQ(tree.error().code, ErrorCode::unsupported);
}

TEST(MdfTree, DepthIsBoundedInEverySyntax) {
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    for (const std::size_t depth : {max_depth - 1, max_depth + 1, std::size_t{200000}}) {
      std::string text;
      for (std::size_t i = 0; i < depth; ++i) text += open;
      text += "1";
      for (std::size_t i = 0; i < depth; ++i) text += close;
      EXPECT_EQ(parse_tree(Syntax::json, text).ok(), depth < max_depth);
      EXPECT_EQ(parse_tree(Syntax::yaml, text).ok(), depth < max_depth);
    }
  }
  std::string block;
  for (int i = 0; i < 2000; ++i) block += "- ";
  EXPECT_FALSE(parse_tree(Syntax::yaml, block + "1").ok());
}

TEST(MdfTree, ScalarsOfYaml) {
  const auto kind = [](const std::string& text) -> std::string {
    const Result<Tree> tree = parse_tree(Syntax::yaml, "a: " + text);
    if (!tree) return "error";
    const Tree* value = tree->find("a");
    if (value->as<std::int64_t>() != nullptr) return "integer";
    if (value->as<std::uint64_t>() != nullptr) return "large";
    if (value->as<double>() != nullptr) return "real";
    if (value->as<bool>() != nullptr) return "bool";
    return value->is_null() ? "null" : "text";
  };
  EXPECT_EQ(kind("7"), "integer");
  EXPECT_EQ(kind("-7"), "integer");
  EXPECT_EQ(kind("18446744073709551615"), "large");
  EXPECT_EQ(kind("'7'"), "text");
  EXPECT_EQ(kind("\"7\""), "text");
  EXPECT_EQ(kind("!!str 7"), "text");
  EXPECT_EQ(kind("7.0"), "real");
  EXPECT_EQ(kind("1e3"), "real");
  EXPECT_EQ(kind(".5"), "real");
  EXPECT_EQ(kind("-.inf"), "real");
  EXPECT_EQ(kind(".nan"), "real");
  EXPECT_EQ(kind("inf"), "text");
  EXPECT_EQ(kind("true"), "bool");
  EXPECT_EQ(kind("yes"), "text");
  EXPECT_EQ(kind(""), "null");
  EXPECT_EQ(kind("~"), "null");
  EXPECT_EQ(kind("010"), "error");
  EXPECT_EQ(kind("_370"), "text");
  EXPECT_EQ(kind("!mine 7"), "error");
  EXPECT_EQ(kind("onnx::Cast"), "text");
}

TEST(MdfLiteral, ListsHaveNumPysTypes) {
  const auto dtype = [](const std::string& text) {
    const Result<Tensor> tensor = literal_tensor(parse_tree(Syntax::yaml, text).value());
    return tensor ? tensor->dtype() : DType::undefined;
  };
  EXPECT_EQ(dtype("[1, 2]"), DType::int64);
  EXPECT_EQ(dtype("[1, 2.5]"), DType::float64);
  EXPECT_EQ(dtype("[true, false]"), DType::boolean);
  EXPECT_EQ(dtype("[true, 2]"), DType::int64);
  EXPECT_EQ(dtype("[18446744073709551615, 1]"), DType::uint64);
  EXPECT_EQ(dtype("[18446744073709551615, -1]"), DType::undefined);
  EXPECT_EQ(dtype("[]"), DType::float64);
  EXPECT_EQ(dtype("['a', 'b']"), DType::string);
  EXPECT_EQ(dtype("['a', 1]"), DType::undefined);
  EXPECT_EQ(dtype("[[1], [2, 3]]"), DType::undefined);
  EXPECT_EQ(dtype("[[1], 2]"), DType::undefined);
  EXPECT_EQ(dtype("[1, [2]]"), DType::undefined);
  EXPECT_EQ(dtype("[null]"), DType::undefined);
  EXPECT_EQ(shape_of(literal_tensor(parse_tree(Syntax::yaml, "[[[1], [2]]]").value()).value()),
            (std::vector<std::int64_t>{1, 2, 1}));
  EXPECT_EQ(shape_of(literal_tensor(parse_tree(Syntax::yaml, "[[], []]").value()).value()),
            (std::vector<std::int64_t>{2, 0}));
}

TEST(MdfNumber, AsPythonReadsThem) {
  EXPECT_EQ(*parse_number(" 7 ")->as<std::int64_t>(), 7);
  EXPECT_EQ(*parse_number("+7")->as<std::int64_t>(), 7);
  EXPECT_EQ(*parse_number("-9223372036854775808")->as<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*parse_number("9223372036854775808")->as<std::uint64_t>(), 9223372036854775808ULL);
  EXPECT_EQ(*parse_number("1e400")->as<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(*parse_number("-1e-400")->as<double>(), 0.0);
  EXPECT_EQ(*parse_number("-Infinity")->as<double>(), -std::numeric_limits<double>::infinity());
  for (const char* text : {"", " ", "+", "-", "x", "1x", "0x10", "--1", "+-1", "1e", ".", "18446744073709551616"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
}

}  // namespace
}  // namespace tensorcast::models::mdf
