// SPDX-License-Identifier: Apache-2.0
// Reads the protobuf wire format from a file through a small window: memory is bounded for any message.
#pragma once

#include <protozero/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::onnx {

// Bytes of a file.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct WireField {
  std::uint32_t number = 0;
  protozero::pbf_wire_type type = protozero::pbf_wire_type::unknown;
  std::uint64_t begin = 0;   // of the key in the file
  std::uint64_t offset = 0;  // of the contents
  std::uint64_t length = 0;  // of the contents; 0 for a varint, whose length is unknown before it is read
};

class WireReader {
 public:
  // The message is [begin, end) of `file`, which outlives the reader.
  WireReader(const io::InputFile& file, std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] bool at_end() const noexcept { return position_ == end_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  // Reads the key of the next field. Its contents follow, inside the message. Errors: parse, io.
  [[nodiscard]] Result<WireField> next();
  [[nodiscard]] Result<std::uint64_t> varint();
  [[nodiscard]] Result<void> read(std::span<std::byte> out);
  [[nodiscard]] Result<std::string> text(std::uint64_t length);
  // Makes the message end at `end`, as for a nested message; returns the old end. Precondition: `end` lies inside the
  // current message, or was returned by an earlier call.
  std::uint64_t narrow(std::uint64_t end) noexcept { return std::exchange(end_, end); }
  // Precondition: offset lies inside the message.
  void seek(std::uint64_t offset) noexcept { position_ = offset; }
  // Skips the contents of a field of which only the key was read.
  [[nodiscard]] Result<void> skip(const WireField& field);

 private:
  // Returns at least `bytes` bytes from position_ on, or all that are left.
  [[nodiscard]] Result<std::span<const char>> window(std::size_t bytes);

  const io::InputFile& file_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::uint64_t whole_end_;  // before any narrow()
  std::vector<char> buffer_;
  std::uint64_t buffer_begin_ = 0;
};

// The error for contents that violate the wire format.
[[nodiscard]] Error malformed_message(std::uint64_t offset, std::string_view what);

}  // namespace tensorcast::formats::onnx
