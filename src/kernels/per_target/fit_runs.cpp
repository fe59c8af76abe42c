// SPDX-License-Identifier: Apache-2.0
// The searches of Q4_K, Q5_K and Q6_K: a lane is a run, so each run's sums keep their order.
#include <cmath>
#include <utility>

#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/float_table.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

// Exchanges squares of `width` lanes between two rows: those of `a` on the right with those of `b` on the left.
template <int width, int... lane>
SIMD_INLINE void exchange(F32& a, F32& b, std::integer_sequence<int, lane...>) {
  const F32 upper = __builtin_shufflevector(a, b, ((lane & width) == 0 ? lane : lane - width + kLanes)...);
  b = __builtin_shufflevector(a, b, ((lane & width) == 0 ? lane + width : lane + kLanes)...);
  a = upper;
}
// Transposes a square of kLanes rows.
template <int width = kLanes / 2>
SIMD_INLINE void transpose(F32* rows) {
  if constexpr (width != 0) {
#pragma GCC unroll 16
    for (int row = 0; row < kLanes; ++row) {
      if ((row & width) == 0) exchange<width>(rows[row], rows[row + width], std::make_integer_sequence<int, kLanes>{});
    }
    transpose<width / 2>(rows);
  }
}

// The i-th register has number i of each of kLanes runs.
template <int size>
struct Runs {
  F32 at[size];

  Runs() = default;
  // Lanes from `count` on repeat the last run.
  SIMD_INLINE Runs(const float* numbers, std::size_t count) {
    for (int first = 0; first < size; first += kLanes) {
      F32 rows[kLanes];
#pragma GCC unroll 16
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const float* const run = numbers + (lane < count ? lane : count - 1) * size;
        rows[lane] = load<F32>(reinterpret_cast<const std::byte*>(run + first));
      }
      transpose(rows);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) at[first + i] = rows[i];
    }
  }
};

template <class V, class Out>
SIMD_INLINE void put_lanes(V x, std::size_t count, Out* out, std::size_t stride = 1) {
  for (std::size_t lane = 0; lane < kLanes && lane < count; ++lane) out[lane * stride] = static_cast<Out>(x[lane]);
}

// Half to even by the float32 adder; numbers of 2^22 and more wrap, as in ggml.
SIMD_INLINE I32 nearest(F32 x) { return (as<I32>(x + 12582912.0F) & 0x7fffff) - 0x400000; }

SIMD_INLINE F32 clamped_code(F32 x, int least, int most) {
  return to_f32<true>(min(max(nearest(x), splat(least)), splat(most)));
}

SIMD_INLINE F32 root(F32 x) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
}

SIMD_INLINE F32 magnitude(F32 x) { return as<F32>(as<I32>(x) & INT32_MAX); }

template <int size>
SIMD_INLINE void keep_where(Mask32 better, const Runs<size>& codes, Runs<size>& kept) {
  for (int i = 0; i < size; ++i) kept.at[i] = select(better, codes.at[i], kept.at[i]);
}

template <int size>
SIMD_INLINE void put_codes(const Runs<size>& codes, std::size_t count, std::uint8_t* out) {
  for (int i = 0; i < size; i += 4) {
    // Four codes of a run, in the order of their bytes.
    const I32 four = truncate(codes.at[i]) | truncate(codes.at[i + 1]) << 8 | truncate(codes.at[i + 2]) << 16 |
                     truncate(codes.at[i + 3]) << 24;
    std::int32_t lanes[kLanes];
    store(reinterpret_cast<std::byte*>(lanes), four);
    for (std::size_t lane = 0; lane < kLanes && lane < count; ++lane) {
      __builtin_memcpy(out + lane * size + i, &lanes[lane], sizeof(lanes[lane]));
    }
  }
}

constexpr int offset_size = OffsetFit::run;
using OffsetRuns = Runs<offset_size>;

SIMD_INLINE OffsetRuns own_weights(const OffsetRuns& x) {
  F32 squares = {};
  for (const F32 number : x.at) squares += number * number;
  const F32 average = root(squares / static_cast<float>(offset_size));
  OffsetRuns weights;
  for (int i = 0; i < offset_size; ++i) weights.at[i] = average + magnitude(x.at[i]);
  return weights;
}

