// Inserts a Cast after a value of any ONNX model. All other bytes stay as they are.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "dtype/guarded.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/input_file.hpp"
#include "io/memory_budget.hpp"
#include "io/output_file.hpp"
#include "models/onnx/edit/external_locations.hpp"
#include "models/onnx/edit/value_survey.hpp"
#include "models/onnx/model_folder.hpp"
#include "models/onnx/wire/encode_attribute.hpp"
#include "models/onnx/wire/message_edits.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "models/onnx/wire/model_schema.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::onnx {
namespace {

using protozero::pbf_wire_type;

Error refused(std::string what, std::string hint = {}) {
  return Error{.code = ErrorCode::invalid_argument, .message = std::move(what), .hint = std::move(hint)};
}
Error unsupported(std::string what, std::string hint = {}) {
  return Error{.code = ErrorCode::unsupported, .message = std::move(what), .hint = std::move(hint)};
}

// Rewrites the graph that defines the value, and the nested graphs that see it.
class Rewiring {
 public:
  Rewiring(const io::InputFile& file, const ValueSurvey& survey, const Definition& definition,
           const AddCastRequest& request, const AddCastOutcome& names, std::string node)
      : wire_(file, 0, file.size()),
        survey_(survey),
        definition_(definition),
        request_(request),
        outcome_(names),
        node_(std::move(node)),
        edits_(io::MemoryBudget(file.size())) {}

  Result<void> plan() {
    return each_field(wire_, [&](const WireField& field) -> Result<void> {
      return field.number == model_field::graph ? take_graph(field, 0) : Result<void>();
    });
  }

  [[nodiscard]] const AddCastOutcome& outcome() const { return outcome_; }
  [[nodiscard]] MessageEdits& edits() { return edits_; }

 private:
  template <class Take>
  Result<void> inside(const WireField& field, Take take) {
    edits_.enter(field);
    Result<void> done = each_field_of(wire_, field, take);
    edits_.leave();
    return done;
  }

  Result<void> take_graph(const WireField& field, int depth) {
    if (depth > max_graph_depth) {
      return unsupported(fmt::format("graphs are nested over {} deep", max_graph_depth));
    }
    const bool defines = field.offset == definition_.graph;
    const auto is_this = [&](const Definition& other) { return other.graph == field.offset; };
    const bool hides = !defines && std::any_of(survey_.definitions.begin(), survey_.definitions.end(), is_this);
    if (hides) return {};
    const bool seen_before = std::exchange(sees_value_, sees_value_ || defines);
    edits_.enter(field);
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == graph_field::node) return take_node(part, depth);
      if (part.number == graph_field::output && sees_value_) return take_output(part, depth);
      return {};
    });
    if (done && defines) done = edits_.insert(definition_.after, node_);
    edits_.leave();
    sees_value_ = seen_before;
    return done;
  }

  Result<void> take_node(const WireField& field, int depth) {
    return inside(field, [&](const WireField& part) -> Result<void> {
      if (part.number == node_field::input && sees_value_) {
        const Result<bool> is_it = field_equals(wire_, part, request_.tensor);
        if (!is_it) return is_it.error();
        if (*is_it) {
          ++outcome_.rewired;
          return replace(part, encode_field(node_field::input, outcome_.output_name));
        }
        return {};
      }
      if (part.number != node_field::attribute) return {};
      return inside(part, [&](const WireField& value) -> Result<void> {
        const bool is_graph = value.number == attribute_field::g || value.number == attribute_field::graphs;
        return is_graph ? take_graph(value, depth + 1) : Result<void>();
      });
    });
  }

  Result<void> take_output(const WireField& field, int depth) {
    bool is_it = false;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number != value_field::name) return {};
      const Result<bool> equal = field_equals(wire_, part, request_.tensor);
      if (!equal) return equal.error();
      is_it = *equal;
      return {};
    });
    if (!done || !is_it) return done;
    if (depth > 0) {
      return unsupported("the value is an output of a subgraph, whose type the node around it determines",
                         "the Cast can go behind the output of that node");
    }
    outcome_.graph_output_renamed = true;
    wire_.seek(field.offset);
    return inside(field, [&](const WireField& part) -> Result<void> {
      if (part.number == value_field::name) {
        return replace(part, encode_field(value_field::name, outcome_.output_name));
      }
      if (part.number != value_field::type) return {};
      return inside(part, [&](const WireField& kind) -> Result<void> {
        if (kind.number != type_field::tensor) return {};
        return inside(kind, [&](const WireField& fact) -> Result<void> {
          if (fact.number != tensor_type_field::elem_type) return {};
          if (Result<void> skipped = wire_.skip(fact); !skipped) return skipped;
          return edits_.replace(
              fact.begin, wire_.position(),
              encode_varint_field(tensor_type_field::elem_type, static_cast<std::uint64_t>(request_.to)));
        });
      });
    });
  }

  Result<void> replace(const WireField& field, std::string text) {
    return edits_.replace(field.begin, field.offset + field.length, std::move(text));
  }

  WireReader wire_;
  const ValueSurvey& survey_;
  const Definition& definition_;
  const AddCastRequest& request_;
  AddCastOutcome outcome_;
  std::string node_;  // a field of a graph
  MessageEdits edits_;
  bool sees_value_ = false;
};

