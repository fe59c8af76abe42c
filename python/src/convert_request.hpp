// SPDX-License-Identifier: Apache-2.0
// Requests and outcomes of conversions, between dictionaries of Python and the structures of file.hpp.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bound_arguments.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::python {

// A dtype, None, or a dictionary of dtypes by tensor.
[[nodiscard]] SourceTypes source_types(nb::handle argument);
// None, or a pair of dtype and shape.
[[nodiscard]] std::optional<RawLayout> raw_layout(nb::handle argument);

// Reads the options of an OutputFilter; each may be missing, and `rename` has pairs.
[[nodiscard]] OutputFilter filter_of(const nb::dict& fields);

// Reads the options of convert_options.hpp that are there, `input`, `output`, `from_` and `raw`, and the keywords of
// CastOptions. Rules are tuples of pattern, dtype or None to keep, ranks, `smaller`, scale and kinds.
[[nodiscard]] ConvertRequest request_of(const nb::dict& fields, const nb::dict& keywords);

// Calls `progress(bytes done, bytes in all, tensor)` with the GIL; None: only looks for signals. Returns false for
// False and for exceptions, which stay pending.
[[nodiscard]] std::function<bool(const Progress&)> progress_of(nb::handle progress);

// Runs work without the GIL. A pending exception of `progress_of` is thrown, an error too; `cancelled` then says
// `cancelled_words`.
template <class Work>
auto run_released(Work&& work, const char* cancelled_words) {
  decltype(work()) outcome = Error{};
  {
    const nb::gil_scoped_release released;
    outcome = work();
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!outcome && outcome.error().code == ErrorCode::cancelled) outcome.error().message = cancelled_words;
  return checked(std::move(outcome));
}

// The fields of a ConvertedTensor and of a ConvertResult.
[[nodiscard]] nb::dict tensor_row(const TensorOutcome& tensor);
[[nodiscard]] nb::dict outcome_of(const ConvertOutcome& done);

}  // namespace tensorcast::python
