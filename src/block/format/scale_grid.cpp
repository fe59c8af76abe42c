// SPDX-License-Identifier: Apache-2.0
#include "block/format/scale_grid.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "block/convert_numbers.hpp"
#include "block/format/scale_tiles.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"

namespace tensorcast::block {
namespace {

void to_float(DType from, const std::byte* src, std::span<float> out) noexcept {
  convert_numbers(from, src, DType::float32, reinterpret_cast<std::byte*>(out.data()), out.size());
}

}  // namespace

ScaleGrid ScaleGrid::of(std::span<const float> numbers, const GridSize& size) noexcept {
  ScaleGrid grid;
  grid.source_ = Source::dense;
  grid.dtype_ = DType::float32;
  grid.size_ = size;
  grid.data_ = reinterpret_cast<const std::byte*>(numbers.data());
  return grid;
}

void ScaleGrid::read(std::size_t matrix, std::size_t row, std::size_t column, std::span<float> out) const noexcept {
  const std::size_t bytes = static_cast<std::size_t>(bit_width(dtype_)) / 8;
  switch (source_) {
    case Source::none:
      return;
    case Source::one: {
      float value = 0;
      to_float(dtype_, data_, {&value, 1});
      std::fill(out.begin(), out.end(), value);
      return;
    }
    case Source::dense:
      to_float(dtype_, data_ + ((matrix * size_.rows + row) * size_.columns + column) * bytes, out);
      if (added_ == 0) return;
      for (float& number : out) number += added_;
      return;
    case Source::swizzled: {
      std::array<std::byte, 512> bytes_of_row;
      for (std::size_t done = 0; done < out.size(); done += bytes_of_row.size()) {
        const std::size_t n = std::min(bytes_of_row.size(), out.size() - done);
        read_codes(matrix, row, column + done, std::span(bytes_of_row).first(n));
        to_float(dtype_, bytes_of_row.data(), out.subspan(done, n));
      }
      return;
    }
    case Source::packed:
      return read_packed(matrix, row, column, out);
  }
}

// The first column that may be read is a multiple of the alignment, at which words begin, too.
void ScaleGrid::read_packed(std::size_t matrix, std::size_t row, std::size_t column,
                            std::span<float> out) const noexcept {
  constexpr std::size_t word_bits = 32;
  const std::size_t bits = static_cast<std::size_t>(codes_.bits);
  const std::size_t word = word_bits % bits == 0 ? word_bits / bits : 1;  // codes of 3 bits borrow nothing
  const auto range = static_cast<float>(1u << bits);
  std::array<float, CodeMatrices::alignment> numbers;
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t skipped = (column + done) % CodeMatrices::alignment;
    const std::size_t n = std::min(CodeMatrices::alignment - skipped, out.size() - done);
    codes_.read(matrix, row, column + done - skipped, {numbers.data(), skipped + n});
    float carry = 0;
    for (std::size_t i = 0; i < skipped + n; ++i) {
      if (i % word == 0) carry = 0;
      numbers[i] += added_ + carry;
      carry = adds_to_words_ && numbers[i] >= range ? 1.0F : 0.0F;
      numbers[i] -= carry * range;
    }
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(skipped), n,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += n;
  }
}

bool ScaleGrid::has_byte_codes() const noexcept {
  return (source_ == Source::dense || source_ == Source::swizzled) && bit_width(dtype_) == 8;
}

const std::byte* ScaleGrid::place_of_code(std::size_t matrix, std::size_t row, std::size_t column) const noexcept {
  const bool is_dense = source_ == Source::dense && bit_width(dtype_) == 8;
  return is_dense ? data_ + (matrix * size_.rows + row) * size_.columns + column : nullptr;
}

void ScaleGrid::read_codes(std::size_t matrix, std::size_t row, std::size_t column,
                           std::span<std::byte> out) const noexcept {
  if (const std::byte* const place = place_of_code(matrix, row, column)) {
    std::memcpy(out.data(), place, out.size());
    return;
  }
  // A row of a tile is in one place.
  const std::byte* from =
      data_ + matrix * scales_in_tiles(size_.rows, size_.columns) + place_in_tiles(row, column, size_.columns);
  if (column % tile_columns == 0) {
    // Four tiles by one store: loads wait for stores that are narrower than they are.
    using Four = std::array<std::array<std::byte, tile_columns>, 4>;
    for (; out.size() >= sizeof(Four);
         out = out.subspan(sizeof(Four)), column += sizeof(Four), from += 4 * tile_scales) {
      Four four;
      for (std::size_t i = 0; i < four.size(); ++i) std::memcpy(&four[i], from + i * tile_scales, tile_columns);
      std::memcpy(out.data(), &four, sizeof(four));
    }
  }
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t n = std::min(tile_columns - (column + done) % tile_columns, out.size() - done);
    if (n == tile_columns) {
      std::memcpy(&out[done], from, tile_columns);
    } else {
      std::copy_n(from, n, &out[done]);
    }
    from += tile_scales - (column + done) % tile_columns;
    done += n;
  }
}

