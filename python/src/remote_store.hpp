// A store of files behind URLs that Python implements.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

namespace tensorcast::python {

void bind_remote_store(nanobind::module_& module);

}  // namespace tensorcast::python
