// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion.hpp"

#include "codec/policy.hpp"
#include "dtype/number_range.hpp"
#include "graph/execution_plan.hpp"

namespace tensorcast::graph {
namespace {

// The numbers of a type: integers below 2^significant_bits times a power of two from 2^lowest_bit on, with magnitudes
// up to the largest.
struct NumberSet {
  int significant_bits;
  int lowest_bit;
  double lowest;
  double largest;
};

NumberSet number_set_of(const DTypeRow& row) {
  const DTypeFacts& known = facts(row.id);
  if (row.family == Family::boolean) return {1, 0, 0.0, 1.0};
  if (row.family == Family::integer) return {row.bits - (row.is_signed ? 1 : 0), 0, known.lowest, known.largest};
  return {row.format.mantissa_bits + 1, row.format.min_exponent() - row.format.mantissa_bits, known.lowest,
          known.largest};
}

// Reports whether infinities, NaN and zeros survive the cast between two floating types.
bool keeps_special_codes(const FloatFormat& from, const FloatFormat& to) {
  if (from.has_zero && !to.has_zero) return false;
  if (from.has_negative_zero() && !to.has_negative_zero()) return false;
  if (from.has_infinity() && (!to.has_infinity() || to.obeys_saturate())) return false;
  if (!from.has_nan()) return true;
  if (from.nonfinite == NonFinite::ieee) {  // payloads
    return to.nonfinite == NonFinite::ieee && to.mantissa_bits >= from.mantissa_bits;
  }
  // NaN has no payload but may have a sign: only a type whose NaN has a sign is sure to keep it.
  return to.has_sign && (to.nonfinite == NonFinite::ieee || to.nonfinite == NonFinite::nan_all_ones);
}

// Reports whether casting `dtype` to itself equals encoding its decoded codes: no quiet bit to set, no infinity to
// saturate, no two codes of one value.
bool has_one_code_per_value(const DTypeRow& row) {
  return row.family == Family::integer || (row.family == Family::floating && !row.format.has_infinity());
}

// Reports whether `options` mean the same for `from` to `to` as for `middle` to `to`.
bool asks_the_same(const CastOptions& options, const DTypeRow& from, DType middle, DType to) {
  const Result<codec::Policy> chained = codec::resolve_policy(options, middle, to);
  Result<codec::Policy> fused = codec::resolve_policy(options, from.id, to);
  if (!chained || !fused) return false;
  if (!may_be_out_of_range(from, row(to))) fused->range = chained->range;
  return *fused == *chained;
}

}  // namespace

bool keeps_every_code(DType from_id, DType to_id) {
  const DTypeRow* from = find_row(from_id);
  const DTypeRow* to = find_row(to_id);
  if (from == nullptr || to == nullptr || from->family == Family::text || to->family == Family::text) return false;
  if (from == to) return true;
  if (to->family == Family::boolean || (from->family == Family::floating && to->family == Family::integer)) {
    return false;
  }
  const NumberSet inner = number_set_of(*from);
  const NumberSet outer = number_set_of(*to);
  // The lowest integer of a signed type is a power of two: it is within `lowest` and needs one significant bit.
  if (inner.significant_bits > outer.significant_bits || inner.lowest_bit < outer.lowest_bit ||
      inner.lowest < outer.lowest || inner.largest > outer.largest) {
    return false;
  }
  if (from->family == Family::floating) return keeps_special_codes(from->format, to->format);
  return to->family != Family::floating || to->format.has_zero;
}

bool fusible(DType from_id, const CastOptions& first, DType middle, const CastOptions& second, DType to) {
  const DTypeRow* from = find_row(from_id);
  if (!is_onnx(from_id) || !is_onnx(middle) || !is_onnx(to)) return false;  // nodes have no other types
  if (first.scale != 1.0 || second.scale != 1.0) return false;
  if (from_id == middle) return from->family != Family::text && asks_the_same(second, *from, middle, to);
  if (family(middle) == Family::text || to == DType::string) return false;
  if (!asks_the_same(second, *from, middle, to)) return false;
  // A cast back to the first type becomes a copy of the bits.
  if (from_id == to && !has_one_code_per_value(*from)) return false;
  if (keeps_every_code(from_id, middle)) return true;
  // A number that one cast would change and refuse, the other may have changed before, or not at all.
  if (first.inexact == Inexact::error || second.inexact == Inexact::error) return false;
  // D7: the low bits of the low bits are the low bits.
  const auto wraps = [](const CastOptions& options, DType a, DType b) {
    const Result<codec::Policy> policy = codec::resolve_policy(options, a, b);
    return policy && policy->range == codec::RangeRule::wrap;
  };
  const bool integers =
      from->family == Family::integer && family(middle) == Family::integer && family(to) == Family::integer;
  if (!integers || !wraps(first, from_id, middle) || !wraps(second, middle, to)) return false;
  return from_id != to && bit_width(to) <= bit_width(middle) && bit_width(middle) <= bit_width(from_id);
}

void fuse_casts(Block& block, const std::vector<ValueType>& types) {
  std::vector<std::size_t> uses(block.slot_count, 0);
  std::vector<const Step*> makers(block.slot_count, nullptr);
  for (const Slot slot : block.outputs) ++uses[slot];
  for (const Step& step : block.steps) {
    for (const Slot slot : step.inputs) ++uses[slot];
  }
  for (Step& step : block.steps) {
    for (const Slot slot : step.outputs) {
      if (slot != no_slot) makers[slot] = &step;
    }
    const auto* cast = std::get_if<CastOp>(&step.work);
    if (cast == nullptr) continue;
    // Goes back along the chain as long as this step may take its input from an earlier value. Steps left without
    // consumers are removed when lifetimes are set.
    for (Slot input = step.inputs[0]; uses[input] == 1 && makers[input] != nullptr;) {
      const Step& maker = *makers[input];
      if (std::holds_alternative<IdentityOp>(maker.work)) {
        input = maker.inputs[0];
        continue;
      }
      const auto* first = std::get_if<CastOp>(&maker.work);
      const Slot origin = first == nullptr ? no_slot : maker.inputs[0];
      if (first == nullptr || !fusible(types[origin].dtype, first->options, first->to, cast->options, cast->to)) break;
      step.inputs[0] = input = origin;
    }
  }
}

}  // namespace tensorcast::graph
