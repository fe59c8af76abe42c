// Products in float64, for conversions with a scale.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorcast::kernels {

enum class ProductRounding : std::uint8_t {
  nearest,
  odd,  // toward zero, then a last bit of one if something was cut off: a later rounding is as good as the only one
};

// x[i] *= scale, NaN kept. Finite products rounded to odd are finite, and zero only where x[i] or the scale is.
// Returns the greatest magnitude among the products, or something greater; NaN does not count.
using MultiplyFn = double (*)(double* x, std::size_t count, double scale, ProductRounding rounding);

// A scale as float32, for targets that keep few bits.
struct FloatScale {
  float high = 1.0F;  // high + low is the scale to 48 bits
  float low = 0.0F;
  // Bits that are all zero in numbers at which a rounding to the target changes its result; that holds for magnitudes
  // from `least` to `greatest`, given as bits too.
  std::int32_t boundary_bits = 0;
  std::int32_t least = 0;
  std::int32_t greatest = 0;
};

// product[i] = x[i] * scale in float32, good enough for the target's one rounding. False where some product is so near
// a boundary, or so large or small, that it may not be; the products are then unspecified. `count` is a multiple of 16.
using MultiplyFloatsFn = bool (*)(const float* x, float* product, std::size_t count, const FloatScale& scale);

namespace portable {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
bool multiply_floats(const float* x, float* product, std::size_t count, const FloatScale& scale);
}  // namespace portable
#if defined(__x86_64__)
namespace avx2 {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
bool multiply_floats(const float* x, float* product, std::size_t count, const FloatScale& scale);
}  // namespace avx2
namespace avx512 {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
bool multiply_floats(const float* x, float* product, std::size_t count, const FloatScale& scale);
}  // namespace avx512
namespace avx512vbmi {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
bool multiply_floats(const float* x, float* product, std::size_t count, const FloatScale& scale);
}  // namespace avx512vbmi
#endif

}  // namespace tensorcast::kernels
