// SPDX-License-Identifier: Apache-2.0
// Checks and warnings that protect users from unexpected results.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "convert/convert_testing.hpp"

namespace tensorcast {
namespace {

namespace fs = std::filesystem;
using namespace file_conversion::testing;

class ConvertCare : public ::testing::Test {
 protected:
  ConvertOutcome convert_ok(const ConvertRequest& request) {
    Result<ConvertOutcome> outcome = convert_file(request);
    EXPECT_TRUE(outcome.ok()) << outcome.error().describe();
    return outcome.ok() ? std::move(outcome).value() : ConvertOutcome{};
  }
  Error failure(const ConvertRequest& request) {
    const Result<ConvertOutcome> outcome = convert_file(request);
    EXPECT_FALSE(outcome.ok());
    EXPECT_FALSE(fs::exists(request.output)) << "an error leaves no output";
    return outcome.ok() ? Error{} : outcome.error();
  }
  std::string put(const std::vector<FileTensor>& tensors) {
    return write_safetensors(folder_, "in.safetensors", tensors);
  }

  TempFolder folder_;
  std::string out_ = folder_.file("out.safetensors");
};

FileTensor matrix(const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return make_tensor(name, dtype, std::move(shape), std::string(storage_bytes(dtype, count), '\x01'));
}

TEST_F(ConvertCare, ATensorThatPyTorchCouldNotLoadIsLeftAsItIs) {
  const std::string in = put({matrix("even", DType::float32, {3, 4}), matrix("odd", DType::float32, {4, 3}),
                              matrix("scalar", DType::float32, {})});
  const ConvertOutcome outcome = convert_ok(request(in, out_, DType::float4_e2m1fn));
  ASSERT_EQ(outcome.tensors.size(), 3u);
  EXPECT_EQ(outcome.tensors[0].to, DType::float4_e2m1fn);
  EXPECT_FALSE(outcome.tensors[0].left);
  for (const std::size_t i : {1, 2}) {
    EXPECT_EQ(outcome.tensors[i].to, DType::float32);
    EXPECT_TRUE(outcome.tensors[i].left);
    EXPECT_EQ(outcome.tensors[i].reason, "last dimension odd");
  }
  for (const FileTensor& tensor : read_safetensors(out_)) {
    if (tensor.info.name != "odd") continue;
    EXPECT_EQ(tensor.bytes, matrix("odd", DType::float32, {4, 3}).bytes);
  }
}

TEST_F(ConvertCare, RowsOfSixBitsEndAtWholeBytes) {
  const std::string in = put({matrix("whole", DType::float32, {3, 4}), matrix("broken", DType::float32, {4, 6})});
  const ConvertOutcome outcome = convert_ok(request(in, out_, DType::float6_e2m3fn));
  ASSERT_EQ(outcome.tensors.size(), 2u);
  EXPECT_EQ(outcome.tensors[0].to, DType::float6_e2m3fn);
  EXPECT_TRUE(outcome.tensors[1].left);
  EXPECT_EQ(outcome.tensors[1].reason, "last dimension of 6 elements fills no whole bytes");
}

TEST_F(ConvertCare, AllowOddConvertsWhatTheFormatCanHold) {
  ConvertRequest convert = request(put({matrix("odd", DType::float32, {4, 3})}), out_, DType::float4_e2m1fn);
  convert.allow_odd = true;
  EXPECT_EQ(convert_ok(convert).tensors.at(0).to, DType::float4_e2m1fn);
  convert.output = folder_.file("out.npy");
  convert.allow_odd = false;
  EXPECT_EQ(convert_ok(convert).tensors.at(0).to, DType::float4_e2m1fn) << "npy has a byte for each element";
}

TEST_F(ConvertCare, WeightsWithScalesBesideThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"a.weight", "a.weight_scale_inv"}, {"a.weight", "a.weight_scale"},
      {"a.weight", "a.scale_weight"},     {"a.weight", "a.scale"},
      {"a_blocks", "a_scales"},           {"a", "a.scale"}};
  for (const auto& [weight, scale] : cases) {
    fs::remove(out_);
    ConvertRequest convert = request(
        put({matrix(weight, DType::float8_e4m3fn, {4}), matrix(scale, DType::float32, {1})}), out_, DType::bfloat16);
    const Error error = failure(convert);
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    EXPECT_EQ(error.tensor, weight);
    EXPECT_NE(error.message.find("\"" + std::string(scale) + "\""), std::string::npos) << error.message;
    EXPECT_NE(error.hint.find("`raw_codes`"), std::string::npos) << error.hint;
    convert.raw_codes = true;
    EXPECT_EQ(convert_ok(convert).tensors.at(0).to, DType::bfloat16);
  }
}

