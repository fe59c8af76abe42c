// SPDX-License-Identifier: Apache-2.0
// Casts with a scale for each element, in pieces: of long runs that share one, as casts with it; else as float32 or
// float64 products rounded to odd, which are then cast without a scale; and element by element where neither is right.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "cast/conversion.hpp"
#include "cast/strided_array.hpp"
#include "cast/strided_block.hpp"
#include "cast/walk.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "kernels/ops.hpp"
#include "kernels/scaled.hpp"
#include "tensorcast/strided.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr std::size_t product_elements = 2048;  // of float64: half of a first-level cache; a multiple of 64
constexpr std::size_t long_share = 512;         // neighbours that share a scale: a call of cast() is short beside them

// How products become results, where they can.
struct ProductRule {
  bool is_right = false;
  bool to_nearest = false;  // the products are the results
  kernels::Multiplication by = {};
  std::optional<kernels::Multiplication> in_float32 = {};  // for float32 scales, before others
  codec::Policy policy = {};                               // of the cast of products
  bool has_no_ones = false;  // an element whose scale is 1 may become something else than the product
};

ProductRule product_rule(const CastOptions& options, DType from, DType to) {
  CastOptions scaled = options;
  scaled.scale = 0.5;  // some words of rounding say nothing without a scale
  ProductRule rule{.policy = codec::policy_of(scaled, from, to)};
  // D0: bools are copied. D6: integers wrap at opsets 21 to 23, where products saturate.
  const bool saturates =
      rule.policy.range == codec::RangeRule::saturate && options.out_of_range != OutOfRange::saturate;
  rule.has_no_ones = from == to ? from == DType::boolean : saturates && family(from) != Family::floating;
  rule.policy.scale = 1.0;
  rule.to_nearest = to == DType::float64;
  if (rule.to_nearest && rule.policy.demands_errors()) return rule;
  const std::optional<kernels::Multiplication> by = kernels::products_for_words(row(from), row(to), rule.policy);
  rule.is_right = by.has_value();
  if (by) rule.by = *by;
  rule.in_float32 = kernels::products_in_float32(row(from), row(to), rule.policy);
  if (from == to && float_format(from).has_infinity()) {  // D0: NaN and infinity are copied
    rule.by.rejects_ones = true;
    if (rule.in_float32) rule.in_float32->rejects_ones = true;
  }
  if (rule.has_no_ones) rule.in_float32.reset();
  return rule;
}

