// SPDX-License-Identifier: Apache-2.0
#include "kernels/per_target/functions.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

extern constexpr Ops ops = {
    .register_bytes = kRegisterBytes,
    .float_source_rows = float_source_rows,
    .integer_source_rows = integer_source_rows,
    .byte_source_rows = byte_source_rows,
    .table_loops = table_loops,
    .find_multiply = find_multiply,
    .multiply_each = multiply_each,
    .multiply_each_float32 = multiply_each_float32,
    .rounders = &rounders,
    .find_encode_by_word = find_encode_by_word,
    .random_words = random_words,
    .find_scale_runs = find_scale_runs,
    .scale_runs_by_powers = scale_runs_by_powers,
    .look_up_split = TENSORCAST_HAS_BYTE_LOOKUP ? look_up_split : nullptr,
    .look_up_split_by_powers = TENSORCAST_HAS_BYTE_LOOKUP ? look_up_split_by_powers : nullptr,
    .look_up_nibbles = TENSORCAST_HAS_BYTE_LOOKUP ? look_up_nibbles : nullptr,
    .look_up_powers = TENSORCAST_HAS_BYTE_LOOKUP ? look_up_powers : nullptr,
    .find_encode_runs = find_encode_runs,
    .find_encode_mantissas = find_encode_mantissas,
    .encode_steps = TENSORCAST_TARGET_LEVEL >= 2 ? encode_steps : nullptr,
    .encode_integer_steps = TENSORCAST_TARGET_LEVEL >= 2 ? encode_integer_steps : nullptr,
    .largest_of_runs = largest_of_runs,
    .range_of_runs = range_of_runs,
    .scale_blocks = scale_blocks,
    .fit_offset_runs = fit_offset_runs,
    .set_offset_codes = set_offset_codes,
    .fit_signed_runs = fit_signed_runs,
    .find_encode_gguf = find_encode_gguf,
    .find_unpack_gguf = find_unpack_gguf,
    .find_decode_gguf = kRegisterBytes == 64 ? find_decode_gguf : nullptr,
    .stream_copy = stream_copy,
    .stream_fence = stream_fence,
    .compare_float32 = compare_float32,
    .compare_float64 = compare_float64,
    .split_integers = split_integers,
    .split_products = split_products,
    .any_outside_float32 = any_outside_float32,
    .any_outside_float64 = any_outside_float64,
    .unpack_six_bits = unpack_six_bits,
    .look_up_six_bits = look_up_six_bits,
    .pack_six_bits = pack_six_bits,
    .count_nibbles = TENSORCAST_HAS_BYTE_LOOKUP ? count_nibbles : nullptr,
    .unpack_bits = unpack_bits,
    .transpose = TENSORCAST_TARGET_LEVEL >= 1 ? transpose : nullptr,
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
