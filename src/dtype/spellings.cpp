// SPDX-License-Identifier: Apache-2.0
#include "dtype/spellings.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dtype/dtype_table.hpp"
#include "dtype/edit_distance.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/text_parts.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr std::array<std::string_view, 1> uint1_spellings = {"uint1"};  // has no row: no type of casts

// A type's canonical name, then its other spellings.
using Names = std::array<std::string_view, 1 + std::tuple_size_v<decltype(DTypeRow::spellings)>>;

// Spellings that mean different types to different systems are in ambiguities() instead.
using enum DType;

struct Group {
  DType dtype;
  std::span<const std::string_view> names;
};

const std::vector<Group>& groups() {
  static const auto names_of_rows = [] {
    std::array<Names, dtype_table.size()> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i][0] = dtype_table[i].name;
      std::copy(dtype_table[i].spellings.begin(), dtype_table[i].spellings.end(), all[i].begin() + 1);
    }
    return all;
  }();
  static const std::vector<Group> all = [] {
    std::vector<Group> list;
    for (std::size_t i = 0; i < dtype_table.size(); ++i) {
      const Names& names = names_of_rows[i];
      const auto count = static_cast<std::size_t>(std::find(names.begin(), names.end(), "") - names.begin());
      list.push_back({dtype_table[i].id, std::span(names).first(count)});
    }
    list.push_back({DType::uint1, uint1_spellings});
    return list;
  }();
  return all;
}

constexpr std::size_t longest_spelling = 64;

bool consume_prefix(std::string& text, std::string_view prefix) {
  if (text.size() <= prefix.size() || text.compare(0, prefix.size(), prefix) != 0) return false;
  text.erase(0, prefix.size());
  return true;
}

struct Spelled {
  std::string key;       // equal for spellings that are one
  bool settled = false;  // the spelling names its system, so it is not ambiguous; ONNX's, PyTorch's or safetensors'
};

// Spellings of ONNX and safetensors; NumPy and OpenVINO write theirs in lower case.
constexpr std::string_view settled_by_capitals[] = {"FLOAT", "F4", "F8_E4M3", "I8", "U8"};

Spelled read_spelling(std::string_view spelling) {
  while (!spelling.empty() && (spelling.front() == ' ' || spelling.front() == '\t')) spelling.remove_prefix(1);
  while (!spelling.empty() && (spelling.back() == ' ' || spelling.back() == '\t')) spelling.remove_suffix(1);
  Spelled spelled{.key = {},
                  .settled = std::find(std::begin(settled_by_capitals), std::end(settled_by_capitals), spelling) !=
                             std::end(settled_by_capitals)};
  std::string& key = spelled.key;
  for (const char c : spelling) {
    if (c != '_') key += lower_case(c);
  }
  if (consume_prefix(key, "tensor(")) {
    if (key.back() != ')') return {.key = "("};  // matches nothing
    key.pop_back();
    spelled.settled = true;
  }
  for (const std::string_view system : {"onnx.", "tensorproto.", "torch."}) {
    if (consume_prefix(key, system)) spelled.settled = true;
  }
  for (const std::string_view module : {"numpy.", "np.", "mldtypes.", "jnp.", "tensorcast."}) {
    consume_prefix(key, module);
  }
  if (!key.empty() && (key[0] == '|' || key[0] == '=')) key[0] = '<';  // one byte, or this machine's order
  return spelled;
}

struct Key {
  std::string text;
  std::string_view shown;
  DType dtype;
};
const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> list;
    for (const Group& group : groups()) {
      for (const std::string_view spelling : group.names) {
        list.push_back({read_spelling(spelling).key, spelling, group.dtype});
      }
    }
    return list;
  }();
  return all;
}

// A spelling that means different types to different systems, and these types, the likeliest first.
struct Ambiguity {
  std::string_view key;
  std::string_view reason;
  std::vector<DType> candidates;
};

// The floating-point types of `bits` bits: ONNX's first, of these the types without negative zero (fnuz) last, as they
// are rarer.
std::vector<DType> floats_of(int bits) {
  std::vector<DType> found;
  for (const DType dtype : all_dtypes()) {
    if (family(dtype) == Family::floating && bit_width(dtype) == bits) found.push_back(dtype);
  }
  const auto rarity = [](DType dtype) { return (is_onnx(dtype) ? 0 : 2) + (name(dtype).ends_with("fnuz") ? 1 : 0); };
  std::stable_sort(found.begin(), found.end(), [&](DType a, DType b) { return rarity(a) < rarity(b); });
  return found;
}

std::vector<DType> e4m3_types() {
  std::vector<DType> found = floats_of(8);
  std::erase_if(found, [](DType dtype) { return name(dtype).find("e4m3") == std::string_view::npos; });
  return found;
}

const std::vector<Ambiguity>& ambiguities() {
  constexpr std::string_view width = "means different types, as NumPy counts bytes and others count bits";
  constexpr std::string_view several = "names several types";
  constexpr std::string_view e4m3 = "means different types: float8_e4m3 has infinities, and others mean float8_e4m3fn";
  constexpr std::string_view sizes = "has different sizes in different systems";
  static const std::vector<Ambiguity> all = {
      {"f4", width, {float4_e2m1fn, float32}},
      {"f8", width,
       [] {
         std::vector<DType> types = floats_of(8);
         types.push_back(float64);
         return types;
       }()},
      {"i1", width, {int8, boolean}},
      {"i2", width, {int2, int16}},
      {"i4", width, {int4, int32}},
      {"i8", width, {int8, int64}},
      {"u1", width, {uint8, uint1}},
      {"u2", width, {uint2, uint16}},
      {"u4", width, {uint4, uint32}},
      {"u8", width, {uint8, uint64}},
      {"fp8", several, floats_of(8)},
      {"float8", several, floats_of(8)},
      {"e4m3", e4m3, e4m3_types()},
      {"f8e4m3", e4m3, e4m3_types()},
      {"fp8e4m3", e4m3, e4m3_types()},
      {"fp6", several, floats_of(6)},
      {"float6", several, floats_of(6)},
      {"int", sizes, {int32, int64}},
      {"float", sizes, {float32, float64}},
  };
  return all;
}

