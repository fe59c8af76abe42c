// The one place where things that went wrong become words on stderr and an exit status.
#pragma once

#include <string_view>

#include "tensorcast/error.hpp"

namespace tcast {

// `tcast: error: FILE: tensor "NAME": element 17: MESSAGE`, and a second line with the hint if there is one.
// Returns exit_failed.
int fail(const tensorcast::Error& error);
int fail(std::string_view message, std::string_view hint = {});

// The same for a wrong command line. Returns exit_usage.
int misuse(std::string_view message, std::string_view hint = {});

}  // namespace tcast
