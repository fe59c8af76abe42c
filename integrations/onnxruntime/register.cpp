// SPDX-License-Identifier: Apache-2.0
// The function that the runtime calls when a library of custom operators is added to the options of a session.
#include <onnxruntime_c_api.h>

#include <cstring>
#include <string>

#include "cast_op.hpp"
#include "runtime.hpp"

namespace {

// Set to "1" in the session's configuration before the library is added: replaces the Cast of the ONNX domain, too.
constexpr const char* override_key = "ai.tensorcast.override";

bool wants_override(const OrtApi& api, const OrtSessionOptions& options) {
  std::size_t size = 0;
  int has = 0;
  tensorcast::onnxruntime::check(api.HasSessionConfigEntry(&options, override_key, &has));
  if (has == 0) return false;
  tensorcast::onnxruntime::check(api.GetSessionConfigEntry(&options, override_key, nullptr, &size));
  std::string value(size, '\0');
  tensorcast::onnxruntime::check(api.GetSessionConfigEntry(&options, override_key, value.data(), &size));
  return std::strcmp(value.c_str(), "1") == 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  using namespace tensorcast::onnxruntime;
  return with_runtime(*base, 21, [&](const OrtApi& api, std::uint32_t version) {
    add_domains(api, version, *options, wants_override(api, *options));
  });
}
