// SPDX-License-Identifier: Apache-2.0
// The two layouts of torch.save: a zip archive, and the older sequence of pickles and storages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/npz/zip_reader.hpp"
#include "formats/pytorch/pickle_values.hpp"
#include "io/input_file.hpp"

namespace tensorcast::formats::pytorch {

// Where a storage is in the file.
struct StoredBytes {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint32_t> crc = {};
};

struct CheckpointFile {
  explicit CheckpointFile(std::uint64_t file_bytes)
      : budget(std::make_unique<io::MemoryBudget>(file_bytes)), objects(*budget) {}

  std::unique_ptr<io::MemoryBudget> budget;
  Objects objects;
  Ref root = no_ref;
  bool big_endian = false;
  std::unordered_map<std::string, StoredBytes> storages;  // by Storage::key; all that are used are here
};

// An error of grammar that says which kind of file is wrong.
[[nodiscard]] Error damaged(std::string what);

// Errors: parse, unsupported, io.
[[nodiscard]] Result<std::unique_ptr<CheckpointFile>> read_zip_checkpoint(const io::InputFile& file);
[[nodiscard]] Result<std::unique_ptr<CheckpointFile>> read_stacked_checkpoint(const io::InputFile& file);

}  // namespace tensorcast::formats::pytorch
