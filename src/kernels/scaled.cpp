// Conversions with a scale: to float32 or float64, times the scale, to the target, in buffers that stay in the
// first-level cache. Targets that keep few bits make do with a product in float32, but for the few numbers that lie so
// near a boundary of the target that more bits decide.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"
#include "kernels/multiply.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;

constexpr std::size_t buffer_count = 1024;  // fills whole bytes of every type

struct Multiplication {
  MultiplyFn doubles;
  MultiplyFloatsFn floats;
};

Multiplication multiplication_of(Target target) {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      break;
    case Target::avx2:
      return {avx2::multiply, avx2::multiply_floats};
    case Target::avx512:
      return {avx512::multiply, avx512::multiply_floats};
    case Target::avx512vbmi:
      return {avx512vbmi::multiply, avx512vbmi::multiply_floats};
  }
#endif
  static_cast<void>(target);
  return {portable::multiply, portable::multiply_floats};
}

struct Pair {
  Target target;
  DType from;
  DType to;
};

constexpr std::int32_t float_bits(int exponent) { return (exponent + 127) << 23; }

// Nothing where products in float32 would not do.
std::optional<FloatScale> float_scale(const Pair& pair, double scale) {
  const DTypeRow& from = row(pair.from);
  const DTypeRow& to = row(pair.to);
  if (from.bits > 16 && pair.from != DType::float32) return std::nullopt;
  if (!(std::fabs(scale) >= 0x1p-60 && std::fabs(scale) <= 0x1p60)) return std::nullopt;
  FloatScale result;
  result.high = static_cast<float>(scale);
  result.low = static_cast<float>(scale - static_cast<double>(result.high));
  result.greatest = float_bits(127);
  const auto low_bits = [](int bits) { return (std::int32_t{1} << bits) - 1; };
  constexpr std::int32_t zero_only = 0x7fffffff;
  if (pair.to == DType::boolean) {
    result.boundary_bits = zero_only;
  } else if (pair.to == DType::float32) {  // the product is the result
    if (result.low != 0.0F) return std::nullopt;
    result.boundary_bits = zero_only;
    result.greatest = std::numeric_limits<std::int32_t>::max();
  } else if (to.family == Family::floating) {
    if (pair.to == DType::float64 || !to.format.has_zero) return std::nullopt;
    // Midpoints end in zeros, those of subnormals in more of them.
    result.boundary_bits = low_bits(22 - to.format.mantissa_bits);
    if (pair.to == DType::bfloat16) result.least = float_bits(-100);
  } else {
    if (to.bits > 8) return std::nullopt;
    result.greatest = float_bits(to.bits + 1);  // beyond, what wraps has other boundaries
    result.boundary_bits = low_bits(22 - to.bits);
  }
  // A product of few digits is exact, unless it underflows.
  const int digits = from.family == Family::floating ? from.format.mantissa_bits + 1 : from.bits;
  const int zeros = std::countr_zero(std::bit_cast<std::uint32_t>(result.high) | 0x800000U);
  if (result.low == 0.0F && digits + 24 - zeros <= 24) {
    result.boundary_bits = zero_only;
    result.least = std::max(result.least, float_bits(-126));
  }
  return result;
}

// 64-bit integers, of which float64 holds those below 2^53, and so what they were rounded to.
bool fits_float64(const double* numbers, std::size_t count) {
  bool fits = true;
  for (std::size_t i = 0; i < count; ++i) fits &= std::fabs(numbers[i]) < 0x1p53;
  return fits;
}

void run_in_float64(const Pair& pair, const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  const DTypeRow& from = row(pair.from);
  const DTypeRow& to = row(pair.to);
  const Kernel* const to_float64 =
      pair.from == DType::float64 ? nullptr : find_kernel(pair.target, pair.from, DType::float64);
  const Kernel* const from_float64 =
      pair.to == DType::float64 ? nullptr : find_kernel(pair.target, DType::float64, pair.to);
  const MultiplyFn multiply = multiplication_of(pair.target).doubles;
  const auto rounding = pair.to == DType::float64 ? ProductRounding::nearest : ProductRounding::odd;

  const bool is_wide = from.family == Family::integer && from.bits == 64;
  Policy unscaled = policy;
  unscaled.scale = 1.0;
  alignas(64) double buffer[buffer_count];
  auto* const bytes = reinterpret_cast<std::byte*>(buffer);
  while (count != 0) {
    const std::size_t step = count < buffer_count ? count : buffer_count;
    if (to_float64 == nullptr) {
      std::memcpy(bytes, src, step * sizeof(double));
    } else {
      to_float64->run(src, bytes, step, unscaled);
    }
    const bool is_rounded = is_wide && !fits_float64(buffer, step);
    const double greatest = multiply(buffer, step, policy.scale, rounding);
    // Rounding to odd keeps what rounding to an integer needs as long as there are bits below the half. And a scale of
    // zero makes NaN of infinity, whose sign the specification states.
    if (is_rounded || policy.scale == 0.0 || (to.family == Family::integer && greatest >= 0x1p51)) {
      static_cast<void>(codec::reference_cast(src, pair.from, dst, pair.to, step, policy));
    } else if (from_float64 == nullptr) {
      std::memcpy(dst, bytes, step * sizeof(double));
    } else {
      from_float64->run(bytes, dst, step, unscaled);
    }
    src += step * static_cast<std::size_t>(from.bits) / 8;
    dst += step * static_cast<std::size_t>(to.bits) / 8;
    count -= step;
  }
}

