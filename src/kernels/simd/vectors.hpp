// SPDX-License-Identifier: Apache-2.0
// Vector types of the target that a source is compiled for. The compiler's own vectors: + - & | ^ << >> work on lanes.
//
// A unit is kLanes elements: one register of 32-bit lanes or two of 64-bit lanes. A block is four units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensorcast/cast_options.hpp"

#define SIMD_INLINE [[gnu::always_inline]] inline
#define SIMD_INLINE_LAMBDA __attribute__((always_inline))  // behind the parameters

namespace tensorcast::kernels::TENSORCAST_TARGET {

inline constexpr std::size_t line_bytes = 64;  // of the cache
// Into the first-level cache, from any place. WebAssembly cannot.
SIMD_INLINE void prefetch_lines([[maybe_unused]] const std::byte* data, [[maybe_unused]] std::size_t bytes) {
#if !defined(__wasm__)
  for (std::size_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch(data + at);
#endif
}

inline constexpr int kRegisterBytes = TENSORCAST_REGISTER_BYTES;
inline constexpr int kLanes = kRegisterBytes / 4;
inline constexpr int kBlock = 4 * kLanes;

typedef float F32 __attribute__((vector_size(kRegisterBytes)));
typedef double F64 __attribute__((vector_size(kRegisterBytes)));
typedef std::int32_t I32 __attribute__((vector_size(kRegisterBytes)));
typedef std::uint32_t U32 __attribute__((vector_size(kRegisterBytes)));
typedef std::int64_t I64 __attribute__((vector_size(kRegisterBytes)));
typedef std::uint64_t U64 __attribute__((vector_size(kRegisterBytes)));
typedef std::int16_t I16 __attribute__((vector_size(kRegisterBytes)));
typedef std::uint16_t U16 __attribute__((vector_size(kRegisterBytes)));
typedef std::int8_t I8 __attribute__((vector_size(kRegisterBytes)));
typedef std::uint8_t U8 __attribute__((vector_size(kRegisterBytes)));
// Half and quarter registers.
typedef float F32h __attribute__((vector_size(kRegisterBytes / 2)));
typedef std::int32_t I32h __attribute__((vector_size(kRegisterBytes / 2)));
typedef std::int16_t I16h __attribute__((vector_size(kRegisterBytes / 2)));
typedef std::uint16_t U16h __attribute__((vector_size(kRegisterBytes / 2)));
typedef std::uint8_t U8h __attribute__((vector_size(kRegisterBytes / 2)));
typedef std::uint8_t U8q __attribute__((vector_size(kRegisterBytes / 4)));

struct F64x2 {
  F64 lo, hi;
};
struct I64x2 {
  I64 lo, hi;
};

// A block of 16-bit elements, in 16-bit lanes.
struct U16x2 {
  U16 lo, hi;
};

template <class Unit>
struct Block {
  Unit a, b, c, d;
};

// Braces evaluate left to right: loads keep the order of addresses, which DRAM bandwidth depends on.
template <class Unit, class Function>
SIMD_INLINE auto map(const Block<Unit>& x, Function function) {
  return Block<decltype(function(x.a))>{function(x.a), function(x.b), function(x.c), function(x.d)};
}

template <class To, class From>
SIMD_INLINE To as(From bits) {
  static_assert(sizeof(To) == sizeof(From));
  return (To)bits;
}

template <class V>
SIMD_INLINE V load(const std::byte* src) {
  V v;
  __builtin_memcpy(&v, src, sizeof v);
  return v;
}

template <class V>
SIMD_INLINE void store(std::byte* dst, V v) {
  __builtin_memcpy(dst, &v, sizeof v);
}

// Combines all lanes into one value: the lower half with the upper half, until one lane is left.
template <class V, class Function>
SIMD_INLINE auto reduce(V x, Function function) {
  constexpr std::size_t lanes = sizeof(V) / sizeof(x[0]);
  std::remove_cvref_t<decltype(x[0])> each[lanes];
  store(reinterpret_cast<std::byte*>(each), x);
#pragma GCC unroll 8
  for (std::size_t half = lanes / 2; half != 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) each[lane] = function(each[lane], each[lane + half]);
  }
  return each[0];
}
template <class V>
SIMD_INLINE auto reduce_max(V x) {
  return reduce(x, [](auto a, auto b) { return a < b ? b : a; });
}
template <class V>
SIMD_INLINE auto reduce_min(V x) {
  return reduce(x, [](auto a, auto b) { return b < a ? b : a; });
}

// Minus zero, not plus: x - 0 is x for every float.
SIMD_INLINE F32 splat(float x) { return x - F32{}; }
SIMD_INLINE F64 splat(double x) { return x - F64{}; }
SIMD_INLINE I32 splat(std::int32_t x) { return x - I32{}; }
SIMD_INLINE I64 splat(std::int64_t x) { return x - I64{}; }
SIMD_INLINE I16 splat(std::int16_t x) { return x - I16{}; }
SIMD_INLINE U16 splat(std::uint16_t x) { return x - U16{}; }
SIMD_INLINE I8 splat(std::int8_t x) { return x - I8{}; }
SIMD_INLINE U8 splat(std::uint8_t x) { return x - U8{}; }

// Negates the lanes in which `sign` is -1, modulo 2^32 or 2^64. In other lanes `sign` is 0.
SIMD_INLINE I32 negated_where(I32 sign, I32 x) { return as<I32>(as<U32>(x ^ sign) - as<U32>(sign)); }
SIMD_INLINE I64 negated_where(I64 sign, I64 x) { return as<I64>(as<U64>(x ^ sign) - as<U64>(sign)); }

// Keeps a constant in a register: g++ 12 would load it from a general register in each round of a loop. Does nothing on
// the portable target, which has few registers and operations that read constants from memory.
template <class V>
SIMD_INLINE V keep_in_register(V x) {
#if defined(__x86_64__) && TENSORCAST_TARGET_LEVEL >= 1
  asm("" : "+v"(x));
#endif
  return x;
}
// Only for loops: code that runs once reads constants from memory.
template <bool in_loop, class V>
SIMD_INLINE V kept(V x) {
  if constexpr (in_loop) return keep_in_register(x);
  return x;
}
template <class Lane>
SIMD_INLINE auto constant(Lane x) {
  return keep_in_register(splat(x));
}

// Rounds float64 to 24 bits, to odd: toward zero, then sets the last bit if the result is inexact. A later rounding to
// fewer bits has the same result as rounding `x` once. float32 holds results from 2^-126 on. Infinities and NaN stay.
SIMD_INLINE F64 round_to_odd_24(F64 x) {
  constexpr std::int64_t low = 0x1fffffff;
  const I64 bits = as<I64>(x);
  return as<F64>((bits | ((bits & low) + low)) & ~low);  // the sum carries into bit 29 if any lower bit is set
}

// Rounds integers to 24 significant bits, to odd.
template <bool is_signed>
SIMD_INLINE I32 round_to_odd_24(I32 x) {
  constexpr std::int32_t low = 0xff;
  const I32 magnitude = is_signed ? x ^ (x >> 31) : x;
  const I32 odd = (x | ((x & low) + low)) & ~low;
  return as<U32>(magnitude) >> 24 == 0 ? x : odd;
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
