// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/c_api.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "c_api/c_call.hpp"
#include "cast/conversion.hpp"
#include "cast/parse_strings.hpp"
#include "dtype/platform.hpp"
#include "dtype/try.hpp"
#include "options/promote_options.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/promote.hpp"
#include "tensorcast/strided.hpp"
#include "tensorcast/version.hpp"

namespace {

using namespace tensorcast::c_api;
using tensorcast::DType;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

tc_promote_options default_promote_options() {
  tc_promote_options options = {};
  options.struct_size = sizeof options;
  tensorcast::options::for_each(tensorcast::options::promote_options, [&](const auto& option) {
    auto& value = options.*option.c_member;
    value = static_cast<std::decay_t<decltype(value)>>(option.usual());
  });
  return options;
}

Result<tensorcast::PromoteOptions> read_promotion(const tc_promote_options* options) {
  tensorcast::PromoteOptions result;
  if (options == nullptr) return result;
  const tc_promote_options read = TRY(read_struct(default_promote_options(), options));
  if (read.rules != static_cast<std::int32_t>(read.rules)) {  // a field of 64 bits for an enumeration of 32
    return invalid(tensorcast::formatted("there are no promotion rules {}", read.rules));
  }
  tensorcast::options::for_each(tensorcast::options::promote_options, [&](const auto& option) {
    using Value = typename std::decay_t<decltype(option)>::Type;
    result.*option.member = static_cast<Value>(read.*option.c_member);
  });
  return result;
}

Result<void> cast_as(const tensorcast::Conversion& conversion, const tensorcast::CastOptions& options,
                     const tensorcast::Execution& execution, tensorcast::CastReport* report) {
  TRY(tensorcast::check(conversion, options));
  TRY(tensorcast::check_execution(execution));
  return tensorcast::run(conversion, tensorcast::codec::policy_of(options, conversion.from, conversion.to), execution,
                         report);
}

Result<void> cast_checked(tensorcast::Conversion conversion, const tc_cast_options* options,
                          tensorcast::CastReport* report = nullptr) {
  if (options == nullptr) return cast_as(conversion, {}, {}, report);
  const tc_cast_options read = TRY(read_placed_options(options));
  CallersPool pool(read);
  conversion.first = read.first_element;
  return cast_as(conversion, options_of(read), pool.execution(), report);
}

// Reports whether the options are those of a call without: the most usual ones.
[[maybe_unused]] bool are_defaults(const tc_cast_options& o) {
  return o.struct_size == sizeof o && o.saturate == 1 && o.threads >= 0 && o.scale == 1.0 && o.seed == 0 &&
         (o.opset | o.round_mode | o.out_of_range | o.rounding | o.invalid | o.fnuz_inf | o.float_string | o.inexact) ==
             0;
}

// A block of `tc_free`. Throws std::bad_alloc, as std::vector does.
struct Freed {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<std::byte, Freed>;
Block allocate(size_t bytes) {
  Block block(static_cast<std::byte*>(std::malloc(bytes == 0 ? 1 : bytes)));
#if TENSORCAST_HAS_EXCEPTIONS
  if (block == nullptr) throw std::bad_alloc();
#else
  if (block == nullptr) std::abort();
#endif
  return block;
}

// Copies strings to two malloc blocks, which become the caller's.
Result<void> hand_over(const tensorcast::StringBuffer& strings, char** data, int64_t** offsets) {
  const std::size_t offset_bytes = strings.offsets.size() * sizeof(int64_t);
  auto* data_block = static_cast<char*>(std::malloc(strings.data.size() + 1));
  auto* offset_block = static_cast<int64_t*>(std::malloc(offset_bytes));
  if (data_block == nullptr || offset_block == nullptr) {
    std::free(data_block);
    std::free(offset_block);
    return Error{.code = ErrorCode::internal, .message = "out of memory"};
  }
  if (!strings.data.empty()) std::memcpy(data_block, strings.data.data(), strings.data.size());
  data_block[strings.data.size()] = '\0';
  std::memcpy(offset_block, strings.offsets.data(), offset_bytes);
  *data = data_block;
  *offsets = offset_block;
  return {};
}

// The arrays of a call with strides.
struct StridedArguments {
  tensorcast::StridedView source;
  tensorcast::MutableStridedView target;
};

tensorcast::Shape strides_of(const int64_t* strides, size_t rank) {
  return strides == nullptr ? tensorcast::Shape() : tensorcast::Shape(strides, rank);
}

Result<StridedArguments> strided_arguments(const void* src, tc_dtype from, const int64_t* src_strides, void* dst,
                                           tc_dtype to, const int64_t* dst_strides, const int64_t* shape, size_t rank) {
  constexpr size_t most = 1024;
  if (rank > most) return invalid("more than 1024 dimensions");
  if (shape == nullptr && rank != 0) return invalid("the shape is null");
  const tensorcast::Shape lengths(shape, rank);
  return StridedArguments{
      {static_cast<DType>(from), lengths, strides_of(src_strides, rank), static_cast<const std::byte*>(src)},
      {static_cast<DType>(to), lengths, strides_of(dst_strides, rank), static_cast<std::byte*>(dst)}};
}

}  // namespace

extern "C" {

// In brackets, as a macro has this name.
void(tc_promote_options_init)(tc_promote_options* options) {
  tc_promote_options_init_sized(options, Growth<tc_promote_options>::sizes.front());
}

void tc_promote_options_init_sized(tc_promote_options* options, size_t size) {
  write_struct(options, size, default_promote_options());
}

size_t tc_storage_bytes(tc_dtype dtype, size_t count) {
  return tensorcast::storage_bytes(static_cast<DType>(dtype), count);
}

tc_status tc_cast(const void* src, tc_dtype from, void* dst, tc_dtype to, size_t count,
                  const tc_cast_options* options) {
  const tensorcast::Conversion conversion{static_cast<const std::byte*>(src), static_cast<DType>(from),
                                          static_cast<std::byte*>(dst), static_cast<DType>(to), count};
  if ((options == nullptr || are_defaults(*options)) && tensorcast::run_small(conversion)) return TC_OK;
  return run([&] { return cast_checked(conversion, options); });
}

tc_status tc_cast_from_strings(const char* data, const int64_t* offsets, void* dst, tc_dtype to, size_t count,
                               const tc_cast_options* options) {
  const auto target = static_cast<DType>(to);
  return run([&]() -> Result<void> {
    if (count > 0 && (offsets == nullptr || dst == nullptr)) return invalid("a buffer is null");
    if (count >= PTRDIFF_MAX / sizeof(int64_t)) return invalid("no memory has so many offsets");
    TRY(tensorcast::check_numeric(DType::float32, target));
    if (count > 0 && data == nullptr && offsets[count] != offsets[0]) return invalid("a buffer is null");
    const tc_cast_options read = TRY(read_placed_options(options));
    const int64_t no_offsets[1] = {0};
    const std::span<const int64_t> all_offsets = count > 0 ? std::span(offsets, count + 1) : std::span(no_offsets, 1);
    // Ends come from the caller's offsets; cast_from_strings() checks that they ascend from zero or above.
    const int64_t end = all_offsets[count];
    const std::span<const char> text(data == nullptr || end < 0 ? "" : data,
                                     data == nullptr || end < 0 ? 0 : static_cast<std::size_t>(end));
    const int64_t shape[1] = {static_cast<int64_t>(count)};
    const tensorcast::MutableTensorView view{
        target, shape, {static_cast<std::byte*>(dst), tensorcast::storage_bytes(target, count)}};
    return tensorcast::parse_strings({text, all_offsets}, view, options_of(read), read.first_element);
  });
}

tc_status tc_cast_to_strings(const void* src, tc_dtype from, size_t count, char** data, int64_t** offsets,
                             const tc_cast_options* options) {
  const auto source = static_cast<DType>(from);
  return run([&]() -> Result<void> {
    if (data == nullptr || offsets == nullptr || (count > 0 && src == nullptr)) return invalid("a buffer is null");
    TRY(tensorcast::check_numeric(source, DType::float32));
    const tc_cast_options read = TRY(read_options(options));
    const int64_t shape[1] = {static_cast<int64_t>(count)};
    const tensorcast::TensorView view{
        source, shape, {static_cast<const std::byte*>(src), tensorcast::storage_bytes(source, count)}};
    const tensorcast::StringBuffer strings = TRY(tensorcast::cast_to_strings(view, options_of(read)));
    return hand_over(strings, data, offsets);
  });
}

void tc_free(void* memory) { std::free(memory); }

tc_status tc_promote(tc_dtype a, int a_is_scalar, tc_dtype b, int b_is_scalar, const tc_promote_options* options,
                     tc_dtype* common) {
  return run([&]() -> Result<void> {
    if (common == nullptr) return invalid("the result pointer is null");
    const tensorcast::PromoteOptions read = TRY(read_promotion(options));
    const DType promoted = TRY(tensorcast::promote_types({static_cast<DType>(a), a_is_scalar != 0},
                                                         {static_cast<DType>(b), b_is_scalar != 0}, read));
    *common = static_cast<tc_dtype>(promoted);
    return {};
  });
}

tc_status tc_cast_with_report(const void* src, tc_dtype from, void* dst, tc_dtype to, size_t count,
                              const tc_cast_options* options, tc_cast_report* report) {
  const tensorcast::Conversion conversion{static_cast<const std::byte*>(src), static_cast<DType>(from),
                                          static_cast<std::byte*>(dst), static_cast<DType>(to), count};
  return run([&]() -> Result<void> {
    if (report == nullptr) return invalid("the report is null");
    tensorcast::CastReport total = TRY(read_report(*report));
    TRY(cast_checked(conversion, options, &total));
    return write_report(total, report);
  });
}

tc_status tc_cast_strided(const void* src, tc_dtype from, const int64_t* src_strides, void* dst, tc_dtype to,
                          const int64_t* dst_strides, const int64_t* shape, size_t rank,
                          const tc_cast_options* options) {
  return run([&]() -> Result<void> {
    const StridedArguments arrays = TRY(strided_arguments(src, from, src_strides, dst, to, dst_strides, shape, rank));
    const tc_cast_options read = TRY(read_placed_options(options));
    CallersPool pool(read);
    return tensorcast::cast_strided(arrays.source, arrays.target, options_of(read), pool.execution());
  });
}

tc_status tc_cast_scaled(const void* src, tc_dtype from, const int64_t* src_strides, void* dst, tc_dtype to,
                         const int64_t* dst_strides, const void* scales, tc_dtype scale_type,
                         const int64_t* scale_strides, const int64_t* shape, size_t rank,
                         const tc_cast_options* options) {
  return run([&]() -> Result<void> {
    const StridedArguments arrays = TRY(strided_arguments(src, from, src_strides, dst, to, dst_strides, shape, rank));
    const tensorcast::StridedView factors{static_cast<DType>(scale_type), arrays.source.shape,
                                          strides_of(scale_strides, rank), static_cast<const std::byte*>(scales)};
    const tc_cast_options read = TRY(read_placed_options(options));
    CallersPool pool(read);
    return tensorcast::cast_scaled(arrays.source, arrays.target, factors, options_of(read), pool.execution());
  });
}

tc_status tc_promote_tensors(const void* a, tc_dtype a_dtype, size_t a_count, int a_is_scalar, const void* b,
                             tc_dtype b_dtype, size_t b_count, int b_is_scalar, const tc_promote_options* promotion,
                             const tc_cast_options* options, tc_dtype* common, void** a_result, void** b_result) {
  return run([&]() -> Result<void> {
    if (common == nullptr || a_result == nullptr || b_result == nullptr) return invalid("a result pointer is null");
    const tensorcast::PromoteOptions read = TRY(read_promotion(promotion));
    TRY(tensorcast::check_promotion(options_of(TRY(read_options(options)))));
    const auto a_type = static_cast<DType>(a_dtype), b_type = static_cast<DType>(b_dtype);
    const Result<DType> promoted =
        tensorcast::promote_types({a_type, a_is_scalar != 0}, {b_type, b_is_scalar != 0}, read);
    if (!promoted) return promoted.error();
    const auto converted = [&](const void* src, DType from, size_t count, Block& block) -> Result<void> {
      const size_t bytes = tensorcast::storage_bytes(*promoted, count);
      if (bytes == SIZE_MAX) return invalid("no memory has so many elements");
      block = allocate(bytes);
      return cast_checked({static_cast<const std::byte*>(src), from, block.get(), *promoted, count}, options);
    };
    Block first, second;
    TRY(converted(a, a_type, a_count, first));
    TRY(converted(b, b_type, b_count, second));
    *common = static_cast<tc_dtype>(*promoted);
    *a_result = first.release();
    *b_result = second.release();
    return {};
  });
}

tc_status tc_dtype_get_facts(tc_dtype dtype, tc_dtype_facts* result) {
  return run([&]() -> Result<void> {
    if (result == nullptr) return invalid("the result pointer is null");
    TRY(check_size(*result));
    const tensorcast::DTypeFacts& facts = tensorcast::facts(static_cast<DType>(dtype));
    if (facts.dtype == DType::undefined) return invalid("no type has this number");
    tc_dtype_facts values = {};
    values.dtype = dtype;
    values.family = static_cast<int32_t>(facts.family);
    values.bits = facts.bits;
    values.is_signed = tensorcast::is_signed(facts.dtype);
    values.exponent_bits = facts.exponent_bits;
    values.mantissa_bits = facts.mantissa_bits;
    values.bias = facts.bias;
    values.has_infinity = facts.has_infinity;
    values.has_nan = facts.has_nan;
    values.since_opset = facts.since_opset;
    values.lowest = facts.lowest;
    values.largest = facts.largest;
    values.smallest_positive = facts.smallest_positive;
    values.name = facts.name.data();
    values.special_codes = facts.special_codes.empty() ? "" : facts.special_codes.data();
    return fill_struct(result, values);
  });
}

tc_dtype tc_dtype_at(size_t index) {
  const std::span<const DType> all = tensorcast::all_dtypes();
  return index < all.size() ? static_cast<tc_dtype>(all[index]) : TC_UNDEFINED;
}

const char* tc_dtype_spelling(tc_dtype dtype, size_t index) {
  const std::span<const std::string_view> all = tensorcast::facts(static_cast<DType>(dtype)).spellings;
  return index < all.size() ? all[index].data() : nullptr;
}

const char* tc_dtype_name(tc_dtype dtype) { return tensorcast::name(static_cast<DType>(dtype)).data(); }

tc_dtype tc_dtype_parse(const char* spelling) {
  tc_dtype dtype = 0;
  run([&]() -> Result<void> {
    if (spelling == nullptr) return invalid("the spelling is null");
    const DType parsed = TRY(tensorcast::parse_dtype(spelling));
    dtype = static_cast<tc_dtype>(parsed);
    return {};
  });
  return dtype;
}

const char* tc_version(void) { return tensorcast::version(); }

}  // extern "C"