Result<int> cast_opset(const ValueSurvey& survey) {
  if (survey.opset == 0 && survey.ir_version < 3 && !survey.has_opsets) return 1;  // such models do not name an opset
  if (survey.opset <= 0) {
    return unsupported("the model imports no version of the standard operators, so it can have no Cast");
  }
  return static_cast<int>(std::min<std::int64_t>(survey.opset, newest_opset()));
}

Result<void> check_types(const ValueSurvey& survey, const AddCastRequest& request, int opset) {
  if (!survey.is_tensor) return refused("the value is not a tensor, so it cannot be cast");
  const auto check = [&](DType dtype, std::string_view which) -> Result<void> {
    if (since_opset(dtype) <= opset) return {};
    return unsupported(fmt::format("Cast {} {} came with opset {}, but the model has opset {}", which, name(dtype),
                                   since_opset(dtype), opset),
                       fmt::format("onnx.version_converter may convert the model to opset {}", since_opset(dtype)));
  };
  if (Result<void> known = check(request.to, "to"); !known) return known;
  if (!request.saturate && opset < 19) {
    return unsupported(fmt::format("Cast of opset {} has no attribute \"saturate\"; it came with opset 19", opset));
  }
  if (survey.data_type.value_or(0) == 0) return {};
  const Result<DType> from = formats::onnx::parse_data_type(*survey.data_type);
  if (!from) return from.error();
  return check(*from, "from");
}

Result<const Definition*> choose_definition(const ValueSurvey& survey) {
  if (survey.definitions.empty()) {
    return refused("the model has no such tensor", "values of subgraphs count, those inside functions do not");
  }
  for (const Definition& definition : survey.definitions) {
    if (definition.in_main_graph) return &definition;
  }
  if (survey.definitions.size() == 1) return &survey.definitions.front();
  return refused(fmt::format("{} subgraphs have a tensor of this name", survey.definitions.size()));
}

template <class Names>
std::string unused(const std::string& base, const Names& taken) {
  std::string candidate = base;
  for (int number = 2; taken.contains(candidate); ++number) candidate = fmt::format("{}_{}", base, number);
  return candidate;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || text.size() - i < length) return false;
    std::uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3Fu);
    }
    if ((length == 3 && code < 0x800) || (length == 4 && (code < 0x10000 || code > 0x10FFFF))) return false;
    if (code >= 0xD800 && code < 0xE000) return false;
    i += length;
  }
  return true;
}

std::string encode_node(const AddCastRequest& request, const AddCastOutcome& names, int opset) {
  std::string node = encode_field(node_field::input, request.tensor) +
                     encode_field(node_field::output, names.output_name) +
                     encode_field(node_field::name, names.node_name) + encode_field(node_field::op_type, "Cast");
  if (opset < 6) {
    node += encode_field(node_field::attribute, encode_string_attribute("to", cast_word(request.to)));
  } else {
    node += encode_field(node_field::attribute, encode_int_attribute("to", static_cast<std::uint64_t>(request.to)));
  }
  if (!request.saturate) {
    node += encode_field(node_field::attribute, encode_int_attribute("saturate", 0));
  }
  return encode_field(graph_field::node, node);
}

Result<void> check_request(const AddCastRequest& request) {
  if (!is_castable(request.to)) return refused("the type to cast to is not a type of Cast");
  if (request.tensor.empty()) return refused("the tensor needs a name");
  for (const std::string* text : {&request.node_name, &request.output_name}) {
    if (!is_utf8(*text)) return refused("the new name is not UTF-8");
  }
  return {};
}

