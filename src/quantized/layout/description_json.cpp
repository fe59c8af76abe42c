// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/description_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "quantized/layout/config.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::size_t deepest = 64;        // configurations of models nest to about six
constexpr std::size_t most_sections = 64;  // and have a few models inside

// What glibc takes for a value, measured with arrays of arrays and objects of short keys.
constexpr std::size_t element_bytes = 48;  // an array doubles as it grows
constexpr std::size_t member_bytes = 96;
constexpr std::size_t container_bytes = 48;
constexpr std::size_t inline_text = 15;  // characters of a string without memory of its own
constexpr std::size_t string_bytes = 48;

class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::size_t text_bytes, KeptValues kept)
      : text_bytes_(text_bytes),
        most_bytes_(std::max<std::size_t>(std::size_t{32} << 20, 6 * text_bytes)),
        root_scope_(kept == KeptValues::all ? Scope::kept : Scope::config) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool string(string_t& value) override {
    return (is_skipped() || take(string_bytes + value.size())) && add(std::move(value));
  }
  bool key(string_t& key) override {
    key_ = std::move(key);
    return true;
  }
  bool start_object(std::size_t /*size*/) override { return open(Json::value_t::object); }
  bool start_array(std::size_t /*size*/) override { return open(Json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*error*/) override {
    return false;
  }

  // Why it stopped at JSON that is well-formed; "": it did not.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  [[nodiscard]] Json take_root() noexcept { return std::move(root_); }

 private:
  enum class Scope { config, kept, skipped };
  struct Container {
    Json* value = nullptr;  // null: it is skipped
    Scope scope = Scope::skipped;
    int depth = 0;  // of configurations in one another
  };

  bool refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

  bool take(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ <= most_bytes_ ||
           refuse(fmt::format("it has more values than {} bytes of a description should have", text_bytes_));
  }

  [[nodiscard]] bool is_skipped() const noexcept {
    return !open_.empty() && (open_.back().scope == Scope::skipped || open_.back().scope == Scope::config);
  }

  // Returns where a value is put; null: it is refused.
  Json* place() {
    if (open_.empty()) return &root_;
    Json& outer = *open_.back().value;
    if (outer.is_array()) return take(element_bytes) ? &outer.emplace_back() : nullptr;
    if (!take(member_bytes + (key_.size() > inline_text ? key_.size() : 0))) return nullptr;
    return &outer[key_];
  }

  template <class Value>
  bool add(Value&& value) {
    if (is_skipped()) return true;
    Json* const to = place();
    if (to != nullptr) *to = std::forward<Value>(value);
    return to != nullptr;
  }

  [[nodiscard]] Scope scope_of(Json::value_t kind) const {
    if (open_.empty()) return root_scope_;
    const Container& outer = open_.back();
    if (outer.scope != Scope::config) return outer.scope;
    if (contains(section_keys, key_)) return Scope::kept;
    const bool is_config = kind == Json::value_t::object && is_inner_config(key_) && outer.depth < deepest_config;
    return is_config ? Scope::config : Scope::skipped;
  }

  bool open(Json::value_t kind) {
    if (open_.size() == deepest) return false;
    Container container{.scope = scope_of(kind), .depth = open_.empty() ? 0 : open_.back().depth + 1};
    const bool is_section = !open_.empty() && open_.back().scope == Scope::config && container.scope == Scope::kept;
    if (is_section && ++sections_ > most_sections) {
      return refuse(fmt::format("it has more than {} descriptions", most_sections));
    }
    if (container.scope != Scope::skipped) {
      container.value = take(container_bytes) ? place() : nullptr;
      if (container.value == nullptr) return false;
      *container.value = Json(kind);
    }
    open_.push_back(container);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::size_t text_bytes_, most_bytes_, bytes_ = 0;
  std::size_t sections_ = 0;
  std::string refusal_;
  Scope root_scope_;
  Json root_;
  std::vector<Container> open_;
  std::string key_;
};

}  // namespace

bool is_inner_config(std::string_view key) noexcept {
  return key.ends_with("config") || key.ends_with("_cfg") || key == "encoder" || key == "decoder" ||
         key == "generator" || key == "question_encoder";
}

Result<Json> parse_description(std::string_view text, KeptValues kept) {
  Builder builder(text.size(), kept);
  const bool whole = Json::sax_parse(with_finite_numbers(text), &builder);
  if (!builder.refusal().empty()) return unsupported(builder.refusal());
  if (!whole) return parse_error(fmt::format("it is not JSON of at most {} levels", deepest));
  return Result<Json>(builder.take_root());
}

}  // namespace tensorcast::quantized
