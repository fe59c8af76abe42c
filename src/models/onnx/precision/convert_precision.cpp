// tensorcast::onnx::convert(): reads, plans, surveys the numbers, writes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "dtype/guarded.hpp"
#include "models/onnx/model_tree.hpp"
#include "models/onnx/precision/model_files.hpp"
#include "models/onnx/precision/model_ir.hpp"
#include "models/onnx/precision/precision_plan.hpp"
#include "models/onnx/precision/type_inference.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx::precision {
namespace {

using ::tensorcast::onnx::ConvertOutcome;
using ::tensorcast::onnx::ConvertRequest;
using ::tensorcast::onnx::Masks;
using ::tensorcast::onnx::OnOverflow;

constexpr DType converted_types[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16};

Error refused(std::string what, std::string hint = {}) {
  return Error{.code = ErrorCode::invalid_argument, .message = std::move(what), .hint = std::move(hint)};
}

bool is_converted_type(DType dtype) {
  return std::find(std::begin(converted_types), std::end(converted_types), dtype) != std::end(converted_types);
}

Result<PrecisionPlan::Settings> settings_of(const ConvertRequest& request) {
  const bool is_target = is_converted_type(request.to) ||
                         (request.weights_only && is_castable(request.to) && family(request.to) == Family::floating);
  if (!is_target) {
    return refused(fmt::format("a model cannot become {}", name(request.to)),
                   "targets are float16, bfloat16, float32 and float64; with --weights-only float8 types, too");
  }
  PrecisionPlan::Settings settings{.to = static_cast<std::uint32_t>(request.to), .from = 0, .request = &request};
  for (const DType from : request.from) {
    if (!is_converted_type(from)) {
      return refused(fmt::format("{} cannot be converted from", name(from)),
                     "sources are float64, float32, bfloat16 and float16");
    }
    settings.from |= std::uint64_t{1} << static_cast<int>(from);
  }
  if (request.from.empty()) {
    for (const DType from : converted_types) {
      // Stored weights become smaller, never larger.
      if (request.weights_only && bit_width(from) <= bit_width(request.to)) continue;
      settings.from |= std::uint64_t{1} << static_cast<int>(from);
    }
  }
  return settings;
}

// Names that match nothing are mistakes.
Result<void> check_names(const Model& model, const PrecisionPlan& plan, const ConvertRequest& request) {
  std::set<std::string, std::less<>> edges;
  for (const auto* declarations : {&model.graph->inputs, &model.graph->outputs}) {
    for (const Declaration& edge : *declarations) edges.insert(edge.name);
  }
  std::set<std::string, std::less<>> operators;
  plan.each_graph([&](const Graph& graph) {
    for (const Node& node : graph.nodes) operators.insert(node.op_type);
  });
  const auto check = [](const std::vector<std::string>& names, const auto& known,
                        std::string_view what) -> Result<void> {
    for (const std::string& name : names) {
      if (!known.contains(name)) return refused(fmt::format("the model has no {} \"{}\"", what, shown(name)));
    }
    return {};
  };
  if (Result<void> right = check(request.keep_io_names, edges, "input or output"); !right) return right;
  if (Result<void> right = check(request.keep_op_types, operators, "operator"); !right) return right;
  return check(request.keep_nodes, model.node_names, "node");
}

bool has_source(const Model& model, const PrecisionPlan::Settings& settings) {
  return std::any_of(model.values.begin(), model.values.end(),
                     [&](const Value& value) { return settings.converts(value.type); });
}

Result<void> check_opset(const Model& model, DType to) {
  const std::int64_t opset = model.graph->opset("");
  if (opset <= 0 || opset >= since_opset(to)) return {};
  return Error{
      .code = ErrorCode::unsupported,
      .message = fmt::format("{} came with opset {}, but the model has opset {}", name(to), since_opset(to), opset),
      .hint = fmt::format("onnx.version_converter may convert the model to opset {}", since_opset(to))};
}

class Survey {
 public:
  Survey(const io::InputFile& file, PrecisionPlan& plan) : file_(file), plan_(plan) {}

  Result<void> run() {
    Result<void> done;
    plan_.each_graph([&](const Graph& graph) {
      if (done) done = survey(graph);
    });
    return done;
  }

 private:
  Result<void> survey(const Graph& graph) {
    for (const Initializer& initializer : graph.initializers) {
      if (!plan_.may_change(initializer.value)) continue;
      if (Result<void> done = survey(initializer.value, initializer.tensor, initializer.name); !done) return done;
    }
    for (const Node& node : graph.nodes) {
      if (node.outputs.empty() || node.outputs[0] == no_value || !plan_.may_change(node.outputs[0])) continue;
      if (node.op_type != "Constant" && node.op_type != "ConstantOfShape") continue;
      for (const Attribute& attribute : node.attributes) {
        if (attribute.name.starts_with("value_float")) {
          if (Result<void> done = survey_floats(node.outputs[0], attribute); !done) return done;
        } else if (attribute.tensor.length != 0) {
          if (Result<void> done = survey(node.outputs[0], attribute.tensor, node.output_names[0]); !done) return done;
        }
      }
    }
    return {};
  }

