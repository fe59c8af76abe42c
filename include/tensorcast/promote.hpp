// The common type of two types, as OpenVINO's ConvertPromoteTypes-14 defines it.
#pragma once

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {

struct PromoteOptions {
  bool promote_unsafe = false;
  bool pytorch_scalar_promotion = false;
  DType u64_integer_promotion_target = DType::float32;
};

struct PromoteOperand {
  DType dtype = DType::undefined;
  bool is_scalar = false;  // rank 0; a tensor of shape [1] is not a scalar
};

// Errors: unsupported, with the reason: a type outside the operation's list, or a promotion that could lose
// values while promote_unsafe is off.
[[nodiscard]] TENSORCAST_API Result<DType> promote_types(PromoteOperand a, PromoteOperand b,
                                                         const PromoteOptions& options = {});

}  // namespace tensorcast
