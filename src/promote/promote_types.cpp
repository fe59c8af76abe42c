// SPDX-License-Identifier: Apache-2.0
// ConvertPromoteTypes-14 as its text defines it; docs/semantics.md, section 4, numbers the rules.
#include "tensorcast/promote.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "dtype/dtype_table.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"
#include "options/promote_options.hpp"
#include "promote/peer_rules.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Rule 0: the operation's own list: 17 of the 26 types of ONNX, and uint1.
constexpr std::array promotable = {
    DType::float64, DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2,
    DType::int64,   DType::int32,   DType::int16,   DType::int8,     DType::int4,          DType::uint64,
    DType::uint32,  DType::uint16,  DType::uint8,   DType::uint4,    DType::boolean,       DType::uint1};

constexpr auto known_rules = [] {
  std::array<PromoteRules, options::promote_rules.size()> rules = {};
  for (std::size_t i = 0; i < rules.size(); ++i) rules[i] = static_cast<PromoteRules>(i);
  return rules;
}();

// These accept uint1 too, which is not castable and has no row.
bool is_integer(DType dtype) { return dtype == DType::uint1 || family(dtype) == Family::integer; }
bool is_floating(DType dtype) { return family(dtype) == Family::floating; }
int width(DType dtype) { return dtype == DType::uint1 ? 1 : bit_width(dtype); }

DType signed_integer(int bits) {
  for (const DTypeRow& row : dtype_table) {
    if (row.family == Family::integer && row.is_signed && row.bits == bits) return row.id;
  }
  return DType::undefined;
}

Error refusal(std::string message) {
  return {.code = ErrorCode::unsupported, .message = std::move(message), .hint = "pass promote_unsafe to allow it"};
}

// Whether every finite value of `inner` lies between the lowest and the largest finite value of `outer`.
bool range_contains(DType outer, DType inner) {
  if (is_floating(outer)) return facts(outer).largest >= facts(inner).largest;
  if (is_signed(outer)) return width(outer) - 1 >= width(inner) - (is_signed(inner) ? 1 : 0);
  return !is_signed(inner) && width(outer) >= width(inner);
}

// Rule 3. The scalar mode has no effect here.
Result<DType> floating_with_integer(DType floating, DType integer, const PromoteOptions& options) {
  if (!options.promote_unsafe && width(floating) < 2 * width(integer)) {
    return refusal(formatted("{} cannot hold {} safely: needs at least {} bits", name(floating), name(integer),
                             2 * width(integer)));
  }
  return floating;
}

// Rule 4: a scalar takes the type of the tensor beside it.
Result<DType> scalar_with_tensor(DType scalar, DType tensor, const PromoteOptions& options) {
  if (!options.promote_unsafe && !range_contains(tensor, scalar)) {
    return refusal(formatted("the tensor's type {} cannot hold the scalar's type {} safely: its range is smaller",
                             name(tensor), name(scalar)));
  }
  return tensor;
}

// Rule 5.
Result<DType> signed_with_unsigned(DType signed_type, DType unsigned_type, const PromoteOptions& options) {
  const int needed = 2 * width(unsigned_type);
  if (needed <= 64) {
    const DType common = signed_integer(std::max(needed, width(signed_type)));
    if (options.promote_unsafe || needed <= width(signed_type)) return common;
    return refusal(
        formatted("{} cannot hold {} safely: needs {}", name(signed_type), name(unsigned_type), name(common)));
  }
  if (options.promote_unsafe) return options.u64_integer_promotion_target;
  return refusal(formatted("no integer type holds both {} and {}: u64_integer_promotion_target makes them {}",
                           name(signed_type), name(unsigned_type), name(options.u64_integer_promotion_target)));
}

// Rule 7.
Result<DType> floats_of_equal_width(DType a, DType b, const PromoteOptions& options) {
  const DType common = width(a) == 16 ? DType::float32 : DType::float16;
  if (options.promote_unsafe) return common;
  return refusal(
      formatted("neither {} nor {} holds the other: both fit {}, which has more bits", name(a), name(b), name(common)));
}

