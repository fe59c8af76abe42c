// Reads one tensor from a file and writes one tensor to a file; for whole checkpoints see file.hpp.
#pragma once

#include <string>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {

struct ReadTensorOptions {
  std::string tensor = {};  // name of the tensor; may be empty if the file has only one
  std::string format = {};  // "npy", "tensor_proto", ...; empty: by extension and content
  // npy, npz: the type of a descriptor such as `|V1`; ignored if the file names the type.
  DType from = DType::undefined;
};

// Reads a tensor. Errors: io, parse, unsupported, invalid_argument (no such tensor, or several and none named);
// Error::file is set. Cost: reads the tensor into memory.
[[nodiscard]] TENSORCAST_API Result<NamedTensor> read_tensor(const std::string& path,
                                                             const ReadTensorOptions& options = {});

struct WriteTensorOptions {
  std::string name = {};    // of the tensor, in formats that have names
  std::string format = {};  // empty: by extension
  bool overwrite = false;
};

// Writes a tensor. The file appears under its name only when it is complete. Errors: io, unsupported (the format cannot
// hold the type), invalid_argument (the file exists and overwrite is off); Error::file is set.
[[nodiscard]] TENSORCAST_API Result<void> write_tensor(const std::string& path, const Tensor& tensor,
                                                       const WriteTensorOptions& options = {});

}  // namespace tensorcast
