// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/part_decoder.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "block/format/gguf_block.hpp"
#include "block/format/scale_tiles.hpp"
#include "cast/parallel.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/error_places.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/code_layout.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

using formats::ArrayPart;

constexpr std::uint64_t word_bits = 32;
constexpr std::uint64_t task_elements = std::uint64_t{1} << 20;
constexpr std::uint64_t piece_elements = std::uint64_t{1} << 16;  // decoded and rounded while they are in the cache
constexpr std::uint64_t rows_together = 256;                      // that decoders of transposed codes read at once

// A layer of fewer rows and columns, in the place of a layer of which a part is to be decoded: its parts are read from
// those of the whole, so that no decoder knows of it.
struct NarrowLayer {
  Layer layer;
  LayerParts parts;
  std::vector<IndexRange> ranges;  // what was asked for, in the narrow layer
};

// Makes the smallest layer of whole words and blocks that has `ranges`, one for each dimension, none of them empty.
// Layouts whose codes depend on other columns stay whole: GPTQ's with a group index, and bitsandbytes'.
// Precondition: LayerDecoder::create() takes the layer with these parts.
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
    } else if (coding().transposed || is_in_columns(coding())) {
      narrow_transposed();
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
    const GgufBlockSize size = block_size(block::gguf_block_of(made_.layer.scheme));
    if (columns_ % size.elements != 0) return;
    const IndexRange kept = narrow(made_.layer.shape.size() - 1, size.elements);
    box(0, columns_ / size.elements * size.bytes,
        {kept.begin / size.elements * size.bytes, kept.end / size.elements * size.bytes});
  }

  // Codes of the transpose: parts have the rows of the weight as their last axis.
  void narrow_transposed() {
    constexpr std::uint64_t unit = 32;  // rows whose codes, zero points and scales are whole words or bytes
    const bool has_words = is_in_columns(coding());
    const std::size_t rank = made_.layer.shape.size(), scales = *find(PartRole::scales);
    const auto group = has_words ? static_cast<std::uint64_t>(made_.layer.block_columns) : 1;
    const std::uint64_t groups = ceil_div(columns_, group);
    const IndexRange rows = narrow(rank - 2, unit);
    IndexRange columns{0, columns_}, of_groups{0, groups};
    if (!indexed_) columns = narrow(rank - 1, groups == 1 ? unit : std::lcm(group, has_words ? unit : 1));
    if (!indexed_ && groups != 1) of_groups = {columns.begin / group, ceil_div(columns.end, group)};
    const auto narrow_part = [&](std::size_t part, std::uint64_t part_rows, std::uint64_t bits, IndexRange kept) {
      box(part, part_rows, rows_ * bits / 8 / unit, kept, {rows.begin * bits / 8 / unit, rows.end * bits / 8 / unit});
    };
    const auto layout = [&](std::uint64_t count) { return code_layout(coding(), word_bits, count, rows_); };
    const std::uint64_t row_bytes = layout(columns_).row_bytes;
    const auto rows_of = [&](std::uint64_t count) { return layout(count).matrix_bytes / row_bytes; };
    const auto bits = static_cast<std::uint64_t>(coding().bits);
    const bool is_down = coding().packing == BlockPacking::words_down;
    narrow_part(0, rows_of(columns_), (is_down ? word_bits : bits) * unit,
                {rows_of(columns.begin), rows_of(columns.end)});
    narrow_part(scales, groups, has_words ? item(scales) * 8 * unit : 8, of_groups);
    if (has_words) narrow_part(*find(PartRole::zero_points), groups, bits * unit, of_groups);
  }

  // Codes in the order of the weight.
  void narrow_rows() {
    const auto bits = static_cast<std::uint64_t>(coding().bits);
    const int width = bit_width(made_.parts.infos[0].dtype);
    const std::uint64_t word = width == 32 ? 32 : 8;
    const Deviations& deviations = made_.layer.deviations;
    std::uint64_t step = word / std::gcd(word, bits);  // of columns whose codes begin at a whole byte or word
    if (deviations.has_whole_codes) step = word_bits / bits;
    if (deviations.rotation != 0) step = std::lcm(step, static_cast<std::uint64_t>(deviations.rotation));
    const auto block = static_cast<std::uint64_t>(made_.layer.block_columns);
    const bool has_grid = block != 0 && block < columns_;
    if (has_grid) step = std::lcm(step, coding().swizzled ? block * block::tile_columns : block);
    if (step >= columns_) return;
    const std::uint64_t row_bytes = made_.parts.infos[0].bytes / made_.layer.rows();
    const IndexRange kept = narrow(made_.layer.shape.size() - 1, step);
    const bool to_end = kept.end == columns_;
    const auto byte_of = [&](std::uint64_t column) {
      return code_layout(coding(), width, 1, column, deviations.has_whole_codes).row_bytes;
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

// Some indices of the first dimension that has several, so that what is decoded is one range of the result.
struct Strips {
  std::size_t axis = 0;
  std::uint64_t each = 0;
  std::uint64_t count = 1;
};

Strips strips_of(const ArrayPart& part, const Execution& execution) {
  const std::vector<IndexRange>& ranges = part.ranges();
  Strips strips;
  const auto size = [&](std::size_t axis) { return ranges[axis].end - ranges[axis].begin; };
  while (strips.axis + 1 < ranges.size() && size(strips.axis) == 1) ++strips.axis;
  strips.each = ranges.empty() ? 1 : size(strips.axis);
  if (part.count() < 2 * task_elements || !may_use_threads(execution)) return strips;
  const std::uint64_t step = strips.axis + 2 < ranges.size() ? 1 : rows_together;
  const std::uint64_t rows = std::max<std::uint64_t>(task_elements / (part.count() / strips.each), 1);
  strips.count = ceil_div(strips.each, ceil_div(rows, step) * step);
  if (strips.count > 1) strips.each = ceil_div(rows, step) * step;
  return strips;
}

class PartDecoder {
 public:
  PartDecoder(const Layer& layer, const LayerParts& parts, DType to, const CastOptions& options, Execution execution)
      : layer_(layer), parts_(parts), to_(to), options_(options), execution_(execution) {
    read_directly_ = options == CastOptions() && is_plain_float(to);
    execution_.threads = 1;
  }

  // `out` is that of these ranges.
  Result<void> decode(const std::vector<IndexRange>& ranges, std::span<std::byte> out) const {
    const NarrowLayer narrow = Narrowing(layer_, parts_, ranges).done();
    const auto decoder = TRY(LayerDecoder::create(narrow.layer, narrow.parts));
    const ArrayPart whole(layer_.shape, ranges);
    std::vector<float> numbers(read_directly_ ? 0 : std::min(piece_elements, whole.count()));
    const auto bytes = [&](std::uint64_t count) { return storage_bytes(to_, count); };
    const auto decode_run = [&](std::uint64_t from, std::uint64_t first, std::uint64_t count) -> Result<void> {
      if (read_directly_) return decoder->read(from, to_, out.subspan(bytes(first), bytes(count)));
      for (std::uint64_t done = 0; done < count; done += piece_elements) {
        const std::uint64_t n = std::min(piece_elements, count - done);
        const std::span<float> some = std::span(numbers).first(n);
        TRY(decoder->read(from + done, some));
        // A run of the narrow layer may be several of the whole, whose elements have other places.
        TRY(whole.visit(first + done, n, [&](std::uint64_t place, std::uint64_t at, std::uint64_t each) {
          return round(place, some.subspan(at - first - done, each), out.subspan(bytes(at), bytes(each)));
        }));
      }
      return {};
    };
    return ArrayPart(narrow.layer.shape, narrow.ranges).visit(decode_run);
  }

 private:
  Result<void> round(std::uint64_t place, std::span<const float> numbers, std::span<std::byte> out) const {
    const Shape shape{static_cast<std::int64_t>(numbers.size())};
    Execution execution = execution_;
    execution.first_element = place;
    return counted_from(place,
                        cast({DType::float32, shape, std::as_bytes(numbers)}, {to_, shape, out}, options_, execution));
  }

  const Layer& layer_;
  const LayerParts& parts_;
  const DType to_;
  const CastOptions& options_;
  Execution execution_;
  bool read_directly_ = false;
};

}  // namespace

Result<void> decode_part(const Layer& layer, const LayerParts& parts, const formats::ArrayPart& part, DType to,
                         std::span<std::byte> out, const CastOptions& options, const Execution& execution) {
  std::mutex mutex;
  LayerParts locked{parts.infos, [&](std::size_t index, std::uint64_t offset, std::span<std::byte> bytes) {
                      const std::scoped_lock lock(mutex);
                      return parts.read(index, offset, bytes);
                    }};
  // Checks all sizes, on which the narrow layers rely.
  TRY(LayerDecoder::create(layer, locked));
  if (part.count() == 0) return {};
  const PartDecoder decoder(layer, locked, to, options, execution);
  const Strips strips = strips_of(part, execution);
  if (strips.count == 1) return decoder.decode(part.ranges(), out);
  const std::uint64_t row = part.count() / (part.ranges()[strips.axis].end - part.ranges()[strips.axis].begin);
  return try_tasks(strips.count, execution, [&](std::size_t i) {
    std::vector<IndexRange> ranges = part.ranges();
    IndexRange& range = ranges[strips.axis];
    const std::uint64_t begin = i * strips.each, end = std::min(begin + strips.each, range.end - range.begin);
    const auto bytes = out.subspan(storage_bytes(to, begin * row), storage_bytes(to, (end - begin) * row));
    range = {range.begin + begin, range.begin + end};
    return decoder.decode(ranges, bytes);
  });
}

}  // namespace tensorcast::quantized
