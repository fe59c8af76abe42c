#include "dtype/spellings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dtype/dtype_table.hpp"

namespace tensorcast {
namespace {

// Grouped by type. After the canonical name: ONNX, OpenVINO, safetensors, NumPy (with its byte order mark), torch,
// short forms. Spellings that differ only in case or underscores from an earlier one are left out. What several systems
// read differently is listed in ambiguities() instead.
using enum DType;
constexpr std::string_view float64_names[] = {"float64",       "DOUBLE", "tensor(double)", "f64", "<f8",
                                              "torch.float64", "fp64"};
constexpr std::string_view float32_names[] = {"float32",       "FLOAT",       "tensor(float)", "f32",   "<f4",
                                              "torch.float32", "torch.float", "fp32",          "single"};
constexpr std::string_view float16_names[] = {"float16", "tensor(float16)", "f16", "<f2", "torch.float16", "half",
                                              "fp16"};
constexpr std::string_view bfloat16_names[] = {"bfloat16", "tensor(bfloat16)", "bf16", "torch.bfloat16", "brain"};
constexpr std::string_view e4m3fn_names[] = {
    "float8_e4m3fn", "FLOAT8E4M3FN", "tensor(float8e4m3fn)", "f8e4m3",      "F8_E4M3", "torch.float8_e4m3fn", "e4m3fn",
    "e4m3",          "fp8e4m3",      "fp8_e4m3fn",           "float8_e4m3", "f8e4m3fn"};
constexpr std::string_view e4m3fnuz_names[] = {"float8_e4m3fnuz", "FLOAT8E4M3FNUZ",        "tensor(float8e4m3fnuz)",
                                               "F8_E4M3FNUZ",     "torch.float8_e4m3fnuz", "e4m3fnuz",
                                               "fp8e4m3fnuz"};
constexpr std::string_view e5m2_names[] = {
    "float8_e5m2", "FLOAT8E5M2", "tensor(float8e5m2)", "f8e5m2", "F8_E5M2", "torch.float8_e5m2", "e5m2", "fp8e5m2"};
constexpr std::string_view e5m2fnuz_names[] = {"float8_e5m2fnuz", "FLOAT8E5M2FNUZ",        "tensor(float8e5m2fnuz)",
                                               "F8_E5M2FNUZ",     "torch.float8_e5m2fnuz", "e5m2fnuz",
                                               "fp8e5m2fnuz"};
constexpr std::string_view e8m0_names[] = {"float8_e8m0fnu", "FLOAT8E8M0", "tensor(float8e8m0)",
                                           "f8e8m0",         "F8_E8M0",    "torch.float8_e8m0fnu",
                                           "e8m0",           "e8m0fnu",    "fp8e8m0",
                                           "ue8m0"};
constexpr std::string_view e2m1_names[] = {"float4_e2m1fn", "FLOAT4E2M1", "tensor(float4e2m1)",
                                           "f4e2m1",        "F4",         "torch.float4_e2m1fn_x2",
                                           "e2m1",          "e2m1fn",     "fp4",
                                           "fp4e2m1",       "f4e2m1fn"};
constexpr std::string_view int64_names[] = {"int64", "tensor(int64)", "i64", "<i8", "torch.int64", "long"};
constexpr std::string_view int32_names[] = {"int32", "tensor(int32)", "i32", "<i4", "torch.int32", "torch.int"};
constexpr std::string_view int16_names[] = {"int16", "tensor(int16)", "i16", "<i2", "torch.int16", "short"};
constexpr std::string_view int8_names[] = {"int8", "tensor(int8)", "I8", "|i1", "torch.int8"};
constexpr std::string_view int4_names[] = {"int4", "tensor(int4)", "torch.int4"};
constexpr std::string_view int2_names[] = {"int2", "tensor(int2)", "torch.int2"};
constexpr std::string_view uint64_names[] = {"uint64", "tensor(uint64)", "u64", "<u8", "torch.uint64"};
constexpr std::string_view uint32_names[] = {"uint32", "tensor(uint32)", "u32", "<u4", "torch.uint32"};
constexpr std::string_view uint16_names[] = {"uint16", "tensor(uint16)", "u16", "<u2", "torch.uint16"};
constexpr std::string_view uint8_names[] = {"uint8", "tensor(uint8)", "U8", "|u1", "torch.uint8"};
constexpr std::string_view uint4_names[] = {"uint4", "tensor(uint4)", "torch.uint4"};
constexpr std::string_view uint2_names[] = {"uint2", "tensor(uint2)", "torch.uint2"};
constexpr std::string_view bool_names[] = {"bool", "tensor(bool)", "boolean", "|b1", "?", "torch.bool"};
constexpr std::string_view string_names[] = {"string", "tensor(string)", "str"};
constexpr std::string_view uint1_names[] = {"uint1"};

struct Group {
  DType dtype;
  std::span<const std::string_view> names;
};
constexpr std::array<Group, 25> groups = {{
    {float64, float64_names},
    {float32, float32_names},
    {float16, float16_names},
    {bfloat16, bfloat16_names},
    {float8_e4m3fn, e4m3fn_names},
    {float8_e4m3fnuz, e4m3fnuz_names},
    {float8_e5m2, e5m2_names},
    {float8_e5m2fnuz, e5m2fnuz_names},
    {float8_e8m0fnu, e8m0_names},
    {float4_e2m1fn, e2m1_names},
    {int64, int64_names},
    {int32, int32_names},
    {int16, int16_names},
    {int8, int8_names},
    {int4, int4_names},
    {int2, int2_names},
    {uint64, uint64_names},
    {uint32, uint32_names},
    {uint16, uint16_names},
    {uint8, uint8_names},
    {uint4, uint4_names},
    {uint2, uint2_names},
    {boolean, bool_names},
    {string, string_names},
    {uint1, uint1_names},
}};

constexpr std::size_t longest_spelling = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool consume_prefix(std::string& text, std::string_view prefix) {
  if (text.size() <= prefix.size() || text.compare(0, prefix.size(), prefix) != 0) return false;
  text.erase(0, prefix.size());
  return true;
}

struct Spelled {
  std::string key;       // equal for spellings that are one
  bool settled = false;  // it says whose word it is, so it is not ambiguous
};

// ONNX's and safetensors' own words; NumPy and OpenVINO write theirs small.
constexpr std::string_view settled_by_capitals[] = {"FLOAT", "F4", "I8", "U8"};

Spelled read_spelling(std::string_view spelling) {
  while (!spelling.empty() && (spelling.front() == ' ' || spelling.front() == '\t')) spelling.remove_prefix(1);
  while (!spelling.empty() && (spelling.back() == ' ' || spelling.back() == '\t')) spelling.remove_suffix(1);
  Spelled spelled{.key = {},
                  .settled = std::find(std::begin(settled_by_capitals), std::end(settled_by_capitals), spelling) !=
                             std::end(settled_by_capitals)};
  std::string& key = spelled.key;
  for (const char c : spelling) {
    if (c != '_') key += lower(c);
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
    for (const Group& group : groups) {
      for (const std::string_view spelling : group.names)
        list.push_back({read_spelling(spelling).key, spelling, group.dtype});
    }
    return list;
  }();
  return all;
}

// A word that means different types to different systems, and what it may mean, the likeliest first.
struct Ambiguity {
  std::string_view key;
  std::string_view reason;
  std::vector<DType> candidates;
};

// The floating-point types of `bits` bits, those without negative zero (fnuz) last, as they are the rarest.
std::vector<DType> floats_of(int bits) {
  std::vector<DType> found;
  for (const DType dtype : all_dtypes()) {
    if (family(dtype) == Family::floating && bit_width(dtype) == bits) found.push_back(dtype);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](DType a, DType b) { return !name(a).ends_with("fnuz") && name(b).ends_with("fnuz"); });
  return found;
}

const std::vector<Ambiguity>& ambiguities() {
  constexpr std::string_view width = "means different types, as NumPy counts bytes and others count bits";
  constexpr std::string_view several = "names several types";
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
      {"fp6", several, floats_of(6)},
      {"float6", several, floats_of(6)},
      {"int", sizes, {int32, int64}},
      {"float", sizes, {float32, float64}},
  };
  return all;
}

