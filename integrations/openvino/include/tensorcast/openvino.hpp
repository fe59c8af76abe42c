// SPDX-License-Identifier: Apache-2.0
// A pass that puts tensorcast's operations into an OpenVINO model, for programs in C++.
//
//   ov::pass::Manager manager;
//   manager.register_pass<tensorcast::openvino::UseTensorcast>("/usr/local/lib/libtensorcast_openvino.so",
//                                                              ov::AnyMap{{"out_of_range", "saturate"}});
//   manager.run_passes(model);
//
// The program compiles it with its own OpenVINO, 2024.4 or newer. A model that it saves needs Core::add_extension()
// with the same library when it is read.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <openvino/core/attribute_visitor.hpp>
#include <openvino/core/graph_util.hpp>
#include <openvino/core/model.hpp>
#include <openvino/core/op_extension.hpp>
#include <openvino/core/rt_info.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/convert_promote_types.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/pass/pass.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tensorcast::openvino {

// Replaces Convert and ConvertPromoteTypes, also in the bodies of If, Loop and TensorIterator. These stay OpenVINO's:
// conversions of types that tensorcast lacks; those of constants, which OpenVINO computes early, unless `constants` is
// set. So do these without `scale`: float16 and bfloat16 to float32, which is exact and faster there; from float64,
// int64, uint64 and uint32, which the CPU plugin cuts before it calls other operations than its own; and to types that
// it replaces throughout a model, such as float16, unless an output of the model or a conversion reads the result.
class UseTensorcast : public ov::pass::ModelPass {
 public:
  OPENVINO_RTTI("UseTensorcast", "tensorcast", ov::pass::ModelPass)

  // Loads the library at `extension_path`. `options` are those of tc_cast() by their names, opset, saturate,
  // round_mode, out_of_range, rounding, invalid, fnuz_inf, threads, scale, and `by_text`: refuse the promotions
  // that OpenVINO's text forbids. Throws std::exception if the library does not load or an option is wrong.
  explicit UseTensorcast(const std::string& extension_path, ov::AnyMap options = {}, bool constants = false)
      : options_(std::move(options)), constants_(constants) {
    load(extension_path);
    check_options();
  }

  // Reports whether it replaced an operation. Throws if `by_text` is set and a promotion is forbidden; the model is
  // then unchanged.
  bool run_on_model(const std::shared_ptr<ov::Model>& model) override {
    std::vector<std::pair<std::shared_ptr<ov::Node>, ov::OutputVector>> made;
    find(*model, made);
    if (!is_scaled()) leave_to_openvino(*model, made);
    for (auto& [node, outputs] : made) {
      const std::shared_ptr<ov::Node> replacement = outputs.front().get_node_shared_ptr();
      replacement->set_friendly_name(node->get_friendly_name());
      ov::copy_runtime_info(node, replacement);
      ov::replace_node(node, outputs);
    }
    if (!made.empty()) model->validate_nodes_and_infer_types();
    return !made.empty();
  }

 private:
  // Gives an operation its attributes, and notes which it has.
  class Attributes : public ov::AttributeVisitor {
   public:
    explicit Attributes(const ov::AnyMap& values) : values_(values) {}

