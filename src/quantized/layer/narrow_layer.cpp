// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/narrow_layer.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "block/scale_tiles.hpp"
#include "dtype/ceil_div.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {
namespace {

using formats::ArrayPart;

constexpr std::uint64_t word_bits = 32;

class Narrowing {
 public:
  Narrowing(const Layer& layer, const LayerParts& parts, std::vector<IndexRange> ranges)
      : made_{layer, parts, std::move(ranges)}, whole_(parts.read), boxes_(parts.infos.size()) {
    const std::vector<std::int64_t>& shape = layer.shape;
    if (!shape.empty()) columns_ = static_cast<std::uint64_t>(shape.back());
    if (shape.size() > 1) rows_ = static_cast<std::uint64_t>(shape[shape.size() - 2]);
    indexed_ = find(PartRole::group_index).has_value();
  }

  NarrowLayer done() && {
    const BlockPacking packing = coding().packing;
    if (made_.layer.shape.empty() || has_narrow_values()) return std::move(made_);
    if (packing == BlockPacking::gguf) {
      narrow_gguf();
    } else if (is_in_columns(coding())) {
      narrow_words();
    } else if (coding().transposed) {
      narrow_experts();
    } else if (packing != BlockPacking::flat && !indexed_ && !find(PartRole::nested_table)) {
      narrow_rows();
    }
    read_boxes();
    return std::move(made_);
  }

 private:
  [[nodiscard]] const BlockCoding& coding() const noexcept { return made_.layer.coding; }
  [[nodiscard]] std::optional<std::size_t> find(PartRole role) const noexcept { return made_.layer.place_of(role); }
  [[nodiscard]] std::uint64_t item(std::size_t part) const noexcept {
    return static_cast<std::uint64_t>(bit_width(made_.parts.infos[part].dtype)) / 8;
  }
  // Values under 8 bits may begin within a byte. No tool writes such scales.
  [[nodiscard]] bool has_narrow_values() const noexcept {
    return std::ranges::any_of(made_.parts.infos, [](const formats::TensorInfo& info) {
      return info.dtype != DType::undefined && bit_width(info.dtype) < 8;
    });
  }
  [[nodiscard]] std::uint64_t total_rows() const noexcept {
    std::uint64_t rows = 1;
    for (std::size_t i = 0; i + 1 < made_.layer.shape.size(); ++i) {
      rows *= static_cast<std::uint64_t>(made_.layer.shape[i]);
    }
    return rows;
  }

  // The dimension `axis` of the layer becomes the multiples of `step` that have its range, which are returned.
  IndexRange narrow(std::size_t axis, std::uint64_t step) {
    std::int64_t& size = made_.layer.shape[axis];
    IndexRange& range = made_.ranges[axis];
    const IndexRange kept{range.begin / step * step,
                          std::min(ceil_div(range.end, step) * step, static_cast<std::uint64_t>(size))};
    size = static_cast<std::int64_t>(kept.end - kept.begin);
    range = {range.begin - kept.begin, range.end - kept.begin};
    return kept;
  }

  // A part of [outer, rows, bytes] is read as the box of some rows and bytes of each.
  void box(std::size_t part, std::uint64_t rows, std::uint64_t row_bytes, IndexRange of_rows, IndexRange of_bytes) {
    formats::TensorInfo& info = made_.parts.infos[part];
    const std::uint64_t outer = info.bytes / (rows * row_bytes);
    const std::int64_t shape[] = {static_cast<std::int64_t>(outer), static_cast<std::int64_t>(rows),
                                  static_cast<std::int64_t>(row_bytes)};
    boxes_[part] = std::make_shared<ArrayPart>(shape, std::vector<IndexRange>{{0, outer}, of_rows, of_bytes});
    info.bytes = boxes_[part]->count();
    if (const auto bits = static_cast<std::uint64_t>(bit_width(info.dtype)); bits != 0)
      info.count = info.bytes * 8 / bits;
  }
  // The same of all rows.
  void box(std::size_t part, std::uint64_t row_bytes, IndexRange of_bytes) {
    const std::uint64_t rows = made_.parts.infos[part].bytes / row_bytes;
    box(part, rows, row_bytes, {0, rows}, of_bytes);
  }

  void narrow_gguf() {
    const GgufBlockSize size = block_size(find_block_format(made_.layer.scheme, "gguf")->coding.gguf);
    if (columns_ % size.elements != 0) return;
    const IndexRange kept = narrow(made_.layer.shape.size() - 1, size.elements);
    box(0, columns_ / size.elements * size.bytes,
        {kept.begin / size.elements * size.bytes, kept.end / size.elements * size.bytes});
  }

  // A weight [E, K, N] whose codes are [E, N, K / 32, 16].
  void narrow_experts() {
    constexpr std::uint64_t block = 32;
    const std::size_t rank = made_.layer.shape.size();
    const IndexRange inputs = narrow(rank - 2, block), outputs = narrow(rank - 1, 1);
    box(0, columns_, rows_ / 2, outputs, {inputs.begin / 2, inputs.end / 2});
    box(*find(PartRole::scales), columns_, rows_ / block, outputs, {inputs.begin / block, inputs.end / block});
  }

