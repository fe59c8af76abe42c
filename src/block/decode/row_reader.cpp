// SPDX-License-Identifier: Apache-2.0
#include "block/decode/row_reader.hpp"

#include <algorithm>
#include <bit>

#include "block/format/gguf_block.hpp"
#include "block/tuning.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t up_to_step(std::size_t count) noexcept {
  return (count + kernels::run_step - 1) / kernels::run_step * kernels::run_step;
}

// Scales that add to the exponents of elements alone: those of float types of eight bits or fewer, and bytes, are 0 or
// between 2^-17 and 2^16.
constexpr unsigned exponent_bias = 127;
constexpr unsigned least_exponent = exponent_bias - 126 + 17, most_exponent = exponent_bias + 127 - 16;

// Without branches, as the scales of each row are asked.
bool are_powers(std::span<const float> scales) noexcept {
  std::uint32_t others = 0;
  for (const float scale : scales) {
    const auto bits = std::bit_cast<std::uint32_t>(scale), exponent = bits >> 23;
    others |= (bits & 0x7fffff) | static_cast<std::uint32_t>(exponent < least_exponent) |
              static_cast<std::uint32_t>(exponent > most_exponent);
  }
  return others == 0;
}

// The same of codes of float8_e8m0fnu. Sets exponents, as bfloat16 adds them to a number.
bool find_powers(std::span<const std::byte> codes, std::span<std::uint16_t> powers) noexcept {
  unsigned others = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto code = std::to_integer<unsigned>(codes[i]);
    others |= static_cast<unsigned>(code < least_exponent) | static_cast<unsigned>(code > most_exponent);
    powers[i] = static_cast<std::uint16_t>((code - exponent_bias) << 7);
  }
  return others == 0;
}

// Blocks whose scales may be added to exponents.
constexpr std::size_t power_run = 32;

}  // namespace

RowReader::RowReader(const Checked& checked) : checked_(checked) {
  const bool is_table = checked.coding().element == DType::undefined && checked.coding().gguf == GgufBlock::none;
  if (is_table && checked.codes.has_nibbles()) pairs_ = checked.codes.pairs_of(checked.tensor->table);
  checked.coding().gguf == GgufBlock::none ? choose_products(checked, is_table) : choose_gguf_products();
}

void RowReader::choose_products(const Checked& checked, bool is_table) {
  const BlockCoding& coding = checked.coding();
  if (checked.codes.may_be_nibbles() && coding.factor == 1.0F && checked.block_columns % 16 == 0 &&
      (checked.block_columns >= 32 || has_scale_codes())) {
    std::array<float, 16> numbers = checked.codes.numbers_of_nibbles();
    if (is_table) std::copy_n(checked.tensor->table.begin(), numbers.size(), numbers.begin());
    if (coding.positive_zero) {
      for (float& number : numbers) number += 0.0F;
    }
    nibbles_ = NibbleProducts(ops_, numbers);
  }
  const bool is_product = coding.packing == BlockPacking::stream && coding.factor == 1.0F && !coding.positive_zero &&
                          coding.offset == 0 && checked.zeros.empty() && checked.biases.empty();
  // All have one table, and powers of their own.
  const bool is_run = checked.block_columns == power_run && checked.scales.has_byte_codes() &&
                      checked.scales.dtype() == DType::float8_e8m0fnu && coding.global == GlobalScale::none;
  adds_powers_ = is_run;
  if (is_product && (checked.block_columns >= least_table_width || is_run) &&
      checked.codes.columns >= least_table_width) {
    float8_ =
        Float8Products(ops_, coding.element, is_run ? 1 : (checked.codes.columns - 1) / checked.block_columns + 1);
  }
}

// What nibbles mean is found by unpacking blocks in which all are the same.
void RowReader::choose_gguf_products() {
  const GgufRow& format = row(checked_.codes.gguf);
  if (ops_.find_decode_gguf != nullptr) decode_ = ops_.find_decode_gguf(format.block);
  unpack_codes_ = ops_.find_unpack_gguf(format.block, kernels::GgufElements::codes);
  if (unpack_codes_ == nullptr) return;
  std::array<float, 16> numbers;
  for (unsigned code = 0; code < numbers.size(); ++code) {
    unpack_filled(code * 17);
    numbers[code] = numbers_.gguf.q[0];
  }
  nibbles_ = NibbleProducts(ops_, numbers);
}

// Unpacks a block of GGUF whose bytes all are `byte`.
void RowReader::unpack_filled(unsigned byte) {
  const GgufRow& format = row(checked_.codes.gguf);
  std::array<std::byte, 256> block;
  block.fill(static_cast<std::byte>(byte));
  ops_.find_unpack_gguf(format.block, kernels::GgufElements::numbers)(block.data(), 1, numbers_.gguf);
}

