// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/model_tensors.hpp"

#include <algorithm>

#include "block/format/scale_tiles.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::quantized {

ReadTensor read_with(formats::Reader& reader) {
  return [&reader](std::size_t tensor) -> Result<std::vector<std::byte>> {
    std::vector<std::byte> bytes(reader.tensors()[tensor].bytes);
    TRY(reader.read(tensor, 0, bytes));
    return bytes;
  };
}

ModelTensors::ModelTensors(std::span<const TensorInfo> tensors, const ReadTensor& read, AcceptedWords accepted)
    : tensors_(tensors), read_(read), accepted_(accepted) {
  places_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) places_.emplace(tensors[i].name, i);
}

std::optional<std::size_t> ModelTensors::find(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

std::vector<ModelTensors::OfModule> ModelTensors::of_modules(std::string_view word) const {
  std::vector<OfModule> found;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (std::optional<std::string> module = module_with(tensors_[i].name, word)) {
      found.push_back({i, *std::move(module)});
    }
  }
  return found;
}

std::vector<ModelTensors::Scaled> ModelTensors::scaled_modules(std::string_view word) const {
  std::vector<Scaled> found;
  for (OfModule& scales : of_modules(word)) {
    const std::optional<std::size_t> codes = find(tensor_of(scales.module, "weight"));
    if (codes) found.push_back({scales.tensor, *codes, std::move(scales.module)});
  }
  return found;
}

Result<std::vector<std::byte>> ModelTensors::read(std::size_t tensor, std::uint64_t most) const {
  const TensorInfo& info = tensors_[tensor];
  if (info.bytes > most) {
    return of_tensor(info.name,
                     parse_error(fmt::format("it has {} bytes, which no description of a layer has", info.bytes)));
  }
  if (!read_) return of_tensor(info.name, unsupported("its bytes are not at hand"));
  return read_(tensor);
}

