// SPDX-License-Identifier: Apache-2.0
#include "c_api/c_call.hpp"

#include <cmath>
#include <string>
#include <type_traits>

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

constexpr size_t first_report = sizeof(tc_cast_report);

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
    last.text = outcome.error().describe();
    return {};
  });
  if (!kept) {  // no memory for the message
    last.error = {};
    last.text.clear();
  }
  return last.status;
}

Result<void> check_size(std::size_t size, std::size_t first_size, const char* name) {
  if (size >= first_size && size <= largest_struct) return {};
  return invalid(formatted("{}.struct_size is {}, expected {} or more", name, size, first_size),
                 formatted("set it to sizeof({})", name));
}

Result<tc_cast_options> read_options(const tc_cast_options* options) {
  if (options == nullptr) return default_cast_options();
  return read_struct(default_cast_options(), options, first_cast_options, "tc_cast_options");
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
  TRY(check_size(report.struct_size, first_report, "tc_cast_report"));
  CastReport result;
  options::for_each(options::cast_report, [&](const auto& number) { result.*number.member = report.*number.c_member; });
  return result;
}

Result<void> write_report(const CastReport& report, tc_cast_report* caller) {
  if (caller == nullptr) return invalid("the report is null");
  const std::size_t size = caller->struct_size;
  TRY(check_size(size, first_report, "tc_cast_report"));
  tc_cast_report result = {};
  result.struct_size = size;
  options::for_each(options::cast_report, [&](const auto& number) { result.*number.c_member = report.*number.member; });
  result.snr_db = report.snr_db();
  write_struct(caller, size, first_report, result);
  return {};
}

}  // namespace tensorcast::c_api

using tensorcast::c_api::write_struct;

extern "C" {

void tc_cast_options_init(tc_cast_options* options) {
  write_struct(options, tensorcast::c_api::first_cast_options, tensorcast::c_api::first_cast_options,
               default_cast_options());
}

void tc_cast_options_init_sized(tc_cast_options* options, size_t size) {
  write_struct(options, size, tensorcast::c_api::first_cast_options, default_cast_options());
}

void tc_cast_report_init(tc_cast_report* report) { write_struct(report, first_report, first_report, {}); }

void tc_cast_report_init_sized(tc_cast_report* report, size_t size) { write_struct(report, size, first_report, {}); }

const char* tc_last_error(void) { return last.text.c_str(); }

tc_status tc_last_error_code(void) { return last.status; }

const char* tc_last_error_message(void) { return last.error.message.c_str(); }

const char* tc_last_error_hint(void) { return last.error.hint.c_str(); }

const char* tc_last_error_tensor(void) { return last.error.tensor.c_str(); }

const char* tc_last_error_file(void) { return last.error.file.c_str(); }

int64_t tc_last_error_element(void) { return last.error.element ? static_cast<int64_t>(*last.error.element) : -1; }

int32_t tc_last_error_system_error(void) { return last.error.system_error; }

}  // extern "C"
