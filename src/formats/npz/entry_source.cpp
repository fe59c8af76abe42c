// SPDX-License-Identifier: Apache-2.0
#include "formats/npz/entry_source.hpp"

#include <algorithm>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/buffer_bytes.hpp"

namespace tensorcast::formats::npz {
namespace {}  // namespace

Result<void> EntrySource::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset > entry_.bytes || out.size() > entry_.bytes - offset) {
    return parse_error("the entry ends before its data does");
  }
  if (entry_.deflated) return read_deflated(offset, out);
  TRY(file_.read(entry_.data_offset + offset, out));
  if (offset == 0) {
    position_ = 0;
    crc_ = 0;
  }
  return offset == position_ ? check(out) : Result<void>();
}

Result<void> EntrySource::read_deflated(std::uint64_t offset, std::span<std::byte> out) {
  if (!stream_ || offset < position_) {
    stream_.emplace(file_, entry_.data_offset, entry_.stored_bytes);
    position_ = 0;
    crc_ = 0;
  }
  std::vector<std::byte> skipped(std::min<std::uint64_t>(offset - position_, buffer_bytes));
  while (position_ < offset) {
    const std::uint64_t step = std::min<std::uint64_t>(offset - position_, skipped.size());
    TRY(inflate(std::span(skipped).first(step)));
  }
  return inflate(out);
}

Result<void> EntrySource::inflate(std::span<std::byte> out) {
  if (out.empty()) return {};
  Result<void> got = stream_->read(out);
  if (got && position_ + out.size() == entry_.bytes) got = stream_->finish();
  if (got) got = check(out);
  if (!got) stream_.reset();
  return got;
}

Result<void> EntrySource::check(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};  // zlib restarts the checksum on a null pointer
  crc_ = static_cast<std::uint32_t>(::crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  position_ += bytes.size();
  return position_ < entry_.bytes || crc_ == entry_.crc ? Result<void>()
                                                        : damaged_archive("the entry's checksum differs");
}

Result<void> EntrySource::verify() {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(entry_.bytes, buffer_bytes));
  for (std::uint64_t offset = 0; offset < entry_.bytes;) {
    const std::uint64_t step = std::min<std::uint64_t>(buffer.size(), entry_.bytes - offset);
    TRY(read(offset, std::span(buffer).first(step)));
    offset += step;
  }
  return {};
}

}  // namespace tensorcast::formats::npz
