// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/checkpoint_tree.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/npy/npy_text.hpp"
#include "formats/pytorch/pickle_names.hpp"

namespace tensorcast::formats::pytorch {
namespace {

constexpr int max_depth = 100;
constexpr std::string_view metadata_key = "_metadata";
constexpr const char* save_plain_data =
    "save tensors and plain data only, as torch.save(model.state_dict(), path) does";

// Writes JSON piece by piece, so that integers of any size are possible.
class Sorter {
 public:
  explicit Sorter(const Objects& objects) : objects_(objects) {}

  Result<CheckpointTree> run(Ref root) {
    std::optional<std::string> rest = TRY(visit(root, "", 0));
    if (rest && *rest != "{}") tree_.other_data = *std::move(rest) + "\n";
    add_warnings();
    if (const auto twice = find_repeated(tree_.tensors, &NamedTensor::name)) {
      return of_tensor(std::string(*twice),
                       unsupported("two tensors of the checkpoint would have this name, as dots join the keys, and a "
                                   "number reads as its text"));
    }
    return std::move(tree_);
  }

 private:
  using Plain = std::optional<std::string>;  // JSON; nullopt for a tensor, or a container of tensors only

  Result<Plain> visit(Ref ref, const std::string& path, int depth) {
    const Value& value = objects_[ref];
    if (depth == max_depth) return visit_too_deep(ref, path);
    constexpr std::uint64_t visit_bytes = 64;
    TRY(take(visit_bytes + 6 * value.text.size() + 3 * path.size()));
    switch (value.kind) {
      case Kind::tensor:
        tree_.tensors.push_back({.name = path, .tensor = static_cast<std::size_t>(value.integer)});
        return Plain();
      case Kind::unread:
        return add_problem(path, objects_.problems[static_cast<std::size_t>(value.integer)]);
      case Kind::none:
        return Plain("null");
      case Kind::boolean:
        return Plain(value.integer != 0 ? "true" : "false");
      case Kind::integer:
        return Plain(fmt::format("{}", value.integer));
      case Kind::big_integer:
        return Plain(value.text);
      case Kind::real:
        return Plain(real_text(value.real));
      case Kind::string:
        if (value.integer != 0) note_replaced(path);
        return Plain(nlohmann::json(value.text).dump());
      case Kind::symbol:
        return Plain(nlohmann::json(value.text).dump());
      case Kind::bytes:
        return Plain(bytes_text(value.text));
      case Kind::list:
      case Kind::tuple:
      case Kind::set:
      case Kind::dict:
        return visit_items(ref, path, depth);
      case Kind::function:
        return skip(ref, path);
      case Kind::foreign:
        return visit_object(ref, path, depth);
      case Kind::numpy_dtype:
        return Plain(nlohmann::json(value.text).dump());
      case Kind::numpy_array:
      case Kind::storage:
        break;
    }
    return add_problem(path, not_data(value.kind == Kind::storage ? "a storage without a tensor where data belong"
                                                                  : "a part of a NumPy array where data belong"));
  }

  static Error not_data(const std::string& what) { return unsupported("the checkpoint has " + what, save_plain_data); }

  Result<Plain> add_problem(const std::string& path, Error problem) {
    TRY(take(sizeof(Error) + problem.message.size() + problem.hint.size()));
    problem.tensor = path;
    tree_.tensors.push_back({.name = path, .problem = std::make_shared<const Error>(std::move(problem))});
    return Plain();
  }

  // An object of another class: what it holds as a dict or a list does is visited as in these, the rest must have no
  // tensors.
  Result<Plain> visit_object(Ref object, const std::string& path, int depth) {
    const Value& value = objects_[object];
    if (value.integer == 0) return skip(object, path);
    const bool has_others = TRY(has_tensors(object, false));
    if (has_others) return add_problem(path, inside_of(object));
    return visit_items(static_cast<Ref>(value.integer), path, depth);
  }

  // What a container has of itself is there already, under the names of its own.
  Result<Plain> visit_items(Ref container, const std::string& path, int depth) {
    if (!open_.insert(container).second) return skip_data("a container around it", path);
    const Value& value = objects_[container];
    Plain found = TRY(value.kind == Kind::dict ? visit_dict(value, path, depth) : visit_list(value, path, depth));
    open_.erase(container);
    return found;
  }

  Result<Plain> visit_too_deep(Ref ref, const std::string& path) {
    if (!TRY(has_tensors(ref, true))) return skip_data("nested too deep", path);
    return add_problem(path, parse_error(fmt::format("the checkpoint is nested deeper than {}", max_depth)));
  }