Result<void> check_promotable(DType dtype, PromoteRules rules) {
  const std::span<const DType> types = promotable_dtypes(rules);
  if (std::find(types.begin(), types.end(), dtype) != types.end()) return {};
  if (dtype != DType::uint1) {
    TRY(check_castable(dtype));
  }
  const PeerRules* peer = find_peer_rules(rules);
  std::vector<std::string_view> names;
  for (const DType known : types) names.push_back(name(known));
  return unsupported(
      formatted("{} is not a type of {}", name(dtype), peer == nullptr ? "ConvertPromoteTypes-14" : peer->owner),
      formatted("it has {}", joined(names)));
}

Result<DType> promote_as_openvino(PromoteOperand a, PromoteOperand b, const PromoteOptions& options) {
  const DType u64_target = options.u64_integer_promotion_target;
  if (u64_target != DType::uint1 && u64_target != DType::undefined) TRY(check_castable(u64_target));
  if (u64_target != DType::uint1 && (!is_castable(u64_target) || u64_target == DType::string)) {
    return invalid(formatted("u64_integer_promotion_target cannot be {}", name(u64_target)), "any number type can");
  }

  if (a.dtype == b.dtype) return a.dtype;         // rule 1
  if (a.dtype == DType::boolean) return b.dtype;  // rule 2
  if (b.dtype == DType::boolean) return a.dtype;
  if (is_floating(a.dtype) && is_integer(b.dtype)) return floating_with_integer(a.dtype, b.dtype, options);
  if (is_integer(a.dtype) && is_floating(b.dtype)) return floating_with_integer(b.dtype, a.dtype, options);

  // From here on both are integers or both are floats.
  if (options.pytorch_scalar_promotion && a.is_scalar != b.is_scalar) {
    return a.is_scalar ? scalar_with_tensor(a.dtype, b.dtype, options) : scalar_with_tensor(b.dtype, a.dtype, options);
  }
  if (is_integer(a.dtype) && is_signed(a.dtype) != is_signed(b.dtype)) {
    return is_signed(a.dtype) ? signed_with_unsigned(a.dtype, b.dtype, options)
                              : signed_with_unsigned(b.dtype, a.dtype, options);
  }
  if (width(a.dtype) != width(b.dtype)) return width(a.dtype) > width(b.dtype) ? a.dtype : b.dtype;  // rule 6
  return floats_of_equal_width(a.dtype, b.dtype, options);
}

}  // namespace

std::span<const PromoteRules> all_promote_rules() noexcept { return known_rules; }

std::string_view name(PromoteRules rules) noexcept {
  const auto number = static_cast<std::size_t>(rules);
  return number < options::promote_rules.size() ? options::promote_rules.word[number] : "";
}

Result<PromoteRules> parse_promote_rules(std::string_view spelling) {
  std::vector<std::string_view> names;
  for (const PromoteRules rules : known_rules) {
    if (name(rules) == spelling) return rules;
    names.push_back(name(rules));
  }
  return invalid(formatted("there are no promotion rules \"{}\"", spelling), formatted("known are {}", joined(names)));
}

std::span<const DType> promotable_dtypes(PromoteRules rules) noexcept {
  if (rules == PromoteRules::openvino) return promotable;
  const PeerRules* peer = find_peer_rules(rules);
  return peer == nullptr ? std::span<const DType>() : peer->lattice.types;
}

Result<DType> promote_types(PromoteOperand a, PromoteOperand b, const PromoteOptions& options) {
  if (name(options.rules).empty()) {
    return invalid(formatted("there are no promotion rules {}", static_cast<std::int32_t>(options.rules)));
  }
  for (const DType dtype : {a.dtype, b.dtype}) {
    TRY(check_promotable(dtype, options.rules));
  }
  return options.rules == PromoteRules::openvino ? promote_as_openvino(a, b, options) : promote_as_peer(a, b, options);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
