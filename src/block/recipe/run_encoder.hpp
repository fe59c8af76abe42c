// SPDX-License-Identifier: Apache-2.0
// Codes of numbers in runs, by the kernels of this CPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "block/recipe/element_rule.hpp"
#include "kernels/runs.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::block {

// How a RunEncoder's numbers and codes are stored.
struct RunStorage {
  DType numbers = DType::float32;  // or bfloat16, for rules without a search
  bool is_offset = false;          // integers of 4 bits count from -8
};

// How the memory of a run is read and written.
struct RunMemory {
  kernels::Ahead ahead = {};
  bool bypasses_cache = false;  // as CodeRule's
};

// The codes of define_codes(), packed: those of runs of 2^run_shift numbers, each with its operand.
class RunEncoder {
 public:
  RunEncoder() = default;
  RunEncoder(const ElementRule& rule, DType weights, const RunStorage& storage = {},
             Target target = active_target()) noexcept;

  // Runs of 64 or more may have tables.
  void run(const std::byte* numbers, std::size_t count, const Operand* operands, unsigned run_shift, std::byte* packed,
           const RunMemory& memory = {}, const kernels::MantissaTable* tables = nullptr) const noexcept;

  // The same by the codes of scales, whose operands are factors[code], for factors in [2^-100, 2^100] alone. Takes as
  // long to make as some ten thousand codes. Null: the rule or the factors have none.
  [[nodiscard]] std::unique_ptr<const kernels::StepTables> make_steps(std::span<const float, 256> factors) const;
  void run_steps(const std::byte* numbers, std::size_t count, const kernels::StepTables& tables,
                 const std::uint8_t* scales, unsigned run_shift, std::byte* packed,
                 const kernels::Ahead& ahead) const noexcept;

  // The same as run() for finite numbers in runs of 32 or more, where has_integer_steps(): integers of 4 bits from
  // bfloat16.
  void run_integer_steps(const std::byte* numbers, std::size_t count, const Operand* operands, unsigned run_shift,
                         std::byte* packed, const kernels::Ahead& ahead) const noexcept;
  [[nodiscard]] bool has_integer_steps() const noexcept { return integer_steps_ != nullptr; }

  [[nodiscard]] bool has_tables() const noexcept { return encode_mantissas_ != nullptr; }
  // Makes codes faster, and takes as long as some thousand numbers. Returns false if the rule or the operand has none.
  [[nodiscard]] bool make_table(const Operand& operand, kernels::MantissaTable& table) const noexcept;

  [[nodiscard]] bool multiplies() const noexcept { return rule_.multiplies; }

 private:
  void search(const std::byte* numbers, std::size_t count, const Operand* operands, unsigned run_shift,
              std::byte* packed) const noexcept;

  ElementRule rule_;
  DType weights_ = DType::float32;
  kernels::CodeRule code_rule_;
  kernels::EncodeRunsFn encode_ = nullptr;
  kernels::EncodeMantissasFn encode_mantissas_ = nullptr;
  kernels::EncodeStepsFn encode_steps_ = nullptr;
  kernels::EncodeIntegerStepsFn encode_integer_steps_ = nullptr;
  const kernels::IntegerStepTables* integer_steps_ = nullptr;
};

// The tables of the scales of blocks whose largest magnitudes have these mantissas of bfloat16: one for each, as scales
// of other exponents need no others.
class MantissaTables {
 public:
  static constexpr std::size_t count = 128;

  // `operands`: those of the largest magnitudes 1 to 2.
  MantissaTables(const RunEncoder& encoder, std::span<const Operand, count> operands) noexcept;

  // Returns false if the block's scale has another mantissa.
  [[nodiscard]] bool find(std::uint32_t largest_bits, const Operand& operand,
                          kernels::MantissaTable& table) const noexcept;

 private:
  bool multiplies_;
  std::array<std::uint32_t, count> factors_;  // their bits; 0: none
  std::array<kernels::MantissaTable, count> tables_;
};

// Codes of numbers under one scale, one a byte.
void encode(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
            std::span<std::uint8_t> codes) noexcept;

// Calls step(numbers, count, done) for the whole steps of the kernels, and for the rest with zeros behind it.
// `dtype` is float32 or bfloat16.
template <class Step>
void for_whole_steps(const std::byte* numbers, DType dtype, std::size_t count, const Step& step) {
  const std::size_t whole = count / kernels::run_step * kernels::run_step;
  if (whole != 0) step(numbers, whole, std::size_t{0});
  if (whole == count) return;
  std::array<std::byte, kernels::run_step * sizeof(float)> rest{};
  std::memcpy(rest.data(), numbers + storage_bytes(dtype, whole), storage_bytes(dtype, count - whole));
  step(rest.data(), kernels::run_step, whole);
}

// The largest magnitude as bits of float32, so that NaN is above all. `dtype` is float32 or bfloat16.
[[nodiscard]] std::uint32_t largest_bits(const std::byte* numbers, DType dtype, std::size_t count) noexcept;

}  // namespace tensorcast::block
