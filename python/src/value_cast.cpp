// SPDX-License-Identifier: Apache-2.0
#include "value_cast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "arguments.hpp"
#include "array_cast.hpp"
#include "array_types.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast::python {
namespace {

constexpr std::pair<std::string_view, Rounding> rounding_words[] = {{"nearest-even", Rounding::nearest_even},
                                                                    {"towards-zero", Rounding::toward_zero},
                                                                    {"towards-positive", Rounding::toward_positive},
                                                                    {"towards-negative", Rounding::toward_negative},
                                                                    {"nearest-away", Rounding::nearest_away}};
constexpr std::size_t most_entries = 16;
constexpr std::size_t block_elements = 2048;

// Empty: it is no text.
std::string_view text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? std::string_view() : std::string_view(text, static_cast<std::size_t>(size));
}

// Undefined: the general form says what the target is. Names are NumPy's there, so here are those that both have.
DType target_of(PyObject* target) {
  const bool is_class =
      PyType_Check(target) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(target), &PyGenericArrType_Type);
  const bool is_descr =
      PyArray_DescrCheck(target) && PyArray_ISNBO(reinterpret_cast<PyArray_Descr*>(target)->byteorder);
  const std::string_view text = text_of(target);
  if (!is_class && !is_descr && text.empty()) return DType::undefined;
  const DType to = dtype_argument(target);
  if (to == DType::undefined) PyErr_Clear();
  return text.empty() || text == name(to) ? to : DType::undefined;
}

// The options of a cast that alone is what the words say. none: it is not.
std::optional<CastOptions> options_of(DType to, PyObject* rounding, PyObject* out_of_range) {
  const std::string_view word = text_of(rounding);
  const auto* const known = std::ranges::find(rounding_words, word, &std::pair<std::string_view, Rounding>::first);
  if (known == std::end(rounding_words)) return std::nullopt;
  CastOptions options;
  options.rounding = known->second;
  options.invalid = Invalid::error;
  if (out_of_range == Py_None) {
    options.out_of_range = OutOfRange::error;
    options.saturate = !number_facts(to).has_infinity;  // infinity is no number out of range
    return options;
  }
  const std::string_view range = text_of(out_of_range);
  const bool clamps = range == "clamp";
  if (!clamps && range != "wrap") return std::nullopt;
  if (family(to) == Family::integer) {
    options.out_of_range = clamps ? OutOfRange::saturate : OutOfRange::wrap;
    return options;
  }
  const bool is_nearest = known->second == Rounding::nearest_even || known->second == Rounding::nearest_away;
  if (!clamps || !is_nearest || !number_facts(to).has_infinity) return std::nullopt;
  options.saturate = false;
  return options;
}

// The numbers of a scalar map: elements that are keys[i] become values[i]. There is an even number of keys: NaN, which
// no element is equal to, fills up.
template <class Number>
struct ScalarMap {
  std::array<Number, most_entries> keys, values;
  std::size_t count = 0;
  bool has_nan = false;
  Number of_nan = 0;  // what NaN becomes

  // Returns false if the general form must decide: both numbers must be the array's, and keys differ.
  bool add(PyObject* key_object, PyObject* value_object) {
    Number key = 0, value = 0;
    if (!read(key_object, key) || !read(value_object, value)) return false;
    if (key != key) {
      const bool is_new = !has_nan;
      has_nan = true;
      of_nan = value;
      return is_new;
    }
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
    if (count == most_entries || std::find(keys.begin(), end, key) != end) return false;
    keys[count] = key;
    values[count] = value;
    ++count;
    return true;
  }

  void fill_up() {
    for (; count == 0 || count % 2 != 0; ++count) {
      keys[count] = std::numeric_limits<Number>::quiet_NaN();
      values[count] = 0;
    }
  }

  void apply(const Number* source, Number* target, std::size_t size) const {
    const Number nan = of_nan;
    if (has_nan) {
      replace(source, target, size, 0, [nan](Number x, std::size_t) { return x != x ? nan : x; });
    } else {
      replace(source, target, size, 0, [](Number x, std::size_t) { return x; });
    }
    for (std::size_t k = 2; k < count; k += 2) {
      replace(source, target, size, k, [target](Number, std::size_t i) { return target[i]; });
    }
  }

 private:
  template <class Other>
  void replace(const Number* source, Number* target, std::size_t size, std::size_t k, Other other) const {
    const Number first = keys[k], second = keys[k + 1], of_first = values[k], of_second = values[k + 1];
    for (std::size_t i = 0; i < size; ++i) {
      const Number x = source[i], y = other(x, i);
      const Number z = x == second ? of_second : y;
      target[i] = x == first ? of_first : z;
    }
  }

