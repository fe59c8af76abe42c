// SPDX-License-Identifier: Apache-2.0
// Checkpoints of torch.distributed.checkpoint: tensors whose chunks are in files of several processes.
#pragma once

#include <memory>
#include <string>

#include "formats/format.hpp"

namespace tensorcast::checkpoint {

// A checkpoint of PyTorch.
struct TorchCheckpoint {
  std::shared_ptr<formats::Reader> reader;
  std::string version;  // differs if one of the files was written again
};

// Opens the checkpoint whose .metadata is `name` in `folder`, a real path here. Every file that it names is below the
// folder of .metadata. With `check_all`, every chunk's own header is read and checked; else when the chunk is first
// read. Memory: that of .metadata, and of up to 8 chunks' headers. Errors: io, parse, unsupported.
[[nodiscard]] Result<TorchCheckpoint> open_distributed(const std::string& folder, const std::string& name,
                                                       bool check_all);

}  // namespace tensorcast::checkpoint