  Error inside_of(Ref object) const {
    return not_data(fmt::format("tensors inside of an object of {}", name_of(object)));
  }

  // Reports whether an object has tensors of PyTorch in it, which would be lost. NumPy arrays, such as those of a log,
  // are no weights, nor are the numbers of a random generator.
  Result<bool> has_tensors(Ref object, bool with_content) {
    constexpr std::string_view generator = "torch._C.Generator";
    std::vector<Ref> open, seen;
    if (objects_[object].kind == Kind::foreign && objects_[object].text == generator) return false;
    const auto add_parts = [&](const Value& value) {
      open.insert(open.end(), value.items.begin(), value.items.end());
      if (value.attributes != no_ref) open.push_back(value.attributes);
    };
    add_parts(objects_[object]);
    if (with_content) open.push_back(object);
    bool found = false;
    while (!open.empty() && !found) {
      const Ref ref = open.back();
      open.pop_back();
      TRY(take(64));
      if (!harmless_.insert(ref).second) continue;
      seen.push_back(ref);
      const Value& value = objects_[ref];
      if (value.kind == Kind::foreign && value.text == generator) continue;
      found = (value.kind == Kind::unread && value.text.empty()) || value.kind == Kind::storage ||
              (value.kind == Kind::tensor && is_of_storage(objects_.tensors[static_cast<std::size_t>(value.integer)]));
      TRY(take(4 * value.items.size()));
      add_parts(value);
      if (value.kind == Kind::foreign && value.integer != 0) open.push_back(static_cast<Ref>(value.integer));
    }
    if (found) {
      for (const Ref ref : seen) harmless_.erase(ref);
    }
    return found;
  }

  bool is_of_storage(const StridedTensor& tensor) const { return objects_[tensor.storage].kind == Kind::storage; }

  // Names an object of another class.
  Result<Plain> skip(Ref object, const std::string& path) {
    const bool found = TRY(has_tensors(object, true));
    if (found) return add_problem(path, inside_of(object));
    constexpr std::uint64_t node_bytes = 512;  // of an entry in the map
    TRY(take(node_bytes));
    const auto [known, is_new] = skipped_.emplace(name_of(object), Skipped{.first = path, .count = 0});
    ++known->second.count;
    return Plain("{\"object\":" + nlohmann::json(name_of(object)).dump() + "}");
  }

  // Names data without tensors that have no end.
  Result<Plain> skip_data(std::string_view what, const std::string& path) {
    if (endless_.count++ == 0) endless_.first = path;
    return Plain(fmt::format("{{\"object\":\"{}\"}}", what));
  }

  std::string name_of(Ref object) const { return shown(objects_[object].text); }

  void add_warnings() {
    constexpr std::size_t most = 8;
    for (const auto& [name, skipped] : skipped_) {
      if (tree_.warnings.size() == most) {
        tree_.warnings.push_back(fmt::format("objects of {} more classes are not written", skipped_.size() - most));
        break;
      }
      const std::string first = skipped.first.empty() ? "the checkpoint" : fmt::format("\"{}\"", skipped.first);
      tree_.warnings.push_back(
          skipped.count == 1 ? fmt::format("{} is an object of {} without tensors, which is not written", first, name)
                             : fmt::format("{} objects of {} without tensors are not written; the first is {}",
                                           skipped.count, name, first));
    }
    if (endless_.count != 0) {
      tree_.warnings.push_back(
          fmt::format("{} containers that contain themselves, or are nested deeper than {}, are not written; the first "
                      "is \"{}\"",
                      endless_.count, max_depth, endless_.first));
    }
    if (replaced_ != 0) {
      tree_.warnings.push_back(
          fmt::format("{} texts have characters that UTF-8 lacks, in whose place is U+FFFD; the "
                      "first is in \"{}\"",
                      replaced_, first_replaced_));
    }
    if (alike_ != 0) {
      tree_.warnings.push_back(
          fmt::format("{} values have a key that reads as another one of the same dict, and are not "
                      "written; the first is \"{}\"",
                      alike_, first_alike_));
    }
  }

  void note_replaced(const std::string& path) {
    if (replaced_++ == 0) first_replaced_ = path;
  }

