// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "convert_request.hpp"
#include "path_argument.hpp"
#include "result_pool.hpp"
#include "result_rows.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/quantized_file.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tensorcast::python {

namespace {

// Returns the outcome as dictionaries. The GIL is released except for `progress`, and Ctrl-C ends the work.
nb::dict convert_file(const nb::dict& request, nb::handle progress, const nb::dict& options) {
  ConvertRequest asked = request_of(request, options);
  asked.on_progress = progress_of(progress);
  const bool folder = is_checkpoint(asked.input);
  return outcome_of(
      run_released([&] { return convert(asked); },
                   folder ? "cancelled by progress=; the converted shards are kept, and the same call goes on"
                          : "cancelled by progress=; nothing was written"));
}

nb::dict fit_row(const SchemeFit& fit) {
  nb::dict row;
  row["scheme"] = fit.scheme;
  row["recipe"] = fit.recipe;
  row["snr_db"] = fit.snr_db();
  row["bits"] = fit.bits;
  row["signal_power"] = fit.signal_power;
  row["noise_power"] = fit.noise_power;
  row["max_abs_error"] = fit.max_abs_error;
  row["became_zero"] = fit.became_zero;
  row["saturated"] = fit.saturated;
  row["scales"] = fit.scales;
  row["lowest_scales"] = fit.lowest_scales;
  row["highest_scales"] = fit.highest_scales;
  row["problem"] = fit.problem;
  return row;
}

// Types, and schemes as texts.
struct Candidates {
  std::vector<DType> types;
  std::vector<SchemeCandidate> schemes;
};

Candidates candidates_of(nb::handle given) {
  Candidates candidates;
  for (const nb::handle candidate : given) {
    if (nb::isinstance<nb::str>(candidate)) {
      const auto text = nb::cast<std::string>(candidate);
      Result<SchemeCandidate> scheme = parse_scheme_candidate(text);
      if (scheme) {
        candidates.schemes.push_back(*scheme);
        continue;
      }
      if (text.find(':') != std::string::npos) checked(std::move(scheme));
    }
    candidates.types.push_back(dtype_of(candidate));
  }
  return candidates;
}

nb::dict stats_of(const PathText& path, const std::string& tensor, const Candidates& candidates,
                  const PathText& importance, const SourceTypes& from, const CastOptions& options) {
  const StatsRequest request{.input = path,
                             .tensors = {tensor},
                             .candidates = candidates.types,
                             .schemes = candidates.schemes,
                             .importance = importance,
                             .options = options,
                             .execution = options.execution,
                             .from = from};
  const TensorStats stats = checked(without_gil([&]() { return tensor_stats(request); })).front();
  nb::dict reports;
  for (const auto& [dtype, report] : stats.candidates) reports[nb::cast(name(dtype))] = report;
  nb::dict row;
  row["count"] = stats.count;
  row["nan"] = stats.nan;
  row["infinite"] = stats.infinite;
  row["zero"] = stats.zero;
  row["negative"] = stats.negative;
  row["min"] = stats.min;
  row["max"] = stats.max;
  row["smallest_nonzero_magnitude"] = stats.smallest_nonzero_magnitude;
  row["candidates"] = reports;
  nb::list schemes;
  for (const SchemeFit& fit : stats.schemes) schemes.append(fit_row(fit));
  row["schemes"] = schemes;
  return row;
}

nb::dict summary_of(const FileSummary& file, const nb::list& tensors) {
  nb::dict metadata;
  for (const auto& [key, value] : file.metadata) metadata[nb::str(key.data(), key.size())] = value;
  nb::dict summary;
  summary["format"] = file.format;
  summary["tensors"] = tensors;
  summary["metadata"] = metadata;
  add_layers(file, summary);
  return summary;
}

// With `with_stats`, each tensor's data is read too, and "stats" measures its losses as each of the candidates; without
// candidates, floating-point tensors as each of the common ones.
nb::dict inspect_file(const PathText& path, nb::handle from_argument, bool with_stats, nb::handle candidates_argument,
                      const PathText& importance, const nb::dict& keywords) {
  const SourceTypes from = source_types(from_argument);
  const CastOptions options = options_of(keywords);
  const bool asked = !candidates_argument.is_none();
  Candidates candidates{{DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2}, {}};
  if (asked) candidates = candidates_of(candidates_argument);
  const FileSummary file = checked(tensorcast::inspect({.input = path, .from = from}));
  nb::list tensors;
  for (const TensorSummary& tensor : file.tensors) {
    nb::dict row = result_row(tensor);
    if (with_stats) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      const bool has_numbers = tensor.foreign_dtype.empty() && tensor.dtype != DType::string;
      const bool tried = asked || (has_numbers && family(tensor.dtype) == Family::floating);
      row["stats"] =
          has_numbers
              ? nb::object(stats_of(path, tensor.name, tried ? candidates : Candidates(), importance, from, options))
              : nb::none();
    }
    tensors.append(row);
  }
  return summary_of(file, tensors);
}

