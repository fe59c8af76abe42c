// SPDX-License-Identifier: Apache-2.0
// tensorcast._core: the part of the C++ library that Python needs. Arguments are prepared in Python (_cast/_arrays.py),
// except for the hot call.
#define TENSORCAST_IMPORTS_NUMPY
#include "numpy_api.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>

#include "array_cast.hpp"
#include "array_types.hpp"
#include "bindings.hpp"
#include "bound_arguments.hpp"
#include "cast_doc.hpp"
#include "dlpack.hpp"
#include "result_pool.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/explain.hpp"
#include "tensorcast/promote.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/version.hpp"
#include "torch_cast.hpp"
#include "value_cast.hpp"

namespace nb = nanobind;
namespace tc = tensorcast;

namespace {

using tensorcast::python::checked;
using tensorcast::python::dtype_of;
using tensorcast::python::dtype_or_undefined;
using tensorcast::python::options_of;
using tensorcast::python::StridedArray;
using tensorcast::python::without_gil;

PyArrayObject* array_of(nb::handle argument) {
  if (!PyArray_Check(argument.ptr())) {
    PyErr_Format(PyExc_TypeError, "expected a NumPy array, not %R", argument.ptr());
    throw nb::python_error();
  }
  return reinterpret_cast<PyArrayObject*>(argument.ptr());
}

std::span<std::byte> bytes_of(PyArrayObject* array) {
  return {static_cast<std::byte*>(PyArray_DATA(array)), static_cast<std::size_t>(PyArray_NBYTES(array))};
}

nb::object stolen(PyObject* made) {
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

// Converts arrays of codes: `from` and `to` are the types of the bytes, whatever NumPy calls them.
nb::object cast_codes(nb::handle src, nb::handle from, bool src_one_per_byte, nb::handle dst, nb::handle to,
                      bool dst_one_per_byte, bool with_report, const nb::dict& keywords) {
  tc::CastReport report;
  checked(tensorcast::python::cast_between(array_of(src), dtype_of(from), src_one_per_byte, array_of(dst), dtype_of(to),
                                           dst_one_per_byte, options_of(keywords), with_report ? &report : nullptr));
  return with_report ? nb::cast(report) : nb::none();
}

// Converts arrays of codes with an array of scales, which has the shape of both.
nb::object cast_scaled(nb::handle src, nb::handle from, bool src_one_per_byte, nb::handle dst, nb::handle to,
                       bool dst_one_per_byte, nb::handle scales, bool with_report, const nb::dict& keywords) {
  PyArrayObject* factors = array_of(scales);
  PyArrayObject* source = array_of(src);
  PyArrayObject* target = array_of(dst);
  const auto by =
      tensorcast::python::scales_of(factors, {reinterpret_cast<const std::int64_t*>(PyArray_STRIDES(factors)),
                                              static_cast<std::size_t>(PyArray_NDIM(factors))});
  if (!by || !PyArray_SAMESHAPE(factors, source) || !PyArray_SAMESHAPE(factors, target)) {
    throw nb::value_error("scales are float32 or float64, and of the arrays' shape");
  }
  tc::CastReport report;
  checked(tensorcast::python::cast_scaled_released(
      tensorcast::python::strided_array(source, dtype_of(from), src_one_per_byte),
      tensorcast::python::strided_array(target, dtype_of(to), dst_one_per_byte), *by, options_of(keywords),
      with_report ? &report : nullptr));
  return with_report ? nb::cast(report) : nb::none();
}

// Converts packed storage: byte buffers and a count.
nb::object cast_packed(nb::handle src, nb::handle from, nb::handle dst, nb::handle to, std::size_t count,
                       bool with_report, const nb::dict& keywords) {
  const std::int64_t shape[1] = {static_cast<std::int64_t>(count)};
  const auto packed_array = [&](nb::handle argument, tc::DType dtype, std::int64_t(&stride)[1]) {
    PyArrayObject* array = array_of(argument);
    if (!PyArray_IS_C_CONTIGUOUS(array) ||
        static_cast<std::size_t>(PyArray_NBYTES(array)) != tc::storage_bytes(dtype, count)) {
      throw nb::value_error("packed storage is contiguous and of exactly the bytes that its elements need");
    }
    stride[0] = std::max(1, tc::bit_width(dtype) / 8);
    return StridedArray{
        .data = static_cast<std::byte*>(PyArray_DATA(array)), .shape = shape, .strides = stride, .dtype = dtype};
  };
  std::int64_t src_stride[1];
  std::int64_t dst_stride[1];
  tc::CastReport report;
  checked(tensorcast::python::cast_released(packed_array(src, dtype_of(from), src_stride),
                                            packed_array(dst, dtype_of(to), dst_stride), options_of(keywords),
                                            with_report ? &report : nullptr));
  return with_report ? nb::cast(report) : nb::none();
}

// Converts `texts`, str objects of which the first is element `first` of the whole; `dst` is packed storage.
void cast_texts(const nb::list& texts, nb::handle dst, nb::handle to, std::size_t first, const nb::dict& keywords) {
  std::string data;
  std::vector<std::int64_t> offsets = {0};
  offsets.reserve(texts.size() + 1);
  for (const nb::handle text : texts) {
    Py_ssize_t size = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (utf8 != nullptr) {
      data.append(utf8, static_cast<std::size_t>(size));
    } else {  // a lone surrogate; no number has one, and the cast names the element
      PyErr_Clear();
      data += "\xEF\xBF\xBD";
    }
    offsets.push_back(static_cast<std::int64_t>(data.size()));
  }
  PyArrayObject* target = array_of(dst);
  const std::int64_t shape[1] = {static_cast<std::int64_t>(texts.size())};
  const tc::MutableTensorView view{dtype_of(to), shape, bytes_of(target)};
  const auto options = options_of(keywords);
  tc::Result<void> done = without_gil([&]() { return tc::cast_from_strings({data, offsets}, view, options); });
  if (!done && done.error().element) *done.error().element += first;
  checked(std::move(done));
}

nb::list texts_of(nb::handle src, nb::handle from, std::size_t count, const nb::dict& keywords) {
  PyArrayObject* source = array_of(src);
  const std::int64_t shape[1] = {static_cast<std::int64_t>(count)};
  const tc::TensorView view{dtype_of(from), shape, bytes_of(source)};
  const auto options = options_of(keywords);
  const tc::StringBuffer strings = checked(without_gil([&]() { return tc::cast_to_strings(view, options); }));
  nb::list texts;
  for (std::size_t i = 0; i + 1 < strings.offsets.size(); ++i) {
    const auto begin = static_cast<std::size_t>(strings.offsets[i]);
    texts.append(nb::str(strings.data.data() + begin, static_cast<std::size_t>(strings.offsets[i + 1]) - begin));
  }
  return texts;
}

std::string promote_types(nb::handle a, nb::handle b, bool a_is_scalar, bool b_is_scalar, bool promote_unsafe,
                          bool pytorch_scalar_promotion, nb::handle u64_integer_promotion_target,
                          const std::string& rules) {
  const tc::PromoteOptions options{.promote_unsafe = promote_unsafe,
                                   .pytorch_scalar_promotion = pytorch_scalar_promotion,
                                   .u64_integer_promotion_target = dtype_of(u64_integer_promotion_target),
                                   .rules = checked(tc::parse_promote_rules(rules))};
  return std::string(
      tc::name(checked(tc::promote_types({dtype_of(a), a_is_scalar}, {dtype_of(b), b_is_scalar}, options))));
}

nb::dict explain_one(const std::string& literal, nb::handle from, nb::handle to, const nb::dict& keywords) {
  const tc::Explanation row =
      checked(tc::explain(literal, dtype_or_undefined(from), dtype_of(to), options_of(keywords)));
  nb::dict fields;
  fields["dtype"] = tc::name(row.dtype);
  fields["error"] = row.error;
  fields["code"] = row.code;
  fields["sign_bits"] = row.sign_bits;
  fields["exponent_bits"] = row.exponent_bits;
  fields["mantissa_bits"] = row.mantissa_bits;
  fields["exact_value"] = row.exact_value;
  fields["shortest_value"] = row.shortest_value;
  fields["exact_error"] = row.exact_error;
  fields["relative_error"] = row.relative_error;
  fields["events"] = nb::tuple(nb::cast(row.events));
  return fields;
}

nb::list dtypes() {
  nb::list rows;
  for (const tc::DType dtype : tc::all_dtypes()) {
    const tc::DTypeFacts& facts = tc::facts(dtype);
    nb::dict row;
    row["name"] = facts.name;
    row["number"] = static_cast<int>(dtype);
    row["onnx"] = tc::is_onnx(dtype) ? static_cast<int>(dtype) : 0;
    row["bits"] = facts.bits;
    row["exponent_bits"] = facts.exponent_bits;
    row["mantissa_bits"] = facts.mantissa_bits;
    row["bias"] = facts.bias;
    row["has_infinity"] = facts.has_infinity;
    row["has_nan"] = facts.has_nan;
    row["lowest"] = facts.lowest;
    row["largest"] = facts.largest;
    row["smallest_positive"] = facts.smallest_positive;
    row["since_opset"] = facts.since_opset;
    row["special_codes"] = facts.special_codes;
    row["spellings"] =
        nb::tuple(nb::cast(std::vector<std::string_view>(facts.spellings.begin(), facts.spellings.end())));
    rows.append(row);
  }
  return rows;
}

const std::string cast_doc = tensorcast::python::make_cast_doc();
PyMethodDef cast_method = {"cast",
                           reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&tensorcast::python::cast_array)),
                           METH_FASTCALL | METH_KEYWORDS, cast_doc.c_str()};

