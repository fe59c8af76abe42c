// SPDX-License-Identifier: Apache-2.0
// The operators as the runtime sees them: names, types, versions, and functions that make and run kernels.
#pragma once

#include <onnxruntime_c_api.h>

#include <tensorcast/c_api.h>

#include <cstdint>

#include "cast_kernel.hpp"

namespace tensorcast::onnxruntime {

struct TypeSystem;

// One declaration of an operator. The runtime gets its address, so it lives as long as every session.
struct CastOp : OrtCustomOp {
  const OrtApi* api;
  const TypeSystem* system;
  CastKind kind;
  tc_dtype from;
  tc_dtype to;  // 0: every type that the runtime knows by the word "undefined"
};

// What the configuration of a session asks for.
struct Wishes {
  bool override = false;   // also the ONNX domain's Cast
  bool all_pairs = false;  // CastLike with a second input of the newest types, which makes sessions slow to make
};

// Adds ai.tensorcast::Cast and CastLike to `options`. Release 1.21 ignores the output type that an operator infers, so
// there is only CastLike, and `override` fails.
void add_domains(const OrtApi& api, std::uint32_t api_version, OrtSessionOptions& options, const Wishes& wishes);

}  // namespace tensorcast::onnxruntime
