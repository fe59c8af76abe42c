#include "models/onnx/edit/value_survey.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "models/onnx/wire/model_schema.hpp"

namespace tensorcast::models::onnx {
namespace {

using TensorField = formats::onnx::Field;
using protozero::pbf_wire_type;

constexpr std::uint64_t longest_domain = 64;  // longer domains are not the standard operators'
// New names are a prefix and at most this many characters.
constexpr std::uint64_t longest_ending = 24;

enum class Role : std::uint8_t { part_of_model, aside };  // aside: functions, which have values of their own

class Surveyor {
 public:
  Surveyor(const io::InputFile& file, const std::string& value, const std::vector<std::string>& prefixes)
      : wire_(file, 0, file.size()), value_(value), prefixes_(prefixes) {}

  Result<ValueSurvey> read() {
    bool has_graph = false;
    Result<void> done = each_field(wire_, [&](const WireField& field) -> Result<void> {
      switch (field.number) {
        case model_field::ir_version: {
          const Result<std::uint64_t> version = read_varint(wire_, field);
          if (!version) return version.error();
          survey_.ir_version = static_cast<std::int64_t>(*version);
          return {};
        }
        case model_field::opset_import:
          return take_opset(field);
        case model_field::graph:
          if (std::exchange(has_graph, true)) {
            return Error{.code = ErrorCode::parse, .message = "the model has two graphs"};
          }
          return take_graph(field, Role::part_of_model, 0);
        case model_field::training_info:
          // These graphs see the values of the main graph, so new names must differ from theirs.
          return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
            const bool is_graph =
                part.number == training_field::initialization || part.number == training_field::algorithm;
            return is_graph ? take_graph(part, Role::aside, 1) : Result<void>();
          });
        case model_field::functions:
          return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
            if (part.number == function_field::node) return take_node(part, Role::aside, 0, nullptr);
            if (part.number == function_field::attribute_proto) return take_attribute(part, Role::aside, 0);
            return {};
          });
        default:
          return {};
      }
    });
    if (!done) return std::move(done).error();
    if (!has_graph)
      return Error{.code = ErrorCode::parse, .message = "the file holds no graph, so it is not an ONNX model"};
    return std::move(survey_);
  }

 private:
  struct GraphNotes {
    std::optional<std::uint64_t> first_node;
    bool defined = false;
    bool by_node = false;
    std::uint64_t after = 0;
    std::optional<std::uint64_t> data_type;
    bool is_tensor = true;
  };

  Result<void> take_opset(const WireField& field) {
    std::string domain;
    std::int64_t version = 0;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == opset_field::domain) {
        if (Result<void> right = expect(part, pbf_wire_type::length_delimited); !right) return right;
        Result<std::string> text = wire_.text(std::min(part.length, longest_domain));
        if (!text) return std::move(text).error();
        domain = std::move(*text);
        wire_.seek(part.offset + part.length);
      } else if (part.number == opset_field::version) {
        const Result<std::uint64_t> number = read_varint(wire_, part);
        if (!number) return number.error();
        version = static_cast<std::int64_t>(*number);
      }
      return {};
    });
    survey_.has_opsets = true;
    if (domain.empty() || domain == "ai.onnx") survey_.opset = version;
    return done;
  }

  Result<void> take_graph(const WireField& field, Role role, int depth) {
    if (depth > max_graph_depth) {
      return Error{.code = ErrorCode::unsupported,
                   .message = fmt::format("graphs are nested over {} deep", max_graph_depth)};
    }
    GraphNotes notes;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case graph_field::node:
          if (!notes.first_node) notes.first_node = part.begin;
          return take_node(part, role, depth, &notes);
        case graph_field::initializer:
          return take_tensor(part, &notes);
        case graph_field::sparse_initializer:
          return take_sparse_tensor(part, &notes);
        case graph_field::input:
          return take_value(part, notes, true);
        case graph_field::output:
        case graph_field::value_info:
          return take_value(part, notes, false);
        default:
          return {};
      }
    });
    if (!done || role == Role::aside || !notes.defined) return done;
    const std::uint64_t end = field.offset + field.length;
    survey_.definitions.push_back({.graph = field.offset,
                                   .in_main_graph = depth == 0,
                                   .after = notes.by_node ? notes.after : notes.first_node.value_or(end)});
    if (depth == 0 || !survey_.data_type) survey_.data_type = notes.data_type;
    survey_.is_tensor = survey_.is_tensor && notes.is_tensor;
    return done;
  }

  Result<void> take_node(const WireField& field, Role role, int depth, GraphNotes* notes) {
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case node_field::output: {
          const Result<bool> is_it = field_equals(wire_, part, value_);
          if (!is_it) return is_it.error();
          if (*is_it && notes != nullptr) {
            if (notes->defined) {
              return Error{.code = ErrorCode::parse, .message = "the value is defined twice", .tensor = value_};
            }
            notes->defined = notes->by_node = true;
            notes->after = field.offset + field.length;
          }
          return note_name(part, survey_.value_names);
        }
        case node_field::input:
          return note_name(part, survey_.value_names);
        case node_field::name:
          return note_name(part, survey_.node_names);
        case node_field::attribute:
          return take_attribute(part, role, depth);
        default:
          return {};
      }
    });
  }

  Result<void> take_attribute(const WireField& field, Role role, int depth) {
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (part.number) {
        case attribute_field::g:
        case attribute_field::graphs:
          return take_graph(part, role, depth + 1);
        case attribute_field::t:
        case attribute_field::tensors:
          return take_tensor(part, nullptr);
        case attribute_field::sparse_tensor:
        case attribute_field::sparse_tensors:
          return take_sparse_tensor(part, nullptr);
        default:
          return {};
      }
    });
  }

  // `notes` belong to the graph whose initializer this is; null for tensors without a name.
  Result<void> take_tensor(const WireField& field, GraphNotes* notes) {
    std::optional<std::uint64_t> data_type;
    bool is_it = false;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      switch (static_cast<TensorField>(part.number)) {
        case TensorField::name: {
          if (notes == nullptr) return {};
          const Result<bool> equal = field_equals(wire_, part, value_);
          if (!equal) return equal.error();
          is_it = *equal;
          return note_name(part, survey_.value_names);
        }
        case TensorField::data_type: {
          const Result<std::uint64_t> number = read_varint(wire_, part);
          if (!number) return number.error();
          data_type = *number;
          return {};
        }
        case TensorField::data_location: {
          const Result<std::uint64_t> number = read_varint(wire_, part);
          if (!number) return number.error();
          if (*number == formats::onnx::external_location) survey_.has_external_data = true;
          return {};
        }
        default:
          return {};
      }
    });
    if (!done || !is_it) return done;
    notes->defined = true;
    notes->data_type = data_type;
    return done;
  }

  Result<void> take_sparse_tensor(const WireField& field, GraphNotes* notes) {
    return each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == sparse_tensor_field::values) return take_tensor(part, notes);
      if (part.number == sparse_tensor_field::indices) return take_tensor(part, nullptr);
      return {};
    });
  }

  Result<void> take_value(const WireField& field, GraphNotes& notes, bool defines) {
    bool is_it = false;
    bool is_tensor = true;
    std::optional<std::uint64_t> data_type;
    Result<void> done = each_field_of(wire_, field, [&](const WireField& part) -> Result<void> {
      if (part.number == value_field::name) {
        const Result<bool> equal = field_equals(wire_, part, value_);
        if (!equal) return equal.error();
        is_it = *equal;
        return note_name(part, survey_.value_names);
      }
      if (part.number != value_field::type) return {};
      return each_field_of(wire_, part, [&](const WireField& kind) -> Result<void> {
        is_tensor = kind.number != type_field::sequence && kind.number != type_field::map &&
                    kind.number != type_field::opaque && kind.number != type_field::sparse_tensor &&
                    kind.number != type_field::optional;
        if (kind.number != type_field::tensor) return {};
        return each_field_of(wire_, kind, [&](const WireField& fact) -> Result<void> {
          if (fact.number != tensor_type_field::elem_type) return {};
          const Result<std::uint64_t> number = read_varint(wire_, fact);
          if (!number) return number.error();
          data_type = *number;
          return {};
        });
      });
    });
    if (!done || !is_it) return done;
    if (defines) notes.defined = true;
    if (data_type) notes.data_type = data_type;
    notes.is_tensor = notes.is_tensor && is_tensor;
    return done;
  }

  Result<void> note_name(const WireField& field, std::set<std::string, std::less<>>& names) {
    if (Result<void> right = expect(field, pbf_wire_type::length_delimited); !right) return right;
    const auto may_match = [&](const std::string& prefix) {
      return field.length >= prefix.size() && field.length <= prefix.size() + longest_ending;
    };
    if (std::none_of(prefixes_.begin(), prefixes_.end(), may_match)) return {};
    wire_.seek(field.offset);
    Result<std::string> name = wire_.text(field.length);
    if (!name) return std::move(name).error();
    const auto matches = [&](const std::string& prefix) { return name->starts_with(prefix); };
    if (std::any_of(prefixes_.begin(), prefixes_.end(), matches)) names.insert(std::move(*name));
    return {};
  }

  WireReader wire_;
  const std::string& value_;
  const std::vector<std::string>& prefixes_;
  ValueSurvey survey_;
};

}  // namespace

Result<bool> field_equals(WireReader& wire, const WireField& field, std::string_view text) {
  if (Result<void> right = expect(field, pbf_wire_type::length_delimited); !right) return std::move(right).error();
  if (field.length != text.size()) return false;
  wire.seek(field.offset);
  const Result<std::string> contents = wire.text(field.length);
  if (!contents) return contents.error();
  return *contents == text;
}

Result<ValueSurvey> survey_value(const io::InputFile& file, const std::string& value,
                                 const std::vector<std::string>& prefixes) {
  return Surveyor(file, value, prefixes).read();
}

}  // namespace tensorcast::models::onnx
