// SPDX-License-Identifier: Apache-2.0
#include "promote/peer_rules.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using enum DType;

// NumPy 2.4 with ml_dtypes 0.5. NumPy's own types, and the integers under 8 bits, go to the smallest that holds both.
// ml_dtypes lists for each of its floats the types that may become it, even types that exceed its range (int8 may
// become float4_e2m1fn); this is not transitive. A pair with a type of ml_dtypes has a common type only if one of the
// two may become the other. float8_e5m2 is an exception: it calls itself an ordinary float, so NumPy also tries its own
// types.
constexpr std::array numpy_types = {
    float64,       float32,         float16,        bfloat16,    float8_e4m3fn, float8_e4m3fnuz,
    float8_e5m2,   float8_e5m2fnuz, float8_e8m0fnu, float8_e4m3, float8_e3m4,   float8_e4m3b11fnuz,
    float4_e2m1fn, int64,           int32,          int16,       int8,          int4,
    int2,          uint64,          uint32,         uint16,      uint8,         uint4,
    uint2,         boolean};
constexpr Edge numpy_edges[] = {{boolean, int2},
                                {boolean, uint2},
                                {int2, int4},
                                {int4, int8},
                                {uint2, uint4},
                                {uint4, int8},
                                {uint4, uint8},
                                {int8, int16},
                                {int16, int32},
                                {int32, int64},
                                {uint8, uint16},
                                {uint8, int16},
                                {uint16, uint32},
                                {uint16, int32},
                                {uint32, uint64},
                                {uint32, int64},
                                {int8, float16},
                                {uint8, float16},
                                {int16, float32},
                                {uint16, float32},
                                {int64, float64},
                                {uint64, float64},
                                {float16, float32},
                                {float32, float64},
                                {bfloat16, float32},
                                {float8_e4m3fn, float32},
                                {float8_e4m3fnuz, float32},
                                {float8_e5m2, float32},
                                {float8_e5m2fnuz, float32},
                                {float8_e8m0fnu, float32},
                                {float8_e4m3, float32},
                                {float8_e3m4, float32},
                                {float8_e4m3b11fnuz, float32},
                                {float4_e2m1fn, float32}};
