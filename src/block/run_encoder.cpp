#include "block/run_encoder.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "block/code_packing.hpp"
#include "block/float_steps.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t chunk = 512;
// How many runs a step has at most.
constexpr std::size_t step_runs = kernels::run_step >> kernels::least_run_shift;

bool is_power_of_two(float x) noexcept { return (bits_of(x) & ((1u << mantissa_bits) - 1)) == 0; }

}  // namespace

std::uint32_t largest_bits(const std::byte* numbers, DType dtype, std::size_t count) noexcept {
  const kernels::LargestOfRunsFn largest_of = kernels::ops_of(active_target()).largest_of_runs;
  std::uint32_t largest = 0;
  for_whole_steps(numbers, dtype, count, [&](const std::byte* step, std::size_t n, std::size_t) {
    largest_of(step, dtype, n, kernels::shift_of_all, &largest);
  });
  return largest;
}

RunEncoder::RunEncoder(const ElementRule& rule, DType weights, const RunStorage& storage, Target target) noexcept
    : rule_(rule),
      weights_(weights),
      code_rule_{.element = rule.element,
                 .bits = rule.bits,
                 .multiplies = rule.multiplies,
                 .rounds_to = rule.rounds && weights != DType::float32 ? weights : DType::undefined,
                 .ties = rule.ties,
                 .zeros = rule.zeros,
                 .is_offset = storage.is_offset,
                 .numbers = storage.numbers},
      encode_(kernels::ops_of(target).find_encode_runs(code_rule_)) {}

void RunEncoder::run(const std::byte* numbers, std::size_t count, const Operand* operands, unsigned run_shift,
                     std::byte* packed, std::size_t ahead) const noexcept {
  const auto bits = static_cast<std::size_t>(rule_.bits);
  for_whole_steps(numbers, code_rule_.numbers, count, [&](const std::byte* step, std::size_t n, std::size_t done) {
    const Operand* const from = operands + (done >> run_shift);
    if (done + n <= count) return encode_(step, n, code_rule_, from, run_shift, packed + done * bits / 8, ahead);
    std::array<Operand, step_runs> padded;
    std::copy_n(from, ((count - done - 1) >> run_shift) + 1, padded.begin());
    std::array<std::byte, kernels::run_step> codes;
    encode_(step, n, code_rule_, padded.data(), run_shift, codes.data(), 0);
    const std::size_t used = (count - done) * bits;
    if (used % 8 != 0) codes[used / 8] &= static_cast<std::byte>((1u << used % 8) - 1);
    std::memcpy(packed + done * bits / 8, codes.data(), (used + 7) / 8);
  });
  if (rule_.search != Search::none) search(numbers, count, operands, run_shift, packed);
}

// Runs where the first nearest number may not be the one that midpoints tell, as distances are rounded. Of float32.
void RunEncoder::search(const std::byte* numbers, std::size_t count, const Operand* operands, unsigned run_shift,
                        std::byte* packed) const noexcept {
  std::array<float, chunk> floats;
  std::array<std::uint8_t, chunk> codes;
  const std::size_t size = std::min(std::size_t{1} << run_shift, chunk);
  for (std::size_t done = 0; done < count; done += size) {
    const std::size_t n = std::min(size, count - done);
    const Operand& operand = operands[done >> run_shift];
    const float largest = float_of(largest_bits(numbers + done * sizeof(float), DType::float32, n));
    const bool is_exact = magnitude(rule_.multiplies ? largest * operand.factor : largest / operand.factor) < 0x1p18f;
    if (is_exact && (rule_.search == Search::quotients || is_power_of_two(operand.factor))) continue;
    std::memcpy(floats.data(), numbers + done * sizeof(float), n * sizeof(float));
    define_codes(rule_, weights_, operand, {floats.data(), n}, {codes.data(), n});
    pack_stream(rule_.bits, {codes.data(), n}, packed + done * static_cast<std::size_t>(rule_.bits) / 8);
  }
}

void encode(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
            std::span<std::uint8_t> codes) noexcept {
  const RunEncoder encoder(rule, weights);
  std::array<std::byte, chunk> packed;
  for (std::size_t done = 0; done < numbers.size(); done += chunk) {
    const std::size_t n = std::min(chunk, numbers.size() - done);
    encoder.run(reinterpret_cast<const std::byte*>(numbers.data() + done), n, &operand, kernels::shift_of_all,
                packed.data());
    unpack_stream(rule.bits, packed.data(), codes.subspan(done, n));
  }
}

}  // namespace tensorcast::block
