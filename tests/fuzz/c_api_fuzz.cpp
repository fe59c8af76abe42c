// SPDX-License-Identifier: Apache-2.0
// What c_api.h has beside plain casts, text, strides and blocks, which have targets of their own: structs of any size
// that a caller may have, reports, scales, promotion, names and explanations. Any numbers as types and options.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cast/strided_testing.hpp"
#include "fuzzing.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast.hpp"

namespace {

namespace tc = tensorcast;
using tc::fuzzing::Memory;
using tc::fuzzing::require;
using tc::testing::Choices;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

tc_dtype any_dtype(Choices& choices) {
  if (!choices.one_in(8)) return static_cast<tc_dtype>(choices.dtype());
  return choices.one_of({0, -1, 8, 14, 15, 29, 255, 1000, 1001, 1008, std::numeric_limits<tc_dtype>::max(),
                         std::numeric_limits<tc_dtype>::min()});
}

std::int32_t any_choice(Choices& choices, std::uint64_t words) {
  if (choices.one_in(12)) return choices.one_of({-1, 8, 100, std::numeric_limits<std::int32_t>::max()});
  return choices.one_in(2) ? 0 : static_cast<std::int32_t>(choices.below(words));
}

// Runs the tasks last to first, all or all but one.
void run_backwards(void* leaves_out_one, std::size_t count, tc_task task, void* work) {
  const bool all = leaves_out_one == nullptr;
  for (std::size_t i = count; i > (all ? 0u : 1u); --i) task(work, i - 1);
}

tc_cast_options any_options(Choices& choices) {
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  if (choices.one_in(3)) return options;
  options.opset = choices.one_in(2) ? 0 : static_cast<std::int32_t>(choices.below(30));
  options.saturate = choices.one_in(2) ? 1 : any_choice(choices, 2);
  options.round_mode = any_choice(choices, 3);
  options.out_of_range = any_choice(choices, 4);
  options.rounding = any_choice(choices, 8);
  options.invalid = any_choice(choices, 2);
  options.fnuz_inf = any_choice(choices, 2);
  options.float_string = any_choice(choices, 3);
  options.inexact = any_choice(choices, 2);
  options.threads = any_choice(choices, 4);
  if (choices.one_in(3)) {
    options.scale = choices.one_of({0.5, -3.0, 0.1, 1e300, 0x1p-1074, 0.0, nan, infinity});
  }
  if (options.rounding == TC_ROUNDING_STOCHASTIC || choices.one_in(16)) options.seed = choices.below(1 << 16);
  if (choices.one_in(8)) options.executor = run_backwards;
  if (options.rounding == TC_ROUNDING_STOCHASTIC && choices.one_in(2)) options.first_element = choices.below(1 << 16);
  return options;
}

// A caller's struct of the size of any release, or of a later one: its fields, and none of what is behind them.
// `sizes`: those of this release and of the ones before.
template <class Struct>
Struct* sized(Choices& choices, Memory& memory, const Struct& values, std::vector<std::size_t> sizes) {
  sizes.push_back(sizeof(Struct));
  std::size_t size = sizes[choices.below(sizes.size())];
  if (choices.one_in(6)) size = sizeof(std::size_t) + choices.below(sizeof(Struct) + 40);
  auto* const made = reinterpret_cast<Struct*>(memory.copy(&values, std::min(size, sizeof(Struct)), size));
  std::memcpy(static_cast<void*>(made), &size, sizeof size);
  return made;
}

const tc_cast_options* sized_options(Choices& choices, Memory& memory, const tc_cast_options& options) {
  return sized(
      choices, memory, options,
      {offsetof(tc_cast_options, executor), offsetof(tc_cast_options, seed), offsetof(tc_cast_options, first_element)});
}

// The parts of the last error are strings, whatever failed.
void check_error(tc_status status) {
  if (status == TC_OK) return;
  require(tc_last_error_code() == status && tc_last_error_message()[0] != '\0', "an error without a message");
  const std::string_view whole = tc_last_error();
  for (const char* const part : {tc_last_error_message(), tc_last_error_tensor(), tc_last_error_file()}) {
    require(whole.find(part) != std::string_view::npos, "a part of an error is not in its text");
  }
  require(
      std::strlen(tc_last_error_hint()) < 1000 && tc_last_error_element() >= -1 && tc_last_error_system_error() == 0,
      "an error of a place that does not exist");
}

struct Elements {
  tc_dtype dtype = TC_UNDEFINED;
  std::size_t count = 0;
  std::span<std::byte> bytes = {};
};

Elements any_elements(Choices& choices, Memory& memory) {
  Elements made{.dtype = any_dtype(choices), .count = static_cast<std::size_t>(choices.below(100))};
  made.bytes = memory.take(choices, tc_storage_bytes(made.dtype, made.count));
  return made;
}

bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// tc_cast() in the caller's struct does what it does in this release's, whose later fields are the defaults.
void check_struct_sizes(Choices& choices) {
  Memory memory;
  const Elements source = any_elements(choices, memory);
  const tc_dtype to = any_dtype(choices);
  const tc_cast_options* const callers = sized_options(choices, memory, any_options(choices));
  const std::size_t size = callers->struct_size, bytes = tc_storage_bytes(to, source.count);
  const std::span<std::byte> room = memory.zeros(size);
  tc_cast_options_init_sized(reinterpret_cast<tc_cast_options*>(room.data()), size);
  tc_cast_report_init_sized(reinterpret_cast<tc_cast_report*>(room.data()), size);
  tc_promote_options_init_sized(reinterpret_cast<tc_promote_options*>(room.data()), size);
  const std::span<std::byte> first = memory.zeros(bytes), second = memory.zeros(bytes);
  const tc_status status = tc_cast(source.bytes.data(), source.dtype, first.data(), to, source.count, callers);
  check_error(status);
  if (size < offsetof(tc_cast_options, executor)) {
    require(status == TC_INVALID_ARGUMENT, "a struct that is too small");
    return;
  }
  tc_cast_options whole = TC_CAST_OPTIONS_INIT;
  std::size_t known = offsetof(tc_cast_options, executor);
  for (const std::size_t later :
       {offsetof(tc_cast_options, seed), offsetof(tc_cast_options, first_element), sizeof whole})
    if (size >= later) known = later;
  std::memcpy(static_cast<void*>(&whole), callers, known);
  whole.struct_size = sizeof whole;
  const tc_status again = tc_cast(source.bytes.data(), source.dtype, second.data(), to, source.count, &whole);
  require(size != known || (status == again && (status != TC_OK || are_equal(first, second))),
          "another size of the options gives another result");
}

// Reports of two halves are that of the whole, but for sums of rounded numbers.
void check_reports(Choices& choices) {
  Memory memory;
  const Elements source = any_elements(choices, memory);
  const tc_dtype to = any_dtype(choices);
  tc_cast_options options = any_options(choices);
  const std::size_t bytes = tc_storage_bytes(to, source.count);
  const std::span<std::byte> plain = memory.zeros(bytes), reported = memory.zeros(bytes), parts = memory.zeros(bytes);
  tc_cast_report* const whole =
      sized(choices, memory, tc_cast_report(TC_CAST_REPORT_INIT), {offsetof(tc_cast_report, sign_lost)});
  const std::size_t size = whole->struct_size;
  const tc_status status =
      tc_cast_with_report(source.bytes.data(), source.dtype, reported.data(), to, source.count, &options, whole);
  const tc_status without = tc_cast(source.bytes.data(), source.dtype, plain.data(), to, source.count, &options);
  if (size < offsetof(tc_cast_report, sign_lost)) {
    require(status == TC_INVALID_ARGUMENT, "a report that is too small");
    return;
  }
  require(status == without && (status != TC_OK || are_equal(plain, reported)), "a report changes the result");
  require(whole->struct_size == size, "a report of another size");
  if (status != TC_OK) return;
  require(whole->count == source.count, "a report of other elements");
  const std::size_t half = source.count / 16 * 8;
  tc_cast_report sum = TC_CAST_REPORT_INIT;
  const std::byte* const second = source.bytes.data() + tc_storage_bytes(source.dtype, half);
  tc_cast_options behind = options;
  behind.first_element += half;
  require(tc_cast_with_report(source.bytes.data(), source.dtype, parts.data(), to, half, &options, &sum) == TC_OK &&
              tc_cast_with_report(second, source.dtype, parts.data() + tc_storage_bytes(to, half), to,
                                  source.count - half, &behind, &sum) == TC_OK,
          "a part is not converted");
  const auto numbers = [](const tc_cast_report& r) {
    return std::array{r.count,   r.overflowed, r.saturated, r.underflowed_to_zero,
                      r.inexact, r.nan_made,   r.nan_lost,  r.wrapped};
  };
  require(are_equal(parts, plain) && numbers(*whole) == numbers(sum) && whole->max_abs_error == sum.max_abs_error &&
              whole->max_rel_error == sum.max_rel_error,
          "parts have other reports than the whole");
}

// Each element alone, with its scale as the option.
void check_scaled(Choices& choices) {
  using tc::strided_testing::Layout;
  Memory memory;
  const tc::Shape shape = tc::strided_testing::shape_from(choices);
  const tc::DType from = choices.dtype(), to = choices.dtype();
  const tc::DType of_scales = choices.one_in(2) ? tc::DType::float64 : tc::DType::float32;
  Layout layouts[3] = {
      {.dtype = from, .shape = shape}, {.dtype = to, .shape = shape}, {.dtype = of_scales, .shape = shape}};
  std::byte* origins[3];
  for (Layout& layout : layouts) {
    const bool is_result = &layout == &layouts[1];
    do {
      layout = tc::strided_testing::layout_from(choices, layout.dtype, shape, !is_result);
      layout.swapped = layout.one_per_byte = false;
    } while (layout.is_packed() && !layout.strides.empty());
    if (layout.strides.empty()) {
      layout.end = static_cast<std::int64_t>(tc::storage_bytes(layout.dtype, tc::strided_testing::count_of(shape)));
    }
    origins[&layout - layouts] =
        memory.take(choices, static_cast<std::size_t>(layout.end - layout.lowest)).data() - layout.lowest;
  }
  const std::size_t count = tc::strided_testing::count_of(shape);
  const auto each = [&](int of, auto&& visit) {
    if (!layouts[of].is_packed()) tc::strided_testing::for_each_element(layouts[of], visit);
  };
  constexpr std::array factors = {1.0, 0.5, -3.0, 0.1, 1e-3, 1e30, 0x1p-140, 0.0, nan, infinity};
  const std::uint64_t usual = choices.one_in(6) ? factors.size() : factors.size() - 3;
  each(2, [&](std::size_t, std::int64_t offset) {
    const double scale = factors[choices.below(usual)];
    const auto narrow = static_cast<float>(scale);
    if (of_scales == tc::DType::float64) std::memcpy(origins[2] + offset, &scale, sizeof scale);
    if (of_scales == tc::DType::float32) std::memcpy(origins[2] + offset, &narrow, sizeof narrow);
  });
  tc_cast_options options = any_options(choices);
  if (!choices.one_in(12)) options.scale = 1.0;
  const auto strides = [&](int of) { return layouts[of].strides.empty() ? nullptr : layouts[of].strides.data(); };
  const tc_status status = tc_cast_scaled(
      origins[0], static_cast<tc_dtype>(from), strides(0), origins[1], static_cast<tc_dtype>(to), strides(1),
      origins[2], static_cast<tc_dtype>(of_scales), strides(2), shape.data(), shape.size(), &options);
  if (status != TC_OK || layouts[0].is_packed() || layouts[1].is_packed()) return;
  std::vector<const std::byte*> sources(count), results(count);
  std::vector<double> scales(count);
  each(0, [&](std::size_t index, std::int64_t offset) { sources[index] = origins[0] + offset; });
  each(1, [&](std::size_t index, std::int64_t offset) { results[index] = origins[1] + offset; });
  each(2, [&](std::size_t index, std::int64_t offset) {
    float narrow = 0;
    if (of_scales == tc::DType::float64) std::memcpy(&scales[index], origins[2] + offset, sizeof(double));
    if (of_scales == tc::DType::float32)
      std::memcpy(&narrow, origins[2] + offset, sizeof narrow), scales[index] = narrow;
  });
  options.threads = 1;
  const std::uint64_t first = options.first_element;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 300); ++i) {
    if (scales[i] == 0) continue;  // which the options refuse
    std::byte alone[8];
    options.scale = scales[i];
    options.first_element = first + i;
    require(tc_cast(sources[i], static_cast<tc_dtype>(from), alone, static_cast<tc_dtype>(to), 1, &options) == TC_OK,
            "an element is refused alone");
    require(std::memcmp(alone, results[i], tc::storage_bytes(to, 1)) == 0, "an element alone has another result");
  }
}

