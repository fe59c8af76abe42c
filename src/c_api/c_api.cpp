#include "tensorcast/c_api.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "cast/conversion.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/promote.hpp"
#include "tensorcast/version.hpp"

namespace {

using tensorcast::DType;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

thread_local std::string last_error;

Error invalid(const char* message) { return {.code = ErrorCode::invalid_argument, .message = message}; }

// Keeps the error for tc_last_error().
tc_status status_of(const Result<void>& outcome) {
  if (outcome) return TC_OK;
  const Result<void> kept = tensorcast::guarded([&]() -> Result<void> {
    last_error = outcome.error().describe();
    return {};
  });
  if (!kept) last_error.clear();  // no memory for the message
  return static_cast<tc_status>(outcome.error().code);
}

// Runs a call that returns Result<void> and may throw: only its status crosses the C interface.
template <class Call>
tc_status run(Call&& call) noexcept {
  return status_of(tensorcast::guarded(std::forward<Call>(call)));
}

// sizeof(tc_promote_options) before it had `rules`. Its padding is a field now, so that the two sizes differ.
constexpr size_t promote_options_before_rules =
    (offsetof(tc_promote_options, reserved) + alignof(size_t) - 1) / alignof(size_t) * alignof(size_t);
static_assert(promote_options_before_rules < sizeof(tc_promote_options));

bool is_complete(const tc_cast_options& options) { return options.struct_size >= sizeof(tc_cast_options); }

// Does not check the values: check() and cast_to_strings() do.
tensorcast::CastOptions options_of(const tc_cast_options& options) {
  return {.opset = options.opset,
          .saturate = options.saturate != 0,
          .round_mode = static_cast<tensorcast::RoundMode>(options.round_mode),
          .out_of_range = static_cast<tensorcast::OutOfRange>(options.out_of_range),
          .int_rounding = static_cast<tensorcast::IntRounding>(options.int_rounding),
          .invalid = static_cast<tensorcast::Invalid>(options.invalid),
          .fnuz_inf = static_cast<tensorcast::FnuzInf>(options.fnuz_inf),
          .float_string = static_cast<tensorcast::FloatString>(options.float_string),
          .threads = options.threads,
          .scale = options.scale};
}

// Reads the defaults if `options` is null. Errors: invalid_argument if the caller has not initialised the struct.
Result<void> read_options(const tc_cast_options* options, tensorcast::CastOptions& read) {
  if (options == nullptr) return {};
  if (!is_complete(*options)) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = tensorcast::formatted("tc_cast_options.struct_size is {}, expected {}",
                                                  options->struct_size, sizeof(tc_cast_options)),
                 .hint = "call tc_cast_options_init first"};
  }
  read = options_of(*options);
  return {};
}

Result<tensorcast::PromoteOptions> read_options(const tc_promote_options* options) {
  tensorcast::PromoteOptions read;
  if (options == nullptr) return read;
  if (options->struct_size < promote_options_before_rules) {
    return invalid("tc_promote_options.struct_size is smaller than the struct");
  }
  read.promote_unsafe = options->promote_unsafe != 0;
  read.pytorch_scalar_promotion = options->pytorch_scalar_promotion != 0;
  read.u64_integer_promotion_target = static_cast<DType>(options->u64_integer_promotion_target);
  if (options->struct_size >= sizeof(tc_promote_options)) {
    read.rules = static_cast<tensorcast::PromoteRules>(options->rules);
  }
  return read;
}

Result<void> cast_checked(const tensorcast::Conversion& conversion, const tc_cast_options* options) {
  tensorcast::CastOptions read;
  if (Result<void> done = read_options(options, read); !done) return done;
  if (Result<void> checked = tensorcast::check(conversion, read); !checked) return checked;
  return tensorcast::run(conversion, tensorcast::codec::policy_of(read, conversion.from, conversion.to), read.threads);
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

}  // namespace