// 0 and -0 differ.
bool have_equal_bits(double a, double b) noexcept {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

class ScaledBlocks {
 public:
  ScaledBlocks(const StridedArray& src, const StridedArray& dst, const StridedArray& scales, std::size_t count,
               const Work& work)
      : src_(src),
        dst_(dst),
        scales_(scales),
        count_(count),
        work_(work),
        rule_(product_rule(work.options, src.dtype, dst.dtype)) {
    if (work.report != nullptr) rule_.is_right = false;
    if (work.report != nullptr || scales.dtype != DType::float32) rule_.in_float32.reset();
    for (std::size_t axis = scales.shape.size(); axis-- > 0 && scales.strides[axis] == 0;) {
      shared_ *= static_cast<std::size_t>(scales.shape[axis]);
    }
    // Pieces of packed elements begin at whole bytes.
    if (shared_ < long_share || src.is_packed() || dst.is_packed()) shared_ = 1;
  }

  Result<void> run() const {
    return in_tasks(src_, count_, work_, [&](std::size_t first, std::size_t count) { return convert(first, count); });
  }

 private:
  // Where a piece is read and written, and room for what it becomes.
  struct Room {
    Room(const ScaledBlocks& of, std::size_t elements, std::size_t first)
        : from(of.src_, first),
          to(of.dst_, first),
          factors(of.scales_, first),
          block(of.src_, of.dst_, elements, of.dst_.one_per_byte),
          read(elements * of.scales_.item_bytes()),
          scales(elements),
          numbers(elements) {}

    Walk from, to, factors;
    Block block;
    std::vector<std::byte> read;
    std::vector<double> scales, numbers;
  };

  Result<void> convert(std::size_t first, std::size_t count) const {
    const std::size_t largest = std::min(count, shared_ > 1 ? block_elements : product_elements);
    Room room(*this, (largest + 63) / 64 * 64, first);
    for (std::size_t done = 0; done < count;) {
      const std::size_t left_of_run = shared_ > 1 ? shared_ - (first + done) % shared_ : count;
      const std::size_t piece = std::min({largest, count - done, left_of_run});
      if (Result<void> converted = convert_piece(room, first + done, piece); !converted) {
        if (converted.error().element) *converted.error().element += done;
        return converted;
      }
      done += piece;
    }
    return {};
  }

  // Neighbours in memory where they are, others as a copy.
  static const std::byte* gathered(Walk& walk, const StridedArray& array, std::byte* room, std::size_t count) {
    const std::byte* where = nullptr;
    if (has_dense_runs(array) && walk.run() >= count) {
      walk.advance(count, [&](const std::byte* run, std::int64_t, std::size_t) { where = run; });
      return where;
    }
    std::byte* fill = room;
    const auto item = static_cast<std::int64_t>(array.item_bytes());
    walk.advance(count, [&](const std::byte* run, std::int64_t stride, std::size_t length) {
      copy_run(run, stride, fill, item, length, array.item_bytes(), array.swapped);
      fill += static_cast<std::int64_t>(length) * item;
    });
    return room;
  }

  // The one scale of a piece that shares it.
  void read_shared_scale(Room& room, std::size_t count) const {
    const std::byte* at = nullptr;
    room.factors.advance(count, [&](const std::byte* run, std::int64_t, std::size_t) { at = at ? at : run; });
    const auto item = static_cast<std::int64_t>(scales_.item_bytes());
    copy_run(at, item, room.read.data(), item, 1, scales_.item_bytes(), scales_.swapped);
    room.scales[0] = scale_at(room.read.data());
  }

  [[nodiscard]] double scale_at(const std::byte* read) const {
    if (scales_.dtype == DType::float64) {
      double scale;
      std::memcpy(&scale, read, sizeof scale);
      return scale;
    }
    float scale;
    std::memcpy(&scale, read, sizeof scale);
    return static_cast<double>(scale);
  }

  // The scales of a piece as float64; behind them, 1.
  void widen_scales(Room& room, const std::byte* scales, std::size_t count) const {
    auto* const widened = reinterpret_cast<std::byte*>(room.scales.data());
    static_cast<void>(tensorcast::run({scales, scales_.dtype, widened, DType::float64, count}, exact, here));
    std::fill(room.scales.begin() + static_cast<std::ptrdiff_t>(count), room.scales.end(), 1.0);
  }

  Result<void> convert_piece(Room& room, std::size_t first, std::size_t count) const {
    const std::byte* source = src_.data + storage_bytes(src_.dtype, first);
    if (!src_.is_packed()) source = gathered(room.from, src_, room.block.gathered(), count);
    const std::byte* scales = nullptr;  // of each element
    if (shared_ > 1) {
      read_shared_scale(room, count);
    } else {
      scales = gathered(room.factors, scales_, room.read.data(), count);
    }
    std::byte* target = room.block.converted();
    const bool is_direct = has_dense_runs(dst_) && room.to.run() >= count;
    if (is_direct) room.to.advance(count, [&](std::byte* run, std::int64_t, std::size_t) { target = run; });
    if (dst_.is_packed()) target = dst_.data + storage_bytes(dst_.dtype, first);
    if (scales == nullptr || !convert_in_float32(room, source, scales, target, first, count)) {
      if (scales != nullptr) widen_scales(room, scales, count);
      TRY(convert_dense(room, source, target, first, count));
    }
    if (is_direct || dst_.is_packed()) return {};
    const std::byte* drain = room.block.items(count);
    const auto item = static_cast<std::int64_t>(dst_.item_bytes());
    room.to.advance(count, [&](std::byte* run, std::int64_t stride, std::size_t length) {
      copy_run(drain, item, run, stride, length, dst_.item_bytes(), dst_.swapped);
      drain += static_cast<std::int64_t>(length) * item;
    });
    return {};
  }

  Result<void> convert_dense(Room& room, const std::byte* source, std::byte* target, std::size_t first,
                             std::size_t count) const {
    const auto has_first_bits = [&](double scale) { return have_equal_bits(scale, room.scales[0]); };
    const auto end = room.scales.begin() + static_cast<std::ptrdiff_t>(count);
    if (shared_ > 1 || std::all_of(room.scales.begin(), end, has_first_bits)) {
      return cast_by(room.scales[0],
                     [&](const Work& work) { return room.block.convert(source, target, count, first, work); });
    }
    if (src_.one_per_byte) source = room.block.packed_source(source, count);
    const bool may_multiply = rule_.is_right && count <= product_elements &&
                              !(rule_.has_no_ones && std::find(room.scales.begin(), end, 1.0) != end);
    if (may_multiply && convert_products(room, source, target, first, count)) return {};
    return convert_singly(room, source, target, first, count);
  }

  // Returns false if a product is not right in float32.
  bool convert_in_float32(Room& room, const std::byte* source, const std::byte* scales, std::byte* target,
                          std::size_t first, std::size_t count) const {
    if (!rule_.in_float32) return false;
    if (src_.one_per_byte) source = room.block.packed_source(source, count);
    auto* const products = reinterpret_cast<std::byte*>(room.numbers.data());
    const std::size_t whole = (count + 63) / 64 * 64, used = count * sizeof(float);
    if (src_.dtype != DType::float32 || whole != count) {
      if (!tensorcast::run({source, src_.dtype, products, DType::float32, count}, exact, here)) return false;
      std::memset(products + used, 0, whole * sizeof(float) - used);
      source = products;
    }
    if (whole != count) {
      if (scales != room.read.data()) std::memcpy(room.read.data(), scales, used);
      for (std::size_t i = count; i < whole; ++i)
        std::memcpy(room.read.data() + i * sizeof(float), &one, sizeof(float));
      scales = room.read.data();
    }
    if (!ops_.multiply_each_float32(source, scales, products, whole, *rule_.in_float32)) return false;
    const std::uint64_t place = work_.execution.first_element + first;
    return tensorcast::run({products, DType::float32, target, dst_.dtype, count, place}, rule_.policy, here).ok();
  }

  // Returns false if a product is not right or an element fails.
  bool convert_products(Room& room, const std::byte* source, std::byte* target, std::size_t first,
                        std::size_t count) const {
    auto* const numbers = reinterpret_cast<std::byte*>(room.numbers.data());
    const std::size_t whole = (count + 63) / 64 * 64;
    std::fill(room.numbers.begin() + static_cast<std::ptrdiff_t>(count),
              room.numbers.begin() + static_cast<std::ptrdiff_t>(whole), 0.0);
    if (!tensorcast::run({source, src_.dtype, numbers, DType::float64, count}, exact, here)) return false;
    const bool right = ops_.multiply_each(room.numbers.data(), room.scales.data(), room.numbers.data(), whole, rule_.by,
                                          rule_.to_nearest);
    const std::uint64_t place = work_.execution.first_element + first;
    return right &&
           tensorcast::run({numbers, DType::float64, target, dst_.dtype, count, place}, rule_.policy, here).ok();
  }

  // Neighbours that share a scale together, or each alone if their bits are not whole bytes.
  Result<void> convert_singly(Room& room, const std::byte* source, std::byte* target, std::size_t first,
                              std::size_t count) const {
    const bool unpacks = bit_width(src_.dtype) < 8, packs = bit_width(dst_.dtype) < 8;
    std::vector<std::byte> from(unpacks ? count : 0), to(packs ? count : 0);
    if (unpacks) packing_of(src_.dtype).unpack(source, from.data(), count);
    const std::byte* const items = unpacks ? from.data() : source;
    std::byte* const results = packs ? to.data() : target;
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
      end = begin + 1;
      while (!unpacks && !packs && end < count && have_equal_bits(room.scales[end], room.scales[begin])) ++end;
      Result<void> done = cast_by(room.scales[begin], [&](const Work& work) {
        return cast_block(src_.dtype, items + begin * src_.item_bytes(), dst_.dtype,
                          results + begin * dst_.item_bytes(), end - begin, first + begin, work);
      });
      if (!done) {
        if (done.error().element) *done.error().element += begin;
        return done;
      }
    }
    if (packs) packing_of(dst_.dtype).pack(to.data(), target, count);
    return {};
  }

  template <class Cast>
  Result<void> cast_by(double scale, const Cast& cast) const {
    if (!std::isfinite(scale)) {
      Error error = invalid(formatted("the scale {} is not finite", scale));
      error.element = 0;  // of those that have the scale
      return error;
    }
    CastOptions options = work_.options;
    options.scale = scale;
    return cast(Work{options, work_.execution, work_.report, nullptr});
  }

  static constexpr codec::Policy exact = {};  // of widening
  static constexpr Execution here = {.threads = 1};
  static constexpr float one = 1.0f;

  const StridedArray& src_;
  const StridedArray& dst_;
  const StridedArray& scales_;
  std::size_t count_;
  const Work& work_;
  ProductRule rule_;
  std::size_t shared_ = 1;  // neighbours that have a scale together; 1 if these are few
  const kernels::Ops& ops_ = kernels::ops_of(active_target());
};

