// SPDX-License-Identifier: Apache-2.0
// The tensors of a model by name, and the checks that all spellings share.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/format.hpp"
#include "quantized/layer/layer.hpp"
#include "quantized/names/module_name.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

using formats::TensorInfo;

// Reads the bytes of a small tensor, such as weight_shape.
using ReadTensor = std::function<Result<std::vector<std::byte>>(std::size_t tensor)>;

// Reads small tensors of `reader`, which must outlive it.
[[nodiscard]] ReadTensor read_with(formats::Reader& reader);

// Keys of descriptions and ends of tensors' names that the user takes as harmless: `accept`.
using AcceptedWords = std::span<const std::string>;

inline constexpr std::uint64_t max_state_bytes = std::uint64_t{1} << 16;

class ModelTensors {
 public:
  ModelTensors(std::span<const TensorInfo> tensors, const ReadTensor& read, AcceptedWords accepted = {});

  [[nodiscard]] std::span<const TensorInfo> all() const noexcept { return tensors_; }
  [[nodiscard]] AcceptedWords accepted() const noexcept { return accepted_; }
  [[nodiscard]] const TensorInfo& operator[](std::size_t index) const noexcept { return tensors_[index]; }
  // Returns the index of a tensor, if it is there.
  [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const;
  struct OfModule {
    std::size_t tensor;
    std::string module;
  };
  // The tensors `word` of all modules.
  [[nodiscard]] std::vector<OfModule> of_modules(std::string_view word) const;
  struct Scaled {
    std::size_t scales, codes;
    std::string module;
  };
  // The modules that have a tensor `word` and codes in their weight.
  [[nodiscard]] std::vector<Scaled> scaled_modules(std::string_view word) const;
  // Reports whether all bytes of a tensor have this value; false if they cannot be read, or take over 64 MiB.
  [[nodiscard]] bool has_only(std::size_t tensor, std::byte value) const;
  // Reads a tensor of at most `most` bytes. Errors: those of the reader; parse (too large).
  [[nodiscard]] Result<std::vector<std::byte>> read(std::size_t tensor, std::uint64_t most = max_state_bytes) const;

 private:
  std::span<const TensorInfo> tensors_;
  const ReadTensor& read_;
  AcceptedWords accepted_;
  std::unordered_map<std::string_view, std::size_t> places_;
};

[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);
// "float32 [3, 4]"
[[nodiscard]] std::string type_and_shape(const TensorInfo& tensor);
// The columns of a block that is a row: those of the weight, 1 if it has none.
[[nodiscard]] std::int64_t whole_row(std::span<const std::int64_t> shape) noexcept;
[[nodiscard]] std::int64_t blocks_of(std::int64_t size, std::int64_t block) noexcept;  // rounded up; block > 0

// Builds one layer and remembers the first contradiction.
class LayerBuilder {
 public:
  // `scales`: a part of the layer, too; none: the caller adds them.
  LayerBuilder(const ModelTensors& tensors, std::string_view spelling, std::string name, std::size_t codes,
               std::optional<std::size_t> scales = {});

  Layer& layer() noexcept { return layer_; }
  [[nodiscard]] const TensorInfo& codes() const noexcept { return tensors_[layer_.codes()]; }
  [[nodiscard]] bool ok() const noexcept { return layer_.problem.empty(); }

  // Remembers a contradiction, of the codes unless of `tensor`, if it is the first.
  void fail(std::string problem, std::optional<std::size_t> tensor = {});
  // Unless it fits, remembers what `tensor` should be: "scales are float32, and these are int8 [3]". Returns `fits`.
  template <class... Args>
  bool expect(bool fits, std::optional<std::size_t> tensor, fmt::format_string<Args...> wanted, Args&&... args) {
    if (fits || !ok()) return fits;
    fail(fmt::format("{}, and these are {}", fmt::format(wanted, std::forward<Args>(args)...),
                     type_and_shape(tensors_[tensor.value_or(layer_.codes())])),
         tensor);
    return false;
  }
  // Adds the tensor `name` and returns its index, if it is there.
  std::optional<std::size_t> add(const std::string& name, PartRole role);
  // The same, and a contradiction if it is missing.
  std::optional<std::size_t> need(const std::string& name, PartRole role);

  // The codes must have one of these types, and from 2 to 3 dimensions.
  void need_codes_of(std::initializer_list<DType> types, std::size_t most_dimensions = 3);
  // Sets the weight's shape: the codes' with the last size multiplied.
  void set_shape(std::int64_t codes_each, std::int64_t elements_each);
  // Sets blocks of [rows, columns]; both are `otherwise` if there are no two sizes.
  void set_blocks(std::span<const std::int64_t> sizes, std::int64_t otherwise) noexcept {
    layer_.block_rows = sizes.size() == 2 ? sizes[0] : otherwise;
    layer_.block_columns = sizes.size() == 2 ? sizes[1] : otherwise;
  }
  // Checks the type of scales against coding.scale, and sets it from that of the scales where uint8 is E8M0.
  void check_scale_type(std::optional<std::size_t> scales, bool bytes_are_e8m0);
  // Checks the shape of scales against the weight's shape and the blocks of the layer.
  void check_grid(std::optional<std::size_t> scales, std::string_view source);
  // Both.
  void check_scales(std::optional<std::size_t> scales, bool bytes_are_e8m0, std::string_view source) {
    check_scale_type(scales, bytes_are_e8m0);
    check_grid(scales, source);
  }
  // Checks the number of scales of a matrix in tiles of 128 x 4.
  void check_tiles(std::optional<std::size_t> scales);
  // A scalar, or one element; of 3-D weights also one for each expert.
  void check_global(std::optional<std::size_t> tensor);

  [[nodiscard]] Layer done() && { return std::move(layer_); }

 private:
  const ModelTensors& tensors_;
  Layer layer_;
};

}  // namespace tensorcast::quantized
