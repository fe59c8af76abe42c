// SPDX-License-Identifier: Apache-2.0
#include "block/recipe/run_encoder.hpp"

#include <algorithm>
#include <optional>

#include "block/format/code_packing.hpp"
#include "block/recipe/float_steps.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t chunk = 512;
// How many runs a step has at most.
constexpr std::size_t step_runs = kernels::run_step >> kernels::least_run_shift;

bool may_have_table(float factor) noexcept { return factor >= 0x1p-40f && factor <= 0x1p40f; }

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

namespace {

// Of all magnitudes from the first cell's on, the codes that this scale gives. Returns false if a cell has two steps.
template <int cell_bits>
bool set_steps(std::span<const std::uint8_t> codes, std::span<std::uint16_t> steps) {
  constexpr std::size_t cell = std::size_t{1} << cell_bits;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::span<const std::uint8_t> in_cell = codes.subspan(i * cell, cell);
    const auto above = static_cast<std::size_t>(std::count(in_cell.begin(), in_cell.end(), in_cell.front() + 1));
    const bool is_one_step =
        in_cell.back() == in_cell.front() + (above == 0 ? 0 : 1) && std::is_sorted(in_cell.begin(), in_cell.end());
    if (!is_one_step) return false;
    steps[i] = static_cast<std::uint16_t>(in_cell.front() * cell + above - i * cell);
  }
  return codes.front() == 0;
}

// The codes of all magnitudes of bfloat16 from this binade on, under one scale.
template <std::size_t magnitudes>
std::array<std::uint8_t, magnitudes> codes_from(int field, kernels::EncodeRunsFn encode, const kernels::CodeRule& rule,
                                                float factor) {
  std::array<std::uint16_t, magnitudes> numbers;
  for (std::size_t i = 0; i < magnitudes; ++i) numbers[i] = static_cast<std::uint16_t>((field << 7) + i);
  std::array<std::byte, magnitudes> packed;
  const Operand operand{.factor = factor};
  encode(reinterpret_cast<const std::byte*>(numbers.data()), magnitudes, rule, &operand, kernels::shift_of_all,
         packed.data(), {});
  std::array<std::uint8_t, magnitudes> codes;
  unpack_stream(rule.bits, packed.data(), codes);
  return codes;
}

// Empty if a cell has two steps, which none has.
std::optional<kernels::IntegerStepTables> integer_steps_of(kernels::EncodeRunsFn encode,
                                                           const kernels::CodeRule& rule) noexcept {
  using Tables = kernels::IntegerStepTables;
  constexpr int negative = 256, code_mask = 15;
  std::optional<Tables> made(std::in_place);
  for (std::size_t mantissa = 0; mantissa < Tables::mantissas; ++mantissa) {
    const float scale = float_of(static_cast<std::uint32_t>((127 << 7) + mantissa) << 16);
    // Negative numbers, as they have one code more.
    auto codes = codes_from<(Tables::cells << Tables::cell_bits)>(negative + 127 - 1, encode, rule, scale);
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>((rule.is_offset ? 8 - code : -code) & code_mask);
    if (!set_steps<Tables::cell_bits>(codes, made->steps[mantissa])) return std::nullopt;
  }
  return made;
}

}  // namespace

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
      encode_(kernels::ops_of(target).find_encode_runs(code_rule_)),
      encode_mantissas_(kernels::ops_of(target).find_encode_mantissas(code_rule_)),
      encode_steps_(kernels::ops_of(target).encode_steps) {
  const bool has_integers = storage.numbers == DType::bfloat16 && rule.element == DType::int8 && rule.bits == 4 &&
                            !rule.multiplies && code_rule_.rounds_to == DType::bfloat16;
  encode_integer_steps_ = has_integers ? kernels::ops_of(target).encode_integer_steps : nullptr;
  if (encode_integer_steps_ == nullptr) return;
  static const std::optional<kernels::IntegerStepTables> steps = integer_steps_of(encode_, code_rule_);
  integer_steps_ = steps ? &*steps : nullptr;
}

