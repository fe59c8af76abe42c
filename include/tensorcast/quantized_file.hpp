// SPDX-License-Identifier: Apache-2.0
// Component files. Reads the quantized weights of a file or checkpoint one by one: their codes and scales as they are
// stored, or the numbers that they stand for. file.hpp converts whole checkpoints without holding them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/byte_source.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/tensor.hpp"
#include "tensorcast/tensor_file.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// A stored tensor of a quantized weight.
struct QuantizedPart {
  // "codes", "scales", "global_scale", "zero_points", "biases", "group_index", "table", "nested_scales",
  // "nested_table", "activations" (for inputs and outputs alone), "state" (says how to decode).
  std::string_view role = {};
  std::string name = {};  // of the tensor
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape = {};
  std::uint64_t bytes = 0;
};

// A file, or a checkpoint (is_checkpoint()), that stays open. One thread uses it at a time.
class QuantizedFile {
 public:
  // Reads headers and configurations, and finds the quantized layers as inspect_checkpoint() does. A file or folder
  // without any has no layers. Errors: as inspect() and inspect_checkpoint().
  [[nodiscard]] TENSORCAST_API static Result<QuantizedFile> open(const std::string& path);

  // Opens the file whose bytes `source` has, without files beside it; `name` is for messages. Errors: as inspect();
  // invalid_argument: null.
  [[nodiscard]] TENSORCAST_API static Result<QuantizedFile> open(std::shared_ptr<ByteSource> source,
                                                                 const std::string& name);

  TENSORCAST_API QuantizedFile(QuantizedFile&&) noexcept;
  TENSORCAST_API QuantizedFile& operator=(QuantizedFile&&) noexcept;
  TENSORCAST_API ~QuantizedFile();

  // Names are full names, as inspect_checkpoint() has them.
  [[nodiscard]] TENSORCAST_API const std::vector<QuantizedLayer>& layers() const noexcept;
  // Why a quantized model has no layers: its method is not known, or not decoded. Mostly "".
  [[nodiscard]] TENSORCAST_API const std::string& refusal() const noexcept;

  // The stored tensors of a layer, the codes first. Types that have no DType, as GGUF's, are rows of uint8.
  // Precondition: there is such a layer.
  [[nodiscard]] TENSORCAST_API const std::vector<QuantizedPart>& parts(std::size_t layer) const noexcept;
  // Errors: io; invalid_argument: there is no such layer or part.
  [[nodiscard]] TENSORCAST_API Result<Tensor> read_part(std::size_t layer, std::size_t part);

  // Decodes a weight to float32 with the operations of the tool that wrote it, and rounds once to `dtype`, a
  // floating-point type of 8 bits or more. Errors: io, parse; unsupported: QuantizedLayer::problem; invalid_argument;
  // out_of_range, as of cast(). Memory: the result, and a few MiB.
  [[nodiscard]] TENSORCAST_API Result<Tensor> dequantize(std::size_t layer, DType dtype,
                                                         const CastOptions& options = {},
                                                         const Execution& execution = {});
  // Decodes elements from element `first` on, in C order: as many as `out` has. Errors: as above.
  [[nodiscard]] TENSORCAST_API Result<void> dequantize(std::size_t layer, std::uint64_t first,
                                                       const MutableTensorView& out, const CastOptions& options = {},
                                                       const Execution& execution = {});
  // Decodes a part of a weight, in C order: the indices of its first dimensions, and all of the others. Reads the codes
  // and scales that the part needs, in whole words and blocks; bitsandbytes' scales run over rows, and GPTQ's with a
  // group index over columns, of which all are read. Rounds with the random bits of the whole weight. Errors: as above;
  // invalid_argument: a range that is not inside its dimension.
  [[nodiscard]] TENSORCAST_API Result<void> dequantize_slice(std::size_t layer, std::span<const IndexRange> slice,
                                                             const MutableTensorView& out,
                                                             const CastOptions& options = {},
                                                             const Execution& execution = {});

 private:
  struct State;
  explicit QuantizedFile(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Returns the known loaders that take every one of these layers by its spelling and scheme, such as "vLLM"; what they
// do not take of an architecture is among the warnings of inspect(). Cost: proportional to the layers.
[[nodiscard]] TENSORCAST_API std::vector<std::string> known_loaders(std::span<const QuantizedLayer> layers);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