void run_in_float32(const Pair& pair, const FloatScale& scale, const std::byte* src, std::byte* dst, std::size_t count,
                    const Policy& policy) {
  constexpr std::size_t most = 256;
  const Kernel* const to_float32 =
      pair.from == DType::float32 ? nullptr : find_kernel(pair.target, pair.from, DType::float32);
  const Kernel* const from_float32 =
      pair.to == DType::float32 ? nullptr : find_kernel(pair.target, DType::float32, pair.to);
  const MultiplyFloatsFn multiply = multiplication_of(pair.target).floats;
  Policy unscaled = policy;
  unscaled.scale = 1.0;
  alignas(64) float numbers[most];
  alignas(64) float products[most];
  for (std::size_t step = 0; count != 0; count -= step) {
    step = std::min(most, count);
    const std::size_t padded = (step + 15) / 16 * 16;
    std::fill(numbers + step, numbers + padded, 0.0F);
    if (to_float32 == nullptr) {
      std::memcpy(numbers, src, step * sizeof(float));
    } else {
      to_float32->run(src, reinterpret_cast<std::byte*>(numbers), step, unscaled);
    }
    if (!multiply(numbers, products, padded, scale)) {
      run_in_float64(pair, src, dst, step, policy);
    } else if (from_float32 == nullptr) {
      std::memcpy(dst, products, step * sizeof(float));
    } else {
      from_float32->run(reinterpret_cast<const std::byte*>(products), dst, step, unscaled);
    }
    src += step * static_cast<std::size_t>(row(pair.from).bits) / 8;
    dst += step * static_cast<std::size_t>(row(pair.to).bits) / 8;
  }
}

void run_scaled(const Pair& pair, const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  const std::optional<FloatScale> scale = float_scale(pair, policy.scale);
  if (scale) return run_in_float32(pair, *scale, src, dst, count, policy);
  run_in_float64(pair, src, dst, count, policy);
}

template <Target target, DType from, DType to>
void scaled_kernel(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  run_scaled({target, from, to}, src, dst, count, policy);
}

constexpr std::size_t type_count = dtype_table.size();

// Kernels have no memory of their own: a function for each target and pair.
template <std::size_t index>
constexpr ScaledKernelFn scaled_kernel_at() {
  constexpr auto target = static_cast<Target>(index / (type_count * type_count));
  constexpr DTypeRow from = dtype_table[index / type_count % type_count];
  constexpr DTypeRow to = dtype_table[index % type_count];
  if constexpr (from.family == Family::text || to.family == Family::text) {
    return nullptr;
  } else {
    return scaled_kernel<target, from.id, to.id>;
  }
}

constexpr std::size_t table_size = 4 * type_count * type_count;

template <std::size_t... index>
constexpr std::array<ScaledKernelFn, sizeof...(index)> make_table(std::index_sequence<index...>) {
  return {scaled_kernel_at<index>()...};
}

constexpr std::array<ScaledKernelFn, table_size> table = make_table(std::make_index_sequence<table_size>());

}  // namespace

ScaledKernelFn find_scaled_kernel(Target target, DType from, DType to) noexcept {
  const DTypeRow* const source = find_row(from);
  const DTypeRow* const destination = find_row(to);
  if (source == nullptr || destination == nullptr) return nullptr;
  const auto place = [](const DTypeRow* found) { return static_cast<std::size_t>(found - dtype_table.data()); };
  return table[(static_cast<std::size_t>(target) * type_count + place(source)) * type_count + place(destination)];
}

}  // namespace tensorcast::kernels
