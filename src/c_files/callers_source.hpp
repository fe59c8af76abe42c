// SPDX-License-Identifier: Apache-2.0
// The bytes of a caller in C as a ByteSource.
#pragma once

#include <memory>
#include <string>

#include "tensorcast/byte_source.hpp"
#include "tensorcast/c_files.h"
#include "tensorcast/error.hpp"

namespace tensorcast::c_api {

// Errors: invalid_argument: null pointers, a struct_size that no release had.
[[nodiscard]] Result<std::shared_ptr<ByteSource>> callers_source(const tc_source* source);

// The name of a file that is read from a source.
[[nodiscard]] inline std::string name_of_source(const char* name) { return name == nullptr ? "source" : name; }

}  // namespace tensorcast::c_api
