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
// Set to "1" so: CastLike takes a second input of the newest types, too.
constexpr const char* all_pairs_key = "ai.tensorcast.cast_like_all";

bool is_set(const OrtApi& api, const OrtSessionOptions& options, const char* key) {
  std::size_t size = 0;
  int has = 0;
  tensorcast::onnxruntime::check(api.HasSessionConfigEntry(&options, key, &has));
  if (has == 0) return false;
  tensorcast::onnxruntime::check(api.GetSessionConfigEntry(&options, key, nullptr, &size));
  std::string value(size, '\0');
  tensorcast::onnxruntime::check(api.GetSessionConfigEntry(&options, key, value.data(), &size));
  return std::strcmp(value.c_str(), "1") == 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  using namespace tensorcast::onnxruntime;
  return with_runtime(*base, 21, [&](const OrtApi& api, std::uint32_t version) {
    add_domains(api, version, *options,
                {.override = is_set(api, *options, override_key), .all_pairs = is_set(api, *options, all_pairs_key)});
  });
}
