// SPDX-License-Identifier: Apache-2.0
// Random configurations, with all changes that a conversion makes: the result is JSON, is the tree that was meant, and
// has the text of everything that stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/plan/config_file.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr int configurations = 4000;

// JSON without blanks.
std::string compact(const std::string& text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') result += text[i++];
    if (in_string || std::string_view(" \t\r\n").find(text[i]) == std::string_view::npos) result += text[i];
  }
  return result;
}

struct Value {
  std::string text = {};  // of a value that is no object
  bool is_object = false;
  std::vector<std::pair<std::string, Value>> members = {};  // keys with quotes, as they are spelled
  bool is_list = false;
  std::vector<std::string> elements = {};

  [[nodiscard]] std::string compact() const {
    std::string all;
    for (const auto& [key, value] : members) all += (all.empty() ? "" : ",") + key + ":" + value.compact();
    for (const std::string& element : elements) all += (all.empty() ? "" : ",") + element;
    return is_object ? "{" + all + "}" : is_list ? "[" + all + "]" : checkpoint::compact(text);
  }
};

std::string plain(const std::string& key) { return nlohmann::json::parse(key).get<std::string>(); }

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }
  bool once_in(std::size_t n) { return below(n) == 0; }

  std::string blanks() {
    static const std::vector<std::string> all = {"", "", " ", "  ", "\n  ", "\t", "\r\n"};
    return all[below(all.size())];
  }

  // A value of its own, but for null and the like.
  Value scalar() {
    static const std::vector<std::string> all = {"#",
                                                 "-#.50e+1",
                                                 "null",
                                                 "true",
                                                 "\"#\"",
                                                 "\"a \\\"quoted\\\" : {,} \\\\ # text\"",
                                                 "NaN",
                                                 "[ #, {\"dtype\": 5}]",
                                                 "[#]",
                                                 "\"]}#\"",
                                                 "#e-06",
                                                 "-Infinity",
                                                 "[{ \"quantization_config\": {\"ignore\": null}},\"dtype\", #]"};
    std::string text = all[below(all.size())];
    if (const std::size_t at = text.find('#'); at != std::string::npos) text.replace(at, 1, std::to_string(++made_));
    return {.text = text};
  }

  Value list() {
    static const std::vector<std::string> names = {"\"lm_head\"", "\"re:.*\\\\d[,]\"", "\"b\"", "\"a\""};
    Value list{.is_list = true};
    for (std::size_t i = below(4); i > 0; --i) list.elements.push_back(names[below(names.size())]);
    return list;
  }

  Value description() {
    static const std::vector<std::string> keys = {"\"ignore\"", "\"modules_to_not_convert\"", "\"exclude_modules\"",
                                                  "\"llm_int8_skip_modules\"", "\"ignored_\\u006cayers\""};
    static const std::vector<std::string> methods = {"\"fp8\"", "\"compressed-tensors\"", "\"ModelOpt\"",
                                                     "\"bitsandbytes\""};
    Value value{.is_object = true};
    if (!once_in(5)) add(value, "\"quant_method\"", {.text = methods[below(methods.size())]});
    for (std::size_t i = below(3); i > 0; --i) {
      add(value, keys[below(keys.size())], once_in(3) ? Value{.text = "null"} : list());
    }
    if (once_in(3)) add(value, "\"dtype\"", {.text = "\"float32\""});
    if (once_in(3)) add(value, "\"x\"", object(3));
    if (once_in(4)) add(value, "\"quantization_config\"", scalar());
    return value;
  }

  // A configuration, or what is inside it.
  Value object(int depth) {
    Value value{.is_object = true};
    for (std::size_t i = below(7); i > 0; --i) {
      switch (below(6)) {
        case 0:
        case 1:
          static const std::vector<std::string> sections = {"\"quantization_config\"", "\"quantization\"",
                                                            "\"compression_config\"", "\"quanti\\u007aation\""};
          add(value, sections[below(sections.size())], once_in(6) ? scalar() : description());
          break;
        case 2:
          add(value, once_in(2) ? "\"dtype\"" : "\"torch_dtype\"",
              once_in(4) ? scalar() : Value{.text = once_in(2) ? "\"torch.float32\"" : "\"half\""});
          break;
        case 3:
          static const std::vector<std::string> inner = {"\"text_config\"", "\"encoder\"", "\"rope\"", "\"\""};
          add(value, inner[below(inner.size())], depth == 0 || once_in(5) ? scalar() : object(depth - 1));
          break;
        default:
          static const std::vector<std::string> keys = {"\"a\"", "\"\\\"dtype\\\"\"", "\"\xC3\xA9\"", "\"a:{\""};
          add(value, keys[below(keys.size())], scalar());
      }
    }
    return value;
  }

  // The text of a value, with random blanks. Appends the texts of leaves with their keys to `leaves`, and those of two
  // that are neighbours.
  std::string written(const Value& value, std::vector<std::string>& leaves) {
    if (!value.is_object && !value.is_list) return value.text;
    std::string text = value.is_object ? "{" : "[";
    const char* comma = "";
    std::size_t before = std::string::npos;  // where the leaf before begins
    for (const auto& [key, member] : value.members) {
      text += comma + blanks();
      const std::size_t begin = text.size();
      text += key + blanks() + ":" + blanks();
      text += written(member, leaves);
      if (!member.is_object) leaves.push_back(text.substr(begin));
      if (!member.is_object && before != std::string::npos) leaves.push_back(text.substr(before));
      before = member.is_object ? std::string::npos : begin;
      text += blanks();
      comma = ",";
    }
    for (const std::string& element : value.elements) {
      text += comma + blanks() + element + blanks();
      comma = ",";
    }
    if (value.members.empty() && value.elements.empty()) text += blanks();
    return text + (value.is_object ? "}" : "]");
  }

 private:
  static void add(Value& value, std::string key, Value member) {
    value.members.emplace_back(std::move(key), std::move(member));
  }

  std::mt19937 random_;
  int made_ = 100;
};

