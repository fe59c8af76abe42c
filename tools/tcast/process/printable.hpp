// SPDX-License-Identifier: Apache-2.0
// Formats numbers and untrusted text for a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tcast {

// Returns `text` on one line: control characters, characters that change the direction of text, and invalid UTF-8 as
// \xNN, so that names in malicious files cannot control the terminal.
[[nodiscard]] std::string printable(std::string_view text);

// Returns the text of a JSON document with the same characters as \uXXXX. Line breaks stay.
[[nodiscard]] std::string json_printable(std::string_view json);

// Returns the columns of `text`: UTF-8 code points, without colour sequences.
[[nodiscard]] std::size_t display_width(std::string_view text);

// Shortens `text` to at most `width` columns by removing its middle: "0.1000…5625". Precondition: no colour sequences.
[[nodiscard]] std::string abbreviated(std::string_view text, std::size_t width);

[[nodiscard]] std::string grouped(std::uint64_t number);       // "1,234,567"
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);     // "548.1 MB", decimal units as disks and memcpy use
[[nodiscard]] std::string rate_text(double bytes_per_second);  // "1.4 GB/s"
[[nodiscard]] std::string duration_text(double seconds);       // "0.42 s", "3 min 20 s"
[[nodiscard]] std::string decibel_text(double decibels);       // "55.5 dB", "exact" for infinity
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);         // "[2, 3]", "[]" for a scalar
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view noun);  // "1 tensor", "2 tensors"
[[nodiscard]] std::string short_number(double value);                              // at most 6 significant digits

}  // namespace tcast
