// GGUF's blocks, by the engine of blocks: each block is a row of its own.
#include <algorithm>
#include <utility>
// SPDX-License-Identifier: Apache-2.0
#include "convert/quantized/part_reader.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {
namespace {

class GgufDecoder final : public LayerDecoder {
 public:
  GgufDecoder(PartReader reader, const BlockCoding& coding)
      : reader_(std::move(reader)), coding_(coding), size_(block_size(coding.gguf)) {}

  Result<void> prepare() {
    const std::uint64_t count = decoded_info(reader_.layer()).count;
    if (count % size_.elements != 0 || reader_.info(0).bytes != count / size_.elements * size_.bytes) {
      return reader_.wrong(0, "it has no whole blocks");
    }
    return {};
  }

  Result<void> read(std::uint64_t first, std::span<float> out) override {
    constexpr std::uint64_t most_blocks = 4096;
    while (!out.empty()) {
      const std::uint64_t block = first / size_.elements, skipped = first % size_.elements;
      const std::uint64_t needed = (skipped + out.size() + size_.elements - 1) / size_.elements;
      const std::uint64_t blocks = std::min(needed, most_blocks);
      values_.resize(blocks * size_.elements);
      if (Result<void> done = decode(block, blocks); !done) return done;
      const std::uint64_t length = std::min<std::uint64_t>(out.size(), values_.size() - skipped);
      std::ranges::copy(std::span(values_).subspan(skipped, length), out.begin());
      first += length;
      out = out.subspan(length);
    }
    return {};
  }

 private:
  Result<void> decode(std::uint64_t block, std::uint64_t blocks) {
    codes_.resize(blocks * size_.bytes);
    if (Result<void> got = reader_.bytes(0, block * size_.bytes, codes_); !got) return got;
    const std::int64_t code_shape[] = {static_cast<std::int64_t>(blocks), static_cast<std::int64_t>(size_.bytes)};
    const std::int64_t shape[] = {static_cast<std::int64_t>(blocks), static_cast<std::int64_t>(size_.elements)};
    BlockTensor tensor;
    tensor.coding = coding_;
    tensor.shape = shape;
    tensor.codes = {DType::uint8, code_shape, codes_};
    return dequantize(tensor, 0, {DType::float32, shape, std::as_writable_bytes(std::span(values_))}, {}, nullptr,
                      {.threads = 1});
  }

  PartReader reader_;
  const BlockCoding coding_;
  const GgufBlockSize size_;
  std::vector<std::byte> codes_;
  std::vector<float> values_;
};

}  // namespace

Result<std::unique_ptr<LayerDecoder>> create_gguf_decoder(PartReader reader) {
  const BlockFormat* format = find_block_format(reader.layer().scheme, "gguf");
  if (format == nullptr || format->coding.gguf == GgufBlock::none) {
    return reader.wrong(0, "its blocks are of no kind that is known");
  }
  auto decoder = std::make_unique<GgufDecoder>(std::move(reader), format->coding);
  if (Result<void> prepared = decoder->prepare(); !prepared) return std::move(prepared).error();
  return std::unique_ptr<LayerDecoder>(std::move(decoder));
}

}  // namespace tensorcast::quantized
