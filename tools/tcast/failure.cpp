#include "failure.hpp"

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "command.hpp"
#include "printable.hpp"

namespace tcast {
namespace {

void print(std::string_view message, std::string_view hint) {
  std::string text = fmt::format("tcast: error: {}\n", printable(message));
  if (!hint.empty()) text += fmt::format("tcast: hint: {}\n", printable(hint));
  std::fputs(text.c_str(), stderr);
}

std::string hint_of(const tensorcast::Error& error) {
  std::error_code ignored;
  if (error.hint.empty() && !error.file.empty() && std::filesystem::is_directory(error.file, ignored)) {
    return "checkpoint folders cannot be read as a whole yet; name one of their files";
  }
  return error.hint;
}

}  // namespace

int fail(const tensorcast::Error& error) {
  tensorcast::Error described = error;
  described.hint.clear();
  print(described.describe(), hint_of(error));
  return exit_failed;
}

int fail(std::string_view message, std::string_view hint) {
  print(message, hint);
  return exit_failed;
}

int misuse(std::string_view message, std::string_view hint) {
  print(message, hint);
  return exit_usage;
}

}  // namespace tcast
