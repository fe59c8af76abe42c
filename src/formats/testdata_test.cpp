// Every file under */testdata/: valid ones are read whole, invalid ones fail as their names say: CODE--what.extension.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/format_testing.hpp"
#include "io/input_file.hpp"

namespace tensorcast::formats {
namespace {

namespace fs = std::filesystem;

// Folders in testdata/ belong to the files beside them.
std::vector<fs::path> testdata(const std::string& kind) {
  std::vector<fs::path> files;
  for (const auto& format : fs::directory_iterator(fs::path(TENSORCAST_SOURCE_DIR) / "src" / "formats")) {
    if (!fs::is_directory(format.path() / "testdata" / kind)) continue;
    for (const auto& entry : fs::directory_iterator(format.path() / "testdata" / kind)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string test_name(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// A type after "from-" in a name is what the file does not say itself: opaque.from-bfloat16.npy.
ReadOptions options_for(const fs::path& path) {
  ReadOptions options;
  const std::string name = path.filename().string();
  if (const std::size_t from = name.find("from-"); from != std::string::npos) {
    const std::size_t begin = from + 5;
    options.from = parse_dtype(name.substr(begin, name.find('.', begin) - begin)).value();
  }
  return options;
}

Result<std::vector<testing::FileTensor>> read_detected(const fs::path& path) {
  Result<io::InputFile> file = io::InputFile::open(path.string());
  if (!file) return std::move(file).error();
  const Result<const Format*> format = detect_format(*file);
  if (!format) return format.error();
  return testing::read_all(**format, path.string(), options_for(path));
}

class ValidFile : public ::testing::TestWithParam<fs::path> {};
TEST_P(ValidFile, IsRead) {
  const auto tensors = read_detected(GetParam());
  EXPECT_TRUE(tensors.ok()) << tensors.error().describe();
}

class InvalidFile : public ::testing::TestWithParam<fs::path> {};
TEST_P(InvalidFile, FailsAsItsNameSays) {
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
  const auto tensors = read_detected(GetParam());
  ASSERT_FALSE(tensors.ok());
  EXPECT_EQ(tensors.error().code, code->second) << tensors.error().describe();
  EXPECT_FALSE(tensors.error().message.empty());
  EXPECT_EQ(tensors.error().file, GetParam().string());
}

INSTANTIATE_TEST_SUITE_P(Testdata, ValidFile, ::testing::ValuesIn(testdata("valid")), test_name);
INSTANTIATE_TEST_SUITE_P(Testdata, InvalidFile, ::testing::ValuesIn(testdata("invalid")), test_name);

}  // namespace
}  // namespace tensorcast::formats
