// SPDX-License-Identifier: Apache-2.0
// What the two halves of the extension share. OpenVINO's C++ interface changes with its releases, so the operations are
// a small library for each interface; the conversions and the choice of that library are in one that links neither.
#pragma once

#include <tensorcast/c_api.h>

namespace tensorcast::openvino {

// The functions of the C interface that the operations call.
struct Functions {
  decltype(&::tc_cast) cast;
  decltype(&::tc_cast_options_init_sized) cast_options_init;
  decltype(&::tc_promote) promote;
  decltype(&::tc_promote_options_init_sized) promote_options_init;
  decltype(&::tc_last_error) last_error;
};

// Exported by the library of operations as `create_operations_name`. `extensions` is OpenVINO's
// std::vector<std::shared_ptr<ov::Extension>>*.
using CreateOperations = void (*)(void* extensions, const Functions& functions);
inline constexpr const char* create_operations_name = "tensorcast_openvino_create";

}  // namespace tensorcast::openvino