void check_promotion(Choices& choices) {
  Memory memory;
  const Elements a = any_elements(choices, memory), b = any_elements(choices, memory);
  const int a_is_scalar = any_choice(choices, 2), b_is_scalar = any_choice(choices, 2);
  tc_promote_options promotion = TC_PROMOTE_OPTIONS_INIT;
  promotion.promote_unsafe = any_choice(choices, 2);
  promotion.pytorch_scalar_promotion = any_choice(choices, 2);
  if (choices.one_in(4)) promotion.u64_integer_promotion_target = any_dtype(choices);
  promotion.rules = choices.one_in(12) ? std::int64_t{1} << 32 : any_choice(choices, 6);
  const tc_promote_options* const callers = sized(choices, memory, promotion, {offsetof(tc_promote_options, rules)});
  tc_cast_options options = any_options(choices);
  tc_dtype common = -7, of_tensors = -7;
  const tc_status found = tc_promote(a.dtype, a_is_scalar, b.dtype, b_is_scalar, callers, &common);
  require((found == TC_OK) == (common != -7), "a type beside an error, or none without");
  void *first = nullptr, *second = nullptr;
  const tc_status status = tc_promote_tensors(a.bytes.data(), a.dtype, a.count, a_is_scalar, b.bytes.data(), b.dtype,
                                              b.count, b_is_scalar, callers, &options, &of_tensors, &first, &second);
  if (status != TC_OK) {
    require(first == nullptr && second == nullptr && of_tensors == -7, "a result beside an error");
    return;
  }
  require(found == TC_OK && of_tensors == common, "tensors have another common type than their types");
  for (const auto& [source, result] : {std::pair(a, first), std::pair(b, second)}) {
    const std::span<std::byte> expected = memory.zeros(tc_storage_bytes(common, source.count));
    require(tc_cast(source.bytes.data(), source.dtype, expected.data(), common, source.count, &options) == TC_OK &&
                std::memcmp(expected.data(), result, expected.size()) == 0,
            "a tensor is not cast to the common type");
    tc_free(result);
  }
}

