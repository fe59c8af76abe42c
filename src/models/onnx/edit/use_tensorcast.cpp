// SPDX-License-Identifier: Apache-2.0
// tensorcast::onnx::use_tensorcast(): Casts that run in tensorcast's library where a session has it, and in ONNX's Cast
// elsewhere. All other bytes stay as they are.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "models/onnx/edit/splice_node.hpp"
#include "models/onnx/edit/spliced_model.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using ::tensorcast::onnx::UseTensorcastOutcome;
using ::tensorcast::onnx::UseTensorcastRequest;

constexpr std::int64_t oldest_opset = 13;
constexpr std::int64_t oldest_ir_version = 8;  // has functions

// An attribute of Cast that a call of the function must give, as functions of this version have no defaults.
struct Default {
  std::string_view name;
  std::int64_t since;
  AttributeType type;
  std::string attribute;
};

std::vector<Default> defaults_of(std::int64_t opset) {
  std::vector<Default> defaults = {
      {"saturate", 19, AttributeType::int_, encode_int_attribute("saturate", 1)},
      {"round_mode", 24, AttributeType::string, encode_string_attribute("round_mode", "up")},
  };
  std::erase_if(defaults, [&](const Default& entry) { return entry.since > opset; });
  return defaults;
}

// The function ai.tensorcast::Cast, whose body is ONNX's Cast.
std::string encode_function(std::int64_t opset, const std::vector<Default>& defaults) {
  NewNode node{"Cast", {"input"}, {"output"}};
  std::string names;
  const auto refer = [&](std::string_view name, AttributeType type) {
    node.attributes.push_back(encode_attribute(name, type, encode_field(attribute_field::ref_attr_name, name)));
    names += encode_field(function_field::attribute, name);
  };
  refer("to", AttributeType::int_);
  for (const Default& entry : defaults) refer(entry.name, entry.type);
  return encode_field(function_field::name, "Cast") + encode_field(function_field::input, "input") +
         encode_field(function_field::output, "output") + names +
         encode_field(function_field::node, encode_node(node)) +
         encode_field(function_field::opset_import, encode_opset("", opset)) +
         encode_field(function_field::domain, tensorcast_domain);
}

bool imports_own(const std::vector<Opset>& opsets) {
  return find_row(opsets, &Opset::domain, tensorcast_domain) != nullptr;
}

bool is_own(const Function& function) {
  return function.domain == tensorcast_domain && function.name == "Cast" && function.overload.empty();
}

class Rewriting {
 public:
  Rewriting(const io::InputFile& file, const Model& model)
      : file_(file), model_(model), opset_(model.graph->opset("")), defaults_(defaults_of(opset_)) {}

  // Errors: unsupported, parse, io.
  Result<WireRope> run() {
    if (opset_ < oldest_opset || model_.ir_version < oldest_ir_version) {
      return unsupported(fmt::format("the model has opset {} and file format {}, and functions need {} and {}", opset_,
                                     model_.ir_version, oldest_opset, oldest_ir_version),
                         "convert it with onnx.version_converter first");
    }
    Splice splice(0, file_.size());
    TRY(change(*model_.graph, splice, {}));
    for (const auto& function : model_.functions) {
      if (is_own(*function)) continue;
      rewrites_ = function->body.opset("") == opset_;
      std::string import;
      if (!imports_own(function->opsets)) {
        import = encode_field(function_field::opset_import, encode_opset(tensorcast_domain, 1));
      }
      TRY(change(function->body, splice, import));
    }
    WireRope rope = std::move(splice).finish();
    if (outcome_.rewritten == 0) return rope;
    if (!imports_own(model_.opsets)) {
      rope.text(encode_field(model_field::opset_import, encode_opset(tensorcast_domain, 1)));
    }
    const auto own = std::ranges::find_if(model_.functions, [](const auto& function) { return is_own(*function); });
    if (own == model_.functions.end()) {
      rope.text(encode_field(model_field::functions, encode_function(opset_, defaults_)));
    } else {
      TRY(check_function(**own));
    }
    return rope;
  }

  [[nodiscard]] const UseTensorcastOutcome& outcome() const noexcept { return outcome_; }

 private:
  // `import`: fields at the end of a graph that changes.
  Result<void> change(const Graph& graph, Splice& around, const std::string& import) {
    Splice splice(graph.field);
    for (const Node& node : graph.nodes) {
      TRY(change(node, splice));
    }
    if (!splice.changed()) return {};
    splice.insert(end_of(graph.field), WireRope(import));
    around.replace(graph.field, std::move(splice).finish());
    return {};
  }

  Result<void> change(const Node& node, Splice& around) {
    if (node.domain.empty() && node.op_type == "Cast" && node.overload.empty()) {
      ++(rewrites_ ? outcome_.rewritten : outcome_.left);
      if (!rewrites_) return {};
      WireRope contents = TRY(cast_contents(node));
      around.replace(node.field, std::move(contents));
      return {};
    }
    const auto inner = [&](const Graph& graph, Splice& inside) { return change(graph, inside, {}); };
    return around.edit(node.field, [&](Splice& splice) { return splice_subgraphs(node, splice, inner); });
  }

  Result<WireRope> cast_contents(const Node& node) {
    WireRope contents = TRY(without_field(file_, node.field, node_field::domain));
    for (const Default& entry : defaults_) {
      if (node.attribute(entry.name) == nullptr) contents.text(encode_field(node_field::attribute, entry.attribute));
    }
    contents.text(encode_field(node_field::domain, tensorcast_domain));
    return contents;
  }

  // The model brings the function: an attribute that it does not take would be lost.
  Result<void> check_function(const Function& function) {
    const auto takes = [&](std::string_view name) { return contains(function.attributes, name); };
    const bool takes_all =
        takes("to") && std::ranges::all_of(defaults_, [&](const Default& entry) { return takes(entry.name); });
    if (takes_all && function.body.opset("") == opset_) return {};
    return unsupported("the model has another function ai.tensorcast::Cast already");
  }

  const io::InputFile& file_;
  const Model& model_;
  std::int64_t opset_;
  std::vector<Default> defaults_;
  UseTensorcastOutcome outcome_;
  bool rewrites_ = true;  // the Casts of this graph have the opset of the function
};

Result<UseTensorcastOutcome> use_tensorcast(const UseTensorcastRequest& request) {
  const OpenModel opened = TRY(open_model(request.input));
  const io::InputFile& file = opened.file;
  const Model& model = *opened.model;
  Rewriting rewriting(file, model);
  WireRope rope = TRY(rewriting.run());

  TRY(write_spliced(file, model, std::move(rope), request.output, request.overwrite));
  return rewriting.outcome();
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

Result<UseTensorcastOutcome> use_tensorcast(const UseTensorcastRequest& request) {
  return models::onnx::guarded_for_file(request.input, [&] { return models::onnx::use_tensorcast(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
