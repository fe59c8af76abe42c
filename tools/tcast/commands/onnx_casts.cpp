// SPDX-License-Identifier: Apache-2.0
// tcast onnx casts, tcast onnx clean: what Casts a model has, and a model without those that change nothing.
#include <memory>

#include <fmt/format.h>

#include "commands/onnx_commands.hpp"
#include "flags/options.hpp"
#include "print/onnx_text.hpp"
#include "print/picture_file.hpp"
#include "print/report_json.hpp"
#include "print/result_json.hpp"
#include "print/text_table.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/onnx.hpp"

namespace tcast {
namespace {

using tensorcast::Result;
using tensorcast::onnx::CastInfo;
using tensorcast::onnx::CleanOutcome;
using tensorcast::onnx::CleanRequest;
using tensorcast::onnx::RemovedNode;

struct OnnxCastsArguments {
  std::string model;
  std::string picture;
  bool overwrite = false;
  bool json = false;
};

struct OnnxCleanArguments {
  CleanRequest request;
  bool json = false;
  bool quiet = false;
};

constexpr const char* onnx_casts_examples = R"(Examples:
  tcast onnx casts model.onnx
  tcast onnx casts model.onnx --json
  tcast onnx casts model.onnx --picture model.svg
      a picture, too: nodes and values in the colour of their precision, Casts marked; model.dot needs no Graphviz
Each Cast and CastLike, in subgraphs and functions too, with the types of its input and output, the number of those that
take its result, and why it is there. `tcast onnx clean` removes those with a star.)";

constexpr const char* onnx_clean_examples = R"(Examples:
  tcast onnx clean model.onnx -o clean.onnx
  tcast onnx clean model.onnx -o model.onnx --force
      change the file itself; it is replaced only when the new one is complete
  tcast onnx clean model.onnx --dry-run
Removes Casts and Identities that change no value: Casts to the type that they take, pairs to a type that has all
values of the first and back, second Casts of a value to a type, and those whose result nothing takes. Inputs and outputs
of the model keep their names and types. Everything else is copied byte for byte. Cleaning the result again changes
nothing.)";

int list_onnx_casts(const OnnxCastsArguments& arguments) {
  const Result<std::vector<CastInfo>> casts = tensorcast::onnx::list_casts(arguments.model);
  if (!casts) return fail(casts.error());
  if (!arguments.picture.empty()) {
    const CancellableWork cancellable;
    const tensorcast::PathUse others[] = {{.path = arguments.model, .noun = "model"}};
    Result<void> done = check_picture(arguments.picture, arguments.model, others, arguments.overwrite);
    if (done) done = write_picture(arguments.picture, arguments.model, others, arguments.overwrite);
    if (!done) return fail(done.error());
  }
  std::size_t removable = 0;
  for (const CastInfo& cast : *casts) removable += cast.removable ? 1 : 0;
  if (arguments.json) {
    print(json_text({{"model", arguments.model}, {"removable", removable}, {"casts", value_json(*casts)}}));
    return exit_done;
  }
  if (!casts->empty()) {
    Table table({{"Cast"}, {"from"}, {"to"}, {"consumers", Align::right}, {"why"}});
    for (const CastInfo& cast : *casts) {
      table.add_row({place_text(cast.scope, cast.name) + (cast.removable ? " *" : ""), type_text(cast.from),
                     type_text(cast.to), grouped(cast.consumers), printable(cast.reason)});
    }
    print(table.to_string() + "\n");
  }
  print(fmt::format("{}, of which `tcast onnx clean` removes {}\n", count_text(casts->size(), "Cast"), removable));
  return exit_done;
}

int clean_onnx(const OnnxCleanArguments& arguments) {
  const CleanRequest& request = arguments.request;
  const CancellableWork cancellable;
  const Result<CleanOutcome> outcome = tensorcast::onnx::clean(request);
  if (!outcome) return fail(outcome.error());
  if (arguments.json) {
    print(json_text({{"input", request.input},
                     {"output", request.output},
                     {"nodes", outcome->nodes},
                     {"nodes_removed", outcome->removed.size()},
                     {"casts_before", outcome->casts},
                     {"casts_after", outcome->casts - outcome->casts_removed},
                     {"removed", value_json(outcome->removed)}}));
    return exit_done;
  }
  if (arguments.quiet) return exit_done;
  const std::string where = request.dry_run ? request.input : request.output;
  if (outcome->removed.empty()) {
    print(fmt::format("{}: 0 changes\n", printable(where)));
    return exit_done;
  }
  print(fmt::format("{}: {} of {} {}removed, {} of {} left\n", printable(where), outcome->removed.size(),
                    count_text(outcome->nodes, "node"), request.dry_run ? "can be " : "",
                    outcome->casts - outcome->casts_removed, count_text(outcome->casts, "Cast")));
  if (request.dry_run) {
    for (const RemovedNode& node : outcome->removed) {
      print(fmt::format("  {} \"{}\": {}\n", printable(node.op_type), place_text(node.scope, node.name), node.reason));
    }
  }
  return exit_done;
}

}  // namespace

void add_onnx_casts(CLI::App& group, Work& work) {
  CLI::App& command = *group.add_subcommand("casts", "List the Casts of a model, and why each is there");
  command.footer(onnx_casts_examples);
  const auto arguments = std::make_shared<OnnxCastsArguments>();
  command.add_option("MODEL", arguments->model, "the ONNX model")->required();
  add_picture(command, arguments->picture);
  command.add_flag("-f,--force", arguments->overwrite, "overwrite the picture");
  add_json(command, arguments->json);
  command.callback([arguments, &work] { work = [arguments] { return list_onnx_casts(*arguments); }; });
}

void add_onnx_clean(CLI::App& group, Work& work) {
  CLI::App& command = *group.add_subcommand("clean", "Remove Casts and Identities that change no value");
  command.footer(onnx_clean_examples);
  const auto arguments = std::make_shared<OnnxCleanArguments>();
  CleanRequest& request = arguments->request;
  command.add_option("MODEL", request.input, "the ONNX model")->required();
  CLI::Option* output = command.add_option("-o,--output", request.output, "where the new model goes; may be MODEL");
  output->option_text("OUT");
  command.add_flag("--allow-lossy-cast-elision", request.allow_lossy_cast_elision,
                   "also remove Casts to a narrower float and back, which changes values");
  command.add_flag("--dry-run", request.dry_run, "list what would go, and write nothing");
  command.add_flag("-f,--force", request.overwrite, "overwrite OUT");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, output, &work] {
    if (output->count() == 0 && !arguments->request.dry_run) throw CLI::RequiredError("--output");
    work = [arguments] { return clean_onnx(*arguments); };
  });
}

}  // namespace tcast