  static bool read(PyObject* object, Number& number) {
    double wide = 0.0;
    if (PyFloat_CheckExact(object)) {
      wide = PyFloat_AsDouble(object);
    } else if (PyLong_CheckExact(object)) {
      constexpr long long exact = 1LL << 53;
      int overflow = 0;
      const long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
      if (overflow != 0 || whole < -exact || whole > exact) return false;
      wide = static_cast<double>(whole);
    } else {
      return false;
    }
    const bool fits = !(std::abs(wide) > std::numeric_limits<Number>::max()) || std::isinf(wide);
    number = fits ? static_cast<Number>(wide) : Number{0};
    return wide != wide || static_cast<double>(number) == wide;
  }
};

// Returns false if the general form must decide.
template <class Number>
bool read_map(PyObject* pairs, ScalarMap<Number>& map) {
  const auto is_sequence = [](PyObject* object) { return PyList_CheckExact(object) || PyTuple_CheckExact(object); };
  if (PyDict_CheckExact(pairs)) {
    Py_ssize_t place = 0;
    PyObject *key = nullptr, *value = nullptr;
    while (PyDict_Next(pairs, &place, &key, &value) != 0) {
      if (!map.add(key, value)) return false;
    }
  } else if (!is_sequence(pairs)) {
    return false;
  } else {
    for (Py_ssize_t i = 0; i < PySequence_Size(pairs); ++i) {
      PyObject* const pair = PyList_CheckExact(pairs) ? PyList_GetItem(pairs, i) : PyTuple_GetItem(pairs, i);
      if (!is_sequence(pair) || PySequence_Size(pair) != 2) return false;
      const bool is_list = PyList_CheckExact(pair);
      const auto part = [&](Py_ssize_t k) { return is_list ? PyList_GetItem(pair, k) : PyTuple_GetItem(pair, k); };
      if (!map.add(part(0), part(1))) return false;
    }
  }
  map.fill_up();
  return true;
}

// Casts blocks of elements within the cache. Null: the general form decides, or a Python error is set.
template <class Number>
PyObject* cast_by_map(PyArrayObject* array, DType from, DType to, PyObject* pairs, const CastOptions& options) {
  ScalarMap<Number> map;
  PyObject* const made = read_map(pairs, map) ? new_result(array, to) : nullptr;
  if (made == nullptr) return nullptr;
  const auto count = static_cast<std::size_t>(PyArray_SIZE(array));
  const auto* const source = static_cast<const Number*>(PyArray_DATA(array));
  auto* const target = static_cast<std::byte*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(made)));
  const Result<void> done = released(count, [&](bool (*stop)()) -> Result<void> {
    constexpr std::size_t blocks_between_stops = std::size_t{1} << 13;
    alignas(64) std::array<Number, block_elements> numbers;
    for (std::size_t begin = 0, block = 1; begin < count; begin += block_elements, ++block) {
      if (stop != nullptr && block % blocks_between_stops == 0 && stop()) {
        return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
      }
      const std::size_t size = std::min(block_elements, count - begin);
      map.apply(source + begin, numbers.data(), size);
      const std::int64_t shape[] = {static_cast<std::int64_t>(size)};
      TRY(cast({from, shape, std::as_bytes(std::span(numbers).first(size))},
               {to, shape, {target + storage_bytes(to, begin), storage_bytes(to, size)}}, options));
    }
    return {};
  });
  if (done) return made;
  Py_DECREF(made);
  return nullptr;
}

}  // namespace

PyObject* cast_value(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 5) {
    PyErr_SetString(PyExc_TypeError, "cast_value() takes 5 arguments");
    return nullptr;
  }
  const auto cast_here = [&]() -> PyObject* {
    if (!PyArray_CheckExact(arguments[0])) return nullptr;
    auto* const array = reinterpret_cast<PyArrayObject*>(arguments[0]);
    const ArrayType from = array_type(PyArray_DESCR(array));
    const auto is_number = [](DType dtype) {
      return bit_width(dtype) >= 8 && (family(dtype) == Family::integer || family(dtype) == Family::floating);
    };
    const DType to = target_of(arguments[1]);
    if (!is_number(from.dtype) || !is_number(to) || from.dtype == to) return nullptr;
    const std::optional<CastOptions> options = options_of(to, arguments[2], arguments[3]);
    if (!options) return nullptr;
    if (arguments[4] == Py_None) return cast_plain(array, to, *options);
    const bool is_plain = PyArray_ISCARRAY_RO(array);
    if (is_plain && from.dtype == DType::float64)
      return cast_by_map<double>(array, from.dtype, to, arguments[4], *options);
    if (is_plain && from.dtype == DType::float32)
      return cast_by_map<float>(array, from.dtype, to, arguments[4], *options);
    return nullptr;
  };
  PyObject* made = nullptr;
  try {
    made = cast_here();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  if (made != nullptr || PyErr_Occurred() != nullptr) return made;
  Py_RETURN_NONE;
}

}  // namespace tensorcast::python
