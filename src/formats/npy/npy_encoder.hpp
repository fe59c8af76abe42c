// SPDX-License-Identifier: Apache-2.0
// Writes one array as .npy through a function that takes bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::formats::npy {

using Sink = std::function<Result<void>(std::span<const std::byte>)>;

class Encoder {
 public:
  // Writes nothing yet.
  Encoder(const TensorInfo& info, Sink sink) : info_(&info), sink_(std::move(sink)) {}

  // Takes the length of strings, in order. NumPy pads all to the longest, so all are measured before write_header().
  // Errors: parse, unsupported (text that NumPy cannot hold).
  [[nodiscard]] Result<void> measure_strings(const StringBuffer& strings);

  // Call this before append(). Errors: invalid_argument (not all strings were measured); unsupported (their padding
  // would take far more than they do).
  [[nodiscard]] Result<void> write_header();
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> append_strings(const StringBuffer& strings);

  // Returns the size of the whole .npy, header included; of strings once all are measured.
  [[nodiscard]] std::uint64_t file_bytes() const;
  // Returns the number of strings, or of elements under 8 bits, appended so far.
  [[nodiscard]] std::uint64_t elements() const noexcept { return elements_; }

 private:
  [[nodiscard]] std::string header() const;
  [[nodiscard]] Result<void> append_unpacked(std::span<const std::byte> bytes);

  const TensorInfo* info_;
  Sink sink_;
  // Strings: of those measured so far.
  std::uint64_t measured_ = 0;
  std::uint64_t longest_ = 1;  // characters; NumPy's strings have a width of at least 1
  std::uint64_t characters_ = 0;
  std::uint64_t elements_ = 0;  // written so far; strings and types under 8 bits
  // Types under 8 bits: the first bits of an element whose rest has not arrived.
  unsigned kept_ = 0, kept_bits_ = 0;
};

// Checks that .npy can hold the array. Errors: unsupported.
[[nodiscard]] Result<void> check_shape(const TensorInfo& info);

}  // namespace tensorcast::formats::npy