  // GPTQ and AWQ: a weight [N, K] whose parts have N as the last axis.
  void narrow_words() {
    constexpr std::uint64_t unit = 32;  // whole words of zero points of every width
    const auto bits = static_cast<std::uint64_t>(coding().bits);
    const auto group = static_cast<std::uint64_t>(made_.layer.block_columns);
    const std::uint64_t groups = ceil_div(columns_, group);
    const IndexRange rows = narrow(0, unit);
    IndexRange inputs{0, columns_}, of_groups{0, groups};
    if (!indexed_) inputs = narrow(1, groups == 1 ? unit : std::lcm(group, unit));
    if (!indexed_ && groups != 1) of_groups = {inputs.begin / group, ceil_div(inputs.end, group)};
    const auto bytes_of = [&](std::uint64_t bits_each) {
      return IndexRange{rows.begin * bits_each / 8, rows.end * bits_each / 8};
    };
    if (coding().packing == BlockPacking::awq) {
      box(0, columns_, rows_ * bits / 8, inputs, bytes_of(bits));
    } else {
      box(0, columns_ * bits / word_bits, rows_ * 4, {inputs.begin * bits / word_bits, inputs.end * bits / word_bits},
          bytes_of(word_bits));
    }
    const std::size_t zeros = *find(PartRole::zero_points), scales = *find(PartRole::scales);
    box(zeros, groups, rows_ * bits / 8, of_groups, bytes_of(bits));
    box(scales, groups, rows_ * item(scales), of_groups, bytes_of(item(scales) * 8));
  }

  // Codes in the order of the weight.
  void narrow_rows() {
    const auto bits = static_cast<std::uint64_t>(coding().bits);
    const std::uint64_t each = word_bits / bits;  // of whole codes
    const std::uint64_t word = bit_width(made_.parts.infos[0].dtype) == 32 ? 32 : 8;
    std::uint64_t step = 2;  // of columns whose codes begin at a whole byte or word
    const Deviations& deviations = made_.layer.deviations;
    if (coding().packing == BlockPacking::stream) step = word / std::gcd(word, bits);
    if (deviations.has_whole_codes) step = each;
    if (deviations.rotation != 0) step = std::lcm(step, static_cast<std::uint64_t>(deviations.rotation));
    const auto block = static_cast<std::uint64_t>(made_.layer.block_columns);
    const bool has_grid = block != 0 && block < columns_;
    if (has_grid) step = std::lcm(step, coding().swizzled ? block * block::tile_columns : block);
    if (step >= columns_) return;
    const std::uint64_t row_bytes = made_.parts.infos[0].bytes / total_rows();
    const IndexRange kept = narrow(made_.layer.shape.size() - 1, step);
    const bool to_end = kept.end == columns_;
    const auto byte_of = [&](std::uint64_t column) {
      return deviations.has_whole_codes ? column / each * 4 : column * bits / 8;
    };
    box(0, row_bytes, {byte_of(kept.begin), to_end ? row_bytes : byte_of(kept.end)});
    if (!has_grid) return;
    const std::uint64_t grid = ceil_div(columns_, block);
    const IndexRange scales{kept.begin / block, ceil_div(kept.end, block)};
    for (const PartRole role : {PartRole::scales, PartRole::zero_points, PartRole::biases}) {
      if (!find(role)) continue;
      const std::size_t part = *find(role);
      if (coding().swizzled) {
        const std::uint64_t tile = block::tile_scales * item(part);
        box(part, ceil_div(grid, block::tile_columns) * tile,
            {scales.begin / block::tile_columns * tile, ceil_div(scales.end, block::tile_columns) * tile});
      } else if (deviations.is_grid_transposed) {
        box(part, grid, rows_ * item(part), scales, {0, rows_ * item(part)});
      } else {
        box(part, grid * item(part), {scales.begin * item(part), scales.end * item(part)});
      }
    }
  }

  void read_boxes() {
    if (std::ranges::all_of(boxes_, [](const auto& part) { return part == nullptr; })) return;
    made_.parts.read = [whole = whole_, boxes = boxes_](std::size_t part, std::uint64_t offset,
                                                        std::span<std::byte> out) -> Result<void> {
      if (boxes[part] == nullptr) return whole(part, offset, out);
      return boxes[part]->visit(offset, out.size(), [&](std::uint64_t from, std::uint64_t to, std::uint64_t count) {
        return whole(part, from, out.subspan(to - offset, count));
      });
    };
  }

  NarrowLayer made_;
  const ReadPart whole_;
  std::vector<std::shared_ptr<const ArrayPart>> boxes_;  // of each part; null: it is read as it is
  std::uint64_t rows_ = 1, columns_ = 0;
  bool indexed_ = false;
};

}  // namespace

NarrowLayer narrowed(const Layer& layer, const LayerParts& parts, std::vector<IndexRange> ranges) {
  return Narrowing(layer, parts, std::move(ranges)).done();
}

}  // namespace tensorcast::quantized
