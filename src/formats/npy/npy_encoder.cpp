#include "formats/npy/npy_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "formats/npy/npy_dtypes.hpp"
#include "formats/npy/npy_header.hpp"
#include "formats/npy/npy_text.hpp"

namespace tensorcast::formats::npy {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

Result<void> check_shape(const TensorInfo& info) {
  if (info.shape.size() <= max_rank) return {};
  return Error{.code = ErrorCode::unsupported,
               .message = fmt::format("NumPy's arrays have at most {} dimensions, not {}", max_rank, info.shape.size()),
               .tensor = info.name};
}

Result<void> Encoder::write_header() {
  return sink_(as_bytes(format_header(format_descr(info_->dtype), info_->shape)));
}

std::uint64_t Encoder::file_bytes() const {
  return format_header(format_descr(info_->dtype), info_->shape).size() + info_->count * item_bytes(info_->dtype);
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
    if (auto put = sink_(std::span(items).first(filled)); !put) return put;
    filled = 0;
  }
  return filled == 0 ? Result<void>{} : sink_(std::span(items).first(filled));
}

Result<void> Encoder::append_strings(const StringBuffer& strings) {
  if (strings.offsets.size() != info_->count + 1 && !(strings.offsets.empty() && info_->count == 0)) {
    return Error{.code = ErrorCode::invalid_argument, .message = "the number of strings contradicts the shape"};
  }
  const auto text = [&](std::uint64_t i) {
    const auto begin = static_cast<std::size_t>(strings.offsets[i]);
    return std::string_view(strings.data.data() + begin, static_cast<std::size_t>(strings.offsets[i + 1]) - begin);
  };
  std::uint64_t longest = 1;  // NumPy's strings have a width of at least 1
  for (std::uint64_t i = 0; i < info_->count; ++i) {
    Result<std::uint64_t> characters = count_characters(text(i));
    if (!characters) {
      characters.error().element = i;
      return std::move(characters).error();
    }
    longest = std::max(longest, *characters);
  }
  if (longest > max_text_array_bytes / 4 / std::max<std::uint64_t>(info_->count, 1)) {
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("NumPy pads all {} strings to the longest, {} characters: too large",
                                        info_->count, longest)};
  }
  const std::string header = format_header(format_descr(DType::string, longest), info_->shape);
  if (auto put = sink_(as_bytes(header)); !put) return put;
  std::vector<std::byte> items;
  for (std::uint64_t i = 0; i < info_->count; ++i) {
    encode_text(text(i), longest, items);
    if (items.size() >= buffer_bytes || i + 1 == info_->count) {
      if (auto put = sink_(items); !put) return put;
      items.clear();
    }
  }
  return {};
}

}  // namespace tensorcast::formats::npy
