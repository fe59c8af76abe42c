// tensorcast.convert and tensorcast.inspect.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

namespace tensorcast::python {

// Returns the outcome as dictionaries. The GIL is released except for `progress`, and Ctrl-C ends the work.
// `from` is a dtype, or a dictionary of dtypes by tensor; `flags` are the request's boolean fields.
nanobind::dict convert_file(const std::string& src, const std::string& dst, nanobind::handle to,
                            const std::vector<std::pair<std::string, nanobind::object>>& rules,
                            const std::vector<std::string>& include, const std::vector<std::string>& exclude,
                            nanobind::handle from, nanobind::handle raw, const nanobind::dict& flags,
                            nanobind::handle progress, const nanobind::dict& keywords);

// With `with_stats`, each tensor's data is read too, and "stats" measures its losses as each of the candidates; without
// candidates, floating-point tensors as each of the common ones.
nanobind::dict inspect_file(const std::string& path, nanobind::handle from, bool with_stats,
                            nanobind::handle candidates, const nanobind::dict& keywords);

}  // namespace tensorcast::python
