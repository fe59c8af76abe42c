// SPDX-License-Identifier: Apache-2.0
// tcast run: runs a model of conversion nodes on files of tensors.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "commands/output_paths.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "print/text_table.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/model.hpp"
#include "tensorcast/tensor_file.hpp"
#include "tensorcast/whole_file.hpp"

namespace tcast {
namespace {

using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::MdfSemantics;
using tensorcast::Model;
using tensorcast::name;
using tensorcast::NamedTensor;
using tensorcast::Program;
using tensorcast::Result;
using tensorcast::ValueInfo;

enum class OutputFormat { npy, pb };

struct RunArguments {
  std::string model;
  tensorcast::LoadModelOptions options;
  std::vector<std::string> inputs;  // NAME=FILE, or FILE
  std::string output_dir;
  OutputFormat output_format = OutputFormat::npy;
  tensorcast::Execution execution;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
};

struct OutputPlace {
  std::string name;
  std::string path;
};

constexpr const char* run_examples = R"(Examples:
  tcast run cast.onnx --input x.npy --output-dir results
      a model with one input; each output becomes results/NAME.npy
  tcast run model.onnx --input x=x.npy --input target_type=like.pb --output-dir results --output-format pb
      a .pb (ONNX TensorProto) that has an input's name needs no NAME=
  tcast run promote.xml --input a=a.npy --input b=b.npy --output-dir results --force
  tcast run model.yaml --input x.npy --output-dir results --semantics mdf-reference --json
What is run: ONNX models of Cast, CastLike, Constant, Identity and If in opsets 1 to 28, with functions and external
data; OpenVINO IR of Convert, ConvertLike, ConvertPromoteTypes and Const; MDF models of onnx::Cast and onnx::CastLike.
A node of another kind is an error that names it. Inputs must have the types that the model declares; a .npy that does
not say its type (|V1, <V2) is taken to have the declared one. In file names of outputs everything but letters, digits
and ._- becomes _. Each file appears only when it is complete.)";

std::string names_of(std::span<const ValueInfo> values) {
  std::vector<std::string> names;
  for (const ValueInfo& value : values) names.push_back(fmt::format("\"{}\"", value.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

const ValueInfo* find_input(const Program& program, std::string_view wanted) {
  for (const ValueInfo& input : program.inputs()) {
    if (input.name == wanted) return &input;
  }
  return nullptr;
}

// Names of inputs and files may contain equals signs.
const ValueInfo* named_input(const Program& program, std::string_view argument, std::string& file) {
  for (std::size_t sign = argument.rfind('='); sign != std::string_view::npos; sign = argument.rfind('=', sign - 1)) {
    if (const ValueInfo* input = find_input(program, argument.substr(0, sign))) {
      file = argument.substr(sign + 1);
      return input;
    }
    if (sign == 0) break;
  }
  return nullptr;
}

Result<NamedTensor> read_input(const Program& program, const std::string& argument, bool is_only_one) {
  std::string file = argument;
  const ValueInfo* input = named_input(program, argument, file);
  const bool is_named = input != nullptr;
  if (!is_named && is_only_one && program.inputs().size() == 1) input = &program.inputs().front();
  Result<NamedTensor> tensor =
      tensorcast::read_tensor(file, {.from = input == nullptr ? tensorcast::DType::undefined : input->dtype});
  const auto is_there = [&] {
    std::error_code ignored;
    return std::filesystem::exists(file, ignored);
  };
  if (!tensor && !is_named && argument.find('=') != std::string::npos && !is_there()) {
    return tensorcast::invalid(fmt::format("the model has no input \"{}\"", argument.substr(0, argument.find('='))),
                               program.inputs().empty() ? "it has no inputs" : "it has " + names_of(program.inputs()));
  }
  if (!tensor) {
    // The model does not give the type either.
    if (tensor.error().hint.starts_with("`from`")) tensor.error().hint = "a .pb says it";
    return tensor;
  }
  if (input == nullptr) input = find_input(program, tensor->name);
  if (input == nullptr) {
    return tensorcast::in_file(
        file, tensorcast::invalid("cannot tell which model input this file is for",
                                  program.inputs().empty() ? "the model has no inputs"
                                                           : fmt::format("--input NAME=FILE, where NAME is one of {}",
                                                                         names_of(program.inputs()))));
  }
  tensor->name = input->name;
  return tensor;
}

Result<std::vector<NamedTensor>> read_inputs(const Program& program, const RunArguments& arguments) {
  std::vector<NamedTensor> tensors;
  for (const std::string& argument : arguments.inputs) {
    NamedTensor tensor = TRY(read_input(program, argument, arguments.inputs.size() == 1));
    const auto is_same = [&](const NamedTensor& other) { return other.name == tensor.name; };
    if (std::any_of(tensors.begin(), tensors.end(), is_same)) {
      return tensorcast::invalid(fmt::format("input \"{}\" is given twice", tensor.name));
    }
    tensors.push_back(std::move(tensor));
  }
  for (const ValueInfo& input : program.inputs()) {
    const auto is_it = [&](const NamedTensor& tensor) { return tensor.name == input.name; };
    if (input.default_value || std::any_of(tensors.begin(), tensors.end(), is_it)) continue;
    return tensorcast::in_file(
        arguments.model, tensorcast::invalid(fmt::format("input \"{}\" of the model is missing", input.name),
                                             fmt::format("--input {}=FILE; the model has the inputs {}", input.name,
                                                         names_of(program.inputs()))));
  }
  return tensors;
}

// The folder of the outputs and its parents. The destructor removes those that it created and that are empty.
class OutputFolder {
 public:
  OutputFolder() = default;
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder() {
    std::error_code ignored;
    for (const std::filesystem::path& folder : created_) std::filesystem::remove(folder, ignored);
  }

  Result<void> create(const std::string& name) {
    std::error_code problem;
    std::filesystem::path folder = name;
    while (!folder.empty() && !std::filesystem::exists(folder, problem)) {
      created_.push_back(folder);
      folder = folder.parent_path();
    }
    std::filesystem::create_directories(name, problem);
    if (!problem) return {};
    return tensorcast::in_file(
        name, tensorcast::io_failure(fmt::format("the folder cannot be created: {}", problem.message())));
  }

 private:
  std::vector<std::filesystem::path> created_;  // deepest first
};

// The files that a run reads. An input is NAME=FILE or FILE, and either may have a "=" in its name.
std::vector<tensorcast::PathUse> read_paths(const RunArguments& arguments) {
  std::vector<tensorcast::PathUse> paths = {{.path = arguments.model, .noun = "model"}};
  for (const std::string& argument : arguments.inputs) {
    paths.push_back({.path = argument, .noun = "input"});
    if (const std::size_t equals = argument.find('='); equals != std::string::npos && equals + 1 < argument.size()) {
      paths.push_back({.path = argument.substr(equals + 1), .noun = "input"});
    }
  }
  return paths;
}

// Makes every check that is possible before the work starts.
Result<std::vector<OutputPlace>> place_outputs(const Program& program, const RunArguments& arguments) {
  std::error_code problem;
  std::vector<std::string> names;
  for (const ValueInfo& output : program.outputs()) names.push_back(output.name);
  const std::vector<std::string> files =
      output_file_names(names, arguments.output_format == OutputFormat::npy ? ".npy" : ".pb");
  const std::vector<tensorcast::PathUse> paths = read_paths(arguments);
  std::vector<OutputPlace> places;
  for (std::size_t i = 0; i < files.size(); ++i) {
    OutputPlace place{.name = names[i], .path = (std::filesystem::path(arguments.output_dir) / files[i]).string()};
    if (!arguments.overwrite && std::filesystem::exists(place.path, problem)) {
      return tensorcast::in_file(place.path, tensorcast::invalid("the file exists already", "--force overwrites it"));
    }
    if (std::filesystem::exists(place.path, problem)) {  // what is read exists, too
      const tensorcast::PathUse output{.path = place.path, .noun = "output"};
      TRY(tensorcast::check_apart(output, paths));
    }
    places.push_back(std::move(place));
  }
  return places;
}

void print_outputs(const RunArguments& arguments, const Model& model, std::span<const NamedTensor> outputs,
                   std::span<const OutputPlace> places) {
  if (arguments.json) {
    Json list = Json::array();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Json shape = Json::array();
      for (const std::int64_t size : outputs[i].tensor.shape()) shape.push_back(size);
      list.push_back({{"name", outputs[i].name},
                      {"dtype", name(outputs[i].tensor.dtype())},
                      {"shape", std::move(shape)},
                      {"file", places[i].path}});
    }
    print(json_text({{"model", arguments.model}, {"format", model.format}, {"outputs", std::move(list)}}));
    return;
  }
  if (arguments.quiet) return;
  Table table({{"output"}, {"dtype"}, {"shape"}, {"file"}});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    table.add_row({printable(outputs[i].name), std::string(name(outputs[i].tensor.dtype())),
                   shape_text(outputs[i].tensor.shape()), printable(places[i].path)});
  }
  print(table.to_string());
}

// The types of inputs that an MDF model leaves open are those of their files.
tensorcast::DType type_of_input(const RunArguments& arguments, std::string_view input, std::optional<Error>& problem) {
  for (const std::string& argument : arguments.inputs) {
    std::string_view file;
    if (argument.size() > input.size() && argument.starts_with(input) && argument[input.size()] == '=') {
      file = std::string_view(argument).substr(input.size() + 1);
    } else if (arguments.inputs.size() == 1 && argument.find('=') == std::string::npos) {
      file = argument;
    } else {
      continue;
    }
    const Result<NamedTensor> tensor = tensorcast::read_tensor(std::string(file));
    if (tensor) return tensor->tensor.dtype();
    problem = tensor.error();
  }
  return tensorcast::DType::undefined;
}

int run(const RunArguments& arguments) {
  tensorcast::LoadModelOptions options = arguments.options;
  std::optional<Error> problem;  // the reason why a type could not be found
  options.input_type = [&](std::string_view input) { return type_of_input(arguments, input, problem); };
  Result<Model> model = tensorcast::load_model(arguments.model, options);
  if (!model) return fail(problem && problem->code == ErrorCode::io ? *problem : model.error());
  const auto in_model = [&](Error error) {
    if (error.file.empty()) error.file = arguments.model;
    return fail(error);
  };
  const Result<Program> program = Program::compile(std::move(model->graph));
  if (!program) return in_model(program.error());
  const Result<std::vector<NamedTensor>> inputs = read_inputs(*program, arguments);
  if (!inputs) return fail(inputs.error());
  OutputFolder folder;
  if (const Result<void> created = folder.create(arguments.output_dir); !created) return fail(created.error());
  const Result<std::vector<OutputPlace>> places = place_outputs(*program, arguments);
  if (!places) return fail(places.error());
  const Result<std::vector<NamedTensor>> outputs = program->run(*inputs, arguments.execution);
  if (!outputs) return in_model(outputs.error());
  const CancellableWork cancellable;  // from here on, files must be completed or removed
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    if (interrupted()) return report_interruption(fmt::format("{} of {} outputs were written", i, outputs->size()));
    const Result<void> written = tensorcast::write_tensor(
        (*places)[i].path, (*outputs)[i].tensor, {.name = (*outputs)[i].name, .overwrite = arguments.overwrite});
    if (!written) return fail(written.error());
  }
  print_outputs(arguments, *model, *outputs, *places);
  return exit_done;
}

}  // namespace

