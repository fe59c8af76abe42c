// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tensorcast::onnxruntime {

std::uint32_t common_api_version(const OrtApiBase& base) {
  // GetApi() prints to standard error if it lacks a version, so the version is computed: release 1.N has version N.
  const char* version = base.GetVersionString();
  if (std::strncmp(version, "1.", 2) != 0) return ORT_API_VERSION;
  return static_cast<std::uint32_t>(std::min<unsigned long>(std::strtoul(version + 2, nullptr, 10), ORT_API_VERSION));
}

}  // namespace tensorcast::onnxruntime
