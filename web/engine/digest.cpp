// SPDX-License-Identifier: Apache-2.0
// A digest of conversions, to compare modules with native code: all 65,536 codes of float16, and pseudorandom codes of
// float32 (any code, numbers near the narrow types, ties, NaN, infinities), to ONNX's numeric types, saturate 1 and 0.
// Uses the C interface only. As a program, it prints the digest of 10^6 codes.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "tensorcast/c_api.h"

namespace {

class Fnv {
 public:
  void add(std::span<const unsigned char> bytes) {
    for (const unsigned char byte : bytes) value_ = (value_ ^ byte) * 0x100000001b3u;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

class Xorshift {
 public:
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15u;
};

std::vector<unsigned char> float32_codes(std::size_t count) {
  std::vector<unsigned char> bytes(count * 4);
  Xorshift numbers;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t r = numbers.next();
    auto word = static_cast<std::uint32_t>(r >> 32);
    if ((r & 1) != 0) word = (word & 0x80ffffffu) | static_cast<std::uint32_t>(100 + (r >> 1) % 50) << 23;
    if ((r & 0xe) == 0) word &= 0xfff00000u;
    std::memcpy(&bytes[i * 4], &word, 4);
  }
  return bytes;
}

std::vector<unsigned char> float16_codes() {
  std::vector<unsigned char> bytes(65536 * 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i % 2 == 0 ? i / 2 : i / 512);
  return bytes;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) std::uint64_t digest(std::uint32_t count) {
  const std::vector<unsigned char> sources[] = {float32_codes(count), float16_codes()};
  const tc_dtype types[] = {TC_FLOAT32, TC_FLOAT16};
  std::vector<unsigned char> out((count > 65536 ? count : 65536) * 8);
  Fnv all;
  for (const int saturate : {1, 0}) {
    for (int source = 0; source < 2; ++source) {
      for (std::size_t t = 0; tc_dtype_at(t) != TC_UNDEFINED; ++t) {
        const tc_dtype to = tc_dtype_at(t);
        if (to == TC_STRING || to >= TC_UINT1) continue;  // ONNX's types, so that a new type of others changes nothing
        tc_cast_options options;
        tc_cast_options_init(&options);
        options.saturate = saturate;
        const std::size_t elements = source == 0 ? count : 65536;
        const tc_status status = tc_cast(sources[source].data(), types[source], out.data(), to, elements, &options);
        Fnv one;
        if (status == TC_OK) one.add({out.data(), tc_storage_bytes(to, elements)});
        const std::uint64_t value = one.value();
        unsigned char bytes[8];
        std::memcpy(bytes, &value, 8);
        all.add(bytes);
      }
    }
  }
  return all.value();
}

int main() { std::printf("%016llx\n", static_cast<unsigned long long>(digest(1000000))); }