void add_run(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("run", "Run a model of conversion nodes");
  command.footer(run_examples);
  const auto arguments = std::make_shared<RunArguments>();

  command.add_option("MODEL", arguments->model, "the model: .onnx, .xml (OpenVINO IR), .json or .yaml (MDF)")
      ->required();
  repeatable(
      command.add_option("-i,--input", arguments->inputs, "a tensor for an input, .npy or .pb; once for each input"))
      ->option_text("[NAME=]FILE");
  command.add_option("-d,--output-dir", arguments->output_dir, "folder for the outputs; made if it is not there")
      ->required()
      ->option_text("DIR");
  add_choice<OutputFormat>(command, "--output-format", arguments->output_format,
                           {{"npy", OutputFormat::npy}, {"pb", OutputFormat::pb}},
                           "what the outputs are written as (default npy)");
  add_choice<MdfSemantics>(command, "--semantics", arguments->options.mdf_semantics,
                           {{"onnx", MdfSemantics::onnx}, {"mdf_reference", MdfSemantics::mdf_reference}},
                           "MDF: as the operators' texts say, or as MDF's reference engine computes (default onnx)");
  add_choice<std::string>(command, "--format", arguments->options.format,
                          {{"onnx", "onnx"}, {"openvino_ir", "openvino_ir"}, {"mdf", "mdf"}},
                          "the model's format (default: by extension and content)");
  add_threads(command, arguments->execution.threads);
  command.add_flag("-f,--force", arguments->overwrite, "overwrite files of outputs");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);

  command.callback([arguments, &work] { work = [arguments] { return run(*arguments); }; });
}

}  // namespace tcast
