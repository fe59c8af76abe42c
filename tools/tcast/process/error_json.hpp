// SPDX-License-Identifier: Apache-2.0
// Errors as JSON.
#pragma once

#include "print/report_json.hpp"
#include "tensorcast/error.hpp"

namespace tcast {

// The members "code", "message" and "hint", and "file", "tensor" and "element" where they are known.
[[nodiscard]] Json error_json(const tensorcast::Error& error);

}  // namespace tcast
