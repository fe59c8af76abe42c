// A store of files behind URLs that Python implements.
#pragma once

#include <nanobind/nanobind.h>

namespace tensorcast::python {

void bind_remote_store(nanobind::module_& module);

}  // namespace tensorcast::python
