// How much the errors of a weight's columns count, from a file: llama.cpp's importance matrix, or safetensors.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "convert/open_input.hpp"

namespace tensorcast::quantized {

// The importance of one weight.
struct ImportanceEntry {
  std::string file = {};  // empty: none
  std::string name = {};  // there
};

class ImportanceFile {
 public:
  // Errors: io, parse; unsupported: a file of another kind.
  [[nodiscard]] static Result<ImportanceFile> open(const std::string& path);

  // The entry for a weight, by its own name, that of its module, or the one that llama.cpp gives it; "" if there is
  // none.
  [[nodiscard]] std::string find(const std::string& weight) const;
  // One number for each column, or for each column of each matrix: mean squares of activations from an importance
  // matrix, and 1 where nothing was counted. Errors: parse, io; invalid_argument: no such entry.
  [[nodiscard]] Result<std::vector<float>> read(const std::string& name) const;

 private:
  [[nodiscard]] const formats::TensorInfo* tensor(const std::string& name) const;
  [[nodiscard]] Result<std::vector<float>> numbers(const formats::TensorInfo& tensor) const;

  file_conversion::OpenedInput input_;
  bool is_matrix_ = false;  // llama.cpp's
};

// Empty without a file. Errors: as ImportanceFile.
[[nodiscard]] Result<std::vector<float>> read_importance(const ImportanceEntry& entry);

}  // namespace tensorcast::quantized
