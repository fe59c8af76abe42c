#include "graph/saturation.hpp"

#include "codec/policy.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::graph {
namespace {

// Whether `code` is of the largest or lowest finite value: only those can have been saturated to.
class Extremes {
 public:
  explicit Extremes(const FloatFormat& format) {
    largest_ = format.largest_code();
    lowest_ = format.has_sign ? largest_ | (std::uint64_t{1} << (format.bits() - 1)) : 0;
  }
  [[nodiscard]] bool contains(std::uint64_t code) const { return code == largest_ || code == lowest_; }

 private:
  std::uint64_t largest_ = 0;
  std::uint64_t lowest_ = 0;
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
  for (std::size_t i = 0; i < dst.count(); ++i) {
    // Few are extreme, so that the reference may take its time to say whether they were.
    if (!extremes.contains(codec::load_code(dst.dtype(), dst.bytes().data(), i))) continue;
    const std::uint64_t code = codec::load_code(src.dtype(), src.bytes().data(), i);
    const codec::Encoded encoded = codec::cast_code(src.dtype(), code, dst.dtype(), *policy);
    if ((encoded.events & codec::event_saturated) == 0) continue;
    if (mask.empty()) mask.resize((dst.count() + 7) / 8);
    mask[i / 8] |= std::byte{1} << (i % 8);
  }
  return mask;
}

}  // namespace tensorcast::graph