  Result<void> survey(ValueId id, ByteRange tensor, const std::string& tensor_name) {
    const auto to = static_cast<DType>(plan_.settings().to);
    const Result<NumberSurvey> found = survey_tensor(file_, tensor, to);
    if (!found) return found.error();
    return judge(id, *found, tensor_name);
  }

  Result<void> survey_floats(ValueId id, const Attribute& attribute) {
    const double largest = facts(static_cast<DType>(plan_.settings().to)).largest;
    NumberSurvey found{.count = attribute.floats.size()};
    for (const double number : attribute.floats)
      found.overflowing += number - number == 0 && (number > largest || number < -largest) ? 1 : 0;
    return judge(id, found, attribute.name);
  }

  Result<void> judge(ValueId id, const NumberSurvey& found, const std::string& tensor_name) {
    const ConvertRequest& request = *plan_.settings().request;
    if (found.count == 1 && found.vanishing == 1) plan_.keep_high(id, "a constant would become zero");
    if (found.overflowing == 0) return {};
    if (found.masks >= found.overflowing && request.masks != Masks::as_others) {
      if (request.masks == Masks::finite) plan_.set_fit(id, Fit::clamp);
      return {};
    }
    switch (request.on_overflow) {
      case OnOverflow::keep_high:
        plan_.keep_high(id, "a number of it is beyond the type's range");
        return {};
      case OnOverflow::clamp:
        plan_.set_fit(id, Fit::clamp);
        return {};
      case OnOverflow::inf:
        return {};
      case OnOverflow::error:
        break;
    }
    return Error{.code = ErrorCode::out_of_range,
                 .message = fmt::format("{} numbers are beyond the range of {}", found.overflowing, name(request.to)),
                 .tensor = tensor_name};
  }

  const io::InputFile& file_;
  PrecisionPlan& plan_;
};

Result<ConvertOutcome> convert(const ConvertRequest& request) {
  const Result<PrecisionPlan::Settings> settings = settings_of(request);
  if (!settings) return settings.error();
  const Result<io::InputFile> file = io::InputFile::open(request.input);
  if (!file) return file.error();
  Result<std::unique_ptr<Model>> read = read_model(*file);
  if (!read) return std::move(read).error();
  Model& model = **read;
  infer_types(model);

  PrecisionPlan plan(model, *settings);
  if (Result<void> right = check_names(model, plan, request); !right) return std::move(right).error();
  if (has_source(model, *settings)) {
    if (Result<void> right = check_opset(model, request.to); !right) return std::move(right).error();
  }
  if (Result<void> surveyed = Survey(*file, plan).run(); !surveyed) return std::move(surveyed).error();
  plan.decide();

  const CastElision elision(plan, {.only_changed = true});
  const Result<BuiltModel> built = build_model(*file, plan, elision, {}, request.output);
  if (!built) return built.error();
  const ModelWriter::Counts& counts = built->counts;
  if (Result<void> written = write_model(*file, *built, request.output, request.overwrite); !written) {
    return std::move(written).error();
  }

  ConvertOutcome outcome{.nodes = model.node_count,
                         .casts_added = counts.casts_added,
                         .casts_removed = elision.removed_casts(),
                         .initializers_converted = counts.initializers_converted,
                         .initializer_bytes_before = counts.initializer_bytes_before,
                         .initializer_bytes_after = counts.initializer_bytes_after,
                         .kept = plan.kept_nodes()};
  plan.each_graph([&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      outcome.nodes_converted += plan.is_converted(node) ? 1 : 0;
      outcome.casts_before += node.op_type == "Cast" && node.domain.empty() ? 1 : 0;
    }
  });
  for (ValueId id = 0; id < model.values.size(); ++id) {
    outcome.values_changed += plan.produced(id) != model.values[id].type.element ? 1 : 0;
  }
  return outcome;
}

}  // namespace
}  // namespace tensorcast::models::onnx::precision

namespace tensorcast::inline TENSORCAST_ABI::onnx {

Result<ConvertOutcome> convert(const ConvertRequest& request) {
  Result<ConvertOutcome> outcome = guarded([&] { return models::onnx::precision::convert(request); });
  if (!outcome && outcome.error().file.empty()) outcome.error().file = request.input;
  return outcome;
}

}  // namespace tensorcast::inline TENSORCAST_ABI::onnx
