// SPDX-License-Identifier: Apache-2.0
#include "c_api/c_call.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cast/conversion.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "options/cast_options.hpp"
#include "options/cast_report.hpp"

namespace {

// The parts of the last error of a thread, and the text of all of them.
struct LastError {
  tensorcast::Error error = {};
  std::string text = {};
  tc_status status = TC_OK;
};

thread_local LastError last;

// Hints name functions and fields of C++. Replaces those that C has by another name.
void say_in_c(std::string& hint) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"set `nonfinite` to tool", "set `allows_nonfinite` to 1"},
      {"use cast_from_strings", "use tc_cast_from_strings()"},
      {"use cast_to_strings", "use tc_cast_to_strings()"},
      {"call quantize()", "call tc_quantize()"},
      {"give quantized_sizes()", "give tc_quantized_sizes()"},
      {"give the strings as a StringBuffer", "arrays of C have numbers"}};
  for (const auto& [theirs, ours] : words) {
    if (const std::size_t at = hint.find(theirs); at != std::string::npos) hint.replace(at, theirs.size(), ours);
  }
}

tc_cast_options default_cast_options() {
  tc_cast_options result = {};
  result.struct_size = sizeof(tc_cast_options);
  result.threads = tensorcast::Execution{}.threads;
  tensorcast::options::for_each(tensorcast::options::cast_options, [&](const auto& option) {
    auto& value = result.*option.c_member;
    value = static_cast<std::decay_t<decltype(value)>>(option.usual());
  });
  return result;
}

}  // namespace

namespace tensorcast::c_api {

tc_status status_of(const Result<void>& outcome) noexcept {
  if (outcome) return TC_OK;
  last.status = static_cast<tc_status>(outcome.error().code);
  const Result<void> kept = guarded([&]() -> Result<void> {
    last.error = outcome.error();
    say_in_c(last.error.hint);
    last.text = last.error.describe();
    return {};
  });
  if (!kept) {  // no memory for the message
    last.error = {};
    last.text.clear();
  }
  return last.status;
}

tc_status status_of_unknown() noexcept {
  return status_of(guarded([]() -> Result<void> {
    return Error{.code = ErrorCode::internal, .message = "a callback threw what is no std::exception"};
  }));
}

Result<void> check_size(std::size_t size, std::size_t first_size, const char* name) {
  if (size >= first_size && size <= largest_struct) return {};
  return invalid(formatted("{}.struct_size is {}, expected {} to {}", name, size, first_size, largest_struct),
                 formatted("set it to sizeof({})", name));
}

Result<TensorView> view_of(const tc_array& array) {
  const bool has_none = array.shape != nullptr && array.rank <= most_dimensions &&
                        std::find(array.shape, array.shape + array.rank, 0) != array.shape + array.rank;
  if (array.data == nullptr && (array.dtype == TC_UNDEFINED || !has_none)) return TensorView{};
  if (array.rank > most_dimensions) return invalid("more than 1024 dimensions");
  if (array.rank != 0 && array.shape == nullptr) return invalid("a shape is null");
  TensorView view{static_cast<DType>(array.dtype), Shape(array.shape, array.rank), {}};
  const std::size_t count = TRY(element_count(view.shape));
  const std::size_t bytes = storage_bytes(view.dtype, count);
  if (bytes > PTRDIFF_MAX) return invalid("no memory has so many elements");
  view.bytes = {static_cast<const std::byte*>(array.data), bytes};
  return view;
}

Result<tc_cast_options> read_options(const tc_cast_options* options) {
  const tc_cast_options read = TRY(read_placed_options(options));
  if (read.first_element == 0) return read;
  return invalid(formatted("tc_cast_options.first_element is {}, and this function takes none", read.first_element),
                 "leave it 0: the function knows the places of the elements, or none is rounded by chance");
}

Result<tc_cast_options> read_placed_options(const tc_cast_options* options) {
  if (options == nullptr) return default_cast_options();
  const tc_cast_options read = TRY(read_struct(default_cast_options(), options));
  if (read.scale == 0) {
    return invalid("tc_cast_options.scale is 0, which would make every number 0",
                   "start with TC_CAST_OPTIONS_INIT or tc_cast_options_init(), which set the defaults");
  }
  TRY(check_execution({.threads = read.threads}));  // also of calls that start no threads
  return read;
}

CastOptions options_of(const tc_cast_options& options) {
  CastOptions result;
  options::for_each(options::cast_options, [&](const auto& option) {
    using Value = typename std::decay_t<decltype(option)>::Type;
    result.*option.member = static_cast<Value>(options.*option.c_member);
  });
  return result;
}

void CallersPool::run(std::size_t count, const Task& task) {
  run_(
      data_, count, [](void* work, std::size_t index) { (*static_cast<const Task*>(work))(index); },
      const_cast<Task*>(&task));
}

Result<CastReport> read_report(const tc_cast_report& report) {
  const tc_cast_report read = TRY(read_struct(tc_cast_report{}, &report));
  CastReport result;
  options::for_each(options::cast_report, [&](const auto& number) { result.*number.member = read.*number.c_member; });
  return result;
}

Result<void> write_report(const CastReport& report, tc_cast_report* caller) {
  if (caller == nullptr) return invalid("the report is null");
  tc_cast_report result = {};
  options::for_each(options::cast_report, [&](const auto& number) { result.*number.c_member = report.*number.member; });
  result.snr_db = report.snr_db();
  return fill_struct(caller, result);
}

}  // namespace tensorcast::c_api

using tensorcast::c_api::write_struct;

extern "C" {

// In brackets, as macros have these names.
void(tc_cast_options_init)(tc_cast_options* options) {
  tc_cast_options_init_sized(options, tensorcast::c_api::Growth<tc_cast_options>::sizes.front());
}

void tc_cast_options_init_sized(tc_cast_options* options, size_t size) {
  write_struct(options, size, default_cast_options());
}

void(tc_cast_report_init)(tc_cast_report* report) {
  tc_cast_report_init_sized(report, tensorcast::c_api::Growth<tc_cast_report>::sizes.front());
}

void tc_cast_report_init_sized(tc_cast_report* report, size_t size) { write_struct(report, size, {}); }

const char* tc_last_error(void) { return last.text.c_str(); }

tc_status tc_last_error_code(void) { return last.status; }

const char* tc_last_error_message(void) { return last.error.message.c_str(); }

const char* tc_last_error_hint(void) { return last.error.hint.c_str(); }

const char* tc_last_error_tensor(void) { return last.error.tensor.c_str(); }

const char* tc_last_error_file(void) { return last.error.file.c_str(); }

int64_t tc_last_error_element(void) { return last.error.element ? static_cast<int64_t>(*last.error.element) : -1; }

int32_t tc_last_error_system_error(void) { return last.error.system_error; }

}  // extern "C"
