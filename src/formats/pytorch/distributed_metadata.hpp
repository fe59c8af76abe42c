// SPDX-License-Identifier: Apache-2.0
// The .metadata file of torch.distributed.checkpoint: which tensors there are, and where their chunks are. It is a
// pickle, of which nothing is run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pytorch/torch_types.hpp"
#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::pytorch {

// An error of grammar that says which kind of file is wrong.
[[nodiscard]] Error damaged_distributed(std::string what);

// Bytes of a file, which are a file of torch.save.
struct StoredItem {
  std::size_t file = 0;  // index in DistributedMetadata::files
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A box of a tensor's elements.
struct TensorChunk {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> sizes;
  StoredItem item;
};

struct DistributedTensor {
  std::string name;
  const TorchType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<TensorChunk> chunks;
};

// An object that is no tensor.
struct DistributedData {
  std::string name;
  StoredItem item;
};

struct DistributedMetadata {
  std::vector<std::string> files;  // names beside .metadata; from the file, so check them
  std::vector<DistributedTensor> tensors;
  std::vector<DistributedData> data;
};

// Reads and checks the metadata: the chunks of each tensor fill it exactly. Errors: parse, unsupported, io.
[[nodiscard]] Result<DistributedMetadata> read_distributed_metadata(const io::InputFile& file);

// Checks that chunks lie in a tensor of this shape, do not overlap, and leave no element out. Errors: parse;
// unsupported for more chunks than can be compared.
[[nodiscard]] Result<void> check_chunks(const std::vector<std::int64_t>& shape, const std::vector<TensorChunk>& chunks);

}  // namespace tensorcast::formats::pytorch
