// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/quantized_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "checkpoint/source/opened_layers.hpp"
#include "convert/plan/tensor_seed.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "convert/tensors/stored_part.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/layer/part_decoder.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct QuantizedFile::State {
  State(std::string given, checkpoint::OpenedLayers found)
      : path(std::move(given)), opened(std::move(found)), decoded(*opened.stored, opened.layers) {}

  // Names the file and the tensor of an error, or of that of a Result.
  template <class T>
  [[nodiscard]] T at(const std::string& tensor, T result) const {
    return in_file(path, at_tensor(tensor, std::move(result)));
  }

  Result<void> check_layer(std::size_t layer) const {
    if (layer < opened.layers.size()) return {};
    return in_file(path, invalid(fmt::format("there are {} quantized layers, and so none of index {}",
                                             opened.layers.size(), layer)));
  }

  Result<void> check_range(std::size_t layer, std::uint64_t first, std::uint64_t count, DType dtype) const {
    const QuantizedLayer& summary = opened.summaries[layer];
    if (!summary.problem.empty()) return at(summary.problem_tensor, unsupported(summary.problem));
    if (!is_castable(dtype) || family(dtype) != Family::floating || bit_width(dtype) < 8) {
      return at(
          summary.name,
          invalid(fmt::format("weights are decoded to floating-point types of 8 bits or more, not {}", name(dtype))));
    }
    const std::uint64_t all = quantized::decoded_info(opened.layers[layer]).count;
    if (first <= all && count <= all - first) return {};
    return at(summary.name, invalid(fmt::format("elements {} to {} of {}", first, first + count, all)));
  }

  Result<void> check_bytes(const MutableTensorView& out, std::uint64_t count) const {
    if (storage_bytes(out.dtype, count) == out.bytes.size()) return {};
    return in_file(
        path, invalid(fmt::format("{} elements of {} do not take {} bytes", count, name(out.dtype), out.bytes.size())));
  }

  Result<void> dequantize(std::size_t layer, std::uint64_t first, std::uint64_t count, const MutableTensorView& out,
                          const CastOptions& options, const Execution& execution) {
    TRY(check_range(layer, first, count, out.dtype));
    const std::string& name = opened.summaries[layer].name;
    return at(name, file_conversion::read_decoded(decoded, opened.stored->tensors().size() + layer, first, count, out,
                                                  file_conversion::with_seed_of(options, name), execution));
  }

  Result<void> dequantize(std::size_t layer, const formats::ArrayPart& part, DType dtype, std::span<std::byte> out,
                          const CastOptions& options, const Execution& execution) {
    TRY(check_range(layer, 0, 0, dtype));
    const quantized::Layer& of = opened.layers[layer];
    const std::string& name = opened.summaries[layer].name;
    return at(name, quantized::decode_part(of, quantized::parts_of(*opened.stored, of), part, dtype, out,
                                           file_conversion::with_seed_of(options, name), execution));
  }

  Result<Tensor> dequantize(std::size_t layer, DType dtype, const CastOptions& options, const Execution& execution) {
    const std::uint64_t count = quantized::decoded_info(opened.layers[layer]).count;
    TRY(check_range(layer, 0, count, dtype));
    // Checks the sizes of all parts before memory is taken for a shape that may lie.
    TRY(at(opened.summaries[layer].name, decoded.read(opened.stored->tensors().size() + layer, 0, {})));
    auto buffer = std::make_shared<file_conversion::AlignedBuffer>(storage_bytes(dtype, count));
    const formats::ArrayPart whole = TRY(formats::ArrayPart::create(opened.layers[layer].shape, {}));
    TRY(dequantize(layer, whole, dtype, buffer->span(), options, execution));
    return Tensor::share({dtype, opened.layers[layer].shape, buffer->span()}, buffer);
  }

  std::string path;
  checkpoint::OpenedLayers opened;
  quantized::DecodedReader decoded;
};

namespace {

// read(), or the error of a file without a state.
template <class State, class Read>
auto with_state(const std::unique_ptr<State>& state, const Read& read) -> decltype(read()) {
  if (state == nullptr) return moved_from("QuantizedFile");
  return guarded(state->path, read);
}

}  // namespace

