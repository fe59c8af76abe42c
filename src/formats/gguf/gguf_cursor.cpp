#include "formats/gguf/gguf_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tensorcast::formats::gguf {
namespace {

constexpr std::size_t window_bytes = std::size_t{64} << 10;

}  // namespace

Error malformed(std::string what, std::string tensor) {
  return Error{
      .code = ErrorCode::parse, .message = "malformed GGUF header: " + std::move(what), .tensor = std::move(tensor)};
}

Result<void> Cursor::read(std::span<std::byte> out) {
  if (out.size() > left()) return malformed("the file ends inside it");
  if (out.size() > window_bytes) {
    if (Result<void> got = file_.read(position_, out); !got) return got;
    position_ += out.size();
    return {};
  }
  if (position_ < window_begin_ || position_ + out.size() > window_begin_ + window_.size()) {
    window_.resize(std::min<std::uint64_t>(window_bytes, left()));
    window_begin_ = position_;
    if (Result<void> got = file_.read(position_, window_); !got) return got;
  }
  if (!out.empty()) std::memcpy(out.data(), window_.data() + (position_ - window_begin_), out.size());
  position_ += out.size();
  return {};
}

Result<std::string> Cursor::text() {
  const Result<std::uint64_t> bytes = get<std::uint64_t>();
  if (!bytes) return bytes.error();
  if (*bytes > left()) {
    return malformed(fmt::format("a text claims {} bytes, but the file has only {} more", *bytes, left()));
  }
  if (Result<void> taken = budget_.take(*bytes); !taken) return std::move(taken).error();
  std::string text(*bytes, '\0');
  if (Result<void> got = read(std::as_writable_bytes(std::span(text))); !got) return std::move(got).error();
  return text;
}

}  // namespace tensorcast::formats::gguf
