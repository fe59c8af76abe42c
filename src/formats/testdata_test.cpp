// SPDX-License-Identifier: Apache-2.0
// Every file under */testdata/: valid ones are read whole, invalid ones fail as their names say: CODE--what.extension.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/format_testing.hpp"
#include "io/input_file.hpp"
#include "io/testdata_testing.hpp"

namespace tensorcast::formats {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> testdata(const std::string& kind) {
  return io::testing::testdata("formats", kind, [](const std::string&, const fs::path&) { return true; });
}

// A type after "from-" in a name is the type that the file itself lacks: opaque.from-bfloat16.npy.
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
  const auto tensors = read_detected(GetParam());
  ASSERT_FALSE(tensors.ok());
  io::testing::expect_error_of_name(tensors.error(), GetParam());
  EXPECT_EQ(tensors.error().file, GetParam().string());
}

INSTANTIATE_TEST_SUITE_P(Testdata, ValidFile, ::testing::ValuesIn(testdata("valid")), io::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Testdata, InvalidFile, ::testing::ValuesIn(testdata("invalid")), io::testing::test_name);

}  // namespace
}  // namespace tensorcast::formats
