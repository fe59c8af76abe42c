// SPDX-License-Identifier: Apache-2.0
// Calls the runtime through its function table. Inside, errors are exceptions; guarded() turns them into statuses.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <exception>
#include <new>
#include <string>

namespace tensorcast::onnxruntime {

// The version of the function table that the runtime and this library both have: N for release 1.N.
[[nodiscard]] std::uint32_t common_api_version(const OrtApiBase& base);

// Carries a status through C++ code up to guarded(), which hands it to the runtime.
struct Failure {
  OrtStatus* status;
};

inline void check(OrtStatus* status) {
  if (status != nullptr) throw Failure{status};
}

// Fails with `message`, which the runtime shows to its user.
[[noreturn]] inline void fail(const OrtApi& api, OrtErrorCode code, const std::string& message) {
  throw Failure{api.CreateStatus(code, ("tensorcast: " + message).c_str())};
}

// Reports whether a call succeeded, and releases its status.
inline bool succeeds(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return true;
  api.ReleaseStatus(status);
  return false;
}

// Runs `function` at the border to the runtime, which no exception may cross.
template <class Function>
OrtStatus* guarded(const OrtApi& api, Function&& function) noexcept {
  try {
    function();
    return nullptr;
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return api.CreateStatus(ORT_FAIL, "tensorcast: out of memory");
  } catch (const std::exception& error) {
    return api.CreateStatus(ORT_FAIL, error.what());
  }
}

// Runs `function(api, version)` with the newest function table that the runtime and this library both have. Fails if
// the runtime is older than release 1.`oldest`.
template <class Function>
OrtStatus* with_runtime(const OrtApiBase& base, std::uint32_t oldest, Function&& function) noexcept {
  const std::uint32_t version = common_api_version(base);
  const OrtApi* api = base.GetApi(version);
  if (api == nullptr) return nullptr;  // no runtime: each has the table of its own release
  return guarded(*api, [&] {
    if (version < oldest) fail(*api, ORT_FAIL, "needs ONNX Runtime 1." + std::to_string(oldest) + " or newer");
    function(*api, version);
  });
}

}  // namespace tensorcast::onnxruntime