// Null: `key` means one type or none.
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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// The three types with the nearest spellings.
std::vector<DType> nearest_dtypes(const std::string& key) {
  std::vector<std::pair<std::size_t, DType>> ranked;
  for (const Group& group : groups) {
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
  for (const Group& group : groups) {
    if (group.dtype == dtype) return group.names;
  }
  return {};
}

Result<DType> parse_dtype(std::string_view spelling) {
  const std::string_view shown = spelling.substr(0, longest_spelling);
  const auto& [key, settled] = read_spelling(shown);
  if (const Ambiguity* ambiguity = settled ? nullptr : find_ambiguity(key)) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("\"{}\" {}", shown, ambiguity->reason),
                 .hint = fmt::format("write one of {}", fmt::join(names_of(ambiguity->candidates), ", "))};
  }
  if (spelling.size() <= longest_spelling) {
    for (const Key& known : keys()) {
      if (known.text == key) return known.dtype;
    }
    int number = 0;
    const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (status == std::errc{} && end == key.data() + key.size() && is_castable(static_cast<DType>(number))) {
      return static_cast<DType>(number);
    }
  }
  return Error{.code = ErrorCode::invalid_argument,
               .message = fmt::format("unknown dtype \"{}\"", shown),
               .hint = fmt::format("did you mean {}?", fmt::join(names_of(nearest_dtypes(key)), ", "))};
}

}  // namespace tensorcast