std::unique_ptr<const kernels::StepTables> RunEncoder::make_steps(std::span<const float, 256> factors) const {
  using Tables = kernels::StepTables;
  constexpr std::size_t magnitudes = Tables::cells << Tables::cell_bits;
  constexpr std::uint32_t mantissa = (1u << mantissa_bits) - 1;
  const bool is_taken =
      encode_steps_ != nullptr && code_rule_.element == DType::float4_e2m1fn && code_rule_.numbers == DType::bfloat16 &&
      (rule_.zeros == Zeros::sign_kept || (rule_.zeros == Zeros::negative_numbers && !rule_.multiplies));
  if (!is_taken) return nullptr;
  auto made = std::make_unique<Tables>();
  std::array<std::uint32_t, Tables::mantissas + 1> known{};
  std::size_t tables = 0;
  for (std::size_t code = 0; code < factors.size(); ++code) {
    const float factor = factors[code];
    if (!(factor >= 0x1p-100f && factor <= 0x1p100f)) continue;  // no ordinary block has it
    // A quotient that underflows to zero would have no sign.
    if (rule_.zeros != Zeros::sign_kept && factor > 1.0f) return nullptr;
    // From three binades below that of 1 on, so that the least is below 0.25.
    const int exponent = static_cast<int>(bits_of(factor) >> mantissa_bits) - 127;
    const int field = 127 - 3 + (rule_.multiplies ? -exponent - 1 : exponent);
    made->bases[code] = static_cast<std::uint32_t>(field << 7) * 0x10001u;
    known[tables] = bits_of(factor) & mantissa;
    const auto table = static_cast<std::size_t>(std::find(known.begin(), known.end(), known[tables]) - known.begin());
    made->offsets[code] = static_cast<std::uint16_t>(table * sizeof(made->steps[0]));
    if (table != tables) continue;
    if (tables++ == Tables::mantissas) return nullptr;
    const auto codes = codes_from<magnitudes>(field, encode_, code_rule_, factor);
    if (!set_steps<Tables::cell_bits>(codes, made->steps[table])) return nullptr;
  }
  return made;
}

void RunEncoder::run_steps(const std::byte* numbers, std::size_t count, const kernels::StepTables& tables,
                           const std::uint8_t* scales, unsigned run_shift, std::byte* packed,
                           const kernels::Ahead& ahead) const noexcept {
  for_whole_steps(numbers, DType::bfloat16, count, [&](const std::byte* step, std::size_t n, std::size_t done) {
    const std::uint8_t* const from = scales + (done >> run_shift);
    if (done + n <= count)
      return encode_steps_(step, n, tables, from, run_shift, rule_.zeros, packed + done / 2, ahead);
    std::array<std::uint8_t, step_runs> padded{};
    std::fill(std::copy_n(from, ((count - done - 1) >> run_shift) + 1, padded.begin()), padded.end(), *from);
    std::array<std::byte, kernels::run_step / 2> codes;
    encode_steps_(step, n, tables, padded.data(), run_shift, rule_.zeros, codes.data(), {});
    std::memcpy(packed + done / 2, codes.data(), (count - done + 1) / 2);
  });
}

void RunEncoder::run_integer_steps(const std::byte* numbers, std::size_t count, const Operand* operands,
                                   unsigned run_shift, std::byte* packed, const kernels::Ahead& ahead) const noexcept {
  const std::size_t whole = count / kernels::run_step * kernels::run_step;
  encode_integer_steps_(numbers, whole, code_rule_, *integer_steps_, operands, run_shift, packed, ahead);
  if (whole == count) return;
  run(numbers + storage_bytes(DType::bfloat16, whole), count - whole, operands + (whole >> run_shift), run_shift,
      packed + whole / 2);
}

