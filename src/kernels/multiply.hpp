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

namespace portable {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
}
#if defined(__x86_64__)
namespace avx2 {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
}
namespace avx512 {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
}
namespace avx512vbmi {
double multiply(double* x, std::size_t count, double scale, ProductRounding rounding);
}
#endif

}  // namespace tensorcast::kernels
