// SPDX-License-Identifier: Apache-2.0
// The C interface to files.
#include "tensorcast/c_files.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "c_api/c_call.hpp"
#include "c_files/callers_source.hpp"
#include "codec/policy.hpp"
#include "convert/convert_options.hpp"
#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "quantized/layout/open_input.hpp"
#include "quantized/rewrite/respelling.hpp"
#include "tensorcast/file.hpp"

struct tc_convert_request {
  tensorcast::ConvertRequest request = {};
  tensorcast::c_api::CallersPool pool = {};
  tc_progress progress = nullptr;
  void* progress_data = nullptr;
};

struct tc_convert_outcome {
  tensorcast::ConvertOutcome outcome = {};
};

template <>
struct tensorcast::c_api::Growth<tc_tensor_outcome> {
  static constexpr const char* name = "tc_tensor_outcome";
  static constexpr std::array sizes = {offsetof(tc_tensor_outcome, has_report) + sizeof(tc_tensor_outcome::has_report)};
};

namespace {

using namespace tensorcast::c_api;
using tensorcast::ConvertRequest;
using tensorcast::DType;
using tensorcast::OnLoss;
using tensorcast::Result;
namespace options = tensorcast::options;

// Runs set(request) on a request that is not null.
template <class Set>
tc_status change(tc_convert_request* request, Set&& set) noexcept {
  return run([&]() -> Result<void> {
    if (request == nullptr) return invalid("the request is null");
    return set(*request);
  });
}

tc_status set_text(tc_convert_request* request, std::string ConvertRequest::*field, const char* text) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    if (text == nullptr) return invalid("a string is null");
    changed.request.*field = text;
    return {};
  });
}

// Errors: invalid_argument: a format that does not exist; "" is none.
tc_status set_format(tc_convert_request* request, std::string ConvertRequest::*field, const char* format) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    if (format == nullptr) return invalid("a string is null");
    if (*format != '\0') TRY(tensorcast::file_conversion::format_by_name(format));
    changed.request.*field = format;
    return {};
  });
}

// NULL and "" are none. Errors: invalid_argument: a spelling that nothing is written in.
Result<std::string> spelling_of(const char* spelling) {
  std::string asked = spelling == nullptr ? "" : spelling;
  if (!asked.empty()) TRY(tensorcast::quantized::writer_named(asked));
  return asked;
}

tc_status add_pattern(tc_convert_request* request, std::vector<std::string> ConvertRequest::*list,
                      const char* pattern) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    if (pattern == nullptr) return invalid("a string is null");
    (changed.request.*list).emplace_back(pattern);
    return {};
  });
}

tc_status add_rule(tc_convert_request* request, const char* pattern, tc_dtype to, std::optional<double> scale) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    if (pattern == nullptr) return invalid("a string is null");
    const DType dtype = TRY(castable(to));
    if (scale && (!std::isfinite(*scale) || *scale == 0)) {
      return invalid(tensorcast::formatted("the scale of the rule is {}, and must be finite and not 0", *scale));
    }
    changed.request.rules.push_back({.pattern = pattern, .to = dtype, .scale = scale});
    return {};
  });
}

}  // namespace

extern "C" {

tc_convert_request* tc_convert_request_new(void) { return new (std::nothrow) tc_convert_request; }

void tc_convert_request_free(tc_convert_request* request) { delete request; }

tc_status tc_convert_request_set_input(tc_convert_request* request, const char* path) {
  return set_text(request, &ConvertRequest::input, path);
}

tc_status tc_convert_request_set_source(tc_convert_request* request, const tc_source* source) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    std::shared_ptr<tensorcast::ByteSource> read;
    if (source != nullptr) read = TRY(callers_source(source));
    changed.request.source = std::move(read);
    return {};
  });
}

tc_status tc_convert_request_set_output(tc_convert_request* request, const char* path) {
  return set_text(request, &ConvertRequest::output, path);
}

tc_status tc_convert_request_set_input_format(tc_convert_request* request, const char* format) {
  return set_format(request, &ConvertRequest::input_format, format);
}

tc_status tc_convert_request_set_output_format(tc_convert_request* request, const char* format) {
  return set_format(request, &ConvertRequest::output_format, format);
}