void RowReader::read(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count, DType to,
                     std::byte* out) {
  const BlockCoding& coding = checked_.coding();
  if (coding.gguf != GgufBlock::none) return read_gguf(checked_.codes.gguf_block(matrix, row, column), count, to, out);
  if (!nibbles_.empty() && to != DType::float32) return look_up_nibbles(matrix, row, column, count, to, out, false);
  const bool has_products = to == DType::bfloat16 && !float8_.empty();
  if (has_products && adds_powers_ && add_powers(matrix, row, column, count, out, false)) return;
  load_scales(matrix, checked_.grid_row(row), column, count);
  if (has_products && !adds_powers_ && look_up_products(matrix, row, column, count, out, false)) return;
  const DType from = read_numbers(matrix, row, column, count);
  if (coding.factor == 1.0F) return scale(from, column, count, to, out);
  alignas(64) std::array<float, max_elements> products;
  auto* const bytes = reinterpret_cast<std::byte*>(products.data());
  scale(from, column, count, DType::float32, bytes);
  const kernels::RunParameters factor{.scales = &coding.factor};
  ops_.find_scale_runs(DType::float32, to, kernels::run_of_all)(bytes, out, up_to_step(count), factor);
}

bool RowReader::write(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count, DType to,
                      std::byte* out) {
  if (checked_.coding().gguf != GgufBlock::none) {
    return decode_gguf(checked_.codes.gguf_block(matrix, row, column), count, to, out, true);
  }
  const std::size_t width = checked_.block_columns, skipped = column % width;
  const auto are_whole = [&](std::size_t unit) { return width % unit == 0 && skipped % unit == 0; };
  if (!nibbles_.empty() && to != DType::float32) {
    if (width != 16 && !are_whole(32)) return false;
    look_up_nibbles(matrix, row, column, count, to, out, true);
    return true;
  }
  if (to != DType::bfloat16 || float8_.empty()) return false;
  if (adds_powers_) return add_powers(matrix, row, column, count, out, true);
  if (skipped + count > width && !are_whole(kernels::run_step)) return false;
  load_scales(matrix, checked_.grid_row(row), column, count);
  return look_up_products(matrix, row, column, count, out, true);
}

void RowReader::read_gguf(const std::byte* blocks, std::size_t count, DType to, std::byte* out) {
  const GgufRow& format = row(checked_.codes.gguf);
  if (decode_gguf(blocks, count, to, out, false)) return;
  const std::size_t all = count / format.size.elements;
  kernels::GgufRuns& runs = numbers_.gguf;
  static_assert(max_elements <= kernels::GgufRuns::max_elements);
  if (unpack_codes_ != nullptr && to != DType::float32) {
    const kernels::NibbleRuns codes{.tables = tables_of_codes(0, to),
                                    .indices = runs.scale_codes,
                                    .width = format.run,
                                    .nibbles = kernels::Nibbles::low_halves};
    unpack_codes_(blocks, all, runs);
    return ops_.look_up_nibbles(reinterpret_cast<const std::byte*>(runs.q), out, count, codes);
  }
  ops_.find_unpack_gguf(format.block, kernels::GgufElements::numbers)(blocks, all, runs);
  const kernels::RunParameters by{.scales = runs.scales, .biases = format.has_bias ? runs.biases : nullptr};
  ops_.find_scale_runs(DType::int8, to, format.run)(reinterpret_cast<const std::byte*>(runs.q), out, up_to_step(count),
                                                    by);
}

bool RowReader::decode_gguf(const std::byte* blocks, std::size_t count, DType to, std::byte* out, bool bypasses_cache) {
  if (decode_ == nullptr || to != DType::bfloat16) return false;
  const std::uint16_t* const tables = nibbles_.empty() ? nullptr : tables_of_codes(0, to);
  const bool is_done = decode_(blocks, count / row(checked_.codes.gguf).size.elements, out, tables, bypasses_cache);
  if (!is_done && bypasses_cache) ops_.stream_fence();  // before the same places are stored again
  return is_done;
}

bool RowReader::has_scale_codes() const noexcept {
  return checked_.scales.has_byte_codes() && checked_.zeros.empty() && checked_.biases.empty();
}

void RowReader::scales_of_gguf_codes(std::span<float, 256> scales) {
  for (unsigned code = 0; code < scales.size(); ++code) {
    unpack_filled(code);
    scales[code] = numbers_.gguf.scales[0];
  }
}