extern "C" {

void tc_cast_options_init(tc_cast_options* options) {
  if (options == nullptr) return;
  const tensorcast::CastOptions defaults;
  *options = {.struct_size = sizeof(tc_cast_options),
              .opset = defaults.opset,
              .saturate = defaults.saturate,
              .round_mode = static_cast<int32_t>(defaults.round_mode),
              .out_of_range = static_cast<int32_t>(defaults.out_of_range),
              .int_rounding = static_cast<int32_t>(defaults.int_rounding),
              .invalid = static_cast<int32_t>(defaults.invalid),
              .fnuz_inf = static_cast<int32_t>(defaults.fnuz_inf),
              .float_string = static_cast<int32_t>(defaults.float_string),
              .threads = defaults.threads,
              .scale = defaults.scale};
}

size_t tc_storage_bytes(tc_dtype dtype, size_t count) {
  return tensorcast::storage_bytes(static_cast<DType>(dtype), count);
}

tc_status tc_cast(const void* src, tc_dtype from, void* dst, tc_dtype to, size_t count,
                  const tc_cast_options* options) {
  const tensorcast::Conversion conversion{static_cast<const std::byte*>(src), static_cast<DType>(from),
                                          static_cast<std::byte*>(dst), static_cast<DType>(to), count};
  return run([&] { return cast_checked(conversion, options); });
}

tc_status tc_cast_from_strings(const char* data, const int64_t* offsets, void* dst, tc_dtype to, size_t count,
                               const tc_cast_options* options) {
  const auto target = static_cast<DType>(to);
  return run([&]() -> Result<void> {
    if (count > 0 && (offsets == nullptr || dst == nullptr)) return invalid("a buffer is null");
    if (count >= PTRDIFF_MAX / sizeof(int64_t)) return invalid("no memory has so many offsets");
    if (Result<void> numeric = tensorcast::check_numeric(DType::float32, target); !numeric) return numeric;
    if (count > 0 && data == nullptr && offsets[count] != offsets[0]) return invalid("a buffer is null");
    tensorcast::CastOptions read;
    if (Result<void> done = read_options(options, read); !done) return done;
    const int64_t no_offsets[1] = {0};
    const std::span<const int64_t> all_offsets = count > 0 ? std::span(offsets, count + 1) : std::span(no_offsets, 1);
    // Ends come from the caller's offsets; cast_from_strings() checks that they ascend from zero or above.
    const int64_t end = all_offsets[count];
    const std::span<const char> text(data == nullptr || end < 0 ? "" : data,
                                     data == nullptr || end < 0 ? 0 : static_cast<std::size_t>(end));
    const int64_t shape[1] = {static_cast<int64_t>(count)};
    const tensorcast::MutableTensorView view{
        target, shape, {static_cast<std::byte*>(dst), tensorcast::storage_bytes(target, count)}};
    return tensorcast::cast_from_strings({text, all_offsets}, view, read);
  });
}

tc_status tc_cast_to_strings(const void* src, tc_dtype from, size_t count, char** data, int64_t** offsets,
                             const tc_cast_options* options) {
  const auto source = static_cast<DType>(from);
  return run([&]() -> Result<void> {
    if (data == nullptr || offsets == nullptr || (count > 0 && src == nullptr)) return invalid("a buffer is null");
    if (Result<void> numeric = tensorcast::check_numeric(source, DType::float32); !numeric) return numeric;
    tensorcast::CastOptions read;
    if (Result<void> done = read_options(options, read); !done) return done;
    const int64_t shape[1] = {static_cast<int64_t>(count)};
    const tensorcast::TensorView view{
        source, shape, {static_cast<const std::byte*>(src), tensorcast::storage_bytes(source, count)}};
    const Result<tensorcast::StringBuffer> strings = tensorcast::cast_to_strings(view, read);
    if (!strings) return strings.error();
    return hand_over(*strings, data, offsets);
  });
}

void tc_free(void* memory) { std::free(memory); }

tc_status tc_promote(tc_dtype a, int a_is_scalar, tc_dtype b, int b_is_scalar, const tc_promote_options* options,
                     tc_dtype* common) {
  return run([&]() -> Result<void> {
    if (common == nullptr) return invalid("the result pointer is null");
    const Result<tensorcast::PromoteOptions> read = read_options(options);
    if (!read) return read.error();
    const Result<DType> promoted = tensorcast::promote_types({static_cast<DType>(a), a_is_scalar != 0},
                                                             {static_cast<DType>(b), b_is_scalar != 0}, *read);
    if (!promoted) return promoted.error();
    *common = static_cast<tc_dtype>(*promoted);
    return {};
  });
}

const char* tc_last_error(void) { return last_error.c_str(); }

const char* tc_dtype_name(tc_dtype dtype) { return tensorcast::name(static_cast<DType>(dtype)).data(); }

tc_dtype tc_dtype_parse(const char* spelling) {
  tc_dtype dtype = 0;
  if (spelling == nullptr) return dtype;
  run([&]() -> Result<void> {
    const Result<DType> parsed = tensorcast::parse_dtype(spelling);
    if (!parsed) return parsed.error();
    dtype = static_cast<tc_dtype>(*parsed);
    return {};
  });
  return dtype;
}

const char* tc_version(void) { return tensorcast::version(); }

}  // extern "C"
