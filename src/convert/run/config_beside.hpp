// SPDX-License-Identifier: Apache-2.0
// The configuration that stands beside a file of tensors that is written. A conversion of a file leaves it as it is.
#pragma once
#include <string>
#include <vector>

#include "convert/plan/file_plan.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::file_conversion {

// Checks that a configuration in the folder of `path` will not contradict the file: loaders, and tcast, would read its
// weights as the configuration says. Adds a warning if the file's metadata describe what the configuration does not.
// Errors: unsupported: it names a quantization, and the file's layers are decoded, or quantized anew.
[[nodiscard]] Result<void> check_config_beside(const std::string& path, const formats::Format& format, const Plan& plan,
                                               std::vector<std::string>& warnings);

}  // namespace tensorcast::file_conversion
