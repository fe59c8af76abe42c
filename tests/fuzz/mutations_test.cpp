// SPDX-License-Identifier: Apache-2.0
// A short form of fuzzing, for every run of the tests: each valid fixture, changed in a few hundred ways. The result is
// a success or an error with a message; the sanitizers check the rest.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "checkpoint_texts.hpp"
#include "formats/format_fuzzing.hpp"
#include "tensorcast/model.hpp"
#include "whole_conversion.hpp"
#include "whole_run.hpp"

namespace tensorcast {
namespace {

namespace fs = std::filesystem;

constexpr int mutations_each = 200;
constexpr std::size_t max_fixture_bytes = std::size_t{64} << 10;

// One to four changes: a bit, a byte, bytes left out or repeated, an integer at one of its limits.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t limit) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(limit, 1));
  };
  for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(bytes.size());
    const std::size_t count = std::min<std::size_t>(1 + below(16), bytes.size() - at);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.erase(at, count);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, count));
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min<std::size_t>(count, 8),
                    static_cast<char>(below(2) == 0 ? 0xFF : 0x7F));
    }
  }
  return bytes;
}

template <class Try>
int mutate_fixtures(const std::string& layer, const Try& try_bytes) {
  int fixtures = 0;
  for (const auto& format : fs::directory_iterator(fs::path(TENSORCAST_SOURCE_DIR) / "src" / layer)) {
    if (!fs::is_directory(format.path() / "testdata" / "valid")) continue;
    for (const auto& entry : fs::directory_iterator(format.path() / "testdata" / "valid")) {
      if (!entry.is_regular_file() || entry.file_size() > max_fixture_bytes) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      std::mt19937 random(1);  // each fixture alone, so that a failure can be replayed alone
      for (int i = 0; i < mutations_each; ++i) {
        SCOPED_TRACE(entry.path().string() + ", mutation " + std::to_string(i));
        try_bytes(format.path().filename().string(), mutated(bytes, random));
      }
      ++fixtures;
    }
  }
  return fixtures;
}

TEST(Mutations, OfFilesOfTensors) {
  const int fixtures = mutate_fixtures("formats", [](const std::string& folder, const std::string& bytes) {
    const formats::Format* format = formats::find_format(folder == "onnx" ? "tensor_proto" : folder);
    ASSERT_NE(format, nullptr) << folder;
    formats::fuzzing::read_everything(*format, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  });
  EXPECT_GT(fixtures, 20);
}

// The last four bytes choose how each is converted.
TEST(Mutations, OfConversions) {
  const fuzzing::Folder folder;
  int count = 0;
  mutate_fixtures("formats", [&](const std::string&, const std::string& bytes) {
    ++count;
    const std::string chosen = bytes + static_cast<char>(count) + static_cast<char>(count / 7) +
                               static_cast<char>(count / 3) + static_cast<char>(count / 11);
    for (const std::string& input : {bytes, chosen}) {
      fuzzing::convert_and_verify(folder, reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
  });
  EXPECT_GT(count, 20 * mutations_each);
}

TEST(Mutations, OfRuns) {
  const fuzzing::Folder folder;
  mutate_fixtures("models", [&](const std::string&, const std::string& bytes) {
    fuzzing::load_and_run(folder, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  });
}

// Indexes, configs, plans and records of checkpoints; the first byte says which it is, and stays.
TEST(Mutations, OfTextsOfCheckpoints) {
  int count = 0;
  const fs::path corpus = fs::path(TENSORCAST_SOURCE_DIR) / "tests/fuzz/corpus/checkpoint_text_fuzz";
  for (const auto& entry : fs::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    // A plan of an older version is refused at once, whatever is changed.
    const bool is_plan = entry.path().stem() == "plan";
    EXPECT_TRUE(!is_plan || checkpoint::parse_plan(bytes.substr(1), "plan.json"));
    std::mt19937 random(1);
    for (int i = 0; i < mutations_each; ++i) {
      SCOPED_TRACE(entry.path().string() + ", mutation " + std::to_string(i));
      const std::string changed = bytes.substr(0, 1) + mutated(bytes.substr(1), random);
      checkpoint::fuzzing::read_text(reinterpret_cast<const std::uint8_t*>(changed.data()), changed.size());
      ++count;
    }
  }
  EXPECT_GE(count, 4 * mutations_each);
}

TEST(Mutations, OfModels) {
  const int fd = ::memfd_create("model", MFD_CLOEXEC);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int fixtures = mutate_fixtures("models", [&](const std::string& folder, const std::string& bytes) {
    ASSERT_EQ(::ftruncate(fd, 0), 0);
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    const Result<Model> model = load_model(path, {.format = folder});
    if (model) return;
    EXPECT_NE(model.error().code, ErrorCode::internal) << model.error().describe();
    EXPECT_FALSE(model.error().message.empty());
  });
  ::close(fd);
  EXPECT_GT(fixtures, 20);
}

}  // namespace
}  // namespace tensorcast