bool is_inner(const std::string& key) { return key == "text_config" || key == "encoder"; }
bool is_section(const std::string& key) {
  return key == "quantization_config" || key == "quantization" || key == "compression_config";
}

template <class Change>
void for_each_config(Value& value, const Change& change) {
  change(value);
  for (auto& [key, member] : value.members) {
    if (member.is_object && is_inner(plain(key))) for_each_config(member, change);
  }
}

void set_dtype(Value& value) {
  for (auto& [key, member] : value.members) {
    const std::string name = plain(key);
    if (name != "dtype" && name != "torch_dtype") continue;
    if (member.text == "\"torch.float32\"") member.text = "\"torch.bfloat16\"";
    if (member.text == "\"half\"") member.text = "\"bfloat16\"";
  }
}

void remove_sections(Value& value) {
  std::erase_if(value.members, [](const auto& entry) {
    const auto& [key, member] = entry;
    if (plain(key) == "quantization") return member.is_object;
    return is_section(plain(key)) && (member.is_object || member.text != "null");
  });
}

void list_modules(Value& description, const std::vector<std::string>& modules) {
  std::string own = "exclude_modules";
  bool listed = false;
  for (const auto& [key, member] : description.members) {
    if (key != "\"quant_method\"") continue;
    own = member.text == "\"fp8\""            ? "modules_to_not_convert"
          : member.text == "\"bitsandbytes\"" ? "llm_int8_skip_modules"
                                              : "ignore";
  }
  for (auto& [key, member] : description.members) {
    const std::string name = plain(key);
    const bool is_list = name == "ignore" || name == "modules_to_not_convert" || name == "exclude_modules" ||
                         name == "llm_int8_skip_modules" || name == "ignored_layers";
    if (!is_list) continue;
    listed = listed || member.is_list || name == own;
    const std::vector<std::string> old = std::exchange(member, {.is_list = true}).elements;
    for (const std::string& module : modules) {
      if (std::ranges::find(old, module) == old.end()) member.elements.push_back(module);
    }
    member.elements.insert(member.elements.end(), old.begin(), old.end());
  }
  if (listed) return;
  Value list{.is_list = true};
  list.elements = modules;
  description.members.insert(description.members.begin(), {"\"" + own + "\"", list});
}

struct Edit {
  PlannedConfig planned;
  Value meant;
};

Edit random_edit(Maker& maker, const Value& value) {
  Edit edit{.planned = {.name = "sub/config.json"}, .meant = value};
  if (maker.once_in(2)) {
    edit.planned.dtype = DType::bfloat16;
    for_each_config(edit.meant, set_dtype);
  }
  switch (maker.below(4)) {
    case 0:
      edit.planned.unquantized = true;
      for_each_config(edit.meant, remove_sections);
      break;
    case 1:
      edit.planned.section = "{\"new\":[\"new\"]}";
      for_each_config(edit.meant, remove_sections);
      std::erase_if(edit.meant.members, [](const auto& member) { return member.first == "\"quantization_config\""; });
      edit.meant.members.push_back({"\"quantization_config\"", {.text = edit.planned.section}});
      break;
    case 2:
      edit.planned.decoded = {"a", "", "m.\"0\""};
      for_each_config(edit.meant, [](Value& config) {
        for (auto& [key, member] : config.members) {
          if (member.is_object && is_section(plain(key))) list_modules(member, {"\"a\"", "\"m.\\\"0\\\"\""});
        }
      });
      break;
    default:
      break;
  }
  return edit;
}

// How often each text is there, as a member of `text`.
std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++n;
  return n;
}

TEST(ConfigEdits, AreWhatIsMeantAndNothingElse) {
  Maker maker(50);
  for (int i = 0; i < configurations; ++i) {
    const Value value = maker.object(2);
    std::vector<std::string> leaves;
    const std::string text = maker.blanks() + maker.written(value, leaves) + maker.blanks();
    const Edit edit = random_edit(maker, value);
    const Result<std::string> result = rewritten_config(text, edit.planned);
    ASSERT_TRUE(result) << text << "\n" << result.error().describe();
    const std::string was = value.compact(), meant = edit.meant.compact();
    ASSERT_EQ(compact(*result), meant) << text;
    if (meant == was) {
      ASSERT_EQ(*result, text);
    }
    // Leaves that stay keep their blanks, and what is between them.
    for (const std::string& leaf : leaves) {
      const std::string small = compact(leaf);
      if (count(meant, small) == count(was, small)) {
        ASSERT_EQ(count(*result, leaf), count(text, leaf)) << leaf << "\n" << text << "\n" << *result;
      }
    }
    // The same change again changes nothing.
    if (edit.planned.section.empty()) {
      const Result<std::string> again = rewritten_config(*result, edit.planned);
      ASSERT_TRUE(again) << *result;
      ASSERT_EQ(*again, *result) << text;
    }
  }
}

}  // namespace
}  // namespace tensorcast::checkpoint
