// SPDX-License-Identifier: Apache-2.0
// Files of weights in any format, read as if they were safetensors files.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/store/stored_file.hpp"
#include "formats/format.hpp"

namespace tensorcast::checkpoint {

struct ShardFile {
  StoredFile source;
  std::vector<std::string> warnings;  // what the file has beside tensors that can be written, as sentences
};

// Opens a file of weights in `folder`: a safetensors file, a file of torch.save, or the .metadata of a distributed
// checkpoint. Those of PyTorch appear as a safetensors file that is made while it is read: its header first, then
// each tensor in C order. Errors: io, parse; unsupported, for tensors that safetensors cannot hold.
// A file named for safetensors may be one of torch.save, by its content. `check_all`: as open_distributed(); off for a
// file that was opened before.
[[nodiscard]] Result<ShardFile> open_shard_file(const std::string& folder, const std::string& name, bool check_all);

// Reports whether a file begins as the archives of torch.save do. Errors: io.
[[nodiscard]] Result<bool> is_torch_archive(const StoredFile& file);

}  // namespace tensorcast::checkpoint