  Result<Plain> visit_list(const Value& value, const std::string& path, int depth) {
    std::string json = "[";
    bool plain = value.items.empty();
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      Plain item = TRY(visit(value.items[i], joined(path, fmt::format("{}", i)), depth + 1));
      plain = plain || item.has_value();
      const std::string& text = item ? *item : null_;
      TRY(take(2 * text.size()));
      json += i == 0 ? "" : ",";
      json += text;
    }
    return plain ? Plain(json + "]") : Plain();
  }

  Result<Plain> visit_dict(const Value& value, const std::string& path, int depth) {
    if (TRY(has_keys_with_tensors(value))) {
      return add_problem(path, not_data("a dict whose keys are tensors, or have tensors inside"));
    }
    std::string json = "{";
    bool plain = value.items.empty();
    std::vector<std::pair<std::string, Ref>> entries = TRY(entries_of(value, path));
    std::unordered_set<std::string_view> written;  // keys in `json`
    for (const auto& [key, entry] : entries) {
      Plain item = TRY(visit(entry, joined(path, key), depth + 1));
      if (!item) continue;
      plain = true;
      TRY(take(2 * (item->size() + 6 * key.size()) + 64));
      if (!written.insert(key).second) {
        if (alike_++ == 0) first_alike_ = joined(path, key);
        continue;
      }
      json += json.size() == 1 ? "" : ",";
      if (depth == 0) json += "\n  ";
      json += nlohmann::json(key).dump() + ":" + (depth == 0 ? " " : "") + *item;
    }
    if (depth == 0 && json.size() > 1) json += "\n";
    return plain ? Plain(json + "}") : Plain();
  }

  Result<bool> has_keys_with_tensors(const Value& dict) {
    for (std::size_t i = 0; i < dict.items.size(); i += 2) {
      const Kind kind = objects_[dict.items[i]].kind;
      if (kind == Kind::string || kind == Kind::integer) continue;
      if (TRY(has_tensors(dict.items[i], true))) return true;
    }
    return false;
  }

  // The entries of a dict by the texts of their keys, of which several may read alike, such as 0 and "0".
  Result<std::vector<std::pair<std::string, Ref>>> entries_of(const Value& dict, const std::string& path) {
    // Later values of a key replace earlier ones, as in Python.
    std::vector<std::pair<std::string, Ref>> entries;
    std::unordered_map<std::string, std::size_t> places;  // by the key with its sort before it
    bool has_metadata = false;
    for (std::size_t i = 0; i < dict.items.size(); i += 2) {
      const Value& key = objects_[dict.items[i]];
      std::string text = TRY(key_text(dict.items[i]));
      has_metadata = has_metadata || text == metadata_key;
      if (key.kind == Kind::string && key.integer != 0) note_replaced(joined(path, text));
      TRY(take(3 * text.size() + 3 * sizeof entries[0] + 64));
      if (is_whole(key)) {
        const auto [place, is_new] = places.emplace(sort_of(key) + text, entries.size());
        if (!is_new) {
          entries[place->second].second = dict.items[i + 1];
          continue;
        }
      }
      entries.emplace_back(std::move(text), dict.items[i + 1]);
    }
    if (dict.attributes != no_ref) {
      const Ref metadata = TRY(metadata_among(dict.attributes, path));
      if (metadata != no_ref && !has_metadata) entries.emplace_back(metadata_key, metadata);
    }
    return entries;
  }

  // Whether a key's text is all of it; others may differ though their texts are the same. key_text() has limited its
  // depth.
  bool is_whole(const Value& key) const {
    if (key.kind == Kind::foreign || key.kind == Kind::function) return false;
    if (key.kind == Kind::string) return key.integer == 0;
    return std::ranges::all_of(key.items, [&](Ref item) { return is_whole(objects_[item]); });
  }

  // Keys of one sort are equal if their texts are: True is 1 in Python, and "1" is not.
  static char sort_of(const Value& key) {
    switch (key.kind) {
      case Kind::string:
        return 's';
      case Kind::symbol:
        return 'y';
      case Kind::bytes:
        return 'b';
      case Kind::tuple:
        return 't';
      default:
        return 'n';
    }
  }

  // Returns the attribute that a state_dict keeps its versions in; no_ref if there is none. Other attributes must have
  // no tensors, which would be lost. Many dicts may share their attributes, which are searched once.
  Result<Ref> metadata_among(Ref attributes, const std::string& path) {
    const auto [known, is_new] = metadata_.emplace(attributes, no_ref);
    if (!is_new) return known->second;
    const std::vector<Ref>& items = objects_[attributes].items;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const Value& key = objects_[items[i]];
      if (key.kind == Kind::string && key.text == metadata_key) {
        known->second = items[i + 1];
      } else if (TRY(has_tensors(items[i + 1], true))) {
        TRY(add_problem(joined(path, key.text), not_data("tensors in an attribute of a dict")));
      }
    }
    return known->second;
  }

