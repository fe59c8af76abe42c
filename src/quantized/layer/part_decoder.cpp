// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/part_decoder.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "cast/parallel.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/error_places.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/layer/narrow_layer.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

using formats::ArrayPart;

constexpr std::uint64_t task_elements = std::uint64_t{1} << 20;
constexpr std::uint64_t piece_elements = std::uint64_t{1} << 16;  // decoded and rounded while they are in the cache
constexpr std::uint64_t rows_together = 256;                      // that decoders of transposed codes read at once

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
    const NarrowLayer narrow = narrowed(layer_, parts_, ranges);
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
