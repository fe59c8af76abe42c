// ConvertPromoteTypes-14 as its text defines it; docs/semantics.md, section 4, numbers the rules.
#include "tensorcast/promote.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "dtype/dtype_table.hpp"

namespace tensorcast {
namespace {

// Rule 0: the operation's own list. Types of the 24 that OpenVINO's operation lacks are not in it.
constexpr std::array promotable = {
    DType::boolean,       DType::uint1,       DType::uint4,   DType::uint8,    DType::uint16,  DType::uint32,
    DType::uint64,        DType::int4,        DType::int8,    DType::int16,    DType::int32,   DType::int64,
    DType::float8_e4m3fn, DType::float8_e5m2, DType::float16, DType::bfloat16, DType::float32, DType::float64};

// uint1 is no castable type and so has no row: these three see it too.
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
    return refusal(fmt::format("{} cannot hold {} safely: needs at least {} bits", name(floating), name(integer),
                               2 * width(integer)));
  }
  return floating;
}

// Rule 4: a scalar takes the type of the tensor beside it.
Result<DType> scalar_with_tensor(DType scalar, DType tensor, const PromoteOptions& options) {
  if (!options.promote_unsafe && !range_contains(tensor, scalar)) {
    return refusal(fmt::format("the scalar's type {} has values beyond the range of the tensor's type {}", name(scalar),
                               name(tensor)));
  }
  return tensor;
}

// Rule 5.
Result<DType> signed_with_unsigned(DType signed_type, DType unsigned_type, const PromoteOptions& options) {
  const int needed = 2 * width(unsigned_type);
  if (needed <= 64) {
    const DType common = signed_integer(std::max(needed, width(signed_type)));
    if (options.promote_unsafe || needed <= width(signed_type)) return common;
    return refusal(fmt::format("{} cannot hold {} and no bits may be added: their common type is {}", name(signed_type),
                               name(unsigned_type), name(common)));
  }
  if (options.promote_unsafe) return options.u64_integer_promotion_target;
  return refusal(fmt::format("no integer type holds both {} and {}", name(signed_type), name(unsigned_type)));
}

// Rule 7.
Result<DType> floats_of_equal_width(DType a, DType b, const PromoteOptions& options) {
  const DType common = width(a) == 16 ? DType::float32 : DType::float16;
  if (options.promote_unsafe) return common;
  return refusal(fmt::format("neither {} nor {} holds the other and no bits may be added: their common type is {}",
                             name(a), name(b), name(common)));
}

Result<void> check_promotable(DType dtype) {
  if (std::find(promotable.begin(), promotable.end(), dtype) != promotable.end()) return {};
  return Error{.code = is_castable(dtype) ? ErrorCode::unsupported : ErrorCode::invalid_argument,
               .message = is_castable(dtype)
                              ? fmt::format("{} is not a type of ConvertPromoteTypes-14", name(dtype))
                              : fmt::format("dtype number {} does not exist", static_cast<std::int32_t>(dtype))};
}

}  // namespace

Result<DType> promote_types(PromoteOperand a, PromoteOperand b, const PromoteOptions& options) {
  for (const DType dtype : {a.dtype, b.dtype}) {
    if (Result<void> checked = check_promotable(dtype); !checked) return std::move(checked).error();
  }
  const DType u64_target = options.u64_integer_promotion_target;
  if (u64_target != DType::uint1 && (!is_castable(u64_target) || u64_target == DType::string)) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("u64_integer_promotion_target cannot be {}", name(u64_target))};
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

}  // namespace tensorcast