const std::uint16_t* RowReader::tables_of_codes(std::size_t matrix, DType to) {
  const std::size_t global = checked_.globals.size() < 2 ? 0 : matrix;
  if (code_tables_ == nullptr || code_tables_to_ != to || code_tables_matrix_ != global) {
    std::array<float, 256> scales, zeros;
    if (checked_.coding().gguf == GgufBlock::none) {
      checked_.scales.numbers_of_codes(scales);
    } else {
      scales_of_gguf_codes(scales);
    }
    apply_global(matrix, scales);
    const auto offset = static_cast<float>(checked_.coding().offset);
    zeros.fill(offset);
    code_tables_ = nibbles_.make(to, {.scales = scales.data(), .zeros = offset == 0 ? nullptr : zeros.data()}, 256);
    code_tables_to_ = to;
    code_tables_matrix_ = global;
  }
  return code_tables_;
}

void RowReader::look_up_nibbles(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count, DType to,
                                std::byte* out, bool bypasses_cache) {
  const std::size_t width = checked_.block_columns, first = column / width;
  const std::size_t blocks = (column + count - 1) / width - first + 1;
  const CodeMatrices::Nibbles codes =
      checked_.codes.nibbles(matrix, row, column, std::as_writable_bytes(std::span(numbers_.integers, count)));
  kernels::NibbleRuns runs{.tables = nullptr,
                           .width = width,
                           .skipped = column % width,
                           .nibbles = codes.places,
                           .bypasses_cache = bypasses_cache};
  if (has_scale_codes()) {
    runs.tables = tables_of_codes(matrix, to);
    scale_codes_.resize(blocks);
    checked_.scales.read_codes(matrix, checked_.grid_row(row), first, scale_codes_);
    runs.indices = reinterpret_cast<const std::uint8_t*>(scale_codes_.data());
  } else {
    load_scales(matrix, checked_.grid_row(row), column, count);
    runs.tables = nibbles_.make(to, parameters(0), blocks);
  }
  ops_.look_up_nibbles(codes.codes, out, count, runs);
}

// Returns false if a scale cannot be added to exponents.
bool RowReader::add_powers(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count, std::byte* out,
                           bool bypasses_cache) {
  const std::size_t first = column / power_run, blocks = (count - 1) / power_run + 1;
  std::array<std::byte, max_elements / power_run> codes;
  std::array<std::uint16_t, codes.size() + kernels::run_step / power_run> powers;
  const std::span of_blocks = std::span(codes).first(blocks);
  checked_.scales.read_codes(matrix, checked_.grid_row(row), first, of_blocks);
  if (!find_powers(of_blocks, powers)) return false;
  ops_.look_up_split_by_powers(checked_.codes.stream(matrix, row, column), out, count, *float8_.find(0, 1.0F),
                               powers.data(), bypasses_cache);
  return true;
}

// Returns false if a scale has no table; `out` is unspecified then.
bool RowReader::look_up_products(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count,
                                 std::byte* out, bool bypasses_cache) {
  const std::size_t width = checked_.block_columns;
  std::array<const kernels::byte_table::SplitTable*, max_elements / least_table_width + 2> tables;
  for (std::size_t i = 0; i < blocks_; ++i) {
    tables[i] = float8_.find(first_block_ + i, scales_[i]);
    if (tables[i] == nullptr) return false;
  }
  ops_.look_up_split(
      checked_.codes.stream(matrix, row, column), out, count,
      {.tables = tables.data(), .width = width, .skipped = column % width, .bypasses_cache = bypasses_cache});
  return true;
}

// Returns the type of the numbers.
DType RowReader::read_numbers(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count) {
  const CodeMatrices& codes = checked_.codes;
  const BlockCoding& coding = checked_.coding();
  const DType narrowest = codes.narrowest();
  if (narrowest == DType::int8) {
    codes.read(matrix, row, column, std::span(numbers_.integers, count));
    return narrowest;
  }
  if (narrowest == DType::bfloat16) {
    constexpr std::uint16_t negative_zero = 0x8000;
    const std::span numbers(numbers_.halves, count);
    codes.read(matrix, row, column, numbers);
    if (coding.positive_zero) {
      for (std::uint16_t& number : numbers) number = number == negative_zero ? std::uint16_t{0} : number;
    }
    return narrowest;
  }
  const std::span numbers(numbers_.floats, count);
  const bool is_table = coding.element == DType::undefined;
  if (is_table && codes.has_nibbles()) {
    codes.look_up(matrix, row, column, pairs_, numbers);
  } else {
    codes.read(matrix, row, column, numbers);
    for (std::size_t i = 0; is_table && i < count; ++i) {
      numbers[i] = checked_.tensor->table[static_cast<std::size_t>(numbers[i])];
    }
  }
  if (coding.positive_zero) {
    for (float& number : numbers) number += 0.0F;
  }
  return DType::float32;
}