TEST_F(ConvertCare, CodesThatNothingDescribesAreTold) {
  const auto warnings_of = [&](std::vector<std::int64_t> codes) {
    const std::string in = put({matrix("a.weight", DType::uint8, codes), matrix("a.weight_scale", DType::uint8, {4, 2}),
                                matrix("b.weight", DType::float32, {4, 4})});
    ConvertRequest of = request(in, out_, DType::bfloat16);
    of.overwrite = true;
    return convert_ok(of).warnings;
  };
  const std::vector<std::string> told = {
      "\"a.weight\" has codes that \"a.weight_scale\" scales, in a spelling that is not decoded: they are copied"};
  EXPECT_EQ(warnings_of({4, 32}), told);                        // of four bits
  EXPECT_EQ(warnings_of({4, 48}), told);                        // of six
  EXPECT_EQ(warnings_of({4, 40}), std::vector<std::string>());  // nobody knows
}

TEST_F(ConvertCare, ScalesBesideThatAreNoReasonToRefuse) {
  ConvertRequest convert =
      request(put({matrix("a.weight", DType::bfloat16, {4}), matrix("a.weight_scale", DType::float32, {1}),
                   matrix("b.weight", DType::float8_e4m3fn, {4}), matrix("b.weight_scale", DType::float32, {1})}),
              out_, DType::float16);
  convert.exclude = {"^b"};
  EXPECT_EQ(convert_ok(convert).tensors.at(0).to, DType::float16) << "its values are numbers by themselves";
}

TEST_F(ConvertCare, PatternsThatMatchNothing) {
  ConvertRequest convert = request(put({floats("a", {1})}), out_, DType::float16);
  convert.include = {"a", "b"};
  EXPECT_EQ(failure(convert).message, "include 2 (\"b\") matches no tensor");
  convert.include = {};
  convert.exclude = {"norm"};
  EXPECT_EQ(failure(convert).message, "exclude 1 (\"norm\") matches no tensor");
  convert = request(convert.input, out_, DType::undefined);
  convert.include = {"a"};
  EXPECT_EQ(failure(convert).message, "there is no type to convert to");
}

TEST_F(ConvertCare, OneTensorIsTakenOut) {
  ConvertRequest convert = request(put({floats("a", {1, 2}), floats("b.x", {3}), floats("b.y", {4, 5})}),
                                   folder_.file("y.npy"), DType::undefined);
  convert.include = {"^b\\.y$"};
  convert.verify = true;
  const ConvertOutcome outcome = convert_ok(convert);
  ASSERT_EQ(outcome.tensors.size(), 1u);
  EXPECT_EQ(outcome.tensors[0].to, DType::float32);
  const Result<FileSummary> file = inspect({.input = convert.output});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tensors.at(0).shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(file_content(convert.output).substr(128), floats("", {4, 5}).bytes);

  convert.output = folder_.file("x.npy");
  convert.include = {"^b"};
  EXPECT_EQ(failure(convert).message, "npy holds exactly one array, and `include` matches 2");
  convert.include = {"^b.x"};
  convert.to = DType::float16;
  EXPECT_EQ(convert_ok(convert).tensors.at(0).to, DType::float16);
}

