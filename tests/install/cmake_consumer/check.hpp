// SPDX-License-Identifier: Apache-2.0
// Prints the result of a check.
#pragma once

#include <cstdio>

#include "tensorcast/version.hpp"

inline int failures = 0;

inline void check(bool holds, const char* what) {
  if (!holds) {
    std::printf("FAILED: %s\n", what);
    ++failures;
  }
}

inline int finish() {
  if (failures == 0) std::printf("tensorcast %s works\n", tensorcast::version());
  return failures == 0 ? 0 : 1;
}