// A text without zeros inside, in memory that ends with its zero.
const char* text_of(Choices& choices, Memory& memory, std::size_t most) {
  const std::span<std::byte> text = memory.zeros(choices.below(most) + 1);
  for (std::byte& letter : text.first(text.size() - 1)) {
    const auto any = static_cast<unsigned char>(1 + choices.below(255));
    letter = static_cast<std::byte>(choices.one_in(8) ? any : "0123456789+-.eExXbB_ infaNt"[any % 27]);
  }
  return reinterpret_cast<const char*>(text.data());
}

void check_explained(Choices& choices) {
  Memory memory;
  const char* const literal = text_of(choices, memory, choices.one_in(8) ? 4000 : 30);
  const tc_dtype from = choices.one_in(2) ? 0 : any_dtype(choices), to = any_dtype(choices);
  const tc_cast_options options = any_options(choices);
  char* json = nullptr;
  const tc_status status = tc_explain(literal, from, to, sized_options(choices, memory, options), &json);
  require((status == TC_OK) == (json != nullptr), "an explanation beside an error, or none without");
  if (json != nullptr) {
    const std::string_view text(json);
    require(text.starts_with("[{\"value\":") && text.ends_with("}]"), "an explanation that is no array of one object");
  }
  tc_free(json);
}