TEST_F(ConvertCare, ADestroyedTensorIsTold) {
  std::vector<float> weights(100);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i < 20 ? 0.0F : static_cast<float>(i) / 100.0F;
  ConvertRequest convert = request(put({floats("fine", {100, -100}), floats("weights", weights)}), out_, DType::int8);
  convert.on_loss = OnLoss::tell;
  const ConvertOutcome outcome = convert_ok(convert);
  EXPECT_EQ(outcome.tensors.at(0).damage, "");
  EXPECT_EQ(outcome.tensors.at(1).damage, "80 of 80 nonzero elements became zero");
  EXPECT_NE(outcome.tensors.at(1).remedy.find("`scale`"), std::string::npos);
  EXPECT_FALSE(outcome.tensors.at(1).report) << "nobody asked for it";

  convert.output = folder_.file("strict.safetensors");
  convert.on_loss = OnLoss::fail;
  const Error error = failure(convert);
  EXPECT_EQ(error.code, ErrorCode::out_of_range);
  EXPECT_EQ(error.tensor, "weights");
  convert.options.scale = 127;
  convert.exclude = {"fine"};
  convert_ok(convert);
}

TEST_F(ConvertCare, EveryKindOfDamage) {
  struct Case {
    std::vector<float> values;
    DType to;
    const char* damage;
  };
  std::vector<float> large(200, 1.0F);
  std::vector<float> one_large = large;
  one_large[7] = 1e6F;
  large[0] = large[1] = large[2] = 1e6F;
  // Rounded up to nearly twice as much; the zero becomes 2^-127, so that the errors are just larger than the numbers.
  std::vector<float> nearly_doubled(101, std::ldexp(1.0F, -127) + std::ldexp(1.0F, -149));
  nearly_doubled[7] = 0.0F;
  const Case cases[] = {
      {{1, 2, 300}, DType::uint8, "1 of 3 elements wrapped around"},
      {large, DType::float8_e4m3fn, "3 of 200 elements are out of range"},
      {large, DType::float16, "3 of 200 elements are out of range"},
      {one_large, DType::float8_e4m3fn, "the signal to noise ratio is"},
      {nearly_doubled, DType::float8_e8m0fnu, "the signal to noise ratio is 0.0 dB"},
      {{0.5F, 1e-30F, 1e-30F}, DType::float16, "2 of 3 nonzero elements became zero"},
      {{0, 0, 0}, DType::int8, ""},
      {{0.5F, 0.25F}, DType::boolean, ""},
      {{1e30F, -1e-30F}, DType::bfloat16, ""},
      {{1e30F, -1e-30F}, DType::float64, ""},
  };
  for (const Case& test : cases) {
    ConvertRequest convert = request(put({floats("a", test.values)}), out_, test.to);
    convert.on_loss = OnLoss::tell;
    convert.overwrite = true;
    const std::string damage = convert_ok(convert).tensors.at(0).damage;
    EXPECT_TRUE(*test.damage == '\0' ? damage.empty() : damage.starts_with(test.damage)) << damage << test.damage;
  }
}