tc_status tc_convert_request_add_include(tc_convert_request* request, const char* pattern) {
  return add_pattern(request, &ConvertRequest::include, pattern);
}

tc_status tc_convert_request_add_exclude(tc_convert_request* request, const char* pattern) {
  return add_pattern(request, &ConvertRequest::exclude, pattern);
}

tc_status tc_convert_request_set_to(tc_convert_request* request, tc_dtype to) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    changed.request.to = TRY(castable(to));
    return {};
  });
}

tc_status tc_convert_request_set_options(tc_convert_request* request, const tc_cast_options* options) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    const tc_cast_options read = TRY(read_options(options));
    TRY(tensorcast::codec::check_values(options_of(read)));
    changed.request.options = options_of(read);
    changed.pool = CallersPool(read);
    return {};
  });
}

tc_status tc_convert_request_add_rule(tc_convert_request* request, const char* pattern, tc_dtype to) {
  return add_rule(request, pattern, to, std::nullopt);
}

tc_status tc_convert_request_add_scaled_rule(tc_convert_request* request, const char* pattern, tc_dtype to,
                                             double scale) {
  return add_rule(request, pattern, to, scale);
}

tc_status tc_convert_request_set_raw(tc_convert_request* request, tc_dtype dtype, const int64_t* shape, size_t rank) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    if (shape == nullptr && rank != 0) return invalid("the shape is null");
    const DType known = TRY(castable(dtype));
    changed.request.raw = tensorcast::RawLayout{known, std::vector<std::int64_t>(shape, shape + rank)};
    return {};
  });
}

tc_status tc_convert_request_set_from(tc_convert_request* request, const char* tensor, tc_dtype dtype) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    const DType known = TRY(castable(dtype));
    if (tensor == nullptr) {
      changed.request.from.all = known;
    } else {
      changed.request.from.named.emplace_back(tensor, known);
    }
    return {};
  });
}

tc_status tc_convert_request_set_flag(tc_convert_request* request, int32_t flag, int is_on) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    ConvertRequest& target = changed.request;
    const bool on = is_on != 0;
    if (flag == TC_CONVERT_TELL_LOSS || flag == TC_CONVERT_FAIL_LOSS) {
      const OnLoss what = flag == TC_CONVERT_TELL_LOSS ? OnLoss::tell : OnLoss::fail;
      if (on) {
        target.on_loss = what;
      } else if (target.on_loss == what) {
        target.on_loss = OnLoss::ignore;
      }
      return {};
    }
    const bool unknown = options::all_of(options::request_options, [&](const auto& option) {
      if constexpr (std::is_same_v<typename std::decay_t<decltype(option)>::Type, bool>) {
        if (option.c_flag != flag || flag == 0) return true;
        value_of(target, option) = on;
        return false;
      }
      return true;
    });
    if (!unknown) return {};
    return invalid("no flag has this number");
  });
}

tc_status tc_convert_request_set_budget(tc_convert_request* request, double bits, const char* candidates,
                                        const char* spelling) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    ConvertRequest of_bits;
    of_bits.budget = bits;
    TRY(tensorcast::check_request(of_bits));
    std::vector<std::string> listed;
    for (const std::string_view part : tensorcast::split(candidates == nullptr ? "" : candidates, ',')) {
      TRY(tensorcast::parse_scheme_candidate(part));
      listed.emplace_back(part);
    }
    changed.request.spelling = TRY(spelling_of(spelling));
    changed.request.budget = bits;
    changed.request.candidates = std::move(listed);
    return {};
  });
}

tc_status tc_convert_request_set_search(tc_convert_request* request, int32_t clip, const char* importance) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    const tensorcast::Clip searched = TRY(clip_of(clip));
    changed.request.importance = importance == nullptr ? "" : importance;
    changed.request.clip = searched;
    return {};
  });
}

tc_status tc_convert_request_set_scheme(tc_convert_request* request, const char* scheme, const char* recipe,
                                        const char* spelling) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    if (scheme == nullptr) return invalid("a string is null");
    std::string name = scheme, of_scheme = recipe == nullptr ? "" : recipe;
    if (!name.empty()) {
      TRY(tensorcast::parse_scheme_candidate(of_scheme.empty() ? name : name + ":" + of_scheme));
    }
    changed.request.spelling = TRY(spelling_of(spelling));
    changed.request.scheme = std::move(name);
    changed.request.recipe = std::move(of_scheme);
    return {};
  });
}

