#include "formats/npz/entry_source.hpp"

#include <zlib.h>

#include <algorithm>
#include <vector>

namespace tensorcast::formats::npz {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

}  // namespace

Result<void> EntrySource::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset > entry_.bytes || out.size() > entry_.bytes - offset) {
    return Error{.code = ErrorCode::parse, .message = "the entry ends before its data does"};
  }
  return entry_.deflated ? read_deflated(offset, out) : read_stored(offset, out);
}

Result<void> EntrySource::read_stored(std::uint64_t offset, std::span<std::byte> out) {
  if (auto got = zip_.file().read(entry_.data_offset + offset, out); !got) return got;
  if (offset == 0) {
    position_ = 0;
    crc_ = 0;
  }
  if (offset != position_) return {};  // not a pass from the beginning
  crc_ = static_cast<std::uint32_t>(::crc32_z(crc_, reinterpret_cast<const Bytef*>(out.data()), out.size()));
  position_ += out.size();
  if (position_ == entry_.bytes && crc_ != entry_.crc) {
    return Error{.code = ErrorCode::parse, .message = "damaged zip archive: the entry's checksum differs"};
  }
  return {};
}

Result<void> EntrySource::read_deflated(std::uint64_t offset, std::span<std::byte> out) {
  if (!started_ || offset < position_) {
    if (auto begun = zip_.start(entry_); !begun) return begun;
    started_ = true;
    position_ = 0;
  }
  std::vector<std::byte> skipped(std::min<std::uint64_t>(offset - position_, buffer_bytes));
  while (position_ < offset) {
    const std::uint64_t step = std::min<std::uint64_t>(offset - position_, skipped.size());
    if (auto got = inflate(std::span(skipped).first(step)); !got) return got;
  }
  return inflate(out);
}

Result<void> EntrySource::inflate(std::span<std::byte> out) {
  if (out.empty()) return {};
  if (auto got = zip_.inflate(out); !got) {
    started_ = false;
    return got;
  }
  position_ += out.size();
  if (position_ < entry_.bytes) return {};
  started_ = false;
  return zip_.finish();
}

Result<void> EntrySource::verify() {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(entry_.bytes, buffer_bytes));
  for (std::uint64_t offset = 0; offset < entry_.bytes;) {
    const std::uint64_t step = std::min<std::uint64_t>(buffer.size(), entry_.bytes - offset);
    if (auto got = read(offset, std::span(buffer).first(step)); !got) return got;
    offset += step;
  }
  return {};
}

}  // namespace tensorcast::formats::npz
