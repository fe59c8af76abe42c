// SPDX-License-Identifier: Apache-2.0
#include "graph/saturation.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "codec/policy.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/try.hpp"

namespace tensorcast::graph {
namespace {

constexpr std::size_t block_elements = 64;  // small enough that many blocks have no extreme element

// The codes of the largest and the lowest finite value of a type: a saturated element has one of them.
class Extremes {
 public:
  explicit Extremes(const DTypeRow& type) : type_(type), largest_(type.format.largest_code()) {
    lowest_ = type.format.has_sign ? largest_ | std::uint64_t{1} << (type.bits - 1) : 0;
  }

  [[nodiscard]] bool contains(std::uint64_t code) const { return code == largest_ || code == lowest_; }

  // Reports whether any element has an extreme code. Packed types: always true.
  [[nodiscard]] bool any_in(std::span<const std::byte> bytes) const {
    switch (type_.bits) {
      case 8:
        return any_of<std::uint8_t>(bytes);
      case 16:
        return any_of<std::uint16_t>(bytes);
      case 32:
        return any_of<std::uint32_t>(bytes);
      case 64:
        return any_of<std::uint64_t>(bytes);
      default:
        return true;
    }
  }

 private:
  template <class Code>
  [[nodiscard]] bool any_of(std::span<const std::byte> bytes) const {
    const auto largest = static_cast<Code>(largest_), lowest = static_cast<Code>(lowest_);
    unsigned found = 0;  // no early exit, so that the compiler vectorizes the loop
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Code)) {
      Code code;
      std::memcpy(&code, bytes.data() + at, sizeof code);
      found |= static_cast<unsigned>(code == largest) | static_cast<unsigned>(code == lowest);
    }
    return found != 0;
  }

  const DTypeRow& type_;
  std::uint64_t largest_;
  std::uint64_t lowest_;
};

}  // namespace

Result<std::vector<std::byte>> saturated_elements(const Tensor& src, const Tensor& dst, const CastOptions& options) {
  const DTypeRow& target = row(dst.dtype());
  const codec::Policy policy = TRY(codec::resolve_policy(options, src.dtype(), dst.dtype()));
  const bool overflows_to_infinity = target.bits > 8 && policy.range != codec::RangeRule::saturate;
  if (overflows_to_infinity || (src.dtype() == dst.dtype() && options.scale == 1.0)) return std::vector<std::byte>{};
  const Extremes extremes(target);
  std::vector<std::byte> mask;
  const auto mark = [&](std::size_t i) {
    const std::uint64_t code = codec::load_code(src.dtype(), src.bytes().data(), i);
    const codec::Encoded encoded = codec::cast_code(src.dtype(), code, dst.dtype(), policy);
    if ((encoded.events & codec::event_saturated) == 0) return;
    if (mask.empty()) mask.resize((dst.count() + 7) / 8);
    mask[i / 8] |= std::byte{1} << (i % 8);
  };
  // Extreme elements are rare, so the slow reference decides whether they were saturated.
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
