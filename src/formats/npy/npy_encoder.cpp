// SPDX-License-Identifier: Apache-2.0
#include "formats/npy/npy_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/buffer_bytes.hpp"
#include "formats/npy/npy_dtypes.hpp"
#include "formats/npy/npy_header.hpp"
#include "formats/npy/npy_text.hpp"

namespace tensorcast::formats::npy {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

Error wrong_count() { return invalid("the number of strings contradicts the shape"); }

std::string_view text_of(const StringBuffer& strings, std::size_t i) {
  const auto begin = static_cast<std::size_t>(strings.offsets[i]);
  return {strings.data.data() + begin, static_cast<std::size_t>(strings.offsets[i + 1]) - begin};
}

}  // namespace

Result<void> check_shape(const TensorInfo& info) {
  if (info.shape.size() <= max_rank) return {};
  return of_tensor(info.name, unsupported(fmt::format("NumPy's arrays have at most {} dimensions, not {}", max_rank,
                                                      info.shape.size())));
}

Result<void> Encoder::write_header() {
  if (info_->dtype == DType::string) {
    if (measured_ != info_->count) return wrong_count();
    // A few long strings among many short ones would fill the disk.
    constexpr std::uint64_t always_fits = std::uint64_t{256} << 20;
    constexpr std::uint64_t most_padding = 100;  // characters for each character and string
    std::uint64_t padded = 0;
    const bool overflows = __builtin_mul_overflow(longest_, info_->count, &padded);
    if (overflows || (padded > always_fits && padded / most_padding > characters_ + info_->count)) {
      return unsupported(
          fmt::format("NumPy pads all {} strings to the longest, {} characters: too large", info_->count, longest_));
    }
  }
  return sink_(as_bytes(header()));
}

std::string Encoder::header() const { return format_header(format_descr(info_->dtype, longest_), info_->shape); }

std::uint64_t Encoder::file_bytes() const {
  const std::uint64_t width = info_->dtype == DType::string ? 4 * longest_ : item_bytes(info_->dtype);
  return header().size() + info_->count * width;
}

Result<void> Encoder::append(std::span<const std::byte> bytes) {
  return bit_width(info_->dtype) < 8 ? append_unpacked(bytes) : sink_(bytes);
}

// ml_dtypes stores one element per byte, with zero upper bits.
Result<void> Encoder::append_unpacked(std::span<const std::byte> bytes) {
  const auto bits = static_cast<unsigned>(bit_width(info_->dtype));
  const unsigned mask = (1u << bits) - 1;
  std::array<std::byte, buffer_bytes> items;
  std::size_t filled = 0;
  for (const std::byte byte : bytes) {
    kept_ |= std::to_integer<unsigned>(byte) << kept_bits_;
    kept_bits_ += 8;
    for (; kept_bits_ >= bits && elements_ < info_->count; kept_bits_ -= bits) {
      items[filled++] = static_cast<std::byte>(kept_ & mask);
      kept_ >>= bits;
      ++elements_;
    }
    if (filled + 8 / bits < items.size()) continue;
    TRY(sink_(std::span(items).first(filled)));
    filled = 0;
  }
  return filled == 0 ? Result<void>{} : sink_(std::span(items).first(filled));
}

Result<void> Encoder::measure_strings(const StringBuffer& strings) {
  const std::size_t count = strings.offsets.empty() ? 0 : strings.offsets.size() - 1;
  if (count > info_->count - measured_) return wrong_count();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t characters = TRY(of_element(measured_ + i, count_characters(text_of(strings, i))));
    longest_ = std::max(longest_, characters);
    characters_ += characters;
  }
  measured_ += count;
  return {};
}

Result<void> Encoder::append_strings(const StringBuffer& strings) {
  const std::size_t count = strings.offsets.empty() ? 0 : strings.offsets.size() - 1;
  if (count > info_->count - elements_) return wrong_count();
  std::vector<std::byte> items;
  for (std::size_t i = 0; i < count; ++i) {
    encode_text(text_of(strings, i), longest_, items);
    if (items.size() >= buffer_bytes || i + 1 == count) {
      TRY(sink_(items));
      items.clear();
    }
  }
  elements_ += count;
  return {};
}

}  // namespace tensorcast::formats::npy
