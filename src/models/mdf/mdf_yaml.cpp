// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <map>
#include <streambuf>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "models/mdf/mdf_number.hpp"
#include "models/mdf/mdf_syntax.hpp"

namespace tensorcast::models::mdf {
namespace {

// Reads a text in place, without copying it.
class TextBuffer final : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // only read
    setg(begin, begin, begin + text.size());
  }
};

// Thrown through the parser to stop it; the builder has the reason.
struct Stopped {};

class YamlHandler final : public YAML::EventHandler {
 public:
  using Mark = YAML::Mark;

  explicit YamlHandler(std::size_t text_bytes) : builder_(text_bytes) {}

  void OnDocumentStart(const Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const Mark& /*mark*/, const std::string& /*name*/) override {}

  void OnNull(const Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.expects_key()) stop(mark, ErrorCode::parse, "null as a key");
    go_on(builder_.scalar({}));
    keep(anchor);
  }

  void OnAlias(const Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.expects_key()) stop(mark, ErrorCode::unsupported, "an alias as a key");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) stop(mark, ErrorCode::parse, "an alias inside of what it repeats");
    go_on(builder_.repeat(found->second));
  }

  void OnScalar(const Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    if (builder_.expects_key()) {
      if (text == "<<" && tag == "?") stop(mark, ErrorCode::unsupported, "the merge key <<");
      go_on(builder_.key(text));
      return;
    }
    go_on(builder_.scalar(resolve(mark, tag, text)));
    keep(anchor);
  }

  void OnSequenceStart(const Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, "tag:yaml.org,2002:seq", anchor);
    go_on(builder_.start_list());
  }
  void OnSequenceEnd() override { finish(); }

  void OnMapStart(const Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, "tag:yaml.org,2002:map", anchor);
    go_on(builder_.start_map());
  }
  void OnMapEnd() override { finish(); }

  TreeBuilder& builder() { return builder_; }

 private:
  static void go_on(bool yes) {
    if (!yes) throw Stopped();
  }
  [[noreturn]] void stop(const Mark& mark, ErrorCode code, const std::string& what) {
    static_cast<void>(builder_.fail(code, fmt::format("line {}: {}", mark.line + 1, what)));
    throw Stopped();
  }

  void begin(const Mark& mark, const std::string& tag, std::string_view own, YAML::anchor_t anchor) {
    if (builder_.expects_key()) stop(mark, ErrorCode::parse, "a list or map as a key");
    if (!tag.empty() && tag != "?" && tag != "!" && tag != own) unknown_tag(mark, tag);
    open_anchors_.push_back(anchor);
  }
  void finish() {
    go_on(builder_.end());
    const YAML::anchor_t anchor = open_anchors_.back();
    open_anchors_.pop_back();
    keep(anchor);
  }
  void keep(YAML::anchor_t anchor) {
    if (anchor == 0) return;
    anchors_[anchor] = builder_.share_last();
  }

  [[noreturn]] void unknown_tag(const Mark& mark, const std::string& tag) {
    if (!builder_.check_text(tag)) throw Stopped();
    stop(mark, ErrorCode::unsupported, fmt::format("the tag {}", tag.substr(0, 60)));
  }

  Tree resolve(const Mark& mark, const std::string& tag, const std::string& text) {
    if (!builder_.check_text(text)) throw Stopped();
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return {text};  // a quoted scalar
    if (!tag.empty() && tag != "?" && tag != "tag:yaml.org,2002:int" && tag != "tag:yaml.org,2002:float" &&
        tag != "tag:yaml.org,2002:bool" && tag != "tag:yaml.org,2002:null") {
      unknown_tag(mark, tag);
    }
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
    if (text == "true" || text == "True" || text == "TRUE") return {true};
    if (text == "false" || text == "False" || text == "FALSE") return {false};
    // 010 is eight in YAML 1.1 and ten in YAML 1.2.
    const std::size_t digits = text.front() == '-' || text.front() == '+' ? 1 : 0;
    if (text.size() > digits + 1 && text[digits] == '0' &&
        text.find_first_not_of("0123456789", digits) == std::string::npos) {
      stop(mark, ErrorCode::parse,
           fmt::format("the number {} begins with zero, so that its base is not clear", text.substr(0, 60)));
    }
    if (text.find(' ') == std::string::npos) {
      const std::string_view unsigned_text = std::string_view(text).substr(digits);
      if (unsigned_text == ".inf" || unsigned_text == ".Inf" || unsigned_text == ".INF") {
        return {*parse_number(text.front() == '-' ? "-inf" : "inf")->as<double>()};
      }
      if (text == ".nan" || text == ".NaN" || text == ".NAN") return {*parse_number("nan")->as<double>()};
      const bool begins_like_a_number =
          !unsigned_text.empty() &&
          (unsigned_text.front() == '.' || (unsigned_text.front() >= '0' && unsigned_text.front() <= '9'));
      if (begins_like_a_number) {
        if (auto number = parse_number(text)) return *std::move(number);
      }
    }
    return {text};
  }

  TreeBuilder builder_;
  std::vector<YAML::anchor_t> open_anchors_;
  std::map<YAML::anchor_t, std::shared_ptr<const SharedTree>> anchors_;
};

// Estimates the memory of tokens that yaml-cpp keeps because they may belong to an incomplete key: open brackets, and
// marks before a value. Brackets and marks within texts are counted too.
std::uint64_t kept_token_bytes(std::string_view text) {
  constexpr std::uint64_t bracket_bytes = 256;
  constexpr std::uint64_t mark_bytes = 128;
  std::uint64_t open = 0;
  std::uint64_t most_open = 0;
  std::uint64_t marks = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') most_open = std::max(most_open, ++open);
    if ((c == ']' || c == '}') && open > 0) --open;
    if (c == '!' || c == '&' || c == '*') ++marks;
  }
  return most_open * bracket_bytes + marks * mark_bytes;
}

}  // namespace

Result<Tree> parse_yaml(std::string_view text) {
  io::MemoryBudget tokens(text.size());
  TRY(tokens.take(kept_token_bytes(text)));
  YamlHandler handler(text.size());
  try {
    TextBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(handler) && parser) return parse_error("several documents in one file");
  } catch (const Stopped&) {  // take() returns the reason
  } catch (const YAML::Exception& exception) {
    return parse_error(fmt::format("line {}: not YAML: {}", exception.mark.line + 1, exception.msg.substr(0, 200)));
  }
  return handler.builder().take();
}

}  // namespace tensorcast::models::mdf
