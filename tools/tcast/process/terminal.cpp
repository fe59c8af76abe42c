// SPDX-License-Identifier: Apache-2.0
#include "process/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tcast {
namespace {

std::size_t columns_of(int fd, std::size_t otherwise) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

}  // namespace

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

std::size_t stdout_columns(std::size_t otherwise) { return columns_of(STDOUT_FILENO, otherwise); }
std::size_t stderr_columns(std::size_t otherwise) { return columns_of(STDERR_FILENO, otherwise); }

bool use_color(ColorChoice choice) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && no_color[0] != '\0') return false;
  const char* term = std::getenv("TERM");
  return stdout_is_terminal() && term != nullptr && std::string_view(term) != "dumb";
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool flush_stdout() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace tcast
