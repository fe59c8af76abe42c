// SPDX-License-Identifier: Apache-2.0
// The kernel of one pair: decodes and encodes, block by block.
#pragma once

#include "dtype/platform.hpp"
#include "kernels/encode/encode_integer.hpp"
#include "kernels/encode/encode_lane16.hpp"
#include "kernels/encode/limit.hpp"
#include "kernels/encode/source_check.hpp"
#include "kernels/for_each_block.hpp"
#include "kernels/kernel.hpp"
#include "kernels/loop_prefetching.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/first_elements.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// An encoder holds the constants that depend on the policy, and stores blocks.
template <DType from, DType to, bool in_loop = true>
auto make_encoder(const Policy& policy) {
  if constexpr (in_lanes16<from, to>) {
    return Lane16Encoder<from, to>(policy);
  } else if constexpr (to == DType::boolean) {
    return BoolEncoder<from>(policy);
  } else if constexpr (to == DType::float64) {
    return Float64Encoder<from>(policy);
  } else if constexpr (to == DType::float4_e2m1fn && !is_float<from>) {
    return Float4OfIntegerEncoder<from>(policy);
  } else if constexpr (to == DType::float8_e8m0fnu && from == DType::float64) {
    return E8m0OfFloat64Encoder(policy);
  } else if constexpr (to == DType::float8_e8m0fnu && (from == DType::float16 || !is_float<from>)) {
    return E8m0Encoder<from>(policy);
  } else if constexpr (is_float<to>) {
    return EncoderThroughFloat32<from, to, in_loop>(policy);
  } else if constexpr (is_float<from>) {
    return FloatToIntegerEncoder<from, to>(policy);
  } else {
    return IntegerEncoder<from, to>(policy);
  }
}

template <DType from, DType to>
SIMD_INLINE auto load_block_for(const std::byte* src) {
  if constexpr (in_lanes16<from, to>) {
    return load_u16x2(src);
  } else {
    return load_block<from>(src);
  }
}

template <DType from, DType to>
[[gnu::noinline]] void convert_limited(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  const auto encoder = make_encoder<from, to>(policy_of_limited<to>(policy));
  for_each_block<kBlock, bits_of<from>, bits_of<to>, loop_prefetches(from, to)>(
      src, dst, count, [&encoder](const std::byte* block, std::byte* result) SIMD_INLINE_LAMBDA {
        encoder.store_block(
            result, map(load_block<from>(block), [](auto unit) SIMD_INLINE_LAMBDA { return limited<from, to>(unit); }));
      });
}

// Reports whether no step of the pair's loop depends on the thread's floating-point environment. Subnormal float32
// numbers may be flushed where they become zero anyway. Reading the environment takes 5 ns on AMD's CPUs.
template <DType from, DType to>
constexpr bool ignores_environment() {
  const bool is_integer = row(to).family == Family::integer;
  if (!is_float<from> && (is_integer || to == DType::boolean)) return true;
  if (TENSORCAST_HAS_OWN_ROUNDING == 0 || to == DType::float64) return false;
  if (!is_float<from>) return bits_of<from> <= 16;
  if (bits_of<from> > 32 || bits_of<from> < 16) return false;
  return !is_integer || bits_of<to> <= (is_signed_type<to> ? 32 : 16);
}

// Reports whether few elements have a loop of their own, without a padded copy in memory.
template <DType from, DType to>
constexpr bool has_few() {
  return TENSORCAST_HAS_OWN_ROUNDING != 0 && is_float<from> && (bits_of<from> == 32 || bits_of<from> == 16) &&
         ignores_environment<from, to>();
}

#if TENSORCAST_HAS_OWN_ROUNDING
template <DType from, DType to>
SIMD_INLINE auto load_few(const std::byte* src, std::size_t count) {
  if constexpr (in_lanes16<from, to>) {
    const U16 unit = in_lanes_16(load_first_16(src, count));
    return U16x2{unit, unit};
  } else {
    F32 unit;
    if constexpr (from == DType::float32) {
      unit = as<F32>(load_first_32(src, count));
    } else if constexpr (from == DType::bfloat16) {
      unit = as<F32>(widen_words(load_first_16(src, count)) << 16);
    } else {
      unit = float16_numbers(load_first_16(src, count));
    }
    return Block<F32>{unit, unit, unit, unit};  // the compiler computes with one of them
  }
}

// At most kLanes elements, with policies that limit nothing.
template <DType from, DType to>
[[gnu::noinline]] void convert_few(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  const auto encoder = make_encoder<from, to, false>(policy);
  alignas(64) std::byte codes[bytes_of<to>(kBlock) < 64 ? 64 : bytes_of<to>(kBlock)];
  encoder.store_block(codes, load_few<from, to>(src, count));
  copy_first(dst, codes, (count * bits_of<to> + 7) / 8);
}
#endif