void check_names(Choices& choices) {
  Memory memory;
  const tc_dtype dtype = any_dtype(choices);
  const bool exists = tc_dtype_spelling(dtype, 0) != nullptr;
  tc_dtype_facts* const facts = sized(choices, memory, tc_dtype_facts(TC_DTYPE_FACTS_INIT), std::vector<std::size_t>());
  const std::size_t size = facts->struct_size;
  if (tc_dtype_get_facts(dtype, facts) == TC_OK) {
    require(exists && facts->dtype == dtype && facts->struct_size == size && std::strlen(facts->special_codes) < 100 &&
                std::strcmp(facts->name, tc_dtype_name(dtype)) == 0,
            "facts of another type");
  } else {
    require(!exists || size < sizeof(tc_dtype_facts), tc_last_error());
  }
  for (std::size_t i = 0; const char* const spelling = tc_dtype_spelling(dtype, i); ++i) {
    const tc_dtype parsed = tc_dtype_parse(spelling);
    require(parsed == dtype || parsed == TC_UNDEFINED, "a spelling is that of another type");
    require(i != 0 || parsed == dtype, "the canonical spelling is not parsed");
  }
  const tc_dtype parsed = tc_dtype_parse(text_of(choices, memory, 20));
  require(parsed == TC_UNDEFINED || tc_dtype_spelling(parsed, 0) != nullptr, "a type without a name");
  const std::size_t index = choices.one_in(4) ? std::numeric_limits<std::size_t>::max() : choices.below(60);
  require(tc_dtype_at(index) == TC_UNDEFINED || tc_dtype_spelling(tc_dtype_at(index), 0) != nullptr, "no such type");
}

