// The one place where things that went wrong become words on stderr and an exit status.
#pragma once

#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tcast {

// `tcast: error: FILE: tensor "NAME": element 17: MESSAGE`, and a second line with the hint if there is one.
// Returns exit_failed.
int fail(const tensorcast::Error& error);
int fail(std::string_view message, std::string_view hint = {});

// `text` with the library's fields as this command's options: `raw_codes` becomes --raw-codes.
[[nodiscard]] std::string with_options(std::string_view text);

// Something that the user should know although the work was done: `tcast: warning: MESSAGE`, and the hint.
void warn(std::string_view message, std::string_view hint = {});

// As fail(), for a wrong command line. Returns exit_usage.
int misuse(std::string_view message, std::string_view hint = {});

}  // namespace tcast
