// SPDX-License-Identifier: Apache-2.0
// What adds functions and classes to tensorcast._core, one for each source.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

namespace tensorcast::python {

void bind_blocks(nanobind::module_& module);        // the base of tensorcast.dequantize
void bind_checkpoint(nanobind::module_& module);    // the steps of a checkpoint's conversion, for checkpoint.py
void bind_files(nanobind::module_& module);         // the base of tensorcast.convert, inspect, open and save
void bind_graph(nanobind::module_& module);         // graphs, models and differentiable nodes
void bind_onnx_models(nanobind::module_& module);   // the base of tensorcast.onnx
void bind_quantize(nanobind::module_& module);      // the base of tensorcast.quantize
void bind_remote_store(nanobind::module_& module);  // a store of files behind URLs that Python implements
void bind_report(nanobind::module_& module);        // tensorcast.CastReport

}  // namespace tensorcast::python
