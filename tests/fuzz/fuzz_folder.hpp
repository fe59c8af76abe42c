// SPDX-License-Identifier: Apache-2.0
// A folder for targets that work on whole files. Files beside the input are there for external data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tensorcast::fuzzing {

class Folder {
 public:
  Folder() {
    // In memory if possible: syncing a disk would take most of the time.
    std::string pattern = "/dev/shm/tensorcast-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      pattern = "/tmp/tensorcast-fuzz-XXXXXX";
      if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    }
    path_ = pattern;
    std::string weights(256, '\0');
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<char>(i);
    put("w.bin", weights.data(), weights.size());
    put("model.bin", weights.data(), weights.size());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string put(const std::string& name, const void* data, std::size_t size) const {
    std::ofstream out(file(name), std::ios::binary | std::ios::trunc);
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    if (!out) std::abort();
    return file(name);
  }

 private:
  std::string path_;
};

}  // namespace tensorcast::fuzzing