// What a spelling is that names numbers, but no type of single numbers; empty: nothing known.
std::string_view other_kind(std::string key) {
  std::erase(key, '-');  // as in fp8-block, which fp8_block is, too
  constexpr std::string_view scaled = "names blocks of codes that share a scale, not a type of single numbers";
  struct Kind {
    std::string_view key;
    bool prefix;
    std::string_view what;
  };
  constexpr Kind kinds[] = {
      {"nf4", false, "names bitsandbytes' codes, which share a scale, not a type of single numbers"},
      {"mxfp", true, scaled},
      {"mxint", true, scaled},
      {"nvfp4", true, scaled},
      {"fp8tensor", false, scaled},
      {"fp8channel", false, scaled},
      {"fp8block", false, scaled},
      {"int8tensor", false, scaled},
      {"int8channel", false, scaled},
      {"int4channel", false, scaled},
      {"int4group", false, scaled},
      {"iq", true, "names blocks of GGUF, whose codes share a scale, not a type of single numbers"},
      {"tq1", true, "names blocks of GGUF, whose codes share a scale, not a type of single numbers"},
      {"tq2", true, "names blocks of GGUF, whose codes share a scale, not a type of single numbers"},
      {"gptq", true, "is a method of quantization, not a type"},
      {"awq", true, "is a method of quantization, not a type"},
      {"tf32", false, "is how matrix units read float32, not a type of stored numbers"},
      {"complex", true, "has two numbers in each element; tensors of it are only copied"},
      {"bcomplex", true, "has two numbers in each element; tensors of it are only copied"},
      {"int1", false, "is ml_dtypes' integer of one bit, which no cast has"},
  };
  for (const Kind& kind : kinds) {
    if (kind.prefix ? key.starts_with(kind.key) : key == kind.key) return kind.what;
  }
  // Q4_0, Q8_1, Q4_K, Q5_K_M
  const bool digit = key.size() > 2 && key[0] == 'q' && key[1] >= '1' && key[1] <= '8';
  if (digit && (key.substr(2) == "0" || key.substr(2) == "1" || key[2] == 'k')) {
    return "names blocks of GGUF, whose codes share a scale, not a type of single numbers";
  }
  return {};
}

// Returns null if `key` means one type or none.
const Ambiguity* find_ambiguity(const std::string& key) {
  const auto found = std::find_if(ambiguities().begin(), ambiguities().end(), [&](const Ambiguity& ambiguity) {
    return ambiguity.key == key && !ambiguity.candidates.empty();
  });
  return found == ambiguities().end() ? nullptr : &*found;
}

std::vector<std::string_view> names_of(const std::vector<DType>& dtypes) {
  std::vector<std::string_view> names;
  for (const DType dtype : dtypes) names.push_back(name(dtype));
  return names;
}

// The types whose names begin with `key`, or else the three with the nearest spellings.
std::vector<DType> nearest_dtypes(const std::string& key) {
  std::vector<DType> begun;
  for (const Group& group : groups()) {
    if (key.size() > 3 && read_spelling(group.names[0]).key.starts_with(key)) begun.push_back(group.dtype);
  }
  if (!begun.empty()) return begun;
  std::vector<std::pair<std::size_t, DType>> ranked;
  for (const Group& group : groups()) {
    std::size_t best = longest_spelling;
    for (const Key& known : keys()) {
      if (known.dtype == group.dtype) best = std::min(best, edit_distance(key, known.text));
    }
    ranked.emplace_back(best, group.dtype);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return {ranked[0].second, ranked[1].second, ranked[2].second};
}

}  // namespace

std::span<const std::string_view> spellings(DType dtype) noexcept {
  for (const Group& group : groups()) {
    if (group.dtype == dtype) return group.names;
  }
  return {};
}

Result<DType> parse_dtype(std::string_view spelling) {
  const std::string_view shown = spelling.substr(0, longest_spelling);
  const auto& [key, settled] = read_spelling(shown);
  if (const Ambiguity* ambiguity = settled ? nullptr : find_ambiguity(key)) {
    return invalid(formatted("\"{}\" {}", shown, ambiguity->reason),
                   formatted("write one of {}", joined(names_of(ambiguity->candidates))));
  }
  if (spelling.size() <= longest_spelling) {
    for (const Key& known : keys()) {
      const bool is_theirs = !settled || !is_castable(known.dtype) || is_onnx(known.dtype);
      if (known.text == key && is_theirs) return known.dtype;
    }
    const std::optional<int> number = parse_whole<int>(key);
    if (number && is_castable(static_cast<DType>(*number))) return static_cast<DType>(*number);
  }
  if (const std::string_view kind = other_kind(key); !kind.empty()) {
    return invalid(formatted("\"{}\" {}", shown, kind), "`tcast types` lists the types");
  }
  return invalid(formatted("unknown dtype \"{}\"", shown),
                 formatted("did you mean {}?", joined(names_of(nearest_dtypes(key)))));
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
