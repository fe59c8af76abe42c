// Conversions with a scale: to float64, times the scale, to the target, in buffers that stay in the first-level cache.
#include <array>
#include <cstring>
#include <utility>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"
#include "kernels/multiply.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;

constexpr std::size_t buffer_count = 1024;  // fills whole bytes of every type

MultiplyFn multiply_of(Target target) {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      return portable::multiply;
    case Target::avx2:
      return avx2::multiply;
    case Target::avx512:
      return avx512::multiply;
    case Target::avx512vbmi:
      return avx512vbmi::multiply;
  }
#endif
  static_cast<void>(target);
  return portable::multiply;
}

struct Pair {
  Target target;
  DType from;
  DType to;
};

void run_scaled(const Pair& pair, const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  const DTypeRow& from = row(pair.from);
  const DTypeRow& to = row(pair.to);
  const Kernel* const to_float64 =
      pair.from == DType::float64 ? nullptr : find_kernel(pair.target, pair.from, DType::float64);
  const Kernel* const from_float64 =
      pair.to == DType::float64 ? nullptr : find_kernel(pair.target, DType::float64, pair.to);
  const MultiplyFn multiply = multiply_of(pair.target);
  const auto rounding = pair.to == DType::float64 ? ProductRounding::nearest : ProductRounding::odd;

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
    const double greatest = multiply(buffer, step, policy.scale, rounding);
    // Rounding to odd keeps what rounding to an integer needs as long as there are bits below the half. And a scale of
    // zero makes NaN of infinity, whose sign the specification states.
    if (policy.scale == 0.0 || (to.family == Family::integer && greatest >= 0x1p51)) {
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

template <Target target, DType from, DType to>
void scaled_kernel(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  run_scaled({target, from, to}, src, dst, count, policy);
}

constexpr std::size_t type_count = dtype_table.size();

// Kernels have no memory of their own: a function for each target and pair. 64-bit integers may not fit float64.
template <std::size_t index>
constexpr ScaledKernelFn scaled_kernel_at() {
  constexpr auto target = static_cast<Target>(index / (type_count * type_count));
  constexpr DTypeRow from = dtype_table[index / type_count % type_count];
  constexpr DTypeRow to = dtype_table[index % type_count];
  constexpr bool fits_float64 = from.family != Family::integer || from.bits < 64;
  if constexpr (from.family == Family::text || to.family == Family::text || !fits_float64) {
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