bool ModelTensors::has_only(std::size_t tensor, std::byte value) const {
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  const Result<std::vector<std::byte>> bytes = read(tensor, most);
  return bytes && std::ranges::all_of(*bytes, [&](std::byte byte) { return byte == value; });
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string type_and_shape(const TensorInfo& tensor) {
  return fmt::format("{} {}", tensor.type_name(), shape_text(tensor.shape));
}

std::int64_t blocks_of(std::int64_t size, std::int64_t block) noexcept {
  return size / block + (size % block != 0 ? 1 : 0);
}

std::int64_t whole_row(std::span<const std::int64_t> shape) noexcept {
  return shape.empty() ? 1 : std::max<std::int64_t>(shape.back(), 1);
}

LayerBuilder::LayerBuilder(const ModelTensors& tensors, std::string_view spelling, std::string name, std::size_t codes,
                           std::optional<std::size_t> scales)
    : tensors_(tensors) {
  layer_.name = std::move(name);
  layer_.spelling = spelling;
  layer_.parts.push_back({.role = PartRole::codes, .tensor = codes});
  if (scales) layer_.parts.push_back({.role = PartRole::scales, .tensor = *scales});
}

void LayerBuilder::fail(std::string problem, std::optional<std::size_t> tensor) {
  if (!ok()) return;
  layer_.problem = std::move(problem);
  layer_.problem_tensor = tensors_[tensor.value_or(layer_.codes())].name;
}

std::optional<std::size_t> LayerBuilder::add(const std::string& name, PartRole role) {
  const std::optional<std::size_t> found = tensors_.find(name);
  if (found) layer_.parts.push_back({.role = role, .tensor = *found});
  return found;
}

std::optional<std::size_t> LayerBuilder::need(const std::string& name, PartRole role) {
  const std::optional<std::size_t> found = add(name, role);
  if (!found) fail(fmt::format("its codes need the tensor \"{}\", which is missing", name));
  return found;
}

void LayerBuilder::need_codes_of(std::initializer_list<DType> types, std::size_t most_dimensions) {
  const TensorInfo& tensor = codes();
  std::vector<std::string_view> names;
  for (const DType type : types) names.push_back(name(type));
  expect(std::ranges::find(types, tensor.dtype) != types.end() && tensor.foreign_dtype.empty(), {},
         "codes of {} are {}", layer_.scheme, fmt::join(names, " or "));
  expect(tensor.shape.size() >= 2 && tensor.shape.size() <= most_dimensions, {},
         "codes of {} have from 2 to {} dimensions", layer_.scheme, most_dimensions);
}

void LayerBuilder::set_shape(std::int64_t codes_each, std::int64_t elements_each) {
  layer_.shape = codes().shape;
  if (!ok() || layer_.shape.empty()) return;
  std::int64_t& last = layer_.shape.back();
  if (last % codes_each != 0) {
    return fail(fmt::format("rows of {} bytes are not whole groups of {}", last, codes_each));
  }
  if (__builtin_mul_overflow(last / codes_each, elements_each, &last)) fail("its shape is too large");
}

void LayerBuilder::check_scale_type(std::optional<std::size_t> scales, bool bytes_are_e8m0) {
  if (!scales || !ok()) return;
  const TensorInfo& tensor = tensors_[*scales];
  const auto check = [&](bool fits, std::string_view wanted) {
    expect(fits, scales, "scales of {} are {}", layer_.scheme, wanted);
  };
  const bool are_bytes = tensor.dtype == DType::float8_e8m0fnu || tensor.dtype == DType::uint8;
  DType& type = layer_.coding.scale;
  if (type == DType::float8_e4m3fn) {
    check(tensor.dtype == type, "float8_e4m3fn");
  } else if (type == DType::float8_e8m0fnu) {
    check(are_bytes, "bytes of E8M0");
  } else if (tensor.dtype == DType::float8_e8m0fnu || (bytes_are_e8m0 && are_bytes)) {
    type = DType::float8_e8m0fnu;
  } else {
    check(is_plain_float(tensor.dtype), "float32, float16 or bfloat16");
  }
}

void LayerBuilder::check_grid(std::optional<std::size_t> scales, std::string_view source) {
  if (!scales || !ok()) return;
  const TensorInfo& tensor = tensors_[*scales];
  if (layer_.block_rows == 0 && layer_.block_columns == 0) {
    if (tensor.count == 1) return;
    return fail(fmt::format("{} has one scale for a tensor, and this has {}", layer_.scheme, tensor.count), scales);
  }
  if (layer_.block_rows < 1 || layer_.block_columns < 1) {
    return fail(fmt::format("the block size that {} names is not a whole number above 0", source), scales);
  }
  const std::size_t rank = layer_.shape.size();
  if (rank < 2) return fail("the weight has no rows");
  std::vector<std::int64_t> wanted(layer_.shape.begin(), layer_.shape.end());
  wanted[rank - 2] = blocks_of(wanted[rank - 2], layer_.block_rows);
  wanted[rank - 1] = blocks_of(wanted[rank - 1], layer_.block_columns);
  if (layer_.deviations.is_grid_transposed) std::swap(wanted[rank - 2], wanted[rank - 1]);
  if (tensor.shape == wanted) return;
  // Where each row has a scale, one without elements has, too.
  const bool rows = layer_.block_rows == 1 && layer_.block_columns == whole_row(layer_.shape);
  if (rows && wanted.back() == 0) wanted.back() = 1;
  if (tensor.shape == wanted) return;
  // One scale a row may lack the axis of the columns.
  if (wanted.back() == 1 && tensor.shape == std::vector<std::int64_t>(wanted.begin(), wanted.end() - 1)) return;
  // ModelOpt's scales of blocks have an axis of 1 after each axis.
  if (rank == 2 && layer_.block_rows > 1 && tensor.shape == std::vector<std::int64_t>{wanted[0], 1, wanted[1], 1})
    return;
  fail(fmt::format("{} names blocks of {} x {}, so a weight of {} has scales of {}, and these are of {}", source,
                   layer_.block_rows, layer_.block_columns, shape_text(layer_.shape), shape_text(wanted),
                   shape_text(tensor.shape)),
       scales);
}

void LayerBuilder::check_tiles(std::optional<std::size_t> scales) {
  if (!scales || !ok()) return;
  const auto size = [](std::int64_t length) { return static_cast<std::size_t>(length); };
  const std::size_t wanted =
      block::scales_in_tiles(size(layer_.shape[0]), size(blocks_of(layer_.shape[1], layer_.block_columns)));
  expect(tensors_[*scales].count == wanted, scales, "a weight of {} has {} scales in tiles of 128 x 4",
         shape_text(layer_.shape), wanted);
}

void LayerBuilder::check_global(std::optional<std::size_t> tensor) {
  if (!tensor || !ok()) return;
  const TensorInfo& info = tensors_[*tensor];
  if (info.dtype != DType::float32) {
    return fail(fmt::format("a scale of the whole tensor is float32, and this is {}", type_and_shape(info)), tensor);
  }
  const bool each_expert = layer_.shape.size() == 3 && std::cmp_equal(info.count, layer_.shape[0]) &&
                           !info.shape.empty() && info.shape[0] == layer_.shape[0];
  if (info.count != 1 && !each_expert) {
    fail(fmt::format("a tensor has one scale, and this is {}", type_and_shape(info)), tensor);
  }
}

}  // namespace tensorcast::quantized