// The new model must be in the same folder, as it finds its external data beside itself.
Result<void> check_place(const io::InputFile& file, const ValueSurvey& survey, const AddCastRequest& request) {
  if (!survey.has_external_data) return {};
  const Result<std::unique_ptr<Model>> model = read_model(file);
  if (!model) return model.error();
  const Result<std::set<std::string>> locations = external_locations(file, **model);
  if (!locations) return locations.error();
  Result<void> apart = check_apart_from_data(request.input, *locations, request.output);
  if (!apart || in_same_folder(request.input, request.output)) return apart;
  return unsupported(
      "the model has external data, which is found only from the model's own folder",
      fmt::format("write the new model into {}, or copy model and data first", folder_of(request.input).string()));
}

// Returns false if the caller cancels.
Result<bool> write(MessageEdits& edits, const io::InputFile& file, const AddCastRequest& request) {
  const auto go_on = [&] { return !request.on_progress || request.on_progress(); };
  if (!go_on()) return false;
  Result<io::OutputFile> output = io::OutputFile::create(request.output, request.overwrite);
  if (!output) return std::move(output).error();
  if (Result<bool> written = edits.write(file, *output, go_on); !written || !*written) return written;
  if (Result<void> synced = output->sync(); !synced) return std::move(synced).error();  // may take long
  if (!go_on()) return false;
  if (Result<void> committed = output->commit(); !committed) return std::move(committed).error();
  return true;
}

Result<AddCastOutcome> edit(const AddCastRequest& request) {
  if (Result<void> right = check_request(request); !right) return std::move(right).error();
  const Result<io::InputFile> file = io::InputFile::open(request.input);
  if (!file) return file.error();
  if (file->size() > formats::onnx::max_message_bytes) {
    return Error{.code = ErrorCode::parse, .message = "the model is larger than protobuf's limit of 2 GiB"};
  }

  const std::string ending = fmt::format("_{}", name(request.to));
  const std::string output_base = request.output_name.empty() ? request.tensor + ending : request.output_name;
  const std::string node_base = request.node_name.empty() ? "Cast_" + request.tensor + ending : request.node_name;
  const Result<ValueSurvey> survey = survey_value(*file, request.tensor, {output_base, node_base});
  if (!survey) return survey.error();
  const Result<const Definition*> definition = choose_definition(*survey);
  if (!definition) return definition.error();
  const Result<int> opset = cast_opset(*survey);
  if (!opset) return opset.error();
  if (Result<void> known = check_types(*survey, request, *opset); !known) return std::move(known).error();
  if (Result<void> right = check_place(*file, *survey, request); !right) return std::move(right).error();
  if (!request.output_name.empty() && survey->value_names.contains(request.output_name)) {
    return refused(fmt::format("the model has a value \"{}\" already", request.output_name));
  }
  if (!request.node_name.empty() && survey->node_names.contains(request.node_name)) {
    return refused(fmt::format("the model has a node \"{}\" already", request.node_name));
  }
  const AddCastOutcome names{.node_name = unused(node_base, survey->node_names),
                             .output_name = unused(output_base, survey->value_names)};

  Rewiring rewiring(*file, *survey, **definition, request, names, encode_node(request, names, *opset));
  if (Result<void> planned = rewiring.plan(); !planned) return std::move(planned).error();
  if (rewiring.outcome().rewired == 0 && !rewiring.outcome().graph_output_renamed) {
    return refused("nothing takes the value, so a Cast behind it would have no effect");
  }
  AddCastOutcome outcome = rewiring.outcome();
  Result<bool> written = write(rewiring.edits(), *file, request);
  if (!written) return std::move(written).error();
  if (!*written) {
    return Error{.code = ErrorCode::cancelled, .message = "cancelled; nothing was written", .file = request.output};
  }
  return outcome;
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::inline TENSORCAST_ABI {

Result<AddCastOutcome> add_cast(const AddCastRequest& request) {
  Result<AddCastOutcome> outcome = guarded(request.input, [&] { return models::onnx::edit(request); });
  if (outcome) return outcome;
  if (outcome.error().file.empty()) outcome.error().file = request.input;
  if (outcome.error().code != ErrorCode::io && outcome.error().file == request.input) {
    outcome.error().tensor = request.tensor;
  }
  return outcome;
}

}  // namespace tensorcast::inline TENSORCAST_ABI