using GuardedFile = Guarded<TensorFile>;
using GuardedQuantizedFile = Guarded<QuantizedFile>;

void open_file(GuardedFile* self, const PathText& path, const std::string& format, nb::handle from, nb::handle raw) {
  const OpenTensorFileOptions options{.format = format, .from = source_types(from), .raw = raw_layout(raw)};
  new (self) GuardedFile(checked(without_gil([&]() { return TensorFile::open(path, options); })));
}

nb::dict summary_of_file(const GuardedFile& self) {
  nb::list tensors;
  for (const TensorSummary& tensor : self->summary().tensors) tensors.append(result_row(tensor));
  return summary_of(self->summary(), tensors);
}

// Pairs of the first index and the one after the last, of the first dimensions.
using Slice = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

std::vector<IndexRange> ranges_of(const Slice& slice) {
  std::vector<IndexRange> ranges;
  for (const auto& [begin, end] : slice) ranges.push_back({begin, end});
  return ranges;
}

Result<void> check_has_elements(const TensorFile& file, std::size_t index) {
  const std::vector<TensorSummary>& tensors = file.summary().tensors;
  if (index >= tensors.size() || tensors[index].dtype != DType::undefined || !tensors[index].problem.empty()) return {};
  // As bytes it would look like numbers.
  return Error{.code = ErrorCode::unsupported,
               .message = "elements of type " + tensors[index].foreign_dtype + " are not supported",
               .tensor = tensors[index].name,
               .file = file.path()};
}

Tensor read_tensor(GuardedFile& self, std::size_t index) {
  return checked(self.use([&](TensorFile& file) -> Result<Tensor> {
    if (auto has = check_has_elements(file, index); !has) return has.error();
    return file.read(index);
  }));
}

// The elements of a type that no cast knows, as bytes.
Tensor read_bytes(GuardedFile& self, std::size_t index) {
  return checked(self.use([&](TensorFile& file) { return file.read(index); }));
}

Tensor read_slice(GuardedFile& self, std::size_t index, const Slice& slice) {
  return checked(self.use([&](TensorFile& file) -> Result<Tensor> {
    if (auto has = check_has_elements(file, index); !has) return has.error();
    return file.read_slice(index, ranges_of(slice));
  }));
}

// The writable bytes of an array that somebody else holds.
class CallersMemory {
 public:
  explicit CallersMemory(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  CallersMemory(const CallersMemory&) = delete;
  CallersMemory& operator=(const CallersMemory&) = delete;
  ~CallersMemory() { PyBuffer_Release(&buffer_); }

  // As elements of a type: the last of them are cut off, which the engine then refuses.
  [[nodiscard]] MutableTensorView view(DType dtype) const {
    const auto bytes = static_cast<std::size_t>(buffer_.len);
    const auto count = static_cast<std::int64_t>(bytes * 8 / static_cast<std::size_t>(bit_width(dtype)));
    return {dtype, {count}, {static_cast<std::byte*>(buffer_.buf), bytes}};
  }

 private:
  Py_buffer buffer_ = {};
};

void read_slice_into(GuardedFile& self, std::size_t index, const Slice& slice, nb::handle dtype, nb::handle memory) {
  const CallersMemory target(memory);
  const MutableTensorView out = target.view(dtype_of(dtype));
  checked(self.use([&](TensorFile& file) { return file.read_slice(index, ranges_of(slice), out); }));
}

void open_quantized_file(GuardedQuantizedFile* self, const PathText& path) {
  new (self) GuardedQuantizedFile(checked(without_gil([&]() { return QuantizedFile::open(path); })));
}

nb::list layer_rows(const GuardedQuantizedFile& self) {
  nb::list rows;
  const std::vector<QuantizedLayer>& layers = self->layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    nb::dict row = layer_row(layers[i]);
    nb::list parts;
    for (const QuantizedPart& part : self->parts(i)) parts.append(nb::make_tuple(part.role, part.name));
    row["parts"] = nb::tuple(parts);
    rows.append(row);
  }
  return rows;
}