void RowReader::load_scales(std::size_t matrix, std::size_t grid_row, std::size_t column, std::size_t count) {
  const std::size_t first = column / checked_.block_columns;
  const std::size_t blocks = (column + count - 1) / checked_.block_columns - first + 1;
  if (is_loaded_ && matrix == matrix_ && grid_row == grid_row_ && first == first_block_ && blocks == blocks_) return;
  matrix_ = matrix, grid_row_ = grid_row, first_block_ = first, blocks_ = blocks, is_loaded_ = true;
  const std::size_t readable = blocks + kernels::run_step;
  const auto of_blocks = [&](std::vector<float>& all) { return std::span(all).first(blocks); };
  scales_.resize(readable);
  checked_.scales.read(matrix, grid_row, first, of_blocks(scales_));
  const BlockCoding& coding = checked_.coding();
  apply_global(matrix, of_blocks(scales_));
  are_powers_ = checked_.block_columns == power_run && are_powers(of_blocks(scales_));
  has_zeros_ = !checked_.zeros.empty() || coding.offset != 0;
  if (has_zeros_) zeros_.assign(readable, static_cast<float>(coding.offset));
  if (!checked_.zeros.empty()) checked_.zeros.read(matrix, grid_row, first, of_blocks(zeros_));
  if (checked_.biases.empty()) return;
  biases_.resize(readable);
  checked_.biases.read(matrix, grid_row, first, of_blocks(biases_));
}

void RowReader::apply_global(std::size_t matrix, std::span<float> scales) const noexcept {
  const GlobalScale kind = checked_.coding().global;
  if (kind == GlobalScale::none) return;
  const float global = checked_.globals[checked_.globals.size() == 1 ? 0 : matrix];
  for (float& scale : scales) scale = kind == GlobalScale::divisor ? scale / global : scale * global;
}

kernels::RunParameters RowReader::parameters(std::size_t block) const noexcept {
  return {.scales = scales_.data() + block,
          .zeros = has_zeros_ ? zeros_.data() + block : nullptr,
          .biases = biases_.empty() ? nullptr : biases_.data() + block};
}

// Gives each element the parameters of its block.
void RowReader::expand(std::size_t column, std::size_t count) {
  const std::array<const std::vector<float>*, 3> all = {&scales_, &zeros_, &biases_};
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k]->empty()) continue;
    each_[k].resize(up_to_step(count));
    for (std::size_t i = 0; i < count; ++i) {
      each_[k][i] = (*all[k])[(column + i) / checked_.block_columns - first_block_];
    }
  }
}

void RowReader::scale(DType from, std::size_t column, std::size_t count, DType to, std::byte* out) {
  const std::size_t width = checked_.block_columns;
  const auto* const numbers = reinterpret_cast<const std::byte*>(&numbers_);
  const bool adds_exponents = are_powers_ && !has_zeros_ && biases_.empty();
  if (adds_exponents && from == DType::bfloat16 && to == DType::bfloat16) {
    return ops_.scale_runs_by_powers(numbers, out, up_to_step(count), parameters(0));
  }
  if (width == 1 || width == 16 || width == 32) {
    ops_.find_scale_runs(from, to, static_cast<unsigned>(width))(numbers, out, up_to_step(count), parameters(0));
    return;
  }
  if (blocks_ != 1 && width % kernels::run_step != 0) {
    expand(column, count);
    const kernels::RunParameters by{.scales = each_[0].data(),
                                    .zeros = has_zeros_ ? each_[1].data() : nullptr,
                                    .biases = biases_.empty() ? nullptr : each_[2].data()};
    ops_.find_scale_runs(from, to, 1)(numbers, out, up_to_step(count), by);
    return;
  }
  // Blocks begin at steps.
  const kernels::ScaleRunsFn run = ops_.find_scale_runs(from, to, kernels::run_of_all);
  const auto item = static_cast<std::size_t>(bit_width(from)) / 8, made = static_cast<std::size_t>(bit_width(to)) / 8;
  for (std::size_t done = 0; done < count;) {
    const std::size_t block = (column + done) / width;
    const std::size_t n = std::min((block + 1) * width - column, count) - done;
    run(numbers + done * item, out + done * made, up_to_step(n), parameters(block - first_block_));
    done += n;
  }
}

}  // namespace tensorcast::block
