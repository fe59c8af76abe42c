// SPDX-License-Identifier: Apache-2.0
// Raw deflate streams by zlib: one entry of an archive, inflated or deflated.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npz {

// Inflates the `stored_bytes` at `offset` of `file`, which outlives this.
class InflateStream {
 public:
  InflateStream(const io::InputFile& file, std::uint64_t offset, std::uint64_t stored_bytes);
  ~InflateStream();
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  // Reads exactly out.size() more bytes. Errors: io, parse.
  [[nodiscard]] Result<void> read(std::span<std::byte> out);
  // Call after the last byte. Errors: parse if the stream continues.
  [[nodiscard]] Result<void> finish();

 private:
  // Inflates into z_.next_out; returns zlib's status.
  [[nodiscard]] Result<int> step();

  const io::InputFile& file_;
  std::uint64_t offset_;
  std::uint64_t left_;  // stored bytes that are not yet in buffer_
  std::vector<std::byte> buffer_;
  z_stream z_{};  // refers to itself: never moved
};

// Passes deflated bytes to `sink`.
class DeflateStream {
 public:
  using Sink = std::function<Result<void>(std::span<const std::byte>)>;

  explicit DeflateStream(Sink sink);
  ~DeflateStream();
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;

  // Errors: those of `sink`.
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] Result<void> run(int flush);

  Sink sink_;
  std::vector<std::byte> buffer_;
  z_stream z_{};
};

}  // namespace tensorcast::formats::npz
