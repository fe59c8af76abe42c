#include "picture_file.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "printable.hpp"
#include "report_file.hpp"
#include "tensorcast/onnx.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): some systems declare it nowhere

namespace tcast {
namespace {

using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

bool is_svg(const std::string& path) { return path.ends_with(".svg"); }

// Returns the path of Graphviz's program; "" if no folder of PATH has it.
std::string find_dot() {
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/usr/bin:/bin" : path;
  while (true) {
    const std::string_view folder = left.substr(0, left.find(':'));
    std::string program = folder.empty() ? "./dot" : std::string(folder) + "/dot";
    std::error_code ignored;
    if (std::filesystem::is_regular_file(program, ignored) && ::access(program.c_str(), X_OK) == 0) return program;
    if (folder.size() == left.size()) return {};
    left.remove_prefix(folder.size() + 1);
  }
}

Error failed(std::string what, const std::string& path) {
  return Error{.code = ErrorCode::io, .message = std::move(what), .file = path};
}

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

// Runs `dot -Tsvg`, without a shell. It reads and writes files, so that neither waits for the other.
Result<std::string> run_dot(const std::string& program, const std::string& dot_text, const std::string& path) {
  const File input = temporary_file(dot_text);
  const File output = temporary_file({});
  const File complaints = temporary_file({});
  if (!input || !output || !complaints) return failed("cannot write a temporary file for Graphviz", path);
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return failed("cannot run Graphviz", path);
  bool ready = true;
  const std::pair<std::FILE*, int> streams[] = {{input.get(), 0}, {output.get(), 1}, {complaints.get(), 2}};
  for (const auto& [file, number] : streams) {
    ready = ::posix_spawn_file_actions_adddup2(&actions, ::fileno(file), number) == 0 && ready;
  }
  std::string name = "dot";
  std::string format = "-Tsvg";
  char* arguments[] = {name.data(), format.data(), nullptr};
  pid_t child = 0;
  const int status = ready ? ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ) : ENOMEM;
  ::posix_spawn_file_actions_destroy(&actions);
  if (status != 0) return failed("cannot run Graphviz's program dot", path);
  int ended = 0;
  while (::waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
    const std::string complaint = contents(complaints.get());
    return failed(fmt::format("Graphviz's program dot failed: {}",
                              printable(std::string_view(complaint).substr(0, complaint.find('\n')))),
                  path);
  }
  return contents(output.get());
}

// A conversion adds Casts, and its model is written when the picture is drawn.
constexpr std::size_t max_new_vertices = 8000;

}  // namespace

CLI::Option* add_picture(CLI::App& command, std::string& path) {
  const CLI::Validator has_ending(
      [](std::string& given) {
        const bool known = given.ends_with(".dot") || given.ends_with(".gv") || is_svg(given);
        return known ? std::string() : fmt::format("\"{}\" does not end in .svg, .dot or .gv", printable(given));
      },
      "");
  return command.add_option("--picture", path, "draw the model with precisions in colour: .dot, or .svg by Graphviz")
      ->check(has_ending)
      ->option_text("FILE");
}

Result<void> check_picture(const std::string& path, const std::string& model, std::span<const std::string> others,
                           bool overwrite) {
  if (Result<void> usable = check_report_path(path, others, overwrite, "picture"); !usable) return usable;
  if (is_svg(path) && find_dot().empty()) {
    return Error{.code = ErrorCode::unsupported,
                 .message = "an SVG picture needs the program dot of Graphviz, which is not in PATH",
                 .hint = "install Graphviz, such as with `apt install graphviz`; a name that ends in .dot needs none",
                 .file = path};
  }
  const Result<std::string> drawn = tensorcast::onnx::draw({.input = model});
  return drawn ? Result<void>() : drawn.error();
}

Result<void> write_picture(const std::string& path, const std::string& model, std::span<const std::string> others,
                           bool overwrite) {
  Result<std::string> text = tensorcast::onnx::draw({.input = model});
  if (!text && text.error().code == ErrorCode::unsupported) {
    text = tensorcast::onnx::draw({.input = model, .max_vertices = max_new_vertices});
  }
  if (text && is_svg(path)) text = run_dot(find_dot(), *text, path);
  if (!text) return std::move(text).error();
  return write_report(path, others, *text, overwrite, "picture");
}

}  // namespace tcast
