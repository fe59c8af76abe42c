// SPDX-License-Identifier: Apache-2.0
// The commands of `tcast onnx`; onnx.cpp has the group.
#pragma once

#include "command.hpp"

namespace tcast {

void add_onnx_add_cast(CLI::App& group, Work& work);
void add_onnx_convert(CLI::App& group, Work& work);
void add_onnx_casts(CLI::App& group, Work& work);
void add_onnx_clean(CLI::App& group, Work& work);
void add_onnx_diff(CLI::App& group, Work& work);
void add_onnx_respell(CLI::App& group, Work& work);
void add_onnx_use_tensorcast(CLI::App& group, Work& work);

}  // namespace tcast