PyMethodDef value_method = {
    "cast_value", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&tensorcast::python::cast_value)),
    METH_FASTCALL,
    "cast_value(array, target, rounding, out_of_range, entries, /)\n\nZarr's cast_value of a plain array; None if it "
    "is none."};

// cast itself, what it hands over to, and the memory of its results.
void bind_cast(nb::module_& module) {
  const nb::str package("tensorcast");
  PyObject* cast = PyCFunction_NewEx(&cast_method, nullptr, package.ptr());
  if (cast == nullptr) throw nb::python_error();
  module.attr("cast") = nb::steal(cast);
  PyObject* value = PyCFunction_NewEx(&value_method, nullptr, package.ptr());
  if (value == nullptr) throw nb::python_error();
  module.attr("cast_value") = nb::steal(value);
  module.def(
      "set_general_cast", [](const nb::callable& function) { tensorcast::python::set_general_cast(function.ptr()); },
      nb::arg("function"), "Names the function that cast hands over to.");
  module.def(
      "load_torch",
      [](const nb::dict& parts) {
        if (tensorcast::python::load_torch(parts.ptr()) != 0) throw nb::python_error();
      },
      nb::arg("parts"), "Gives cast what it needs of PyTorch.");
  module.def(
      "make_torch_operator",
      [](nb::handle dispatched) { return stolen(tensorcast::python::make_torch_operator(dispatched.ptr())); },
      nb::arg("dispatched"), "A shorter way to PyTorch's operator, for calls that PyTorch need not see.");
  module.def(
      "set_result_pool", [](std::size_t bytes) { tensorcast::python::set_result_pool(bytes); }, nb::arg("bytes"),
      "The most bytes that memory of freed results keeps.");
  module.def(
      "result_pool_use",
      [] {
        const tensorcast::python::PoolUse use = tensorcast::python::result_pool_use();
        return nb::make_tuple(use.limit, use.idle, use.reused);
      },
      "The limit in bytes, the bytes that are idle now, and how many results got memory of another.");
}

}  // namespace