QuantizedFile::QuantizedFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
QuantizedFile::QuantizedFile(QuantizedFile&&) noexcept = default;
QuantizedFile& QuantizedFile::operator=(QuantizedFile&&) noexcept = default;
QuantizedFile::~QuantizedFile() = default;

Result<QuantizedFile> QuantizedFile::open(const std::string& path) {
  return guarded(path, [&]() -> Result<QuantizedFile> {
    return QuantizedFile(std::make_unique<State>(path, TRY(checkpoint::open_layers(path))));
  });
}

Result<QuantizedFile> QuantizedFile::open(std::shared_ptr<ByteSource> source, const std::string& name) {
  return guarded(name, [&]() -> Result<QuantizedFile> {
    if (source == nullptr) return in_file(name, invalid("the source is null"));
    return QuantizedFile(std::make_unique<State>(name, TRY(checkpoint::open_file_layers(name, {}, source))));
  });
}

const std::vector<QuantizedLayer>& QuantizedFile::layers() const noexcept {
  static const std::vector<QuantizedLayer> none;
  return state_ == nullptr ? none : state_->opened.summaries;
}
const std::string& QuantizedFile::refusal() const noexcept {
  static const std::string none;
  return state_ == nullptr ? none : state_->opened.refusal;
}

const std::vector<QuantizedPart>& QuantizedFile::parts(std::size_t layer) const noexcept {
  return state_->opened.parts[layer];
}

Result<Tensor> QuantizedFile::read_part(std::size_t layer, std::size_t part) {
  return with_state(state_, [&]() -> Result<Tensor> {
    TRY(state_->check_layer(layer));
    const std::vector<QuantizedPart>& parts = state_->opened.parts[layer];
    if (part >= parts.size()) {
      return state_->at(state_->opened.summaries[layer].name,
                        invalid(fmt::format("the layer has {} tensors, and so none of index {}", parts.size(), part)));
    }
    const std::size_t index = state_->opened.layers[layer].parts[part].tensor;
    const std::string& name = parts[part].name;
    if (const auto& problem = state_->opened.stored->tensors()[index].problem) return state_->at(name, *problem);
    auto buffer = std::make_shared<file_conversion::AlignedBuffer>(parts[part].bytes);
    TRY(state_->at(name, state_->opened.stored->read(index, 0, buffer->span())));
    return Tensor::share({parts[part].dtype, parts[part].shape, buffer->span()}, buffer);
  });
}

Result<Tensor> QuantizedFile::dequantize(std::size_t layer, DType dtype, const CastOptions& options,
                                         const Execution& execution) {
  return with_state(state_, [&]() -> Result<Tensor> {
    TRY(state_->check_layer(layer));
    return state_->dequantize(layer, dtype, options, execution);
  });
}

Result<void> QuantizedFile::dequantize(std::size_t layer, std::uint64_t first, const MutableTensorView& out,
                                       const CastOptions& options, const Execution& execution) {
  return with_state(state_, [&]() -> Result<void> {
    TRY(state_->check_layer(layer));
    const std::size_t count = TRY(element_count(out.shape));
    TRY(state_->check_range(layer, first, count, out.dtype));
    TRY(state_->check_bytes(out, count));
    return state_->dequantize(layer, first, count, out, options, execution);
  });
}

Result<void> QuantizedFile::dequantize_slice(std::size_t layer, std::span<const IndexRange> slice,
                                             const MutableTensorView& out, const CastOptions& options,
                                             const Execution& execution) {
  return with_state(state_, [&]() -> Result<void> {
    TRY(state_->check_layer(layer));
    const formats::ArrayPart part = TRY(state_->at(
        state_->opened.summaries[layer].name, formats::ArrayPart::create(state_->opened.layers[layer].shape, slice)));
    TRY(state_->check_range(layer, 0, 0, out.dtype));
    TRY(state_->check_bytes(out, part.count()));
    return state_->dequantize(layer, part, out.dtype, out.bytes, options, execution);
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
