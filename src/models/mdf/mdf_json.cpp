// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "models/mdf/mdf_syntax.hpp"

namespace tensorcast::models::mdf {
namespace {

class JsonHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonHandler(bool binary, std::size_t text_bytes) : binary_(binary), builder_(text_bytes) {}

  bool null() override { return builder_.scalar({}); }
  bool boolean(bool value) override { return builder_.scalar({value}); }
  bool number_integer(number_integer_t value) override { return builder_.scalar({std::int64_t{value}}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return builder_.scalar({std::uint64_t{value}});
    }
    return builder_.scalar({static_cast<std::int64_t>(value)});
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // The parser returns integers over 64 bits as real numbers.
    if (!text.empty() && text.find_first_of(".eE") == std::string::npos && !binary_) {
      return builder_.fail(ErrorCode::parse, fmt::format("the integer {} has more than 64 bits", text.substr(0, 60)));
    }
    return builder_.scalar({value});
  }
  bool string(string_t& value) override { return builder_.scalar({std::move(value)}); }
  bool binary(binary_t& /*value*/) override {
    return builder_.fail(ErrorCode::unsupported, "binary data, which MDF does not have");
  }
  bool start_object(std::size_t /*elements*/) override { return builder_.start_map(); }
  bool start_array(std::size_t /*elements*/) override { return builder_.start_list(); }
  bool key(string_t& value) override { return builder_.key(std::move(value)); }
  bool end_object() override { return builder_.end(); }
  bool end_array() override { return builder_.end(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& exception) override {
    const bool utf8 = std::string_view(exception.what()).find("UTF-8") != std::string_view::npos;
    return builder_.fail(ErrorCode::parse, fmt::format("not {} at byte {}",
                                                       utf8      ? "UTF-8"
                                                       : binary_ ? "BSON"
                                                                 : "JSON",
                                                       position));
  }

  Result<Tree> take() { return builder_.take(); }

 private:
  bool binary_;
  TreeBuilder builder_;
};

}  // namespace

Result<Tree> parse_json(std::string_view text, bool binary) {
  JsonHandler handler(binary, text.size());
  const auto format = binary ? nlohmann::json::input_format_t::bson : nlohmann::json::input_format_t::json;
  // The handler stores the error.
  static_cast<void>(nlohmann::json::sax_parse(text.begin(), text.end(), &handler, format));
  return handler.take();
}

}  // namespace tensorcast::models::mdf
