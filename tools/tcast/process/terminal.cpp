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

bool has_color(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && no_color[0] != '\0') return false;
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

std::size_t stdout_columns(std::size_t otherwise) { return columns_of(STDOUT_FILENO, otherwise); }
std::size_t stderr_columns(std::size_t otherwise) { return columns_of(STDERR_FILENO, otherwise); }

bool use_color(ColorChoice choice) {
  return choice == ColorChoice::automatic ? has_color(STDOUT_FILENO) : choice == ColorChoice::always;
}

bool stderr_has_color() { return has_color(STDERR_FILENO); }

std::string in_red(std::string text, bool color) { return color ? "\x1b[31m" + text + "\x1b[0m" : text; }

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool flush_stdout() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace tcast
