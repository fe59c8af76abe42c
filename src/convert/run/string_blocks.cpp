// SPDX-License-Identifier: Apache-2.0
#include "convert/run/string_blocks.hpp"

#include <algorithm>

#include "cast/parse_strings.hpp"
#include "dtype/error_places.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::file_conversion {
namespace {

// Most numbers take less as text.
constexpr std::size_t usual_text_bytes = 64;

std::size_t count_of(const StringBuffer& strings) { return strings.offsets.empty() ? 0 : strings.offsets.size() - 1; }

std::string_view text_of(const StringBuffer& strings, std::size_t i) {
  const auto begin = static_cast<std::size_t>(strings.offsets[i]);
  return {strings.data.data() + begin, static_cast<std::size_t>(strings.offsets[i + 1]) - begin};
}

}  // namespace

Result<StringBuffer> StringBlocks::next() {
  Result<StringBuffer> strings =
      tensor_.from == DType::string ? reader_.read_strings(tensor_.source, done_, block_bytes_) : print_numbers();
  if (strings) done_ += count_of(*strings);
  return strings;
}

Result<StringBuffer> StringBlocks::print_numbers() {
  const std::size_t count = std::min<std::uint64_t>(block_bytes_ / usual_text_bytes, tensor_.target.count - done_);
  numbers_.resize(storage_bytes(tensor_.from, count));
  TRY(reader_.read(tensor_.source, storage_bytes(tensor_.from, done_), numbers_));
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  return counted_from(done_, cast_to_strings({tensor_.from, shape, numbers_}, options_));
}

Result<std::span<std::byte>> NumberBlocks::next(std::span<std::byte> block) {
  const StringBuffer strings = TRY(reader_.read_strings(tensor_.source, done_, block_bytes_));
  const std::size_t count = count_of(strings);
  const DType to = tensor_.target.dtype;
  const std::span<std::byte> numbers = block.first(storage_bytes(to, count));
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  TRY(counted_from(done_, parse_strings(strings.view(), {to, shape, numbers}, options_, done_)));
  done_ += count;
  return numbers;
}

Result<std::size_t> StringComparison::count_equal(const StringBuffer& strings) {
  const std::size_t count = count_of(strings);
  for (std::size_t i = 0; i < count; ++i) {
    if (next_ == count_of(block_)) {
      block_ = TRY(reader_.read_strings(index_, read_, block_bytes_));
      read_ += count_of(block_);
      next_ = 0;
    }
    if (text_of(strings, i) != text_of(block_, next_++)) return i;
  }
  return count;
}

}  // namespace tensorcast::file_conversion
