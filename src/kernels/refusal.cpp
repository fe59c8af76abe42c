#include "kernels/refusal.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::kernels {
namespace {

using codec::IntegerRange;
using codec::Policy;

constexpr std::size_t buffer_count = 1024;  // fills whole bytes of every type

// --- Limits in float64

// The numbers that are surely accepted. NaN never is: it may be, and then the reference says so.
struct Limits {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool ends_included = true;

  [[nodiscard]] bool accept(double x) const {
    return ends_included ? x >= lowest && x <= highest : x > lowest && x < highest;
  }
};

Limits limits_of(const DTypeRow& to, const Policy& policy) {
  if (to.family == Family::floating) {  // float8_e8m0fnu refuses negative numbers, float4_e2m1fn NaN
    if (to.format.has_sign) return {};
    // A product of zero may be a negative number that underflowed.
    return {.lowest = policy.scale == 1.0 ? 0.0 : std::numeric_limits<double>::denorm_min()};
  }
  if (policy.integer_range != IntegerRange::error) return {.ends_included = false};  // only what is not finite
  double power = 1.0;
  for (int bit = to.is_signed ? 1 : 0; bit < to.bits; ++bit) power *= 2.0;
  // What is cut off or rounded away: up to one, or up to a half. Beyond 2^53 there are no fractions.
  const double margin = policy.int_rounding == IntRounding::trunc ? 1.0 : 0.5;
  return {.lowest = (to.is_signed ? -power : 0.0) - margin, .highest = power - 1.0 + margin, .ends_included = false};
}

// Calls accept(doubles, count) until it is false; whether it never was. Rounding is monotonic: a product that rounds to
// less than a limit is less than it, unless it underflows.
template <class Accept>
bool all_in_float64(Target target, DType from, const std::byte* src, std::size_t count, const Accept& accept) {
  const Kernel* const to_float64 = from == DType::float64 ? nullptr : find_kernel(target, from, DType::float64);
  alignas(64) double buffer[buffer_count];
  for (std::size_t step = 0; count != 0; count -= step, src += storage_bytes(from, step)) {
    step = std::min(count, buffer_count);
    if (to_float64 == nullptr) {
      std::memcpy(buffer, src, step * sizeof(double));
    } else {
      to_float64->run(src, reinterpret_cast<std::byte*>(buffer), step, {});
    }
    if (!accept(buffer, step)) return false;
  }
  return true;
}

// --- Ranges of ordered codes

// Codes as unsigned numbers in the order of the numbers that they stand for; NaN is beyond the infinities.
template <class Code, bool is_float>
[[gnu::always_inline]] inline Code place_of(Code code) {
  constexpr int sign_bit = sizeof(Code) * 8 - 1;
  constexpr auto sign = static_cast<Code>(Code{1} << sign_bit);
  if constexpr (!is_float) return code;  // two's complement: the caller's lowest place takes its sign bit
  const auto is_negative = static_cast<Code>(static_cast<std::make_signed_t<Code>>(code) >> sign_bit);
  return static_cast<Code>(code ^ (is_negative | sign));
}

template <class Code>
[[gnu::always_inline]] inline Code load_code(const std::byte* src, std::size_t i) {
  Code code;
  std::memcpy(&code, src + i * sizeof code, sizeof code);
  return code;
}

template <class Code>
[[gnu::always_inline]] inline bool any_greater(const std::byte* src, std::size_t count, Code mask, Code greatest) {
  Code worst = 0;
  for (std::size_t i = 0; i < count; ++i) worst = std::max(worst, static_cast<Code>(load_code<Code>(src, i) & mask));
  return worst > greatest;
}

// Whether a code is 0x80.
[[gnu::always_inline]] inline bool any_sign_alone(const std::byte* src, std::size_t count) {
  std::int8_t least = 0;
  for (std::size_t i = 0; i < count; ++i) least = std::min(least, load_code<std::int8_t>(src, i));
  return least == std::numeric_limits<std::int8_t>::min();
}

// The greatest distance above the lowest accepted place; below it, the distance wraps around.
template <class Code, bool is_float>
[[gnu::always_inline]] inline bool any_beyond(const std::byte* src, std::size_t count, Code lowest, Code span) {
  Code worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    worst = std::max(worst, static_cast<Code>(place_of<Code, is_float>(load_code<Code>(src, i)) - lowest));
  }
  return worst > span;
}

// Whether codes are left in doubt. Bytes have a table to be looked up in; all others have a range.
template <class Code, bool is_float>
[[gnu::always_inline]] inline bool is_doubtful(const std::byte* src, std::size_t count,
                                               const RefusalScan::Range& range) {
  const bool is_near =
      range.mask == 0 || (range.greatest < range.mask &&
                          any_greater(src, count, static_cast<Code>(range.mask), static_cast<Code>(range.greatest)));
  if constexpr (sizeof(Code) == 1) return is_near || (range.lacks_negative_zero && any_sign_alone(src, count));
  if (!is_near) return false;
  return any_beyond<Code, is_float>(src, count, static_cast<Code>(range.lowest), static_cast<Code>(range.span));
}