constexpr Edge numpy_direct_edges[] = {{boolean, bfloat16},
                                       {int8, bfloat16},
                                       {uint8, bfloat16},
                                       {boolean, float8_e5m2},
                                       {int8, float8_e5m2},
                                       {uint8, float8_e5m2},
                                       {boolean, float8_e8m0fnu},
                                       {int8, float8_e8m0fnu},
                                       {uint8, float8_e8m0fnu},
                                       {boolean, float8_e4m3fn},
                                       {int8, float8_e4m3fn},
                                       {uint8, float8_e4m3fn},
                                       {int4, float8_e4m3fn},
                                       {uint4, float8_e4m3fn},
                                       {int2, float8_e4m3fn},
                                       {uint2, float8_e4m3fn},
                                       {float8_e4m3fnuz, float8_e4m3fn},
                                       {float8_e5m2fnuz, float8_e4m3fn},
                                       {float4_e2m1fn, float8_e4m3fn},
                                       {boolean, float8_e4m3fnuz},
                                       {int8, float8_e4m3fnuz},
                                       {uint8, float8_e4m3fnuz},
                                       {int4, float8_e4m3fnuz},
                                       {uint4, float8_e4m3fnuz},
                                       {int2, float8_e4m3fnuz},
                                       {uint2, float8_e4m3fnuz},
                                       {float8_e5m2fnuz, float8_e4m3fnuz},
                                       {float4_e2m1fn, float8_e4m3fnuz},
                                       {boolean, float8_e5m2fnuz},
                                       {int8, float8_e5m2fnuz},
                                       {uint8, float8_e5m2fnuz},
                                       {int4, float8_e5m2fnuz},
                                       {uint4, float8_e5m2fnuz},
                                       {int2, float8_e5m2fnuz},
                                       {uint2, float8_e5m2fnuz},
                                       {float4_e2m1fn, float8_e5m2fnuz},
                                       {boolean, float8_e4m3},
                                       {int8, float8_e4m3},
                                       {uint8, float8_e4m3},
                                       {int4, float8_e4m3},
                                       {uint4, float8_e4m3},
                                       {int2, float8_e4m3},
                                       {uint2, float8_e4m3},
                                       {float8_e4m3fn, float8_e4m3},
                                       {float8_e4m3fnuz, float8_e4m3},
                                       {float8_e5m2fnuz, float8_e4m3},
                                       {float4_e2m1fn, float8_e4m3},
                                       {float8_e4m3b11fnuz, float8_e4m3},
                                       {boolean, float8_e3m4},
                                       {int8, float8_e3m4},
                                       {uint8, float8_e3m4},
                                       {int4, float8_e3m4},
                                       {uint4, float8_e3m4},
                                       {int2, float8_e3m4},
                                       {uint2, float8_e3m4},
                                       {float8_e4m3fn, float8_e3m4},
                                       {float8_e4m3fnuz, float8_e3m4},
                                       {float8_e5m2fnuz, float8_e3m4},
                                       {float4_e2m1fn, float8_e3m4},
                                       {float8_e4m3b11fnuz, float8_e3m4},
                                       {float8_e4m3, float8_e3m4},
                                       {boolean, float8_e4m3b11fnuz},
                                       {int8, float8_e4m3b11fnuz},
                                       {uint8, float8_e4m3b11fnuz},
                                       {int4, float8_e4m3b11fnuz},
                                       {uint4, float8_e4m3b11fnuz},
                                       {int2, float8_e4m3b11fnuz},
                                       {uint2, float8_e4m3b11fnuz},
                                       {float8_e4m3fn, float8_e4m3b11fnuz},
                                       {float8_e4m3fnuz, float8_e4m3b11fnuz},
                                       {float8_e5m2fnuz, float8_e4m3b11fnuz},
                                       {float4_e2m1fn, float8_e4m3b11fnuz},
                                       {boolean, float4_e2m1fn},
                                       {int8, float4_e2m1fn},
                                       {uint8, float4_e2m1fn},
                                       {int4, float4_e2m1fn},
                                       {uint4, float4_e2m1fn},
                                       {int2, float4_e2m1fn},
                                       {uint2, float4_e2m1fn}};
constexpr std::array numpy_operand_only = {bfloat16,
                                           float8_e4m3fn,
                                           float8_e4m3fnuz,
                                           float8_e5m2fnuz,
                                           float8_e8m0fnu,
                                           float8_e4m3,
                                           float8_e3m4,
                                           float8_e4m3b11fnuz,
                                           float4_e2m1fn,
                                           int4,
                                           int2,
                                           uint4,
                                           uint2};

// PyTorch 2.13. Any float beats any integer; float8 promotes with nothing, and unsigned integers other than uint8 with
// floats only. float4_e2m1fn is absent: torch.float4_e2m1fn_x2 is a pair of them.
constexpr std::array torch_types = {float64,        float32,
                                    float16,        bfloat16,
                                    float8_e4m3fn,  float8_e4m3fnuz,
                                    float8_e5m2,    float8_e5m2fnuz,
                                    float8_e8m0fnu, int64,
                                    int32,          int16,
                                    int8,           int4,
                                    int2,           uint64,
                                    uint32,         uint16,
                                    uint8,          uint4,
                                    uint2,          boolean,
                                    uint1};
constexpr Edge torch_edges[] = {{boolean, int8},     {boolean, uint8},     {int8, int16},         {uint8, int16},
                                {int16, int32},      {int32, int64},       {int64, any_float},    {uint1, any_float},
                                {uint2, any_float},  {uint4, any_float},   {uint16, any_float},   {uint32, any_float},
                                {uint64, any_float}, {any_float, float16}, {any_float, bfloat16}, {float16, float32},
                                {bfloat16, float32}, {float32, float64}};