bool RunEncoder::make_table(const Operand& operand, kernels::MantissaTable& table) const noexcept {
  const float factor = operand.factor;
  if (encode_mantissas_ == nullptr || !may_have_table(factor)) return false;
  // 1. The codes of all mantissas of a binade whose quotients are between 1 and 4.
  constexpr std::size_t mantissas = sizeof(kernels::MantissaTable::differences), cell = 8;
  const int exponent = static_cast<int>(bits_of(factor) >> mantissa_bits) - 127;
  const int field = 127 + (rule_.multiplies ? -exponent : exponent + 1);
  const auto codes = codes_from<mantissas>(field, encode_, code_rule_, factor);
  // 2. The binade to count from.
  const int kept_bits = row(rule_.element).format.mantissa_bits, binade = 1 << kept_bits;
  std::array<std::uint8_t, mantissas> above;  // the bits that mantissas have of their own
  std::uint8_t most = 0;
  for (std::size_t i = 0; i < mantissas; ++i) {
    above[i] = static_cast<std::uint8_t>(codes[i] - (i >> (7 - kept_bits)));
    most = std::max(most, above[i]);
  }
  const int binades = (most + binade - 1) / binade, normal_binades = codes[0] / binade - 1;
  table.base = static_cast<std::uint16_t>((field - binades) << 7);
  table.below_normal = static_cast<std::uint16_t>(((field - normal_binades) << 7) - 1);
  // 3. The differences, which never grow in a cell, and have one step there at most.
  const auto counted = static_cast<std::uint8_t>(binades * binade);
  for (std::size_t i = 0; i < mantissas; ++i) table.differences[i] = static_cast<std::uint8_t>(counted - above[i]);
  int steps = 0;
  for (std::size_t i = 0; i < mantissas / cell; ++i) {
    const std::uint8_t* const in_cell = table.differences + i * cell;
    int lower = 0;
    for (std::size_t k = 0; k < cell; ++k) lower += in_cell[0] - in_cell[k];
    table.first[i] = in_cell[0];
    table.last[i] = static_cast<std::uint8_t>(static_cast<int>(i * cell + cell) - 1 - lower);
    steps = std::max(steps, in_cell[0] - in_cell[cell - 1]);
  }
  return steps <= 1;
}

MantissaTables::MantissaTables(const RunEncoder& encoder, std::span<const Operand, count> operands) noexcept
    : multiplies_(encoder.multiplies()) {
  for (std::size_t i = 0; i < count; ++i) {
    factors_[i] = encoder.make_table(operands[i], tables_[i]) ? bits_of(operands[i].factor) : 0;
  }
}

bool MantissaTables::find(std::uint32_t largest_bits, const Operand& operand,
                          kernels::MantissaTable& table) const noexcept {
  const std::size_t i = (largest_bits >> 16) % count;
  const std::uint32_t bits = bits_of(operand.factor), exponent = ~((1u << mantissa_bits) - 1);
  if (factors_[i] == 0 || ((bits ^ factors_[i]) & ~exponent) != 0 || !may_have_table(operand.factor)) return false;
  table = tables_[i];
  // Numbers grow with what they are divided by.
  const auto binades = static_cast<std::uint16_t>(((bits & exponent) - (factors_[i] & exponent)) >> 16);
  const auto moved = static_cast<std::uint16_t>(multiplies_ ? -binades : binades);
  table.base = static_cast<std::uint16_t>(table.base + moved);
  table.below_normal = static_cast<std::uint16_t>(table.below_normal + moved);
  return true;
}

void RunEncoder::run(const std::byte* numbers, std::size_t count, const Operand* operands, unsigned run_shift,
                     std::byte* packed, const RunMemory& memory, const kernels::MantissaTable* tables) const noexcept {
  const auto bits = static_cast<std::size_t>(rule_.bits);
  kernels::CodeRule rule = code_rule_;
  rule.bypasses_cache = memory.bypasses_cache;
  for_whole_steps(numbers, code_rule_.numbers, count, [&](const std::byte* step, std::size_t n, std::size_t done) {
    const Operand* const from = operands + (done >> run_shift);
    if (done + n <= count && tables != nullptr) {
      return encode_mantissas_(step, n, rule, tables + (done >> run_shift), from, run_shift, packed + done,
                               memory.ahead);
    }
    if (done + n <= count) return encode_(step, n, rule, from, run_shift, packed + done * bits / 8, memory.ahead);
    std::array<Operand, step_runs> padded;
    std::copy_n(from, ((count - done - 1) >> run_shift) + 1, padded.begin());
    std::array<std::byte, kernels::run_step> codes;
    encode_(step, n, code_rule_, padded.data(), run_shift, codes.data(), {});
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
    // Products with 4 and 6 may be infinite.
    const bool may_overflow = rule_.search == Search::numbers && operand.factor >= 0x1p126f;
    if (is_exact && !may_overflow && (rule_.search == Search::quotients || is_power_of_two(operand.factor))) continue;
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