tc_status tc_convert_request_set_zero_limit(tc_convert_request* request, double share) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    if (!(share >= 0.0 && share <= 1.0)) return invalid("the share is not between 0 and 1");
    changed.request.zero_limit = share;
    return {};
  });
}

tc_status tc_convert_request_set_progress(tc_convert_request* request, tc_progress progress, void* progress_data) {
  return change(request, [&](tc_convert_request& changed) -> Result<void> {
    changed.progress = progress;
    changed.progress_data = progress_data;
    return {};
  });
}

tc_status tc_convert(const tc_convert_request* request, tc_convert_outcome** outcome) {
  return run([&]() -> Result<void> {
    if (request == nullptr) return invalid("the request is null");
    ConvertRequest work = request->request;
    CallersPool pool = request->pool;
    work.execution = pool.execution();
    std::string tensor;
    if (request->progress != nullptr) {
      work.on_progress = [&](const tensorcast::Progress& now) {
        tensor = now.tensor;
        return request->progress(request->progress_data, now.bytes_done, now.bytes_total, tensor.c_str()) != 0;
      };
    }
    auto kept = std::make_unique<tc_convert_outcome>();
    kept->outcome = TRY(tensorcast::convert_file(work));
    if (outcome != nullptr) *outcome = kept.release();
    return {};
  });
}

void tc_convert_outcome_free(tc_convert_outcome* outcome) { delete outcome; }

const char* tc_convert_outcome_input_format(const tc_convert_outcome* outcome) {
  return outcome == nullptr ? "" : outcome->outcome.input_format.c_str();
}

const char* tc_convert_outcome_output_format(const tc_convert_outcome* outcome) {
  return outcome == nullptr ? "" : outcome->outcome.output_format.c_str();
}

uint64_t tc_convert_outcome_bytes_read(const tc_convert_outcome* outcome) {
  return outcome == nullptr ? 0 : outcome->outcome.bytes_read;
}

uint64_t tc_convert_outcome_bytes_written(const tc_convert_outcome* outcome) {
  return outcome == nullptr ? 0 : outcome->outcome.bytes_written;
}

int tc_convert_outcome_is_verified(const tc_convert_outcome* outcome) {
  return outcome != nullptr && outcome->outcome.verified ? 1 : 0;
}

size_t tc_convert_outcome_tensor_count(const tc_convert_outcome* outcome) {
  return outcome == nullptr ? 0 : outcome->outcome.tensors.size();
}

tc_status tc_convert_outcome_tensor(const tc_convert_outcome* outcome, size_t index, tc_tensor_outcome* tensor) {
  return run([&]() -> Result<void> {
    if (tensor == nullptr) return invalid("the result pointer is null");
    if (index >= tc_convert_outcome_tensor_count(outcome)) return invalid("the outcome has no such tensor");
    const tensorcast::TensorOutcome& done = outcome->outcome.tensors[index];
    return fill_struct(tensor, {.struct_size = 0,
                                .name = done.name.c_str(),
                                .from = static_cast<tc_dtype>(done.from),
                                .to = static_cast<tc_dtype>(done.to),
                                .shape = done.shape.data(),
                                .rank = done.shape.size(),
                                .bytes_in = done.bytes_in,
                                .bytes_out = done.bytes_out,
                                .reason = done.reason.c_str(),
                                .damage = done.damage.c_str(),
                                .remedy = done.remedy.c_str(),
                                .is_left = done.left ? 1 : 0,
                                .has_report = done.report ? 1 : 0});
  });
}

tc_status tc_convert_outcome_report(const tc_convert_outcome* outcome, size_t index, tc_cast_report* report) {
  return run([&]() -> Result<void> {
    if (index >= tc_convert_outcome_tensor_count(outcome)) return invalid("the outcome has no such tensor");
    const std::optional<tensorcast::CastReport>& made = outcome->outcome.tensors[index].report;
    if (!made) return invalid("the tensor has no report; set TC_CONVERT_REPORT");
    return write_report(*made, report);
  });
}

}  // extern "C"