Result<void> cast_views_scaled(const StridedView& src, const MutableStridedView& dst, const StridedView& scales,
                               const Work& work) {
  if (src.shape != dst.shape || src.shape != scales.shape) {
    return invalid("source, target and scales have different shapes", "a stride of 0 repeats a scale along an axis");
  }
  if (scales.dtype != DType::float32 && scales.dtype != DType::float64) {
    return invalid(formatted("scales are float32 or float64, not {}", name(scales.dtype)));
  }
  if (work.options.scale != 1.0) return invalid("a scale for each element leaves the option scale at 1");
  const std::size_t count = TRY(element_count(src.shape));
  TRY(check_numeric(src.dtype, dst.dtype));
  TRY(codec::check_options(work.options, src.dtype, dst.dtype));
  TRY(check_execution(work.execution));
  TRY(check_strides("source", src, count));
  TRY(check_strides("target", dst, count));
  TRY(check_strides("array of scales", scales, count));
  if (count == 0) return {};
  const StridedArray from = squeezed(src), to = squeezed(dst), factors = squeezed(scales);
  TRY(check_overlap(from, to, count));
  TRY(check_overlap(factors, to, count));
  return ScaledBlocks(from, to, factors, count, work).run();
}

// Adds to the report only if all goes well.
Result<void> cast_each(const StridedView& src, const MutableStridedView& dst, const StridedView& scales,
                       const Work& work) {
  CastReport added;
  Work inner = work;
  if (work.report != nullptr) inner.report = &added;
  Result<void> done = guarded([&] { return cast_views_scaled(src, dst, scales, inner); });
  if (done && work.report != nullptr) work.report->merge(added);
  return done;
}

}  // namespace

Result<void> cast_scaled(const StridedView& src, const MutableStridedView& dst, const StridedView& scales,
                         const CastOptions& options, const Execution& execution, bool (*stop)()) {
  return cast_each(src, dst, scales, {options, execution, nullptr, stop});
}

Result<void> cast_scaled(const StridedView& src, const MutableStridedView& dst, const StridedView& scales,
                         const CastOptions& options, CastReport& report, const Execution& execution, bool (*stop)()) {
  return cast_each(src, dst, scales, {options, execution, &report, stop});
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