// How codes come from numbers: nearest((x - base) * inverse), clamped.
struct OffsetSteps {
  F32 inverse, base;
};

// What is known of the products that become codes, from the least to the most.
enum class ProductRange : std::uint8_t {
  any,
  small,  // nearest() does not wrap
  few,    // codes of 4 bits, or a few more or less, which a table of 32 numbers clamps
};

// Codes from sums with `adder`, which rounds half to even.
constexpr float adder = 12582912.0F;
SIMD_INLINE F32 clamped_sum(I32 sum, int most) {
  constexpr std::int32_t least = 0x4b400000;  // the bits of `adder`
  return as<F32>(min(max(sum, splat(least)), splat(least + most))) - adder;
}

// The same of 4 bits, by the low five bits of a sum.
SIMD_INLINE F32 looked_up_sum(I32 sum) {
  if constexpr (has_float_table) {
    alignas(64) static constexpr float codes[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                                    12, 13, 14, 15, 15, 15, 15, 15, 15, 15, 15, 15};
    return look_up_32(codes, sum);
  } else {
    return clamped_sum(sum, 15);
  }
}

// The search of kLanes runs.
class OffsetSearch {
 public:
  SIMD_INLINE OffsetSearch(const OffsetRuns& x, const OffsetRuns& weights, int most)
      : x_(x), weights_(weights), most_(most) {
    low_ = high_ = x.at[0];
    weight_sum_ = weights.at[0];
    number_sum_ = weight_sum_ * x.at[0];
    I32 size = as<I32>(magnitude(x.at[0]));
    for (int i = 1; i < offset_size; ++i) {
      low_ = select(less(x.at[i], low_), x.at[i], low_);
      high_ = select(less(high_, x.at[i]), x.at[i], high_);
      size = max(size, as<I32>(magnitude(x.at[i])));
      weight_sum_ += weights.at[i];
      number_sum_ += weights.at[i] * x.at[i];
    }
    least_ = low_;
    are_finite_ = !any(greater(size, splat(0x7f7fffff)));
    low_ = select(less(F32{}, low_), F32{}, low_);
    varied_ = not_equal(high_, low_);
  }

  // Searches `groups` times kLanes runs in turns: one group computes while another waits for its sums.
  template <int groups>
  SIMD_INLINE static void run(OffsetSearch* of, const ScaleSearch& search) {
    for (int g = 0; g < groups; ++g) of[g].start();
    for (int step = 0; step <= search.steps; ++step) {
      try_steps<groups>(of, search.first + search.step * static_cast<float>(step) + static_cast<float>(of[0].most_));
    }
  }

  [[nodiscard]] SIMD_INLINE F32 minimum() const { return -low_; }
  // The codes of the best step, made once more.
  [[nodiscard]] SIMD_INLINE const OffsetRuns& codes() {
    set_codes(kept_);
    for (F32& code : codes_.at) code = select(varied_, code, F32{});
    return codes_;
  }

  F32 scale = {};

 private:
  struct Sums {
    F32 codes = {}, squares = {}, products = {};
  };
  // Numbers are about scale * code + low.
  struct Line {
    F32 scale, low;
    Mask32 is_right;
  };

  SIMD_INLINE void start() {
    const OffsetSteps first = {static_cast<float>(most_) / (high_ - low_), low_};
    set_codes(first);
    kept_ = first;
    scale = select(varied_, 1.0F / first.inverse, F32{});
    best_ = F32{};
    for (int i = 0; i < offset_size; ++i) best_ += error_at(i, scale, low_);
  }

