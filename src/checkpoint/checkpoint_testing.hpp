// SPDX-License-Identifier: Apache-2.0
// Small checkpoints for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "io/test_folder.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {

// Returns a safetensors file with the float32 tensor [value, -value].
inline std::string safetensors(const std::string& name, float value) {
  std::string header = R"({")" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  const float values[] = {value, -value};
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  file.append(reinterpret_cast<const char*>(values), sizeof values);
  return file;
}

namespace checkpoint {

// IN: a folder with two shards of one model, an index, a configuration and another file; OUT: a name beside it.
class TestCheckpoint {
 public:
  TestCheckpoint() {
    std::filesystem::create_directories(folder_ / "in/sub");
    put("model-00001-of-00002.safetensors", safetensors("a", 1.5F));
    put("model-00002-of-00002.safetensors", safetensors("b", 0.1F));
    put("model.safetensors.index.json",
        R"({"metadata": {"total_size": 16}, "weight_map": {"a": "model-00001-of-00002.safetensors", )"
        R"("b": "model-00002-of-00002.safetensors"}})");
    put("config.json", R"({"torch_dtype": "float32"})");
    put("sub/README.md", "text");
  }

  [[nodiscard]] std::string in() const { return folder_ / "in"; }
  [[nodiscard]] std::string out() const { return folder_ / "out"; }
  void put(const std::string& name, const std::string& text) const { io::put_file(in() + "/" + name, text); }
  [[nodiscard]] std::string got(const std::string& name) const { return io::file_contents(out() + "/" + name); }
  [[nodiscard]] ConvertRequest request(DType to) const { return {in(), out(), to}; }

 private:
  io::TestFolder folder_;
};

}  // namespace checkpoint
}  // namespace tensorcast