using RangeFn = bool (*)(const std::byte* src, std::size_t count, const RefusalScan::Range& range);

template <class Code, bool is_float>
bool is_doubtful_baseline(const std::byte* src, std::size_t count, const RefusalScan::Range& range) {
  return is_doubtful<Code, is_float>(src, count, range);
}

#if defined(__x86_64__)
// The compiler vectorizes the same loops; attributes instead of files of their own, because they are inlined here
// alone.
template <class Code, bool is_float>
__attribute__((target("avx2"))) bool is_doubtful_avx2(const std::byte* src, std::size_t count,
                                                      const RefusalScan::Range& range) {
  return is_doubtful<Code, is_float>(src, count, range);
}
template <class Code, bool is_float>
__attribute__((target("avx2,avx512f,avx512bw,avx512vl"))) bool is_doubtful_avx512(const std::byte* src,
                                                                                  std::size_t count,
                                                                                  const RefusalScan::Range& range) {
  return is_doubtful<Code, is_float>(src, count, range);
}
#endif

template <class Code, bool is_float>
RangeFn range_function(Target target) {
#if defined(__x86_64__)
  if (target >= Target::avx512) return is_doubtful_avx512<Code, is_float>;
  if (target == Target::avx2) return is_doubtful_avx2<Code, is_float>;
#endif
  static_cast<void>(target);
  return is_doubtful_baseline<Code, is_float>;
}

RangeFn range_function(Target target, const DTypeRow& from) {
  const bool is_float = from.family == Family::floating;
  switch (from.bits) {
    case 16:
      return is_float ? range_function<std::uint16_t, true>(target) : range_function<std::uint16_t, false>(target);
    case 32:
      return is_float ? range_function<std::uint32_t, true>(target) : range_function<std::uint32_t, false>(target);
    case 64:
      return is_float ? range_function<std::uint64_t, true>(target) : range_function<std::uint64_t, false>(target);
    default:
      return range_function<std::uint8_t, false>(target);
  }
}

// Codes of floats grow with the magnitude. Targets with a sign accept about as much on either side.
std::uint64_t quick_mask(const DTypeRow& from, const DTypeRow& to) {
  const std::uint64_t sign = std::uint64_t{1} << (std::max(from.bits, 8) - 1);
  const bool ignores_sign = from.bits >= 8 && from.family == Family::floating && from.is_signed && to.is_signed;
  return ignores_sign ? sign - 1 : sign | (sign - 1);
}

// Places of any width, and back.
class Order {
 public:
  explicit Order(const DTypeRow& type) : sign_(std::uint64_t{1} << (type.bits - 1)), type_(type) {}

  [[nodiscard]] std::uint64_t zero() const { return has_sign() ? sign_ : 0; }
  [[nodiscard]] std::uint64_t last() const { return sign_ | (sign_ - 1); }
  [[nodiscard]] std::uint64_t code_at(std::uint64_t place) const {
    if (type_.family != Family::floating) return has_sign() ? place ^ sign_ : place;
    return (place & sign_) != 0 ? place ^ sign_ : place ^ last();
  }
  // The last place before NaN on either side.
  [[nodiscard]] std::uint64_t greatest_number() const {
    if (type_.family != Family::floating) return last();
    return sign_ | (type_.format.largest_code() + (type_.format.has_infinity() ? 1 : 0));
  }
  [[nodiscard]] std::uint64_t least_number() const {
    return type_.family == Family::floating ? last() - greatest_number() : 0;
  }

 private:
  [[nodiscard]] bool has_sign() const { return type_.is_signed; }

  std::uint64_t sign_;
  const DTypeRow& type_;
};

// The place farthest from `accepted` up to `end`, in either direction, such that all between are accepted too.
template <class IsAccepted>
std::uint64_t farthest(std::uint64_t accepted, std::uint64_t end, const IsAccepted& is_accepted) {
  if (is_accepted(end)) return end;
  while (true) {
    const std::uint64_t middle = accepted < end ? accepted + (end - accepted) / 2 : accepted - (accepted - end) / 2;
    if (middle == accepted) return accepted;
    (is_accepted(middle) ? accepted : end) = middle;
  }
}

}  // namespace

bool may_ever_refuse(DType from, DType to, const Policy& policy) noexcept {
  if (from == to && policy.scale == 1.0) return false;
  const DTypeRow& target = row(to);
  switch (target.family) {
    case Family::floating:
      return policy.invalid_is_error && (!target.format.has_sign || !target.format.has_nan());
    case Family::integer:
      return (family(from) == Family::floating || policy.scale != 1.0) &&
             (policy.invalid_is_error || policy.integer_range == IntegerRange::error);
    case Family::boolean:
    case Family::text:
      break;
  }
  return false;
}

