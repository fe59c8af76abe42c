// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks, by the engine of blocks: each block is a row of its own.
#include <algorithm>
#include <utility>

#include "dtype/try.hpp"
#include "quantized/layer/piece_decoder.hpp"

namespace tensorcast::quantized {
namespace {

class GgufDecoder final : public PieceDecoder {
 public:
  GgufDecoder(PartReader reader, const BlockCoding& coding)
      : PieceDecoder(std::move(reader)), coding_(coding), size_(block_size(coding.gguf)) {
    constexpr double most_code = 12;
    bounds_.set_elements(1, most_code);
  }

  Result<void> prepare() {
    const std::uint64_t count = decoded_info(reader_.layer()).count;
    if (count % size_.elements != 0 || reader_.info(0).bytes != count / size_.elements * size_.bytes) {
      return reader_.wrong(0, "it has no whole blocks");
    }
    return {};
  }

  std::optional<formats::Magnitudes> magnitudes() const override {
    if (coding_.gguf == GgufBlock::mxfp4) return PieceDecoder::magnitudes();  // its scales have the range of float32
    // Scales are float16, and smaller in NVFP4; those of a K format are multiplied by integers, as are codes, and sums
    // of two products are 0 or a multiple of the last digit of one of them.
    constexpr double least = 0x1p-24 * 0x1p-24, most = 0x1p16 * 0x1p8 * 0x1p8;
    return formats::Magnitudes{.least = least, .most = most};
  }

 private:
  Piece piece_at(std::uint64_t element, std::uint64_t limit) const override {
    constexpr std::uint64_t most_blocks = 4096;
    const std::uint64_t block = element / size_.elements;
    const std::uint64_t whole = element % size_.elements == 0 ? (limit - element) / size_.elements : 1;
    const std::uint64_t blocks = std::clamp<std::uint64_t>(whole, 1, most_blocks);
    return {block * size_.elements, (block + blocks) * size_.elements};
  }

  Result<void> decode(const Piece& piece, DType to, std::span<std::byte> out) override {
    const std::uint64_t block = piece.begin / size_.elements, blocks = piece.end / size_.elements - block;
    codes_.resize(blocks * size_.bytes);
    TRY(reader_.bytes(0, block * size_.bytes, codes_));
    if (coding_.gguf == GgufBlock::mxfp4) add_exponents();
    const std::int64_t code_shape[] = {static_cast<std::int64_t>(blocks), static_cast<std::int64_t>(size_.bytes)};
    const std::int64_t shape[] = {static_cast<std::int64_t>(blocks), static_cast<std::int64_t>(size_.elements)};
    BlockTensor tensor;
    tensor.coding = coding_;
    tensor.shape = shape;
    tensor.codes = {DType::uint8, code_shape, codes_};
    return decode_blocks(tensor, 0, blocks, to, out);
  }

  // Blocks of MXFP4 begin with an exponent, of twice the numbers.
  void add_exponents() {
    constexpr int bias = 128;
    for (std::size_t i = 0; i < codes_.size(); i += size_.bytes) {
      const float scale = std::ldexp(1.0F, std::to_integer<int>(codes_[i]) - bias);
      bounds_.add_scales({&scale, 1});
    }
  }

  const BlockCoding coding_;
  const GgufBlockSize size_;
  std::vector<std::byte> codes_;
};

}  // namespace

Result<std::unique_ptr<LayerDecoder>> create_gguf_decoder(PartReader reader) {
  const BlockFormat* format = find_block_format(reader.layer().scheme, "gguf");
  if (format == nullptr || format->coding.gguf == GgufBlock::none) {
    return reader.wrong(0, "its blocks are of no kind that is known");
  }
  return prepared<GgufDecoder>(std::move(reader), format->coding);
}

}  // namespace tensorcast::quantized
