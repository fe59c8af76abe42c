#include "graph/saturation.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "codec/policy.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::graph {
namespace {

constexpr std::size_t block_elements = 64;  // so few that blocks without any extreme are common

// The codes of the largest and the lowest finite value of a type of 8 or 4 bits: only those can have been saturated to.
class Extremes {
 public:
  explicit Extremes(const FloatFormat& format) : bits_(format.bits()) {
    largest_ = static_cast<std::uint8_t>(format.largest_code());
    lowest_ = format.has_sign ? static_cast<std::uint8_t>(largest_ | (1U << (bits_ - 1))) : std::uint8_t{0};
  }

  [[nodiscard]] bool contains(std::uint64_t code) const { return code == largest_ || code == lowest_; }

  // Whether any element of the bytes is one of them. Loops that compilers make vectors of.
  [[nodiscard]] bool any_in(std::span<const std::byte> bytes) const {
    unsigned found = 0;
    const auto is_extreme = [this](unsigned code) {
      return static_cast<unsigned>(code == largest_) | static_cast<unsigned>(code == lowest_);
    };
    if (bits_ == 8) {
      for (const std::byte byte : bytes) found |= is_extreme(std::to_integer<unsigned>(byte));
    } else {
      for (const std::byte byte : bytes) {
        const auto pair = std::to_integer<unsigned>(byte);
        found |= is_extreme(pair & 0xF) | is_extreme(pair >> 4);
      }
    }
    return found != 0;
  }

 private:
  int bits_;
  std::uint8_t largest_ = 0;
  std::uint8_t lowest_ = 0;
};

}  // namespace

Result<std::vector<std::byte>> saturated_elements(const Tensor& src, const Tensor& dst, const CastOptions& options) {
  const DTypeRow& target = row(dst.dtype());
  const bool overflows_to_infinity = target.bits > 8;
  if (overflows_to_infinity || (src.dtype() == dst.dtype() && options.scale == 1.0)) return std::vector<std::byte>{};
  const Result<codec::Policy> policy = codec::resolve_policy(options, src.dtype(), dst.dtype());
  if (!policy) return policy.error();
  const Extremes extremes(target.format);
  std::vector<std::byte> mask;
  const auto mark = [&](std::size_t i) {
    const std::uint64_t code = codec::load_code(src.dtype(), src.bytes().data(), i);
    const codec::Encoded encoded = codec::cast_code(src.dtype(), code, dst.dtype(), *policy);
    if ((encoded.events & codec::event_saturated) == 0) return;
    if (mask.empty()) mask.resize((dst.count() + 7) / 8);
    mask[i / 8] |= std::byte{1} << (i % 8);
  };
  // Few are extreme, so that the reference may take its time to say whether they were.
  for (std::size_t first = 0; first < dst.count(); first += block_elements) {
    const std::size_t last = std::min(first + block_elements, dst.count());
    const std::size_t first_byte = storage_bytes(dst.dtype(), first);
    if (!extremes.any_in(dst.bytes().subspan(first_byte, storage_bytes(dst.dtype(), last) - first_byte))) continue;
    for (std::size_t i = first; i < last; ++i) {
      if (extremes.contains(codec::load_code(dst.dtype(), dst.bytes().data(), i))) mark(i);
    }
  }
  return mask;
}

}  // namespace tensorcast::graph