void ScaleGrid::numbers_of_codes(std::span<float, 256> out) const noexcept {
  std::array<std::byte, 256> codes;
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  to_float(dtype_, codes.data(), out);
}

Result<ScaleGrid> scale_grid(const TensorView& view, const GridSize& size, DType read_as, bool swizzled,
                             const char* what) {
  ScaleGrid grid;
  if (view.dtype == DType::undefined) return invalid(formatted("the {} are missing", what));
  grid.dtype_ = read_as != DType::undefined && bit_width(view.dtype) == 8 ? read_as : view.dtype;
  const bool is_number =
      family(grid.dtype_) == Family::floating && bit_width(grid.dtype_) >= 8 && bit_width(grid.dtype_) <= 32;
  // Bytes are codes of the type that the format stores; other types of 8 bits are other numbers.
  const bool is_other_code = grid.dtype_ != view.dtype && view.dtype != DType::uint8 && view.dtype != DType::int8;
  if (is_other_code) {
    return invalid(formatted("{} of type {}, expected {} or uint8", what, name(view.dtype), name(read_as)));
  }
  if (!is_number) {
    return invalid(formatted("{} of type {}", what, name(view.dtype)));
  }
  grid.size_ = size;
  grid.data_ = view.bytes.data();
  const std::size_t item = static_cast<std::size_t>(bit_width(grid.dtype_)) / 8;
  const std::size_t elements = view.bytes.size() / item;
  std::size_t wanted = size.matrices * size.rows * size.columns;
  grid.source_ = ScaleGrid::Source::dense;
  if (swizzled && bit_width(grid.dtype_) == 8) {
    grid.source_ = ScaleGrid::Source::swizzled;
    wanted = size.matrices * scales_in_tiles(size.rows, size.columns);
  } else if (elements == 1 && size.rows * size.columns == 1) {
    grid.source_ = ScaleGrid::Source::one;
    wanted = 1;
  }
  if (elements != wanted || view.bytes.size() % item != 0) {
    return invalid(formatted("{} {}, where the blocks need {}", elements, what, wanted));
  }
  return grid;
}

Result<ScaleGrid> zero_grid(const TensorView& view, const GridSize& size, const BlockCoding& coding) {
  ScaleGrid grid;
  grid.size_ = size;
  grid.added_ = static_cast<float>(coding.zero_added);
  const bool is_packed = view.dtype == DType::int32 && coding.bits < 8;
  const bool is_words_of_bytes = view.dtype == DType::int32 && coding.packing == BlockPacking::words_down;
  if (is_packed || is_words_of_bytes) {
    grid.source_ = ScaleGrid::Source::packed;
    grid.codes_.packing = coding.zeros;
    grid.adds_to_words_ = coding.zero_added == 1 && coding.packing == BlockPacking::words_down;
    grid.codes_.element = DType::uint8;
    grid.codes_.bits = coding.bits;
    grid.codes_.count = size.matrices;
    grid.codes_.rows = size.rows;
    grid.codes_.columns = size.columns;
    grid.codes_.data = view.bytes.data();
    TRY(lay_out(grid.codes_, view.bytes.size(), "the zero points"));
    return grid;
  }
  const bool is_number = bit_width(view.dtype) >= 8 && view.dtype != DType::boolean;
  const std::size_t wanted = size.matrices * size.rows * size.columns;
  const std::size_t elements =
      is_number ? view.bytes.size() / (static_cast<std::size_t>(bit_width(view.dtype)) / 8) : 0;
  if (!is_number || elements != wanted) {
    return invalid(
        formatted("{} zero points of type {}, where the blocks need {}", elements, name(view.dtype), wanted));
  }
  grid.source_ = ScaleGrid::Source::dense;
  // Numbers are of the integers, from which the offset is subtracted; packed ones are of the stored codes.
  grid.added_ += static_cast<float>(coding.offset);
  grid.dtype_ = view.dtype;
  grid.data_ = view.bytes.data();
  return grid;
}

}  // namespace tensorcast::block
