// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layout/config.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::size_t max_depth = 100;

// Walks text that is known to be valid JSON.
class Walk {
 public:
  Walk(std::string_view text, const JsonVisitor& visit) : text_(text), visit_(visit) {}

  Result<void> run() {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    do {
      skip_blanks();
      TRY(take_value());
      close_finished();
    } while (!open_.empty());
    return {};
  }

 private:
  struct Container {
    JsonKind kind;
    std::size_t begin;
  };
  struct Key {
    std::size_t begin = 0;
    std::size_t end = 0;  // 0: an element has none
  };

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  // Takes a scalar, or the start of a container; before it the key, if the value is a member.
  Result<void> take_value() {
    const char first = text_[at_];
    if (first == '{' || first == '[') {
      if (open_.size() == max_depth) return parse_error(fmt::format("JSON deeper than {} levels", max_depth));
      open_.push_back({first == '{' ? JsonKind::object : JsonKind::array, at_});
      arrays_ += first == '[' ? 1 : 0;
      ++at_;
      enter_member();
      return {};
    }
    const std::size_t begin = at_;
    const JsonKind kind = first == '"' ? JsonKind::string : JsonKind::other;
    if (first == '"') {
      skip_string();
    } else {
      at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    }
    emit(kind, begin);
    return {};
  }

  void skip_string() {
    for (++at_; text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    ++at_;
  }

  // Moves to the value of the next member, and pushes its key; at the end of the container nothing is pushed.
  void enter_member() {
    skip_blanks();
    const char next = text_[at_];
    at_end_ = next == '}' || next == ']';
    if (at_end_) return;
    if (open_.back().kind == JsonKind::array) {
      path_.emplace_back("[]");
      keys_.push_back({});
      return;
    }
    const std::size_t begin = at_;
    skip_string();
    path_.push_back(unquoted(text_.substr(begin, at_ - begin)));
    keys_.push_back({begin, at_});
    skip_blanks();
    ++at_;  // the colon
  }

  // After a value or an opening bracket: closes what ends here, and goes to the next member.
  void close_finished() {
    while (!open_.empty()) {
      if (!at_end_ && just_emitted_) {
        path_.pop_back();
        keys_.pop_back();
        skip_blanks();
        if (text_[at_] == ',') {
          ++at_;
          just_emitted_ = false;
          enter_member();
          return;
        }
        at_end_ = true;
      }
      if (!at_end_) return;  // a container was opened, and has members
      const Container closed = open_.back();
      open_.pop_back();
      arrays_ -= closed.kind == JsonKind::array ? 1 : 0;
      ++at_;
      at_end_ = false;
      emit(closed.kind, closed.begin);
    }
  }

  void emit(JsonKind kind, std::size_t begin) {
    const Key key = keys_.empty() ? Key{} : keys_.back();
    visit_(path_, JsonValue{.kind = kind,
                            .text = text_.substr(begin, at_ - begin),
                            .begin = begin,
                            .key = text_.substr(key.begin, key.end - key.begin),
                            .key_begin = key.begin,
                            .inside_array = arrays_ > 0});
    just_emitted_ = true;
  }

  std::string_view text_;
  const JsonVisitor& visit_;
  std::size_t at_ = 0;
  bool at_end_ = false;        // of the innermost container
  bool just_emitted_ = false;  // the key of the value is still in path_
  std::vector<Container> open_;
  std::size_t arrays_ = 0;  // of `open_`
  JsonPath path_;
  std::vector<Key> keys_;  // of `path_`
};

}  // namespace

Result<void> visit_json(std::string_view text, const JsonVisitor& visit) {
  // nlohmann would treat a zero byte as the end and ignore the rest.
  const std::string plain = quantized::with_finite_numbers(text);
  const bool valid = plain.find('\0') == std::string::npos && nlohmann::json::accept(plain.begin(), plain.end());
  if (!valid) return parse_error("the file is not valid JSON");
  return Walk(text, visit).run();
}

std::string unquoted(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text.substr(1, text.size() - 2));
  return nlohmann::json::parse(text).get<std::string>();
}

std::string json_quoted(std::string_view text) { return nlohmann::json(text).dump(); }

std::string edited(std::string_view text, std::vector<JsonEdit> edits) {
  std::sort(edits.begin(), edits.end(), [](const JsonEdit& a, const JsonEdit& b) { return a.begin < b.begin; });
  std::string result;
  std::size_t at = 0;
  for (const JsonEdit& edit : edits) {
    result.append(text.substr(at, edit.begin - at)).append(edit.text);
    at = edit.begin + edit.length;
  }
  return result.append(text.substr(at));
}

}  // namespace tensorcast::checkpoint
