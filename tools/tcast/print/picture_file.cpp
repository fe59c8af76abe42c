// SPDX-License-Identifier: Apache-2.0
#include "print/picture_file.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "flags/options.hpp"
#include "print/report_file.hpp"
#include "process/printable.hpp"
#include "process/run_program.hpp"
#include "tensorcast/onnx.hpp"

namespace tcast {
namespace {

using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

bool is_svg(const std::string& path) { return path.ends_with(".svg"); }

Error failed(std::string what, const std::string& path) {
  return tensorcast::in_file(path, tensorcast::io_failure(std::move(what)));
}

// Runs `dot -Tsvg`. `path`: where the picture goes.
Result<std::string> run_dot(const std::string& dot_text, const std::string& path) {
  const std::string arguments[] = {"-Tsvg"};
  Result<ProgramResult> done = run_program(find_program("dot"), arguments, dot_text);
  if (!done && done.error().code == ErrorCode::cancelled) return std::move(done).error();
  if (!done) return failed("cannot run Graphviz's program dot", path);
  if (done->status == 0) return std::move(done->output);
  const std::string_view complaint = done->complaints;
  return failed(fmt::format("Graphviz's program dot failed: {}", printable(complaint.substr(0, complaint.find('\n')))),
                path);
}

// A conversion adds Casts, and its model is written when the picture is drawn.
constexpr std::size_t max_new_vertices = 8000;

}  // namespace

CLI::Option* add_picture(CLI::App& command, std::string& path) {
  const auto complaint = [](const std::string& given) {
    const bool known = given.ends_with(".dot") || given.ends_with(".gv") || is_svg(given);
    return known ? std::string() : fmt::format("\"{}\" does not end in .svg, .dot or .gv", printable(given));
  };
  return command.add_option("--picture", path, "draw the model with precisions in colour: .dot, or .svg by Graphviz")
      ->check(check(complaint))
      ->option_text("FILE");
}

Result<void> check_picture(const std::string& path, const std::string& model,
                           std::span<const tensorcast::PathUse> others, bool overwrite) {
  TRY(check_report_path(path, others, overwrite, "picture"));
  const std::vector<std::string> external = TRY(tensorcast::onnx::list_external_files(model));
  std::vector<tensorcast::PathUse> data;
  for (const std::string& file : external) data.push_back({.path = file, .noun = "external data of the model"});
  TRY(check_report_path(path, data, overwrite, "picture"));
  if (is_svg(path) && find_program("dot").empty()) {
    return tensorcast::in_file(
        path, tensorcast::unsupported(
                  "an SVG picture needs the program dot of Graphviz, which is not in PATH",
                  "install Graphviz, such as with `apt install graphviz`; a name that ends in .dot needs none"));
  }
  const Result<std::string> drawn = tensorcast::onnx::draw({.input = model});
  return drawn ? Result<void>() : drawn.error();
}

Result<void> write_picture(const std::string& path, const std::string& model,
                           std::span<const tensorcast::PathUse> others, bool overwrite) {
  Result<std::string> text = tensorcast::onnx::draw({.input = model});
  if (!text && text.error().code == ErrorCode::unsupported) {
    text = tensorcast::onnx::draw({.input = model, .max_vertices = max_new_vertices});
  }
  if (text && is_svg(path)) text = run_dot(*text, path);
  if (!text) return std::move(text).error();
  return write_report(path, others, *text, overwrite, "picture");
}

}  // namespace tcast
