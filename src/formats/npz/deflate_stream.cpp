// SPDX-License-Identifier: Apache-2.0
#include "formats/npz/deflate_stream.hpp"

#include <algorithm>
#include <new>

#include "dtype/try.hpp"
#include "formats/bytes/buffer_bytes.hpp"
#include "formats/npz/zip_reader.hpp"

namespace tensorcast::formats::npz {
namespace {

constexpr std::size_t max_step_bytes = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr int memory_level = 8;                               // zlib's default

Bytef* zlib_bytes(const std::byte* bytes) { return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes)); }

}  // namespace

InflateStream::InflateStream(const io::InputFile& file, std::uint64_t offset, std::uint64_t stored_bytes)
    : file_(file), offset_(offset), left_(stored_bytes), buffer_(std::min<std::uint64_t>(stored_bytes, buffer_bytes)) {
  if (::inflateInit2(&z_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
}

InflateStream::~InflateStream() { ::inflateEnd(&z_); }

Result<int> InflateStream::step() {
  if (z_.avail_in == 0 && left_ > 0) {
    const std::size_t count = std::min<std::uint64_t>(left_, buffer_.size());
    TRY(file_.read(offset_, std::span(buffer_).first(count)));
    offset_ += count;
    left_ -= count;
    z_.next_in = zlib_bytes(buffer_.data());
    z_.avail_in = static_cast<uInt>(count);
  }
  const int status = ::inflate(&z_, Z_NO_FLUSH);
  if (status == Z_OK || status == Z_STREAM_END) return status;
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  return damaged_archive("the entry's deflate stream is broken or cut off");
}

Result<void> InflateStream::read(std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t wanted = std::min(out.size(), max_step_bytes);
    z_.next_out = zlib_bytes(out.data());
    z_.avail_out = static_cast<uInt>(wanted);
    const int status = TRY(step());
    out = out.subspan(wanted - z_.avail_out);
    if (status == Z_STREAM_END && !out.empty()) return damaged_archive("the entry holds fewer bytes than it claims");
  }
  return {};
}

Result<void> InflateStream::finish() {
  std::byte extra{};
  z_.next_out = zlib_bytes(&extra);
  z_.avail_out = 1;
  while (true) {
    const int status = TRY(step());
    if (z_.avail_out == 0) return damaged_archive("the entry holds more bytes than it claims");
    if (status == Z_STREAM_END) return {};
  }
}

DeflateStream::DeflateStream(Sink sink) : sink_(std::move(sink)), buffer_(buffer_bytes) {
  if (::deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

DeflateStream::~DeflateStream() { ::deflateEnd(&z_); }

Result<void> DeflateStream::run(int flush) {
  do {
    z_.next_out = zlib_bytes(buffer_.data());
    z_.avail_out = static_cast<uInt>(buffer_.size());
    ::deflate(&z_, flush);  // cannot fail with these arguments
    const std::size_t made = buffer_.size() - z_.avail_out;
    TRY(sink_(std::span(buffer_).first(made)));
  } while (z_.avail_out == 0);
  return {};
}

Result<void> DeflateStream::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), max_step_bytes);
    z_.next_in = zlib_bytes(bytes.data());
    z_.avail_in = static_cast<uInt>(count);
    TRY(run(Z_NO_FLUSH));
    bytes = bytes.subspan(count);
  }
  return {};
}

Result<void> DeflateStream::finish() { return run(Z_FINISH); }

}  // namespace tensorcast::formats::npz
