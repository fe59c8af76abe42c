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
                       unsupported("two tensors of the checkpoint would have this name, as dots join the keys"));
    }
    return std::move(tree_);
  }

 private:
  using Plain = std::optional<std::string>;  // JSON; nullopt for a tensor, or a container of tensors only

  Result<Plain> visit(Ref ref, const std::string& path, int depth) {
    const Value& value = objects_[ref];
    if (depth == max_depth) {
      return parse_error(fmt::format("the checkpoint is nested deeper than {}, or contains itself", max_depth));
    }
    constexpr std::uint64_t visit_bytes = 64;
    TRY(take(visit_bytes + 6 * value.text.size() + 3 * path.size()));
    switch (value.kind) {
      case Kind::tensor:
        tree_.tensors.push_back({.name = path, .tensor = static_cast<std::size_t>(value.integer)});
        return Plain();
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
      case Kind::symbol:
        return Plain(nlohmann::json(value.text).dump());
      case Kind::bytes:
        return Plain(bytes_text(value.text));
      case Kind::list:
      case Kind::tuple:
      case Kind::set:
        return visit_list(value, path, depth);
      case Kind::dict:
        return visit_dict(value, path, depth);
      case Kind::function:
      case Kind::foreign:
        return skip(ref, path);
      case Kind::numpy_dtype:
        return Plain(nlohmann::json(value.text).dump());
      case Kind::numpy_array:
      case Kind::storage:
        break;
    }
    return not_data(path, fmt::format("{} where data belong", value.kind == Kind::storage ? "a storage without a tensor"
                                                                                          : "a part of a NumPy array"));
  }

  static Error not_data(const std::string& path, const std::string& what) {
    return of_tensor(path, unsupported("the checkpoint has " + what, save_plain_data));
  }

  // Names an object of another class. Its tensors would be lost, so it must have none.
  Result<Plain> skip(Ref object, const std::string& path) {
    std::vector<Ref> open = {object};
    while (!open.empty()) {
      const Ref ref = open.back();
      open.pop_back();
      TRY(take(64));
      if (!harmless_.insert(ref).second) continue;
      const Value& value = objects_[ref];
      if (value.kind == Kind::tensor || value.kind == Kind::storage || value.kind == Kind::numpy_array) {
        return not_data(path, fmt::format("tensors inside of an object of {}", name_of(object)));
      }
      TRY(take(4 * value.items.size()));
      open.insert(open.end(), value.items.begin(), value.items.end());
      if (value.attributes != no_ref) open.push_back(value.attributes);
    }
    constexpr std::uint64_t node_bytes = 512;  // of an entry in the map
    TRY(take(node_bytes));
    const auto [found, is_new] = skipped_.emplace(name_of(object), Skipped{.first = path, .count = 0});
    ++found->second.count;
    return Plain("{\"object\":" + nlohmann::json(name_of(object)).dump() + "}");
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
    std::string json = "{";
    bool plain = value.items.empty();
    // Later values of a key replace earlier ones, as in Python.
    std::vector<std::pair<std::string, Ref>> entries;
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < value.items.size(); i += 2) {
      std::string key = TRY(key_text(objects_[value.items[i]], path));
      TRY(take(3 * key.size() + 3 * sizeof entries[0] + 64));
      const auto [place, is_new] = places.emplace(key, entries.size());
      if (is_new) {
        entries.emplace_back(std::move(key), value.items[i + 1]);
      } else {
        entries[place->second].second = value.items[i + 1];
      }
    }
    if (value.attributes != no_ref && !places.contains(std::string(metadata_key))) {
      const Ref metadata = metadata_among(value.attributes);
      if (metadata != no_ref) entries.emplace_back(metadata_key, metadata);
    }
    for (const auto& [key, entry] : entries) {
      Plain item = TRY(visit(entry, joined(path, key), depth + 1));
      if (!item) continue;
      plain = true;
      TRY(take(2 * (item->size() + 6 * key.size())));
      json += json.size() == 1 ? "" : ",";
      if (depth == 0) json += "\n  ";
      json += nlohmann::json(key).dump() + ":" + (depth == 0 ? " " : "") + *item;
    }
    if (depth == 0 && json.size() > 1) json += "\n";
    return plain ? Plain(json + "}") : Plain();
  }

  // Returns the attribute that a state_dict keeps its versions in; no_ref if there is none. Many dicts may share their
  // attributes, which are searched once.
  Ref metadata_among(Ref attributes) {
    const auto [known, is_new] = metadata_.emplace(attributes, no_ref);
    if (!is_new) return known->second;
    const std::vector<Ref>& items = objects_[attributes].items;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const Value& key = objects_[items[i]];
      if (key.kind == Kind::string && key.text == metadata_key) known->second = items[i + 1];
    }
    return known->second;
  }

  Result<std::string> key_text(const Value& key, const std::string& path) {
    switch (key.kind) {
      case Kind::string:
      case Kind::big_integer:
      case Kind::symbol:
        return key.text;
      case Kind::integer:
        return fmt::format("{}", key.integer);
      case Kind::boolean:
        return std::string(key.integer != 0 ? "True" : "False");
      case Kind::none:
        return std::string("None");
      case Kind::real:
        return fmt::format("{}", key.real);
      default:
        return unsupported(
            fmt::format("a dict at \"{}\" of the checkpoint has a key that is not text or a number", path),
            "save dicts with texts as keys");
    }
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
  std::unordered_set<Ref> harmless_;        // values that are no tensors and have none inside
};

}  // namespace

Result<CheckpointTree> sort_checkpoint(const Objects& objects, Ref root) { return Sorter(objects).run(root); }

}  // namespace tensorcast::formats::pytorch