// JAX 0.10, 64-bit types enabled: the lattice of its documentation. 64-bit integers of both signs meet in Python's
// float, which jax.numpy.promote_types returns as float64. Types under 8 bits and float8 have nothing above them.
constexpr std::array jax_types = numpy_types;
constexpr Edge jax_edges[] = {{boolean, int2},
                              {boolean, uint2},
                              {boolean, int4},
                              {boolean, uint4},
                              {boolean, int8},
                              {boolean, uint8},
                              {int8, int16},
                              {int16, int32},
                              {int32, int64},
                              {uint8, uint16},
                              {uint8, int16},
                              {uint16, uint32},
                              {uint16, int32},
                              {uint32, uint64},
                              {uint32, int64},
                              {int64, any_float},
                              {uint64, any_float},
                              {any_float, float16},
                              {any_float, bfloat16},
                              {any_float, float8_e4m3fn},
                              {any_float, float8_e4m3fnuz},
                              {any_float, float8_e5m2},
                              {any_float, float8_e5m2fnuz},
                              {any_float, float8_e8m0fnu},
                              {any_float, float8_e4m3},
                              {any_float, float8_e3m4},
                              {any_float, float8_e4m3b11fnuz},
                              {any_float, float4_e2m1fn},
                              {float16, float32},
                              {bfloat16, float32},
                              {float32, float64}};

// TensorFlow 2.21: JAX's lattice without the types under 8 bits and float8; any_float is its weak float64.
constexpr std::array tensorflow_types = {float64, float32, float16, bfloat16, int64, int32,  int16,
                                         int8,    uint64,  uint32,  uint16,   uint8, boolean};

constexpr PeerRules numpy_rules = {"NumPy",
                                   {.types = numpy_types,
                                    .edges = numpy_edges,
                                    .direct_edges = numpy_direct_edges,
                                    .operand_only = numpy_operand_only,
                                    .integer_first = true}};
constexpr PeerRules torch_rules = {"PyTorch", {.types = torch_types, .edges = torch_edges}};
constexpr PeerRules jax_rules = {"JAX", {.types = jax_types, .edges = jax_edges, .float_for_any = float64}};
constexpr PeerRules jax_strict_rules = {"JAX's strict mode", {.types = jax_types, .edges = {}}};
constexpr PeerRules tensorflow_rules = {"TensorFlow",
                                        {.types = tensorflow_types, .edges = jax_edges, .float_for_any = float64}};

int width(DType dtype) { return dtype == uint1 ? 1 : bit_width(dtype); }

bool is_floating(DType dtype) { return is_castable(dtype) && family(dtype) == Family::floating; }

// torch.result_type: floats over integers over bool.
int category(DType dtype) { return is_floating(dtype) ? 2 : dtype == boolean ? 0 : 1; }

// Mode "safe" of TensorFlow: no bits are added, and a float has at least twice the width of an integer.
bool is_safe(DType a, DType b, DType common) {
  if (a == boolean || b == boolean) return true;
  if (common != a && common != b) return false;
  if (is_floating(a) == is_floating(b)) return true;
  return width(common) >= 2 * width(common == a ? b : a);
}

}  // namespace

const PeerRules* find_peer_rules(PromoteRules rules) noexcept {
  switch (rules) {
    case PromoteRules::numpy:
      return &numpy_rules;
    case PromoteRules::torch:
      return &torch_rules;
    case PromoteRules::jax:
      return &jax_rules;
    case PromoteRules::jax_strict:
      return &jax_strict_rules;
    case PromoteRules::tensorflow:
      return &tensorflow_rules;
    case PromoteRules::openvino:
      break;
  }
  return nullptr;
}

Result<DType> promote_as_peer(PromoteOperand a, PromoteOperand b, const PromoteOptions& options) {
  const PeerRules& rules = *find_peer_rules(options.rules);
  if (options.rules == PromoteRules::torch && a.is_scalar != b.is_scalar) {
    const DType tensor = a.is_scalar ? b.dtype : a.dtype;
    const DType scalar = a.is_scalar ? a.dtype : b.dtype;
    if (category(scalar) <= category(tensor)) return tensor;
  }
  const DType common = common_type(rules.lattice, a.dtype, b.dtype);
  if (common == undefined) {
    return unsupported(formatted("{} has no common type for {} and {}", rules.owner, name(a.dtype), name(b.dtype)),
                       "cast one of them first");
  }
  if (options.rules == PromoteRules::tensorflow && !options.promote_unsafe && !is_safe(a.dtype, b.dtype, common)) {
    return unsupported(formatted("TensorFlow's mode \"safe\" does not promote {} and {} to {}", name(a.dtype),
                                 name(b.dtype), name(common)),
                       "pass promote_unsafe to allow it");
  }
  return common;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
