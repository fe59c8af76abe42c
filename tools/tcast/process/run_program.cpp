// SPDX-License-Identifier: Apache-2.0
#include "process/run_program.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "process/interrupt.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): some systems declare it nowhere

namespace tcast {
namespace {

using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;
using namespace std::chrono_literals;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A file without a name that holds `text`, read from its beginning.
File temporary_file(std::string_view text) {
  File file(std::tmpfile(), &std::fclose);
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0 && ::lseek(::fileno(file.get()), 0, SEEK_SET) == 0;
  if (!written) file.reset();
  return file;
}

std::string contents(std::FILE* file) {
  std::string text;
  std::array<char, 4096> block;
  std::rewind(file);
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file)) text.append(block.data(), got);
  return text;
}

bool is_program(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// Returns the status of waitpid(). A program that does not end by SIGTERM is killed.
int wait_for(pid_t child, const std::function<void()>& waiting) {
  constexpr auto patience = 5s;
  auto step = 1ms;
  std::chrono::steady_clock::time_point asked;
  int ended = 0;
  while (::waitpid(child, &ended, WNOHANG) == 0) {
    const auto now = std::chrono::steady_clock::now();
    if (interrupted() && asked == std::chrono::steady_clock::time_point()) {
      ::kill(child, SIGTERM);
      asked = now;
    } else if (interrupted() && now - asked > patience) {
      ::kill(child, SIGKILL);
    }
    if (waiting) waiting();
    std::this_thread::sleep_for(step);
    step = std::min<std::chrono::milliseconds>(step * 2, 50ms);
  }
  return ended;
}

}  // namespace

std::string find_program(std::string_view name) {
  if (name.find('/') != std::string_view::npos)
    return is_program(std::string(name)) ? std::string(name) : std::string();
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/usr/bin:/bin" : path;
  while (true) {
    const std::string_view folder = left.substr(0, left.find(':'));
    std::string program = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_program(program)) return program;
    if (folder.size() == left.size()) return {};
    left.remove_prefix(folder.size() + 1);
  }
}

Result<ProgramResult> run_program(const std::string& path, std::span<const std::string> arguments,
                                  std::string_view input, const std::function<void()>& waiting) {
  const auto failed = [&](int error) {
    return Error{.code = ErrorCode::io,
                 .message = fmt::format("cannot run it: {}", std::generic_category().message(error)),
                 .file = path,
                 .system_error = error};
  };
  // Files, not pipes, so that neither side waits for the other.
  const File in = temporary_file(input);
  const File out = temporary_file({});
  const File complaints = temporary_file({});
  if (!in || !out || !complaints) return failed(errno);
  posix_spawn_file_actions_t actions;
  if (const int error = ::posix_spawn_file_actions_init(&actions); error != 0) return failed(error);
  int error = 0;
  const std::pair<std::FILE*, int> streams[] = {{in.get(), 0}, {out.get(), 1}, {complaints.get(), 2}};
  for (const auto& [file, number] : streams) {
    if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions, ::fileno(file), number);
  }
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (error == 0) error = ::posix_spawn(&child, path.c_str(), &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return failed(error);
  const int ended = wait_for(child, waiting);
  if (interrupted()) return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
  return ProgramResult{.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended),
                       .output = contents(out.get()),
                       .complaints = contents(complaints.get())};
}

}  // namespace tcast