TEST_F(ConvertCare, AnElementThatWouldWrapIsNamed) {
  std::vector<float> values(200'000, 1.0F);
  values[150'000] = 300.0F;
  ConvertRequest convert = request(put({floats("a", values)}), out_, DType::uint8);
  convert.refuse_wrap = true;
  Error error = failure(convert);
  EXPECT_EQ(error.code, ErrorCode::out_of_range);
  EXPECT_EQ(error.tensor, "a");
  EXPECT_EQ(error.element, 150'000u);
  EXPECT_EQ(error.message, "value 300 does not fit uint8 (from float32)");

  convert.input = put({make_tensor("ids", DType::int16, {2}, std::string("\x01\x00\x00\x01", 4))});
  convert.rules = {{"ids", DType::int8}};
  error = failure(convert);
  EXPECT_EQ(error.element, 1u);
  EXPECT_EQ(error.message, "value 256 does not fit int8 (from int16)");
  EXPECT_NE(error.hint, "");
  convert.refuse_wrap = false;
  convert_ok(convert);
}

TEST_F(ConvertCare, OutOfRangeHoldsForIntegersAndForFloatingPointTargets) {
  const std::string in = put({make_tensor("ids", DType::int16, {2}, std::string("\xfb\xff\x00\x01", 4)),  // -5, 256
                              floats("x", {1.0F, 1e6F})});
  ConvertRequest convert = request(in, out_, DType::float16);
  convert.rules = {{"ids", DType::uint8}};
  convert.overwrite = true;
  convert.verify = true;
  const auto converted = [&](const std::string& name) {
    for (const FileTensor& tensor : read_safetensors(out_)) {
      if (tensor.info.name == name) return tensor.bytes;
    }
    return std::string("missing");
  };
  convert_ok(convert);
  EXPECT_EQ(converted("ids"), std::string("\xfb\x00", 2));
  EXPECT_EQ(converted("x"), std::string("\x00\x3c\x00\x7c", 4));
  convert.options.out_of_range = OutOfRange::saturate;
  for (const bool refuse_wrap : {false, true}) {  // the option is explicit
    convert.refuse_wrap = refuse_wrap;
    convert_ok(convert);
    EXPECT_EQ(converted("ids"), std::string("\x00\xff", 2));
    EXPECT_EQ(converted("x"), std::string("\x00\x3c\xff\x7b", 4));
  }
  fs::remove(out_);
  convert.options.out_of_range = OutOfRange::error;
  EXPECT_EQ(failure(convert).element, 0u);
  convert.rules = {};
  EXPECT_EQ(failure(convert).message, "value 1e+06 does not fit float16 (from float32)");
}

TEST_F(ConvertCare, FoldersOfTheOutput) {
  ConvertRequest convert = request(put({floats("a", {1})}), folder_.file("new/er/out.safetensors"), DType::float16);
  const Error error = failure(convert);
  EXPECT_EQ(error.message, "the folder does not exist");
  EXPECT_EQ(error.hint, "`parents` creates it");
  EXPECT_EQ(error.system_error, ENOENT);
  convert.parents = true;
  convert.to = DType::float8_e4m3fn;
  convert.options.opset = 13;
  failure(convert);
  convert.options.opset = 0;
  convert.refuse_wrap = true;
  convert.input = put({floats("a", {1e30F})});
  convert.rules = {{"a", DType::int8}};
  failure(convert);
  EXPECT_FALSE(fs::exists(folder_.file("new"))) << "folders of a failed conversion are removed";
  convert.rules = {};
  convert_ok(convert);
  EXPECT_TRUE(fs::exists(convert.output));
}

TEST_F(ConvertCare, TypesThatTheFileSaysOtherwise) {
  const std::string in = put({matrix("a", DType::float8_e4m3fn, {2}), matrix("b", DType::float32, {2})});
  ConvertRequest convert = request(in, out_, DType::float16);
  convert.from.named = {{"c", DType::float8_e4m3fn}};
  EXPECT_EQ(failure(convert).message, "`from` names \"c\", which is not in the file");
  convert.from.named = {{"b", DType::bfloat16}};
  EXPECT_EQ(failure(convert).message, "the file says that \"b\" is float32, not bfloat16");
  convert.from = DType::bfloat16;
  EXPECT_EQ(failure(convert).message, "none of the file's tensors is bfloat16");
  convert.input = put({matrix("a", DType::float32, {2})});
  EXPECT_EQ(failure(convert).message, "the file says that its elements are float32, not bfloat16");
  convert.from = DType::float32;
  convert_ok(convert);
}

}  // namespace
}  // namespace tensorcast