Tensor read_part(GuardedQuantizedFile& self, std::size_t layer, std::size_t part) {
  return checked(self.use([&](QuantizedFile& file) { return file.read_part(layer, part); }));
}

Tensor read_decoded(GuardedQuantizedFile& self, std::size_t layer, nb::handle dtype) {
  const DType to = dtype_of(dtype);
  return checked(self.use([&](QuantizedFile& file) { return file.dequantize(layer, to); }));
}

Tensor dequantize_slice(GuardedQuantizedFile& self, std::size_t layer, nb::handle dtype, const Slice& slice) {
  const std::vector<IndexRange> ranges = ranges_of(slice);
  std::vector<std::int64_t> shape;
  if (layer < self->layers().size()) shape = self->layers()[layer].shape;
  for (std::size_t i = 0; i < std::min(ranges.size(), shape.size()); ++i) {
    shape[i] = static_cast<std::int64_t>(ranges[i].end - ranges[i].begin);
  }
  NewTensor made = checked(new_tensor(dtype_of(dtype), shape));
  checked(self.use([&](QuantizedFile& file) { return file.dequantize_slice(layer, ranges, made.view()); }));
  return std::move(made.tensor);
}

void dequantize_slice_into(GuardedQuantizedFile& self, std::size_t layer, nb::handle dtype, const Slice& slice,
                           nb::handle memory, int threads) {
  const CallersMemory target(memory);
  const MutableTensorView out = target.view(dtype_of(dtype));
  checked(self.use([&](QuantizedFile& file) {
    return file.dequantize_slice(layer, ranges_of(slice), out, {}, {.threads = threads});
  }));
}

void save_file(const PathText& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
               const std::vector<std::pair<std::string, std::string>>& metadata, const std::string& format,
               bool overwrite, bool parents) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  const WriteTensorsOptions options{.format = format, .metadata = metadata, .overwrite = overwrite, .parents = parents};
  checked(without_gil([&]() { return write_tensors(path, named, options); }));
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("convert", &convert_file, nb::arg("request"), nb::arg("progress").none(), nb::arg("options"),
             "Converts a file or a folder.");
  module.def("inspect", &inspect_file, nb::arg("path"), nb::arg("from_").none(), nb::arg("stats"),
             nb::arg("candidates").none(), nb::arg("importance"), nb::arg("options"), "What is inside a file.");
  module.def("save", &save_file, nb::arg("path"), nb::arg("tensors"), nb::arg("metadata"), nb::arg("format"),
             nb::arg("overwrite"), nb::arg("parents"), "Writes named tensors to a file.");
  nb::class_<GuardedFile>(module, "TensorFile", "A file of tensors that stays open.")
      .def("__init__", &open_file, nb::arg("path"), nb::arg("format"), nb::arg("from_").none(), nb::arg("raw").none())
      .def("summary", &summary_of_file, "What inspect() says of the file.")
      .def("read", &read_tensor, nb::arg("index"), "One tensor, by its place in the file.")
      .def("read_bytes", &read_bytes, nb::arg("index"), "The bytes of one tensor of a type that no cast knows.")
      .def("read_slice", &read_slice, nb::arg("index"), nb::arg("slice"), "Some indices of its first dimensions.")
      .def("read_slice_into", &read_slice_into, nb::arg("index"), nb::arg("slice"), nb::arg("dtype"), nb::arg("memory"),
           "The same into bytes that are there, as another type.");
  nb::class_<GuardedQuantizedFile>(module, "QuantizedFile",
                                   "The quantized weights of a file or folder that stays open.")
      .def("__init__", &open_quantized_file, nb::arg("path"))
      .def("layers", &layer_rows, "What each layer is, and its stored tensors.")
      .def_prop_ro("refusal", [](const GuardedQuantizedFile& self) { return self->refusal(); })
      .def("read_part", &read_part, nb::arg("layer"), nb::arg("part"), "A stored tensor of a layer.")
      .def("dequantize", &read_decoded, nb::arg("layer"), nb::arg("dtype"), "The numbers of a weight.")
      .def("dequantize_slice", &dequantize_slice, nb::arg("layer"), nb::arg("dtype"), nb::arg("slice"),
           "Those of some indices of its first dimensions.")
      .def("dequantize_slice_into", &dequantize_slice_into, nb::arg("layer"), nb::arg("dtype"), nb::arg("slice"),
           nb::arg("memory"), nb::arg("threads"), "The same into bytes that are there.");
}

}  // namespace tensorcast::python