    void on_adapter(const std::string& name, ov::ValueAccessor<void>&) override { seen.insert(name); }
    void on_adapter(const std::string& name, ov::ValueAccessor<bool>& adapter) override { set(name, adapter); }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::int64_t>& adapter) override { set(name, adapter); }
    void on_adapter(const std::string& name, ov::ValueAccessor<double>& adapter) override { set(name, adapter); }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::string>& adapter) override { set(name, adapter); }

    std::set<std::string> seen;

   private:
    template <class Value>
    void set(const std::string& name, ov::ValueAccessor<Value>& adapter) {
      seen.insert(name);
      const auto found = values_.find(name);
      if (found != values_.end()) adapter.set(value_of<Value>(found->second));
    }

    const ov::AnyMap& values_;
  };

  // Numbers of other types, and texts, are read as OpenVINO reads the attributes of a file.
  template <class Value>
  static Value value_of(const ov::Any& given) {
    if (given.is<Value>()) return given.as<Value>();
    return ov::Any(given.as<std::string>()).as<Value>();
  }

  void load(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("tensorcast: ") + dlerror());
    void* symbol = dlsym(library, "create_extensions");
    if (symbol == nullptr) throw std::runtime_error("tensorcast: " + path + " is not an extension");
    std::vector<ov::Extension::Ptr> extensions;
    reinterpret_cast<void (*)(std::vector<ov::Extension::Ptr>&)>(symbol)(extensions);
    for (const ov::Extension::Ptr& extension : extensions) {
      const auto operation = std::dynamic_pointer_cast<ov::BaseOpExtension>(extension);
      if (operation == nullptr) continue;
      const std::string name = operation->get_type_info().name;
      if (name == "Convert") convert_ = operation;
      if (name == "ConvertPromoteTypes") promote_ = operation;
    }
    if (convert_ == nullptr || promote_ == nullptr) {
      throw std::runtime_error("tensorcast: " + path + " is not the extension of tensorcast");
    }
  }

  // Makes operations that nobody uses, which fail if the options do.
  void check_options() const {
    const auto input = std::make_shared<ov::op::v0::Parameter>(ov::element::f32, ov::PartialShape{});
    ov::AnyMap values = options_;
    values["destination_type"] = std::string("f32");
    Attributes attributes(values);
    convert_->create({input}, attributes);
    promote_->create({input, input}, attributes);
    for (const auto& [name, value] : options_) {
      if (attributes.seen.count(name) == 0) throw std::runtime_error("tensorcast: there is no option \"" + name + "\"");
    }
  }

  [[nodiscard]] bool stays(const ov::op::v0::Convert& node) const {
    if (!constants_ && ov::is_type<ov::op::v0::Constant>(node.get_input_node_shared_ptr(0))) return true;
    const ov::element::Type from = node.get_input_element_type(0);
    const bool widens =
        node.get_destination_type() == ov::element::f32 && (from == ov::element::f16 || from == ov::element::bf16);
    return widens && !is_scaled();
  }

  [[nodiscard]] bool is_scaled() const {
    const auto scale = options_.find("scale");
    return scale != options_.end() && value_of<double>(scale->second) != 1.0;
  }

  using Nodes = std::set<const ov::Node*>;

  // Whether the plugin changes the numbers before the node gets them.
  [[nodiscard]] static bool is_cut(const ov::Node& node, const Nodes& ours) {
    for (const ov::Output<ov::Node>& value : node.input_values()) {
      const ov::element::Type type = value.get_element_type();
      const bool cut =
          type == ov::element::f64 || type == ov::element::i64 || type == ov::element::u64 || type == ov::element::u32;
      const ov::Node* const source = value.get_node();
      const char* const version = source->get_type_info().version_id;
      const bool is_ours = ours.count(source) != 0 || (version != nullptr && std::string(version) == "tensorcast");
      if (cut && !is_ours) return true;
    }
    return false;
  }

  // Whether the plugin changes the type that a reader of the node's results expects.
  [[nodiscard]] static bool is_changed(const ov::Node& node, const Nodes& ours, const Nodes& outputs) {
    static const std::set<std::string> changed = {"f64", "f16", "i64", "i16", "i4",
                                                  "u64", "u32", "u16", "u4",  "boolean"};
    for (const ov::Output<const ov::Node>& value : node.outputs()) {
      if (changed.count(value.get_element_type().get_type_name()) == 0) continue;
      for (const ov::Input<ov::Node>& reader : value.get_target_inputs()) {
        const ov::Node* const reads = reader.get_node();
        const bool is_free =
            ours.count(reads) != 0 || outputs.count(reads) != 0 || ov::is_type<ov::op::v0::Convert>(reads);
        if (!is_free) return true;
      }
    }
    return false;
  }

  // Takes out what would get other numbers, or give another type, than in OpenVINO, except by another one of `found`.
  static void leave_to_openvino(const ov::Model& model,
                                std::vector<std::pair<std::shared_ptr<ov::Node>, ov::OutputVector>>& found) {
    Nodes outputs;
    for (const auto& result : model.get_results()) outputs.insert(result.get());
    for (std::size_t count = found.size() + 1; count != found.size();) {
      count = found.size();
      Nodes ours;
      for (const auto& each : found) {
        ours.insert(each.first.get());
        for (const auto& output : each.second) ours.insert(output.get_node());  // it reads the same values
      }
      const auto is_left = [&](const auto& each) {
        return is_cut(*each.first, ours) || is_changed(*each.first, ours, outputs);
      };
      found.erase(std::remove_if(found.begin(), found.end(), is_left), found.end());
    }
  }

  // The operation with these attributes; empty if tensorcast lacks a type of it.
  static ov::OutputVector made(const ov::BaseOpExtension& operation, const ov::Node& node, const ov::AnyMap& values) {
    Attributes attributes(values);
    try {
      return operation.create(node.input_values(), attributes);
    } catch (const std::exception&) {  // the options are known to be right
      return {};
    }
  }

  [[nodiscard]] ov::OutputVector replacement(const ov::Node& node) const {
    ov::AnyMap values = options_;
    if (const auto* convert = ov::as_type<const ov::op::v0::Convert>(&node)) {
      if (stays(*convert)) return {};
      values["destination_type"] = convert->get_destination_type().get_type_name();
      return made(*convert_, node, values);
    }
    const auto* promotion = ov::as_type<const ov::op::v14::ConvertPromoteTypes>(&node);
    if (promotion == nullptr) return {};
    values["promote_unsafe"] = promotion->get_promote_unsafe();
    values["pytorch_scalar_promotion"] = promotion->get_pytorch_scalar_promotion();
    values["u64_integer_promotion_target"] = promotion->get_u64_integer_promotion_target().get_type_name();
    const auto by_text = values.find("by_text");
    if (by_text == values.end() || !value_of<bool>(by_text->second)) return made(*promote_, node, values);
    values.erase(by_text);
    if (made(*promote_, node, values).empty()) return {};
    values["by_text"] = true;
    Attributes attributes(values);
    return promote_->create(node.input_values(), attributes);  // fails if the text forbids the promotion
  }

  void find(const ov::Model& model, std::vector<std::pair<std::shared_ptr<ov::Node>, ov::OutputVector>>& found) const {
    for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
      if (const auto bodies = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
        for (const std::shared_ptr<ov::Model>& body : bodies->get_functions()) find(*body, found);
      }
      ov::OutputVector outputs = replacement(*node);
      if (!outputs.empty()) found.emplace_back(node, std::move(outputs));
    }
  }

  ov::AnyMap options_;
  bool constants_;
  std::shared_ptr<ov::BaseOpExtension> convert_;
  std::shared_ptr<ov::BaseOpExtension> promote_;
};

}  // namespace tensorcast::openvino