NB_MODULE(_core, module) {
  if (_import_array() < 0 || tensorcast::python::load_array_types() != 0) throw nb::python_error();
  const nb::object errors = nb::module_::import_("tensorcast._errors");
  if (tensorcast::python::load_exceptions(errors.ptr()) != 0) throw nb::python_error();

  // Objects that live when the interpreter ends, as threads of other libraries keep them, are no defect of the program.
  nb::set_leak_warnings(false);
  tensorcast::python::bind_report(module);
  bind_cast(module);
  module.def(
      "dtype_name", [](nb::handle dtype) { return std::string(tc::name(dtype_of(dtype))); }, nb::arg("dtype").none(),
      "Canonical name of a dtype argument.");
  module.def(
      "check_options", [](const nb::dict& keywords) { static_cast<void>(options_of(keywords)); }, nb::arg("options"),
      "Raises TypeError for a keyword that is not an option, ValueError for a value that it cannot have.");
  module.def(
      "bit_width", [](nb::handle dtype) { return tc::bit_width(dtype_of(dtype)); }, nb::arg("dtype"),
      "Bits of one element.");
  module.def("cast_codes", &cast_codes, nb::arg("src"), nb::arg("from_"), nb::arg("src_one_per_byte"), nb::arg("dst"),
             nb::arg("to"), nb::arg("dst_one_per_byte"), nb::arg("report"), nb::arg("options"),
             "Arrays of any strides to arrays of any strides, of the types that the caller says they have.");
  module.def("cast_scaled", &cast_scaled, nb::arg("src"), nb::arg("from_"), nb::arg("src_one_per_byte"), nb::arg("dst"),
             nb::arg("to"), nb::arg("dst_one_per_byte"), nb::arg("scales"), nb::arg("report"), nb::arg("options"),
             "The same with a scale of its own for each element.");
  module.def("cast_packed", &cast_packed, nb::arg("src"), nb::arg("from_"), nb::arg("dst"), nb::arg("to"),
             nb::arg("count"), nb::arg("report"), nb::arg("options"), "Packed storage to packed storage.");
  module.def("cast_texts", &cast_texts, nb::arg("texts"), nb::arg("dst"), nb::arg("to"), nb::arg("first"),
             nb::arg("options"), "Strings to packed storage.");
  module.def("texts_of", &texts_of, nb::arg("src"), nb::arg("from_"), nb::arg("count"), nb::arg("options"),
             "Packed storage to strings.");
  module.def(
      "from_dlpack", [](nb::handle capsule) { return stolen(tensorcast::python::from_dlpack(capsule.ptr())); },
      nb::arg("capsule"), "An array on the capsule's memory, its type's name, and the shape in elements.");
  module.def(
      "to_dlpack",
      [](nb::handle array, bool versioned, bool copied) {
        return stolen(tensorcast::python::to_dlpack(array.ptr(), versioned, copied));
      },
      nb::arg("array"), nb::arg("versioned"), nb::arg("copied"), "A DLPack capsule of an array's memory.");
  module.def("promote_types", &promote_types, nb::arg("a"), nb::arg("b"), nb::arg("a_is_scalar"),
             nb::arg("b_is_scalar"), nb::arg("promote_unsafe"), nb::arg("pytorch_scalar_promotion"),
             nb::arg("u64_integer_promotion_target"), nb::arg("rules"), "Canonical name of the common type.");
  tensorcast::python::bind_blocks(module);
  tensorcast::python::bind_quantize(module);
  tensorcast::python::bind_files(module);
  tensorcast::python::bind_checkpoint(module);
  tensorcast::python::bind_remote_store(module);
  module.def("explain", &explain_one, nb::arg("literal"), nb::arg("from_").none(), nb::arg("to"), nb::arg("options"),
             "One value in one type.");
  module.def("dtypes", &dtypes, "The facts of all types.");
  module.attr("newest_opset") = tc::newest_opset();
  module.def(
      "target", [] { return std::string(tc::name(tc::active_target())); },
      "The instruction set that conversions run on.");
  tensorcast::python::bind_graph(module);
  tensorcast::python::bind_onnx_models(module);
  module.attr("__version__") = tc::version();
}
