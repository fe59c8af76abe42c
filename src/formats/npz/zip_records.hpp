// SPDX-License-Identifier: Apache-2.0
// The records of a zip archive: little-endian integers behind a signature. Names follow APPNOTE.TXT, version 6.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace tensorcast::formats::npz {

inline constexpr std::uint32_t local_header_signature = 0x04034B50;
inline constexpr std::uint32_t directory_entry_signature = 0x02014B50;
inline constexpr std::uint32_t directory_end_signature = 0x06054B50;
inline constexpr std::uint32_t zip64_directory_end_signature = 0x06064B50;
inline constexpr std::uint32_t zip64_locator_signature = 0x07064B50;

inline constexpr std::size_t local_header_bytes = 30;  // without name and extra field, like all sizes here
inline constexpr std::size_t directory_entry_bytes = 46;
inline constexpr std::size_t directory_end_bytes = 22;
inline constexpr std::size_t zip64_directory_end_bytes = 56;
inline constexpr std::size_t zip64_locator_bytes = 20;

inline constexpr std::uint16_t zip64_extra_id = 1;
inline constexpr std::uint16_t encrypted_flag = 1;
inline constexpr std::uint16_t data_descriptor_flag = 8;  // the local header has neither sizes nor the checksum
inline constexpr std::uint16_t utf8_flag = 0x800;
inline constexpr std::uint16_t stored_method = 0;
inline constexpr std::uint16_t deflated_method = 8;

// This value in a field means that the real one is in a zip64 record or extra field.
inline constexpr std::uint32_t elsewhere = 0xFFFFFFFF;
inline constexpr std::uint16_t elsewhere_16 = 0xFFFF;

// Reads integers and texts from the front of `bytes`. Precondition: `bytes` is long enough.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Integer>
  [[nodiscard]] Integer get() {
    Integer value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::span<const std::byte> take(std::size_t count) {
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  [[nodiscard]] std::string text(std::size_t count) {
    const std::span<const std::byte> taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  void skip(std::size_t count) { bytes_ = bytes_.subspan(count); }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

class RecordWriter {
 public:
  template <class Integer>
  RecordWriter& put(Integer value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  RecordWriter& text(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  [[nodiscard]] std::string_view text() const { return bytes_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

}  // namespace tensorcast::formats::npz