// Offsets that do not ascend, or begin below zero; null pointers; counts that no memory has.
void check_refused(Choices& choices) {
  Memory memory;
  const Elements source = any_elements(choices, memory);
  const tc_dtype to = any_dtype(choices);
  const tc_cast_options options = any_options(choices);
  const std::span<std::byte> target = memory.zeros(tc_storage_bytes(to, source.count));
  const auto text = memory.take(choices, choices.below(80));
  std::vector<std::int64_t> offsets(source.count + 1);
  for (std::int64_t& offset : offsets) offset = static_cast<std::int64_t>(choices.below(text.size() + 4)) - 2;
  if (!choices.one_in(4)) std::sort(offsets.begin(), offsets.end());
  offsets.back() = static_cast<std::int64_t>(text.size());
  (void)tc_cast_from_strings(reinterpret_cast<const char*>(text.data()), offsets.data(), target.data(), to,
                             source.count, &options);
  char* data = nullptr;
  std::int64_t* made = nullptr;
  const tc_status printed = tc_cast_to_strings(source.bytes.data(), source.dtype, source.count, &data, &made, &options);
  require((printed == TC_OK) == (data != nullptr) && (printed == TC_OK) == (made != nullptr), "texts beside an error");
  check_error(printed);
  require(printed != TC_OK || made[source.count] == static_cast<std::int64_t>(std::strlen(data)),
          "texts of other lengths");
  tc_free(data);
  tc_free(made);

  const std::size_t huge = std::numeric_limits<std::size_t>::max() >> choices.below(6);
  const void* const from = choices.one_in(2) ? source.bytes.data() : nullptr;
  const auto refused = [](tc_status status) { require(status != TC_OK, "what no memory has is converted"); };
  tc_cast_report report = TC_CAST_REPORT_INIT;
  const auto length = static_cast<std::int64_t>(huge);
  if (from == nullptr) {
    refused(tc_cast(from, source.dtype, target.data(), to, huge, &options));
    refused(tc_cast_with_report(from, source.dtype, target.data(), to, huge, &options, &report));
    refused(tc_cast_to_strings(from, source.dtype, huge, &data, &made, &options));
    refused(tc_cast_from_strings(nullptr, nullptr, target.data(), to, huge, &options));
    refused(tc_cast_strided(from, source.dtype, nullptr, target.data(), to, nullptr, &length, 1, &options));
  } else {
    refused(tc_cast(from, source.dtype, nullptr, to, huge, &options));
    refused(tc_cast_strided(from, source.dtype, nullptr, nullptr, to, nullptr, &length, 1, &options));
    refused(tc_cast_scaled(from, source.dtype, nullptr, nullptr, to, nullptr, from, TC_FLOAT32, nullptr, &length, 1,
                           &options));
  }
}

// A pool that runs tasks in another order, and one that leaves tasks out.
void check_pools(Choices& choices) {
  static std::vector<std::byte> source(std::size_t{1} << 21), target(std::size_t{1} << 21);
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.executor = run_backwards;
  const tc_dtype from = static_cast<tc_dtype>(choices.dtype()), to = static_cast<tc_dtype>(choices.dtype());
  const auto bits = static_cast<std::size_t>(
      std::max(tc::bit_width(static_cast<tc::DType>(from)), tc::bit_width(static_cast<tc::DType>(to))));
  const std::size_t count = std::min<std::size_t>(source.size() * 8 / bits, 600'000);
  require(tc_cast(source.data(), from, target.data(), to, count, &options) == TC_OK, tc_last_error());
  options.executor_data = &options;  // all but one
  const tc_status status = tc_cast(source.data(), from, target.data(), to, count, &options);
  require(status == TC_OK || status == TC_INTERNAL, "another status for tasks that were left out");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  Choices choices({bytes, size});
  switch (choices.below(16)) {
    case 0:
    case 1:
      check_struct_sizes(choices);
      break;
    case 2:
    case 3:
    case 4:
      check_reports(choices);
      break;
    case 5:
    case 6:
    case 7:
    case 8:
      check_scaled(choices);
      break;
    case 9:
    case 10:
    case 11:
      check_promotion(choices);
      break;
    case 12:
      check_explained(choices);
      break;
    case 13:
      check_names(choices);
      break;
    case 14:
      check_refused(choices);
      break;
    default:
      if (choices.one_in(256)) check_pools(choices);
  }
  return 0;
}
