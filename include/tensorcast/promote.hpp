// SPDX-License-Identifier: Apache-2.0
// Component core. The common type of two types, as OpenVINO's ConvertPromoteTypes-14 defines it; and, for comparison,
// as NumPy, PyTorch, JAX and TensorFlow do (docs/promotion.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Numbers are those of tc_promote_options in c_api.h.
enum class PromoteRules : std::int32_t {
  openvino = 0,    // ConvertPromoteTypes-14
  numpy = 1,       // numpy.promote_types of NumPy 2 with ml_dtypes; ranks do not matter
  torch = 2,       // torch.promote_types; torch.result_type where one operand is a scalar
  jax = 3,         // jax.numpy.promote_types with 64-bit types enabled; ranks do not matter
  jax_strict = 4,  // the same with jax_numpy_dtype_promotion = "strict"
  tensorflow = 5,  // TensorFlow's NumPy behaviour, mode "safe"; mode "all" with promote_unsafe; ranks do not matter
};

// All rules, in the order of their numbers.
[[nodiscard]] TENSORCAST_API std::span<const PromoteRules> all_promote_rules() noexcept;
[[nodiscard]] TENSORCAST_API std::string_view name(PromoteRules rules) noexcept;  // "" for numbers without rules
// Finds the rules that `spelling` names. Errors: invalid_argument, naming the known rules.
[[nodiscard]] TENSORCAST_API Result<PromoteRules> parse_promote_rules(std::string_view spelling);
// The types that the rules accept: each has a common type with itself. Empty for numbers without rules.
[[nodiscard]] TENSORCAST_API std::span<const DType> promotable_dtypes(PromoteRules rules) noexcept;

struct PromoteOptions {
  bool promote_unsafe = false;                          // openvino and tensorflow; the others have one mode only
  bool pytorch_scalar_promotion = false;                // openvino
  DType u64_integer_promotion_target = DType::float32;  // openvino
  PromoteRules rules = PromoteRules::openvino;
};

struct PromoteOperand {
  DType dtype = DType::undefined;
  bool is_scalar = false;  // rank 0; a tensor of shape [1] is not a scalar
};

// Returns the common type of `a` and `b`, in either order.
// Errors: unsupported, with the reason: a type that the rules do not know, a pair without a common type, or a promotion
// that could lose values or adds bits while promote_unsafe is off; invalid_argument: a type, target or rules that do
// not exist.
[[nodiscard]] TENSORCAST_API Result<DType> promote_types(PromoteOperand a, PromoteOperand b,
                                                         const PromoteOptions& options = {});

// Converts both tensors to their common type; each keeps its shape. A tensor of rank 0 counts as a scalar. A tensor
// that has the common type already is shared, not copied, unless cast_options.scale is not 1. Errors: as
// promote_types() and cast(); invalid_argument: a tensor that is not defined.
[[nodiscard]] TENSORCAST_API Result<std::pair<Tensor, Tensor>> promote(const Tensor& a, const Tensor& b,
                                                                       const PromoteOptions& options = {},
                                                                       const CastOptions& cast_options = {},
                                                                       const Execution& execution = {});

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
