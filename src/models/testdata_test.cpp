// Every model under */testdata/: valid ones are read and compile, invalid ones fail as their names say: CODE--what.ext.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/model_format.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models {
namespace {

namespace fs = std::filesystem;

// Files of other extensions belong to the models beside them.
std::vector<fs::path> testdata(const std::string& kind) {
  std::vector<fs::path> files;
  for (const ModelFormat& format : model_formats()) {
    const fs::path folder = fs::path(TENSORCAST_SOURCE_DIR) / "src" / "models" / format.name / "testdata" / kind;
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      const bool model =
          std::find(format.extensions.begin(), format.extensions.end(), extension) != format.extensions.end();
      if (entry.is_regular_file() && model) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string test_name(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return info.param.parent_path().parent_path().parent_path().filename().string() + "_" + name;
}

Result<Program> load(const fs::path& path) {
  const std::string format = path.parent_path().parent_path().parent_path().filename().string();
  Result<Model> model = load_model(path.string(), {.format = format});
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
  static const std::map<std::string, ErrorCode> codes = {
      {"invalid_argument", ErrorCode::invalid_argument},
      {"unsupported", ErrorCode::unsupported},
      {"out_of_range", ErrorCode::out_of_range},
      {"parse", ErrorCode::parse},
      {"io", ErrorCode::io},
  };
  const std::string name = GetParam().filename().string();
  const auto code = codes.find(name.substr(0, name.find("--")));
  ASSERT_NE(code, codes.end()) << "the name does not begin with an error code";
  const Result<Program> program = load(GetParam());
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, code->second) << program.error().describe();
  EXPECT_FALSE(program.error().message.empty());
  EXPECT_LT(program.error().describe().size(), 2000u) << "a message does not repeat a file";
  EXPECT_FALSE(program.error().file.empty());
}

INSTANTIATE_TEST_SUITE_P(Testdata, ValidModel, ::testing::ValuesIn(testdata("valid")), test_name);
INSTANTIATE_TEST_SUITE_P(Testdata, InvalidModel, ::testing::ValuesIn(testdata("invalid")), test_name);

}  // namespace
}  // namespace tensorcast::models