  // Products grow, or fall, with the numbers: both ends tell.
  [[nodiscard]] SIMD_INLINE ProductRange range_of(const OffsetSteps& steps) const {
    constexpr float most = 4194303.0F, infinity = __builtin_inff();
    if (!are_finite_) return ProductRange::any;
    const F32 first = (least_ - steps.base) * steps.inverse, last = (high_ - steps.base) * steps.inverse;
    const auto is_few = [](F32 x) SIMD_INLINE_LAMBDA { return less(magnitude(x - 7.5F), splat(15.5F)); };  // -8 to 23
    if (has_float_table && most_ == 15 && !any(mask_and_not(varied_, mask_and(is_few(first), is_few(last))))) [[likely]]
      return ProductRange::few;
    const Mask32 is_large = mask_or(less(splat(most), magnitude(first)), less(splat(most), magnitude(last)));
    const Mask32 is_finite = less(magnitude(steps.inverse), splat(infinity));
    const Mask32 wraps = mask_and(mask_or(is_large, mask_and_not(varied_, is_finite)), varied_);
    return any(wraps) ? ProductRange::any : ProductRange::small;
  }

  template <ProductRange range>
  SIMD_INLINE void set_code(int i, const OffsetSteps& steps) {
    const F32 product = steps.inverse * (x_.at[i] - steps.base);
    if constexpr (range == ProductRange::any) {
      codes_.at[i] = clamped_code(product, 0, most_);
    } else {
      const I32 sum = as<I32>(product + adder);
      codes_.at[i] = range == ProductRange::few ? looked_up_sum(sum) : clamped_sum(sum, most_);
    }
  }
  SIMD_INLINE void set_codes(const OffsetSteps& steps) {
    if (range_of(steps) != ProductRange::any) [[likely]] {
      for (int i = 0; i < offset_size; ++i) set_code<ProductRange::small>(i, steps);
    } else {
      for (int i = 0; i < offset_size; ++i) set_code<ProductRange::any>(i, steps);
    }
  }

  [[nodiscard]] SIMD_INLINE F32 error_at(int i, F32 tried_scale, F32 offset) const {
    const F32 difference = tried_scale * codes_.at[i] + offset - x_.at[i];
    return weights_.at[i] * (difference * difference);
  }

  SIMD_INLINE void add(int i, Sums& sums) const {
    const F32 weighted = weights_.at[i] * codes_.at[i];
    sums.codes += weighted;
    sums.squares += weighted * codes_.at[i];
    sums.products += weighted * x_.at[i];
  }

  // By least squares.
  [[nodiscard]] SIMD_INLINE Line line_of(const Sums& sums) const {
    const F32 determinant = weight_sum_ * sums.squares - sums.codes * sums.codes;
    Line line = {(weight_sum_ * sums.products - number_sum_ * sums.codes) / determinant,
                 (sums.squares * number_sum_ - sums.codes * sums.products) / determinant,
                 mask_and(less(F32{}, determinant), varied_)};
    const Mask32 is_above = less(F32{}, line.low);
    if (!any(is_above)) return line;
    line.scale = select(is_above, sums.products / sums.squares, line.scale);
    line.low = select(is_above, F32{}, line.low);
    return line;
  }

  SIMD_INLINE void keep_better(const Line& line, F32 error, const OffsetSteps& steps) {
    const Mask32 better = mask_and(line.is_right, less(error, best_));
    kept_.inverse = select(better, steps.inverse, kept_.inverse);
    kept_.base = select(better, steps.base, kept_.base);
    best_ = select(better, error, best_);
    scale = select(better, line.scale, scale);
    low_ = select(better, line.low, low_);  // and the next step's codes are counted from here
  }

  template <int groups, ProductRange range>
  SIMD_INLINE static void add_codes(OffsetSearch* of, const OffsetSteps* steps, Sums* sums) {
    for (int i = 0; i < offset_size; ++i) {
      for (int g = 0; g < groups; ++g) {
        of[g].template set_code<range>(i, steps[g]);
        of[g].add(i, sums[g]);
      }
    }
  }

