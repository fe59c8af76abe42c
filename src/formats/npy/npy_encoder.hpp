// Writes one array as .npy through a function that takes bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formats/format.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npy {

using Sink = std::function<Result<void>(std::span<const std::byte>)>;

class Encoder {
 public:
  // Writes nothing yet.
  Encoder(const TensorInfo& info, Sink sink) : info_(&info), sink_(std::move(sink)) {}

  // For numbers, call this first; append_strings() writes the header itself, since it depends on the longest string.
  [[nodiscard]] Result<void> write_header();
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  // Errors: unsupported, parse (text that NumPy cannot hold), invalid_argument.
  [[nodiscard]] Result<void> append_strings(const StringBuffer& strings);

  // Returns the size of the whole .npy, header included. Numbers only.
  [[nodiscard]] std::uint64_t file_bytes() const;

 private:
  [[nodiscard]] Result<void> append_unpacked(std::span<const std::byte> bytes);

  const TensorInfo* info_;
  Sink sink_;
  // Types under 8 bits: elements written so far, and the first bits of an element whose rest has not arrived.
  std::uint64_t elements_ = 0;
  unsigned kept_ = 0, kept_bits_ = 0;
};

// Checks that .npy can hold the array. Errors: unsupported.
[[nodiscard]] Result<void> check_shape(const TensorInfo& info);

}  // namespace tensorcast::formats::npy