// Floats to integers by a word that make_encoder() does not know.
template <DType from, DType to>
[[gnu::noinline]] void convert_by_word(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  const FloatToIntegerEncoder<from, to, true> encoder(policy);
  for_each_block<kBlock, bits_of<from>, bits_of<to>, loop_prefetches(from, to)>(
      src, dst, count, [&encoder](const std::byte* block, std::byte* result) SIMD_INLINE_LAMBDA {
        encoder.store_block(result, load_block<from>(block));
      });
}

template <DType from, DType to>
[[gnu::noinline]] void convert(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  if constexpr (is_float<from> && row(to).family == Family::integer) {
    if (is_rare_word(policy.rounding)) [[unlikely]] {
      return in_default_environment([&] { convert_by_word<from, to>(src, dst, count, policy); });
    }
  }
  if constexpr (may_be_limited<from, to>) {
    if (is_limited<to>(policy)) {
      return in_default_environment([&] { convert_limited<from, to>(src, dst, count, policy); });
    }
  }
#if TENSORCAST_HAS_OWN_ROUNDING
  if constexpr (has_few<from, to>()) {
    if (count <= kLanes) return convert_few<from, to>(src, dst, count, policy);
  }
#endif
  const auto encoder = make_encoder<from, to>(policy);
  for_each_block<kBlock, bits_of<from>, bits_of<to>, loop_prefetches(from, to)>(
      src, dst, count, [&encoder](const std::byte* block, std::byte* result) SIMD_INLINE_LAMBDA {
        encoder.store_block(result, load_block_for<from, to>(block));
      });
}

// Reports whether the pair has a kernel that checks its source.
template <DType from, DType to>
constexpr bool has_checked() {
  const bool narrows_float = is_float<to> && bits_of<to> >= 16 && bits_of<to> < bits_of<from>;
  const bool to_whole_bytes = row(to).family == Family::integer && bits_of<to> >= 8;
  const bool has_kernel = narrows_float || to_whole_bytes;
  return TENSORCAST_HAS_SHORTCUTS != 0 && is_float<from> && bits_of<from> >= 32 && has_kernel;
}

template <DType from, DType to>
bool convert_checked(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                     const Interval& accepted) {
  if constexpr (may_be_limited<from, to>) {
    if (is_limited<to>(policy)) {
      convert<from, to>(src, dst, count, policy);
      return true;
    }
  }
  return in_default_environment([&] {
    SourceCheck<from> check(accepted);
    const auto encoder = make_encoder<from, to>(policy);
    for_each_block<kBlock, bits_of<from>, bits_of<to>, loop_prefetches(from, to)>(
        src, dst, count, [&](const std::byte* block, std::byte* result) SIMD_INLINE_LAMBDA {
          const auto x = load_block<from>(block);
          check.add(x);
          encoder.store_block(result, x);
        });
    return check.finds_outside();
  });
}

template <KernelFn kernel>
void run_in_default_environment(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  in_default_environment([&] { kernel(src, dst, count, policy); });
}

// Copies integers to integers of the same width, which have the same codes.
template <DType from, DType to>
void copy_codes(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  if (is_limited<to>(policy)) return convert_limited<from, to>(src, dst, count, policy);
  if (src != dst && count != 0) __builtin_memcpy(dst, src, bytes_of<from>(count));
}

template <DType from, DType to>
constexpr KernelFn few_of() {
#if TENSORCAST_HAS_OWN_ROUNDING
  static_assert(few_elements <= kLanes);
  if constexpr (has_few<from, to>()) return convert_few<from, to>;
#endif
  return nullptr;
}

template <DType from, DType to>
constexpr CheckedKernelFn checked_of() {
  if constexpr (has_checked<from, to>()) return convert_checked<from, to>;
  return nullptr;
}

template <DType from, DType to>
constexpr Kernel kernel_row() {
  constexpr bool are_integers = !is_float<from> && row(to).family == Family::integer;
  if constexpr (are_integers && bits_of<from> == bits_of<to>) {
    return {from, to, copy_codes<from, to>, "copy"};
  } else if constexpr (ignores_environment<from, to>()) {
    return {from, to, convert<from, to>, "fused", few_of<from, to>(), checked_of<from, to>()};
  } else {
    return {from, to, run_in_default_environment<convert<from, to>>, "fused", nullptr, checked_of<from, to>()};
  }
}

// The rows of several sources to all other types.
template <DType... from>
struct RowTable {
  static constexpr std::size_t targets = number_type_count - 1;  // not the source itself
  Kernel rows[sizeof...(from) * targets] = {};
  int size = 0;

  constexpr RowTable() { (add_source<from>(), ...); }

 private:
  template <DType source, std::size_t index = 0>
  constexpr void add_source() {
    if constexpr (index < dtype_table.size()) {
      constexpr DType target = dtype_table[index].id;
      if constexpr (target != source && target != DType::string) rows[size++] = kernel_row<source, target>();
      add_source<source, index + 1>();
    }
  }
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