  // The name of a key, as Python prints it.
  Result<std::string> key_text(Ref ref) {
    const Value& key = objects_[ref];
    if (key.kind == Kind::string || key.kind == Kind::symbol) return key.text;
    return python_text(ref, 0);
  }

  Result<std::string> python_text(Ref ref, int depth) {
    constexpr int max_key_depth = 8;
    const Value& key = objects_[ref];
    TRY(take(64 + 8 * key.text.size()));
    switch (key.kind) {
      case Kind::string:
        return quoted(key.text);
      case Kind::bytes:
        return "b" + quoted(key.text);
      case Kind::big_integer:
      case Kind::symbol:
      case Kind::numpy_dtype:
        return key.text;
      case Kind::integer:
        return fmt::format("{}", key.integer);
      case Kind::boolean:
        return std::string(key.integer != 0 ? "True" : "False");
      case Kind::none:
        return std::string("None");
      case Kind::real: {
        std::string text = fmt::format("{}", key.real);
        return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
      }
      case Kind::foreign:
        if (const Ref only = only_argument(key); only != no_ref) return key_text(only);
        return fmt::format("<{}>", name_of(ref));
      case Kind::function:
        return fmt::format("<{}>", name_of(ref));
      case Kind::tuple:
      case Kind::set:
        break;
      default:
        return parse_error("damaged checkpoint: a dict with a key that no dict can have");
    }
    if (depth == max_key_depth) return parse_error("a key of the checkpoint is nested too deep");
    std::string text;
    for (const Ref item : key.items) {
      const std::string part = TRY(python_text(item, depth + 1));
      TRY(take(2 * part.size()));
      text += text.empty() ? part : ", " + part;
    }
    if (key.kind == Kind::tuple) return "(" + text + (key.items.size() == 1 ? ",)" : ")");
    return text.empty() ? "frozenset()" : "frozenset({" + text + "})";
  }

  // The text or number that alone makes an object: a member of an enumeration, an object of a class derived from str.
  Ref only_argument(const Value& object) const {
    if (object.items.empty() || objects_[object.items[0]].kind != Kind::tuple) return no_ref;
    const std::vector<Ref>& arguments = objects_[object.items[0]].items;
    if (arguments.size() != 1) return no_ref;
    const Kind kind = objects_[arguments[0]].kind;
    return kind == Kind::string || kind == Kind::integer ? arguments[0] : no_ref;
  }

  // A text in quotes, with escapes for what is not printed; bytes above 127 stay where they are UTF-8.
  static std::string quoted(const std::string& text) {
    const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
    const bool is_text = npy::is_utf8(text);
    std::string made(1, quote);
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == quote || c == '\\') made += '\\';
      const bool escapes = byte < ' ' || byte == 0x7F || (byte > 0x7F && !is_text);
      made += escapes ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    }
    return made + quote;
  }

  static std::string joined(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }
  static std::string real_text(double real) {
    if (std::isnan(real)) return "\"NaN\"";
    if (std::isinf(real)) return real > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    return nlohmann::json(real).dump();
  }
  static std::string bytes_text(const std::string& bytes) {
    std::string text = "{\"bytes\":\"";
    for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text + "\"}";
  }
  Result<void> take(std::uint64_t bytes) { return objects_.budget().take(bytes); }

  const Objects& objects_;
  const std::string null_ = "null";
  std::unordered_map<Ref, Ref> metadata_;  // by the attributes that it is among
  CheckpointTree tree_;
  struct Skipped {
    std::string first;  // where it is
    std::size_t count = 0;
  };
  std::map<std::string, Skipped> skipped_;  // by class
  Skipped endless_;
  std::unordered_set<Ref> open_;      // the containers around what is visited
  std::unordered_set<Ref> harmless_;  // values that are no tensors and have none inside
  std::size_t replaced_ = 0;          // texts with characters that were replaced
  std::string first_replaced_;
  std::size_t alike_ = 0;  // values that JSON has no key for
  std::string first_alike_;
};

}  // namespace

Result<CheckpointTree> sort_checkpoint(const Objects& objects, Ref root) { return Sorter(objects).run(root); }

}  // namespace tensorcast::formats::pytorch
