// tensorcast.convert and tensorcast.inspect.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

namespace tensorcast::python {

// The outcome as dictionaries; the GIL is released but for `progress`, and Ctrl-C is heard.
nanobind::dict convert_file(const std::string& src, const std::string& dst, nanobind::handle to,
                            const std::vector<std::pair<std::string, nanobind::object>>& rules,
                            const std::vector<std::string>& include, const std::vector<std::string>& exclude,
                            nanobind::handle from, bool force, bool dry_run, bool report, bool verify,
                            nanobind::handle progress, const nanobind::dict& keywords);

// With `candidates`, dtypes, each tensor's data is read too, and "stats" says how it would fare as each of them.
nanobind::dict inspect_file(const std::string& path, nanobind::handle from, nanobind::handle candidates,
                            const nanobind::dict& keywords);

}  // namespace tensorcast::python