  // `codes`: between the ends of the range.
  template <int groups>
  SIMD_INLINE static void try_steps(OffsetSearch* of, float codes) {
    OffsetSteps steps[groups];
    Sums sums[groups];
    Line lines[groups];
    F32 errors[groups] = {};
    ProductRange range = ProductRange::few;
    for (int g = 0; g < groups; ++g) {
      steps[g] = {codes / (of[g].high_ - of[g].low_), of[g].low_};
      const ProductRange of_group = of[g].range_of(steps[g]);
      range = of_group < range ? of_group : range;
    }
    if (has_float_table && range == ProductRange::few) [[likely]] {
      add_codes<groups, has_float_table ? ProductRange::few : ProductRange::small>(of, steps, sums);
    } else if (range == ProductRange::small) {
      add_codes<groups, ProductRange::small>(of, steps, sums);
    } else {
      add_codes<groups, ProductRange::any>(of, steps, sums);
    }
    for (int g = 0; g < groups; ++g) lines[g] = of[g].line_of(sums[g]);
    for (int i = 0; i < offset_size; ++i) {
      for (int g = 0; g < groups; ++g) errors[g] += of[g].error_at(i, lines[g].scale, lines[g].low);
    }
    for (int g = 0; g < groups; ++g) of[g].keep_better(lines[g], errors[g], steps[g]);
  }

  const OffsetRuns& x_;
  const OffsetRuns& weights_;
  const int most_;
  OffsetRuns codes_;
  OffsetSteps kept_ = {};
  F32 low_, high_, weight_sum_, number_sum_, best_ = {};
  F32 least_;  // of the numbers, where low_ is 0 at most
  bool are_finite_;
  Mask32 varied_;  // others have scale 0 and codes 0
};

constexpr int signed_size = SignedFit::run;
using SignedRuns = Runs<signed_size>;

class SignedSearch {
 public:
  SIMD_INLINE SignedSearch(const SignedRuns& x, const SignedRuns& weights) : x_(x), weights_(weights) {}

  // Returns the scales.
  SIMD_INLINE F32 run() {
    constexpr auto most = static_cast<float>(SignedFit::zero);
    F32 largest = {}, size = {};
    for (const F32 number : x_.at) {
      const Mask32 is_larger = less(size, magnitude(number));
      size = select(is_larger, magnitude(number), size);
      largest = select(is_larger, number, largest);
    }
    const Mask32 is_small = less(size, splat(SignedFit::least_size));
    sum_up(-most / largest);
    for (int i = 0; i < signed_size; ++i) kept.at[i] = codes_.at[i];
    F32 scale = select(not_equal(squares_, F32{}), products_ / squares_, F32{});
    F32 best = scale * products_;
    for (int step = -9; step <= 9; ++step) {
      if (step == 0) continue;
      sum_up(-(most + 0.1F * static_cast<float>(step)) / largest);
      const Mask32 better = mask_and(less(F32{}, squares_), less(best * squares_, products_ * products_));
      if (!any(better)) continue;
      keep_where(better, codes_, kept);
      scale = select(better, products_ / squares_, scale);
      best = select(better, scale * products_, best);
    }
    for (F32& code : kept.at) code = select(is_small, F32{}, code + most);
    return select(is_small, F32{}, scale);
  }

  SignedRuns kept;

 private:
  SIMD_INLINE void sum_up(F32 inverse) {
    products_ = squares_ = F32{};
    for (int i = 0; i < signed_size; ++i) {
      const F32 code = codes_.at[i] = clamped_code(inverse * x_.at[i], -SignedFit::zero, SignedFit::zero - 1);
      products_ += weights_.at[i] * x_.at[i] * code;
      squares_ += weights_.at[i] * code * code;
    }
  }

  const SignedRuns& x_;
  const SignedRuns& weights_;
  SignedRuns codes_;
  F32 products_ = {}, squares_ = {};
};

