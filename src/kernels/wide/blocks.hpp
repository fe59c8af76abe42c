// Blocks in memory. Sources are loaded as the hub that holds them exactly: F32, F64x2, I32 or I64x2.
#pragma once

#include "dtype/dtype_table.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

template <DType dtype>
inline constexpr int bits_of = row(dtype).bits;
template <DType dtype>
inline constexpr bool is_float = row(dtype).family == Family::floating;
template <DType dtype>
inline constexpr bool is_signed_type = row(dtype).is_signed;

// Bytes of `count` elements; a unit or block of any type fills whole bytes.
template <DType dtype>
constexpr std::size_t bytes_of(std::size_t count) {
  return count * bits_of<dtype> / 8;
}

template <DType from>
SIMD_INLINE auto load_unit(const std::byte* src) {
  if constexpr (from == DType::float64) {
    return F64x2{load<F64>(src), load<F64>(src + kRegisterBytes)};
  } else if constexpr (from == DType::float32) {
    return load<F32>(src);
  } else if constexpr (from == DType::float16) {
    return load_float16(src);
  } else if constexpr (from == DType::bfloat16) {
    return as<F32>(load_uint16(src) << 16);
  } else if constexpr (from == DType::int64 || from == DType::uint64) {
    return I64x2{load<I64>(src), load<I64>(src + kRegisterBytes)};
  } else if constexpr (from == DType::int32 || from == DType::uint32) {
    return load<I32>(src);
  } else if constexpr (from == DType::int16) {
    return load_int16(src);
  } else {
    static_assert(from == DType::uint16);
    return load_uint16(src);
  }
}

template <DType from>
SIMD_INLINE auto load_block(const std::byte* src) {
  constexpr std::size_t unit = bytes_of<from>(kLanes);
  return Block<decltype(load_unit<from>(src))>{load_unit<from>(src), load_unit<from>(src + unit),
                                               load_unit<from>(src + 2 * unit), load_unit<from>(src + 3 * unit)};
}

// float32, int32 and uint32.
template <class Unit>
SIMD_INLINE void store_units(std::byte* dst, const Block<Unit>& x) {
  store(dst, x.a);
  store(dst + kRegisterBytes, x.b);
  store(dst + 2 * kRegisterBytes, x.c);
  store(dst + 3 * kRegisterBytes, x.d);
}

// float64, int64 and uint64.
template <class Unit>
SIMD_INLINE void store_unit_pairs(std::byte* dst, const Block<Unit>& x) {
  for (const Unit* unit : {&x.a, &x.b, &x.c, &x.d}) {
    store(dst, unit->lo);
    store(dst + kRegisterBytes, unit->hi);
    dst += 2 * kRegisterBytes;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
