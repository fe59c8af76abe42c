// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/window_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/try.hpp"
#include "formats/bytes/buffer_bytes.hpp"

namespace tensorcast::formats {
namespace {

constexpr std::size_t max_line_bytes = std::size_t{64} << 10;

}  // namespace

Result<std::string> WindowReader::text(std::uint64_t bytes) {
  if (bytes > left()) {
    return malformed_(fmt::format("a text claims {} bytes, but only {} follow", bytes, left()));
  }
  TRY(budget_.take(bytes));
  std::string text(bytes, '\0');
  TRY(read(std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::string> WindowReader::line() {
  std::string line;
  while (true) {
    const char next = TRY(get<char>());
    if (next == '\n') return line;
    if (line.size() == max_line_bytes) return malformed_("a line without an end");
    line += next;
  }
}

Result<void> WindowReader::read(std::span<std::byte> out) {
  if (out.size() > left()) return malformed_("it is cut off");
  // The source may be a stream that cannot go back, so what the window has is never read again.
  while (!out.empty()) {
    if (position_ < window_begin_ || position_ >= window_begin_ + window_.size()) {
      if (out.size() >= buffer_bytes) {
        TRY(source_.read(position_, out));
        position_ += out.size();
        return {};
      }
      window_.resize(std::min<std::uint64_t>(buffer_bytes, left()));
      window_begin_ = position_;
      TRY(source_.read(position_, window_));
    }
    const auto begin = static_cast<std::size_t>(position_ - window_begin_);
    const std::size_t count = std::min(out.size(), window_.size() - begin);
    std::memcpy(out.data(), window_.data() + begin, count);
    out = out.subspan(count);
    position_ += count;
  }
  return {};
}

}  // namespace tensorcast::formats
