// SPDX-License-Identifier: Apache-2.0
// Kernels run in the default floating-point environment.
#pragma once

#include "dtype/float_environment.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Runs `body` in the default floating-point environment, whatever the caller's is.
template <class Body>
auto in_default_environment(Body body) {
  const DefaultFloatEnvironment environment;
  return body();
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
