// SPDX-License-Identifier: Apache-2.0
// Numbers to strings: blocks of elements become float64, float32 or 64-bit integers, which have writers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "cast/conversion.hpp"
#include "codec/reference_cast.hpp"
#include "codec/text_printer.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr std::size_t block_count = 1024;  // whole bytes of every type, and in the first-level cache

class TextBuffer {
 public:
  explicit TextBuffer(std::size_t count) {
    constexpr std::size_t usual_length = 16;
    text_.offsets.reserve(count + 1);
    text_.offsets.push_back(0);
    text_.data.resize(count * usual_length + codec::longest_text);
  }

  // write(out) writes one element's text at `out` and returns its end.
  template <class Write>
  void append(const Write& write) {
    if (text_.data.size() - used_ < codec::longest_text) text_.data.resize(used_ + used_ / 2 + codec::longest_text);
    used_ = static_cast<std::size_t>(write(text_.data.data() + used_) - text_.data.data());
    text_.offsets.push_back(static_cast<std::int64_t>(used_));
  }
  StringBuffer take() && {
    text_.data.resize(used_);
    return std::move(text_);
  }

 private:
  StringBuffer text_;
  std::size_t used_ = 0;
};

char* write(float value, FloatString style, char* out) { return codec::write_float(value, style, out); }
char* write(double value, FloatString style, char* out) { return codec::write_float(value, style, out); }
char* write(std::int64_t value, FloatString, char* out) { return codec::write_integer(value, out); }
char* write(std::uint64_t value, FloatString, char* out) { return codec::write_integer(value, out); }

// Wide: a type that holds every value of src's.
template <class Wide>
Result<StringBuffer> print_as(DType wide_type, const TensorView& src, std::size_t count, FloatString style) {
  TextBuffer text(count);
  std::array<Wide, block_count> block;
  for (std::size_t first = 0; first < count; first += block_count) {
    const std::size_t size = std::min(block_count, count - first);
    const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(size)};
    const auto part = src.bytes.subspan(storage_bytes(src.dtype, first), storage_bytes(src.dtype, size));
    const auto wide = std::as_writable_bytes(std::span(block).first(size));
    TRY(cast({src.dtype, shape, part}, {wide_type, shape, wide}));
    for (std::size_t i = 0; i < size; ++i) {
      text.append([&](char* out) { return write(block[i], style, out); });
    }
  }
  return std::move(text).take();
}

// Types of 8 bits or fewer have few texts: each is made once.
StringBuffer print_by_table(const TensorView& src, std::size_t count, FloatString style) {
  TextBuffer every_code(std::size_t{1} << bit_width(src.dtype));
  for (std::uint64_t code = 0; code >> bit_width(src.dtype) == 0; ++code) {
    every_code.append([&](char* out) { return codec::write_code(src.dtype, code, style, out); });
  }
  const StringBuffer texts = std::move(every_code).take();
  TextBuffer text(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = static_cast<std::size_t>(codec::load_code(src.dtype, src.bytes.data(), i));
    const char* const begin = texts.data.data() + texts.offsets[code];
    text.append([&](char* out) { return std::copy(begin, texts.data.data() + texts.offsets[code + 1], out); });
  }
  return std::move(text).take();
}

Result<StringBuffer> print(const TensorView& src, std::size_t count, FloatString style) {
  constexpr std::size_t table_pays_from = 256;
  if (bit_width(src.dtype) <= 8 && count >= table_pays_from) return print_by_table(src, count, style);
  if (src.dtype == DType::float64) return print_as<double>(DType::float64, src, count, style);
  // Equal values of narrower floats have equal texts.
  if (family(src.dtype) == Family::floating) return print_as<float>(DType::float32, src, count, style);
  if (is_signed(src.dtype)) return print_as<std::int64_t>(DType::int64, src, count, style);
  return print_as<std::uint64_t>(DType::uint64, src, count, style);
}

}  // namespace

Result<StringBuffer> cast_to_strings(const TensorView& src, const CastOptions& options) {
  TRY(check_numeric(src.dtype, DType::float32));
  const std::size_t count = TRY(element_count(src.shape));
  TRY(check_size("source", src.dtype, count, src.bytes.size()));
  const codec::Policy policy = TRY(codec::resolve_policy(options, src.dtype, DType::string));
  return guarded([&] { return print(src, count, policy.float_string); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
