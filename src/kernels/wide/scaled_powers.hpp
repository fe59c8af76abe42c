// Numbers times a scale to float8_e8m0fnu: no products, as in each binade there is but one number from which on they
// have the next exponent.
#pragma once

#include "kernels/multiply.hpp"
#include "kernels/wide/encode_float.hpp"
#include "kernels/wide/multiply_products.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using codec::Policy;

// Types whose positive numbers are normal float32 numbers, and stay so with the scale.
template <DType from>
class ScaledPowers {
  static constexpr bool is_exact = bits_of<from> == 16;  // float32 holds the source
  static constexpr std::int32_t infinity = 0x7f800000;
  static constexpr std::int32_t last_exact = 0x4b7fffff;  // as float32, below 2^24

 public:
  ScaledPowers(const Policy& policy, const Factor& factor)
      : sign_(kept(splat(factor.scale < 0.0 ? INT32_MIN : 0))),
        step_(kept(splat(factor.power_step))),
        outside_(kept(splat(policy.saturate ? 0 : 0xff))),
        largest_(policy.saturate ? 0xfe : 0xff) {}

  // 1. float32, of longer integers cut off, with the product's sign.
  // 2. Its mantissa carries into the exponent from that number on, and the exponent becomes the code.
  // 3. What is not positive is outside.
  SIMD_INLINE bool store_block(const std::byte* src, std::byte* dst) const {
    const Block<I32> bits =
        map(load_block<from>(src), [this](auto unit) SIMD_INLINE_LAMBDA { return as<I32>(to_float32(unit)) ^ sign_; });
    if constexpr (is_float<from>) {
      const Block<I32> sizes = map(bits, [](I32 lanes) SIMD_INLINE_LAMBDA { return lanes & INT32_MAX; });
      const I32 greatest = max(max(sizes.a, sizes.b), max(sizes.c, sizes.d));
      if (any(greater(greatest, splat(infinity - 1)))) [[unlikely]] {
        store(dst, pack_bytes(map(bits, [this](I32 lanes) { return code_of_any(lanes); })));
        return true;
      }
    }
    if constexpr (!is_exact) {
      // What was cut off matters right below that number. The greatest of all, because one comparison costs less.
      const I32 greatest = max(max(bits.a, bits.b), max(bits.c, bits.d));
      if (any(greater(greatest, splat(last_exact)))) {
        const Block<I32> places = map(bits, [this](I32 lanes) SIMD_INLINE_LAMBDA { return place(lanes); });
        if (any(equal(max(max(places.a, places.b), max(places.c, places.d)), splat(-1))) &&
            any(either(either(doubt(bits.a), doubt(bits.b)), either(doubt(bits.c), doubt(bits.d))))) [[unlikely]]
          return false;
      }
    }
    store(dst, pack_bytes(map(bits, [this](I32 lanes) SIMD_INLINE_LAMBDA { return code(lanes); })));
    return true;
  }

 private:
  template <class Unit>
  SIMD_INLINE static F32 to_float32(Unit x) {
    if constexpr (is_float<from>) {
      return x;
    } else if constexpr (is_exact) {
      return to_f32<true>(x);  // the lanes are wider than the source
    } else {
      return to_f32_leading<is_signed_type<from>>(x);
    }
  }
  SIMD_INLINE I32 code(I32 bits) const { return select(greater(bits, I32{}), (bits + step_) >> 23, outside_); }
  SIMD_INLINE I32 code_of_any(I32 bits) const {
    const I32 ordinary = select(equal(bits, splat(infinity)), splat(largest_), code(bits));
    return select(is_nan(as<F32>(bits)), splat(0xff), ordinary);
  }
  // -1 where the next mantissa has the next code; less elsewhere.
  SIMD_INLINE I32 place(I32 bits) const { return (bits + step_) | ~0x7fffff; }
  SIMD_INLINE Mask32 doubt(I32 bits) const {
    return both(equal(place(bits), splat(-1)), greater(bits, splat(last_exact)));
  }

  I32 sign_, step_, outside_;
  std::int32_t largest_;
};

// bfloat16, in words. Magnitudes are codes without sign.
// 1. Normal numbers by their step as above; not above the largest power of two, and those below the least have code 0,
//    as all that are not positive.
// 2. Subnormal numbers, if any product of theirs has another code, infinities that the largest finite number is not as
//    good as, and NaN: products of the block, rounded to odd. The same without saturation.
template <>
class ScaledPowers<DType::bfloat16> {
  static constexpr int one_exponent = 0x80;
  static constexpr int infinity = 0x7f80;

 public:
  ScaledPowers(const Policy& policy, const Factor& factor)
      : factor_(factor), words_(policy), saturates_(policy.saturate) {
    const int step = factor.power_step >> 16;  // of bfloat16's bits
    const int largest = 254 * one_exponent + one_exponent - 1 - step;
    sign_ = kept(splat(word(factor.scale < 0.0 ? 0x8000 : 0)));
    step_ = kept(splat(word(step)));
    before_least_ = kept(as<I16>(splat(word((-step > one_exponent ? -step : one_exponent) - 1))));
    largest_ = kept(as<I16>(splat(word(largest < infinity ? largest : infinity - 1))));
    last_ordinary_ = kept(as<I16>(splat(word(largest < infinity ? infinity : infinity - 1))));
    subnormal_ = kept(splat(word(step > 0 ? one_exponent - 1 : 0)));
  }

  SIMD_INLINE bool store_block(const std::byte* src, std::byte* dst) const {
    const Words loaded = load_words(src);
    const Words x = {loaded.lo ^ sign_, loaded.hi ^ sign_};
    const I16 greatest = as<I16>(max(x.lo & 0x7fff, x.hi & 0x7fff));
    const U16 least = min(x.lo - 1, x.hi - 1);
    if (!saturates_ || any_greater(greatest, last_ordinary_) ||
        any_greater(as<I16>(subtract_to_zero(subnormal_, least)), I16{})) [[unlikely]] {
      store_products(src, dst, factor_, words_);
    } else {
      store(dst, pack_low_bytes({code(as<I16>(x.lo)), code(as<I16>(x.hi))}));
    }
    return true;
  }

 private:
  static std::uint16_t word(int x) { return static_cast<std::uint16_t>(x); }
  SIMD_INLINE U16 code(I16 x) const {
    const U16 ordinary = (as<U16>(min(x, largest_)) + step_) >> 7;
    return x > before_least_ ? ordinary : U16{};
  }
  [[gnu::noinline]] static void store_products(const std::byte* src, std::byte* dst, const Factor& factor,
                                               const WordEncoder<DType::bfloat16, DType::float8_e8m0fnu>& words) {
    Block<F32> x;
    Float32Products<DType::bfloat16, ProductRounding::none, false, true>(factor).block(src, x);
    words.store_block(dst, {odd_high_words(x.a, x.b), odd_high_words(x.c, x.d)});
  }

  const Factor& factor_;
  WordEncoder<DType::bfloat16, DType::float8_e8m0fnu> words_;
  bool saturates_;
  U16 sign_, step_, subnormal_;
  I16 before_least_, largest_, last_ordinary_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
