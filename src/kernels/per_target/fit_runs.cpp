// SPDX-License-Identifier: Apache-2.0
// The searches of Q4_K, Q5_K and Q6_K: a lane is a run, so each run's sums keep their order.
#include <cmath>

#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

// The i-th register has number i of each of kLanes runs.
template <int size>
struct Runs {
  F32 at[size];

  Runs() = default;
  // Lanes from `count` on repeat the last run.
  SIMD_INLINE Runs(const float* numbers, std::size_t count) {
    float lanes[size][kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float* const run = numbers + (lane < count ? lane : count - 1) * size;
      for (int i = 0; i < size; ++i) lanes[i][lane] = run[i];
    }
    for (int i = 0; i < size; ++i) at[i] = load<F32>(reinterpret_cast<const std::byte*>(lanes[i]));
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
  for (int i = 0; i < size; ++i) put_lanes(codes.at[i], count, out + i, size);
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

  SIMD_INLINE void run(const ScaleSearch& search) {
    const auto most = static_cast<float>(most_);
    const OffsetSteps first = {most / (high_ - low_), low_};
    set_codes(first);
    kept_ = first;
    scale = select(varied_, 1.0F / first.inverse, F32{});
    best_ = error_of(scale, low_);
    for (int step = 0; step <= search.steps; ++step) {
      try_inverse((search.first + search.step * static_cast<float>(step) + most) / (high_ - low_));
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
  // Reports whether no product is so large that nearest() wraps. Products grow, or fall, with the numbers: both ends
  // tell.
  [[nodiscard]] SIMD_INLINE bool is_ordinary(const OffsetSteps& steps) const {
    constexpr float most = 4194303.0F, infinity = __builtin_inff();
    const Mask32 is_large = mask_or(less(splat(most), magnitude((least_ - steps.base) * steps.inverse)),
                                    less(splat(most), magnitude((high_ - steps.base) * steps.inverse)));
    const Mask32 is_finite = less(magnitude(steps.inverse), splat(infinity));
    return are_finite_ && !any(mask_and(mask_or(is_large, mask_and_not(varied_, is_finite)), varied_));
  }

  // Half to even by the float32 adder. Precondition: is_ordinary().
  [[nodiscard]] SIMD_INLINE F32 code_of(int i, const OffsetSteps& steps) const {
    constexpr float adder = 12582912.0F;
    constexpr std::int32_t least = 0x4b400000;  // the bits of `adder`, which sums count from
    const I32 sum = as<I32>(steps.inverse * (x_.at[i] - steps.base) + adder);
    return as<F32>(min(max(sum, splat(least)), splat(least + most_))) - adder;
  }

  SIMD_INLINE void set_codes(const OffsetSteps& steps) {
    if (is_ordinary(steps)) [[likely]] {
      for (int i = 0; i < offset_size; ++i) codes_.at[i] = code_of(i, steps);
      return;
    }
    for (int i = 0; i < offset_size; ++i) {
      codes_.at[i] = clamped_code(steps.inverse * (x_.at[i] - steps.base), 0, most_);
    }
  }

  [[nodiscard]] SIMD_INLINE F32 error_of(F32 tried_scale, F32 offset) const {
    F32 sum = {};
    for (int i = 0; i < offset_size; ++i) {
      const F32 difference = tried_scale * codes_.at[i] + offset - x_.at[i];
      sum += weights_.at[i] * (difference * difference);
    }
    return sum;
  }

  struct Sums {
    F32 codes = {}, squares = {}, products = {};
  };
  SIMD_INLINE void add(int i, Sums& sums) const {
    const F32 weighted = weights_.at[i] * codes_.at[i];
    sums.codes += weighted;
    sums.squares += weighted * codes_.at[i];
    sums.products += weighted * x_.at[i];
  }

  // Scale and offset of these codes by least squares.
  SIMD_INLINE void try_inverse(F32 inverse) {
    const OffsetSteps steps = {inverse, low_};
    Sums sums;
    if (is_ordinary(steps)) [[likely]] {
      for (int i = 0; i < offset_size; ++i) {
        codes_.at[i] = code_of(i, steps);
        add(i, sums);
      }
    } else {
      set_codes(steps);
      for (int i = 0; i < offset_size; ++i) add(i, sums);
    }
    const F32 determinant = weight_sum_ * sums.squares - sums.codes * sums.codes;
    F32 new_scale = (weight_sum_ * sums.products - number_sum_ * sums.codes) / determinant;
    F32 new_low = (sums.squares * number_sum_ - sums.codes * sums.products) / determinant;
    const Mask32 is_above = less(F32{}, new_low);
    new_scale = select(is_above, sums.products / sums.squares, new_scale);
    new_low = select(is_above, F32{}, new_low);
    const F32 error = error_of(new_scale, new_low);
    const Mask32 better = mask_and(mask_and(less(F32{}, determinant), less(error, best_)), varied_);
    if (!any(better)) return;
    kept_.inverse = select(better, steps.inverse, kept_.inverse);
    kept_.base = select(better, steps.base, kept_.base);
    best_ = select(better, error, best_);
    scale = select(better, new_scale, scale);
    low_ = select(better, new_low, low_);  // and the next step's codes are counted from here
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

[[gnu::noinline]] void fit_offset(const float* numbers, const float* weights, std::size_t count,
                                  const ScaleSearch& search, const OffsetFit& fit) {
  const OffsetRuns x(numbers, count);
  const OffsetRuns by = weights == nullptr ? own_weights(x) : OffsetRuns(weights, count);
  if (fit.weight_sums != nullptr) {
    F32 sum = {};
    for (const F32 weight : by.at) sum += weight;
    put_lanes(sum, count, fit.weight_sums);
  }
  OffsetSearch found(x, by, fit.most);
  found.run(search);
  put_lanes(found.scale, count, fit.scales);
  put_lanes(found.minimum(), count, fit.minima);
  put_codes(found.codes(), count, fit.codes);
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
    for (std::size_t done = 0; done < runs; done += kLanes) {
      const std::size_t first = done * OffsetFit::run;
      float* const sums = fit.weight_sums == nullptr ? nullptr : fit.weight_sums + done;
      fit_offset(numbers + first, weights == nullptr ? nullptr : weights + first, runs - done, search,
                 {fit.scales + done, fit.minima + done, sums, fit.codes + first, fit.most});
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