// Runs from `count` on repeat the last one, and are not written.
template <int groups>
[[gnu::noinline]] void fit_offset(const float* numbers, const float* weights, std::size_t count,
                                  const ScaleSearch& search, const OffsetFit& fit) {
  OffsetRuns x[groups], by[groups];
  const auto left = [&](std::size_t first) SIMD_INLINE_LAMBDA { return count - first; };
  for (std::size_t g = 0, first = 0; g < groups; ++g, first += kLanes) {
    x[g] = OffsetRuns(numbers + first * offset_size, left(first));
    by[g] = weights == nullptr ? own_weights(x[g]) : OffsetRuns(weights + first * offset_size, left(first));
    if (fit.weight_sums == nullptr) continue;
    F32 sum = {};
    for (const F32 weight : by[g].at) sum += weight;
    put_lanes(sum, left(first), fit.weight_sums + first);
  }
  [&]<std::size_t... g>(std::index_sequence<g...>) SIMD_INLINE_LAMBDA {
    OffsetSearch found[groups] = {OffsetSearch(x[g], by[g], fit.most)...};
    OffsetSearch::run<groups>(found, search);
    for (std::size_t i = 0, first = 0; i < groups; ++i, first += kLanes) {
      put_lanes(found[i].scale, left(first), fit.scales + first);
      put_lanes(found[i].minimum(), left(first), fit.minima + first);
      if (fit.codes != nullptr) put_codes(found[i].codes(), left(first), fit.codes + first * offset_size);
    }
  }(std::make_index_sequence<groups>{});
}

[[gnu::noinline]] void fit_signed(const float* numbers, const float* weights, std::size_t count, const SignedFit& fit) {
  const SignedRuns x(numbers, count);
  SignedRuns by;
  if (weights != nullptr) {
    by = SignedRuns(weights, count);
  } else {
    for (int i = 0; i < signed_size; ++i) by.at[i] = x.at[i] * x.at[i];
  }
  SignedSearch search(x, by);
  put_lanes(search.run(), count, fit.scales);
  put_codes(search.kept, count, fit.codes);
}

}  // namespace

void fit_offset_runs(const float* numbers, const float* weights, std::size_t runs, const ScaleSearch& search,
                     const OffsetFit& fit) {
  in_default_environment([&] {
    for (std::size_t done = 0, count = 0; done < runs; done += count) {
      const std::size_t first = done * OffsetFit::run, left = runs - done;
      const OffsetFit part = {fit.scales + done, fit.minima + done,
                              fit.weight_sums == nullptr ? nullptr : fit.weight_sums + done,
                              fit.codes == nullptr ? nullptr : fit.codes + first, fit.most};
      const float* const by = weights == nullptr ? nullptr : weights + first;
      count = left > kLanes ? 2 * kLanes : kLanes;
      (left > kLanes ? fit_offset<2> : fit_offset<1>)(numbers + first, by, left, search, part);
    }
  });
}

void set_offset_codes(const float* numbers, std::size_t runs, const OffsetFit& stored) {
  constexpr std::size_t size = OffsetFit::run, step = kBlock > size ? kBlock : size;  // numbers
  in_default_environment([&] {
    for (std::size_t first = 0; first < runs * size; first += step) {
      const std::size_t count = runs * size - first < step ? size : step;
      std::uint8_t codes[step];
      for (std::size_t at = 0; at < step; at += kBlock) {
        const auto unit = [&](std::size_t i) SIMD_INLINE_LAMBDA {
          const std::size_t place = (at + i * kLanes) % count, run = (first + place) / size;
          const F32 x = load<F32>(reinterpret_cast<const std::byte*>(numbers + first + place));
          const I32 code = nearest((x + splat(stored.minima[run])) / splat(stored.scales[run]));
          return min(max(code, I32{}), splat(stored.most));
        };
        store(reinterpret_cast<std::byte*>(codes + at), pack_bytes({unit(0), unit(1), unit(2), unit(3)}));
      }
      for (std::size_t at = 0; at < count; at += size) {
        if (stored.scales[(first + at) / size] != 0.0F) __builtin_memcpy(stored.codes + first + at, codes + at, size);
      }
    }
  });
}

void fit_signed_runs(const float* numbers, const float* weights, std::size_t runs, const SignedFit& fit) {
  in_default_environment([&] {
    for (std::size_t done = 0; done < runs; done += kLanes) {
      const std::size_t first = done * SignedFit::run;
      fit_signed(numbers + first, weights == nullptr ? nullptr : weights + first, runs - done,
                 {fit.scales + done, fit.codes + first});
    }
  });
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