RefusalScan::RefusalScan(Target target, DType from, DType to, const Policy& policy, std::size_t count) noexcept
    : target_(target), from_(from), to_(to), policy_(policy), is_doubtful_(range_function(target, row(from))) {
  constexpr std::size_t many = 2048;
  if (count < many || narrow::has_six_bits(row(from))) return;
  if (bit_width(from) <= 8) {
    mark_refused_bytes();
  } else {
    find_range();
  }
}

bool RefusalScan::is_refused(std::uint64_t code) const noexcept {
  return (codec::cast_code(from_, code, to_, policy_).events & codec::event_refused) != 0;
}

// The reference only looks at what the limits do not accept.
void RefusalScan::mark_refused_bytes() noexcept {
  std::array<std::uint8_t, 256> is_marked = {};
  const std::size_t per_byte = 8 / static_cast<std::size_t>(bit_width(from_));
  std::array<std::byte, 256> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const Limits limits = limits_of(row(to_), policy_);
  std::size_t place = 0;
  bool any = false;
  static_cast<void>(all_in_float64(target_, from_, bytes.data(), 256 * per_byte, [&](const double* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, ++place) {
      if (limits.accept(x[i] * policy_.scale) || !is_refused(codec::load_code(from_, bytes.data(), place))) continue;
      is_marked[place / per_byte] = 1;
      any = true;
    }
    return true;
  }));
  method_ = any ? Method::bytes : Method::never;
  if (!any) return;
  refused_bytes_.emplace(target_, is_marked);
  const std::uint64_t mask = quick_mask(row(from_), row(to_));
  // NaN may be where negative zero would be, nearer than any number: looked for by itself.
  range_.lacks_negative_zero = mask == 0x7f && is_marked[0x80] != 0;
  std::uint64_t first_marked = mask + 1;  // without the sign
  for (std::size_t byte = 0; byte < is_marked.size(); ++byte) {
    if (byte == 0x80 && range_.lacks_negative_zero) continue;
    if (is_marked[byte] != 0) first_marked = std::min(first_marked, byte & mask);
  }
  if (first_marked == 0) return;
  range_.mask = mask;
  range_.greatest = first_marked - 1;
}

void RefusalScan::find_range() noexcept {
  const Order order(row(from_));
  const auto is_accepted = [&](std::uint64_t place) { return !is_refused(order.code_at(place)); };
  if (!is_accepted(order.zero())) return;
  std::uint64_t lowest = farthest(order.zero(), order.least_number(), is_accepted);
  std::uint64_t highest = farthest(order.zero(), order.greatest_number(), is_accepted);
  if (highest == order.greatest_number() && is_accepted(order.last())) highest = order.last();
  if (lowest == order.least_number() && is_accepted(0)) lowest = 0;
  range_.span = highest - lowest;
  method_ = Method::range;
  if (family(from_) != Family::floating) {
    range_.lowest = order.code_at(lowest);
    return;
  }
  range_.lowest = lowest;
  range_.mask = quick_mask(row(from_), row(to_));
  range_.greatest = order.code_at(highest);
  if (row(to_).is_signed) range_.greatest = std::min(range_.greatest, order.code_at(lowest) & range_.mask);
}

bool RefusalScan::any_refused_element(const std::byte* src, std::size_t first, std::size_t end) const noexcept {
  for (std::size_t i = first; i < end; ++i) {
    if (is_refused(codec::load_code(from_, src, i))) return true;
  }
  return false;
}

bool RefusalScan::any_refused_byte(const std::byte* src, std::size_t count) const noexcept {
  const std::size_t per_byte = 8 / static_cast<std::size_t>(bit_width(from_));
  const std::size_t bytes = count / per_byte;
  if (!is_doubtful_(src, bytes, range_)) return any_refused_element(src, bytes * per_byte, count);
  alignas(64) std::byte marks[buffer_count];
  for (std::size_t first = 0; first < bytes; first += buffer_count) {
    const std::size_t step = std::min(buffer_count, bytes - first);
    refused_bytes_->run(src + first, marks, step);
    std::byte any{};
    for (std::size_t i = 0; i < step; ++i) any |= marks[i];
    if (any != std::byte{}) return true;
  }
  return any_refused_element(src, bytes * per_byte, count);
}

bool RefusalScan::may_refuse(const std::byte* src, std::size_t count) const noexcept {
  switch (method_) {
    case Method::never:
      return false;
    case Method::bytes:
      return any_refused_byte(src, count);
    case Method::range:
      return is_doubtful_(src, count, range_);
    case Method::limits:
      break;
  }
  const bool exact_in_float64 = family(from_) != Family::integer || bit_width(from_) < 64;
  if (policy_.scale != 1.0 && !exact_in_float64) return true;
  const Limits limits = limits_of(row(to_), policy_);
  return !all_in_float64(target_, from_, src, count, [&](const double* x, std::size_t n) {
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < n; ++i) accepted += limits.accept(x[i] * policy_.scale) ? 1 : 0;
    return accepted == n;
  });
}

}  // namespace tensorcast::kernels
