// SPDX-License-Identifier: Apache-2.0
// Component files. Reads tensors from a file and writes tensors to a file; file.hpp converts whole checkpoints without
// holding them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensorcast/byte_source.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/tensor.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct ReadTensorOptions {
  std::string tensor = {};  // name of the tensor; may be empty if the file has only one
  std::string format = {};  // "npy", "tensor_proto", ...; empty: by extension and content
  // npy, npz: the type of a descriptor such as `|V1`; ignored if the file names the type.
  DType from = DType::undefined;
};

// Reads a tensor. Errors: io, parse, unsupported (also a type that has no DType), invalid_argument (no such tensor, or
// several and none named); Error::file is set. Cost: reads the tensor into memory.
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

// Indices [begin, end) of one dimension of a tensor.
struct IndexRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

struct OpenTensorFileOptions {
  std::string format = {};  // "npy", "safetensors", ...; empty: by extension and content
  SourceTypes from = {};    // npy, npz: the ml_dtypes types behind `|V1` or `<V2` descriptors
  std::optional<RawLayout> raw = {};
};

// A file that stays open, whose tensors are read one by one. One thread uses it at a time.
class TensorFile {
 public:
  // Reads the header. Errors: as inspect(). Cost: as inspect().
  [[nodiscard]] TENSORCAST_API static Result<TensorFile> open(const std::string& path,
                                                              const OpenTensorFileOptions& options = {});

  // Opens the file whose bytes `source` has; `name` is for messages, and its extension tells formats without a
  // signature. Errors: as above; invalid_argument: null.
  [[nodiscard]] TENSORCAST_API static Result<TensorFile> open(std::shared_ptr<ByteSource> source,
                                                              const std::string& name,
                                                              const OpenTensorFileOptions& options = {});

  TENSORCAST_API TensorFile(TensorFile&&) noexcept;
  TENSORCAST_API TensorFile& operator=(TensorFile&&) noexcept;
  TENSORCAST_API ~TensorFile();

  [[nodiscard]] TENSORCAST_API const std::string& path() const noexcept;  // or the name of its source
  [[nodiscard]] TENSORCAST_API const FileSummary& summary() const noexcept;
  // Reads tensor `index` of summary().tensors into memory of its own. A tensor of a type that has no DType, such as
  // ggml's blocks, is its bytes: uint8, in rows. Errors: io, parse, unsupported; invalid_argument: there is no such
  // tensor. Error::file is set.
  [[nodiscard]] TENSORCAST_API Result<Tensor> read(std::size_t index);
  // Reads `count` elements from element `first` on, in C order, as a tensor of one dimension. `first` is at a whole
  // byte: a multiple of 8 for types under 8 bits. Errors: as above; invalid_argument: a range that is not inside the
  // tensor, strings. Cost: reads these elements, but an entry of a compressed archive up to them.
  [[nodiscard]] TENSORCAST_API Result<Tensor> read(std::size_t index, std::uint64_t first, std::uint64_t count);
  // Reads tensor `index` as numbers of `dtype`: ggml's blocks are decoded as QuantizedFile decodes them, other tensors
  // cast. Errors: as above, and as cast(). Memory: the result and, of a tensor that is cast, its stored elements.
  [[nodiscard]] TENSORCAST_API Result<Tensor> read(std::size_t index, DType dtype, const CastOptions& options = {},
                                                   const Execution& execution = {});
  // Reads elements from element `first` on, in C order, into the caller's memory: as many as `out` has, as numbers of
  // its type. Errors: as above.
  [[nodiscard]] TENSORCAST_API Result<void> read(std::size_t index, std::uint64_t first, const MutableTensorView& out,
                                                 const CastOptions& options = {}, const Execution& execution = {});
  // Reads a part of a tensor as it is stored: the indices of its first dimensions, and all of the others. Errors: as of
  // reading a range. Cost: reads these elements, but an entry of a compressed archive up to them.
  [[nodiscard]] TENSORCAST_API Result<Tensor> read_slice(std::size_t index, std::span<const IndexRange> slice);
  // Reads a part, in C order, as numbers of `out`'s type; blocks of ggml's are decoded as by
  // QuantizedFile::dequantize_slice(). Errors: as above, and as cast(); unsupported: ggml's blocks to types under 8
  // bits.
  [[nodiscard]] TENSORCAST_API Result<void> read_slice(std::size_t index, std::span<const IndexRange> slice,
                                                       const MutableTensorView& out, const CastOptions& options = {},
                                                       const Execution& execution = {});

 private:
  struct State;
  [[nodiscard]] static Result<TensorFile> open_any(const std::shared_ptr<ByteSource>& source, const std::string& name,
                                                   const OpenTensorFileOptions& options);
  template <class Read>
  auto read_with(std::size_t index, const Read& read) -> decltype(read());
  explicit TensorFile(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

struct WriteTensorsOptions {
  std::string format = {};                                         // empty: by extension
  std::vector<std::pair<std::string, std::string>> metadata = {};  // formats without a place for it ignore it
  bool overwrite = false;
  bool parents = false;  // create the folders of the file that do not exist
};

// Writes tensors. The file appears under its name only when it is complete. Errors: io; unsupported (the format cannot
// hold a type, a name or so many tensors); invalid_argument (an undefined tensor, a name that occurs twice, a file that
// exists and overwrite is off). Error::file is set.
[[nodiscard]] TENSORCAST_API Result<void> write_tensors(const std::string& path, std::span<const NamedTensor> tensors,
                                                        const WriteTensorsOptions& options = {});

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
