// SPDX-License-Identifier: Apache-2.0
// Every model under */testdata/: valid ones are read and compile, invalid ones fail as their names say: CODE--what.ext.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "io/testdata_testing.hpp"
#include "models/model_format.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models {
namespace {

namespace fs = std::filesystem;

// Files of other extensions belong to the models beside them.
std::vector<fs::path> testdata(const std::string& kind) {
  return io::testing::testdata("models", kind, [](const std::string& format_name, const fs::path& file) {
    const auto format = std::ranges::find(model_formats(), format_name, &ModelFormat::name);
    if (format == model_formats().end()) return false;
    return std::ranges::find(format->extensions, file.extension().string()) != format->extensions.end();
  });
}

Result<Program> load(const fs::path& path) {
  Result<Model> model = load_model(path.string(), {.format = io::testing::format_of(path)});
  if (!model) return std::move(model).error();
  return Program::compile(std::move(model->graph));
}

class ValidModel : public ::testing::TestWithParam<fs::path> {};
TEST_P(ValidModel, IsReadAndCompiles) {
  const Result<Program> program = load(GetParam());
  ASSERT_TRUE(program.ok()) << program.error().describe();
  EXPECT_FALSE(program->outputs().empty());
}

class InvalidModel : public ::testing::TestWithParam<fs::path> {};
TEST_P(InvalidModel, FailsAsItsNameSays) {
  const Result<Program> program = load(GetParam());
  ASSERT_FALSE(program.ok());
  io::testing::expect_error_of_name(program.error(), GetParam());
  EXPECT_FALSE(program.error().file.empty());
}

INSTANTIATE_TEST_SUITE_P(Testdata, ValidModel, ::testing::ValuesIn(testdata("valid")), io::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Testdata, InvalidModel, ::testing::ValuesIn(testdata("invalid")), io::testing::test_name);

}  // namespace
}  // namespace tensorcast::models
