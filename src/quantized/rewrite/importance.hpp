// SPDX-License-Identifier: Apache-2.0
// How much the errors of a weight's columns count, from a file: llama.cpp's importance matrix, or safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "quantized/layout/open_input.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {

// The importance of one weight.
struct ImportanceEntry {
  std::string file = {};     // empty: none
  std::string name = {};     // there
  std::int64_t row = -1;     // of an entry with a row for each expert: the weight's own; -1: all rows
  std::string version = {};  // of the file, as it was when the entry was found
};

class ImportanceFile {
 public:
  // Errors: io, parse; unsupported: a file of another kind.
  [[nodiscard]] static Result<ImportanceFile> open(const std::string& path);

  // The entry for a weight, by its own name, that of its module, or the one that llama.cpp gives it: an expert that
  // stands alone has a row of the entry for all experts. Without a file if there is none.
  [[nodiscard]] ImportanceEntry find(const std::string& weight) const;
  // Nothing without an entry. Else one number for each column, or for each column of each matrix: mean squares of
  // activations from an importance matrix, and 1 where nothing was counted. Errors: parse, io; invalid_argument: no
  // such entry or row, or the file is of another version.
  [[nodiscard]] Result<std::vector<float>> read(const ImportanceEntry& entry) const;

  // Changes when the file does.
  [[nodiscard]] std::string version() const;

 private:
  // Null if there is none.
  [[nodiscard]] const formats::TensorInfo* tensor(const std::string& name) const;
  // Elements [first, first + count) of a tensor.
  [[nodiscard]] Result<std::vector<float>> numbers(const formats::TensorInfo& tensor, std::uint64_t first,
                                                   std::uint64_t count) const;

  file_conversion::OpenedInput input_;
  bool is_matrix_ = false;  // llama.cpp's
  std::unordered_map<std::string, std::size_t> places_;
};

// Null without a path or without weights. Errors: as ImportanceFile::open(); invalid_argument: the file has none of
// them.
[[nodiscard]] Result<std::shared_ptr<const ImportanceFile>> open_importance(const std::string& path,
                                                                            std::span<const std::string> weights);

// As TensorOutcome::search.
[[nodiscard]] std::string search_text(Clip clip, bool has_importance);

}  // namespace tensorcast::quantized
