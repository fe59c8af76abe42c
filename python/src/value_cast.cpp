// SPDX-License-Identifier: Apache-2.0
#include "value_cast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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
constexpr std::size_t block_elements = 1024;

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

// An entry of a scalar map: elements that are `key` get the bytes of `code`.
struct Entry {
  double key = 0.0;
  std::uint64_t code = 0;
};

// Reads a number that float64 holds. Returns false if it is none.
bool read_key(PyObject* object, double& key) {
  if (PyFloat_CheckExact(object)) {
    key = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (!PyLong_CheckExact(object)) return false;
  constexpr long long exact = 1LL << 53;
  int overflow = 0;
  const long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
  key = static_cast<double>(whole);
  return overflow == 0 && -exact <= whole && whole <= exact;
}

// Converts the number that an entry gives. Returns false if the general form must say what is wrong.
bool read_code(PyObject* object, DType to, const CastOptions& options, std::uint64_t& code) {
  auto* const bytes = reinterpret_cast<std::byte*>(&code);
  if (PyFloat_CheckExact(object)) {
    double number = PyFloat_AS_DOUBLE(object);
    return cast_flat(reinterpret_cast<std::byte*>(&number), DType::float64, bytes, to, 1, options).ok();
  }
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 && cast_flat(reinterpret_cast<std::byte*>(&whole), DType::int64, bytes, to, 1, options).ok();
}

std::optional<std::vector<Entry>> entries_of(PyObject* pairs, DType to, const CastOptions& options) {
  std::vector<Entry> entries;
  const auto add = [&](PyObject* key, PyObject* value) {
    Entry entry;
    if (entries.size() == most_entries || !read_key(key, entry.key) || !read_code(value, to, options, entry.code)) {
      return false;
    }
    entries.push_back(entry);
    return true;
  };
  if (PyDict_CheckExact(pairs)) {
    Py_ssize_t place = 0;
    PyObject *key = nullptr, *value = nullptr;
    while (PyDict_Next(pairs, &place, &key, &value) != 0) {
      if (!add(key, value)) return std::nullopt;
    }
    return entries;
  }
  const auto is_sequence = [](PyObject* object) { return PyList_CheckExact(object) || PyTuple_CheckExact(object); };
  if (pairs == Py_None) return entries;
  if (!is_sequence(pairs)) return std::nullopt;
  for (Py_ssize_t i = 0; i < PySequence_Size(pairs); ++i) {
    PyObject* const pair = PyList_CheckExact(pairs) ? PyList_GetItem(pairs, i) : PyTuple_GetItem(pairs, i);
    if (!is_sequence(pair) || PySequence_Size(pair) != 2) return std::nullopt;
    const bool is_list = PyList_CheckExact(pair);
    const auto part = [&](Py_ssize_t k) { return is_list ? PyList_GetItem(pair, k) : PyTuple_GetItem(pair, k); };
    if (!add(part(0), part(1))) return std::nullopt;
  }
  return entries;
}

// Finds for each element the entry that is equal to it, counted from 1; 0: none. The first of several counts.
template <class Number, class Mark>
void find_entries(const Number* numbers, std::size_t count, const std::vector<Entry>& entries, Mark* marks) {
  std::fill_n(marks, count, Mark{0});
  for (std::size_t k = entries.size(); k-- > 0;) {
    const auto mark = static_cast<Mark>(k + 1);
    const double key = entries[k].key;
    const bool fits = !(std::abs(key) > std::numeric_limits<Number>::max()) || std::isinf(key);
    const Number narrow = fits ? static_cast<Number>(key) : Number{0};
    if (key != key) {
      for (std::size_t i = 0; i < count; ++i) marks[i] = numbers[i] != numbers[i] ? mark : marks[i];
    } else if (static_cast<double>(narrow) == key) {  // else no element is equal
      for (std::size_t i = 0; i < count; ++i) marks[i] = numbers[i] == narrow ? mark : marks[i];
    }
  }
}

// Casts blocks of elements within the cache, those with an entry as 0, and then writes these.
template <class Number, class Code>
Result<void> cast_mapped(const Number* source, DType from, Code* target, DType to, std::size_t count,
                         const std::vector<Entry>& entries, const CastOptions& options, bool (*stop)()) {
  constexpr std::size_t blocks_between_stops = std::size_t{1} << 14;
  std::array<std::conditional_t<sizeof(Number) == 8, std::int64_t, std::int32_t>, block_elements> marks;
  std::array<Number, block_elements> numbers;
  std::array<std::uint16_t, block_elements> places;
  for (std::size_t begin = 0, block = 1; begin < count; begin += block_elements, ++block) {
    if (stop != nullptr && block % blocks_between_stops == 0 && stop()) {
      return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
    }
    const std::size_t size = std::min(block_elements, count - begin);
    find_entries(source + begin, size, entries, marks.data());
    std::size_t found = 0;
    for (std::size_t i = 0; i < size; ++i) numbers[i] = marks[i] != 0 ? Number{0} : source[begin + i];
    for (std::size_t i = 0; i < size; ++i) {
      places[found] = static_cast<std::uint16_t>(i);
      found += marks[i] != 0 ? 1 : 0;
    }
    const std::int64_t shape[] = {static_cast<std::int64_t>(size)};
    TRY(cast({from, shape, std::as_bytes(std::span(numbers).first(size))},
             {to, shape, std::as_writable_bytes(std::span(target + begin, size))}, options));
    for (std::size_t i = 0; i < found; ++i) {
      const std::uint64_t code = entries[static_cast<std::size_t>(marks[places[i]]) - 1].code;
      std::memcpy(target + begin + places[i], &code, sizeof(Code));
    }
  }
  return {};
}

// Calls `work` with a pointer to unsigned integers of the width of `dtype`.
template <class Work>
Result<void> with_codes(void* data, DType dtype, Work&& work) {
  switch (bit_width(dtype)) {
    case 8:
      return work(static_cast<std::uint8_t*>(data));
    case 16:
      return work(static_cast<std::uint16_t*>(data));
    case 32:
      return work(static_cast<std::uint32_t*>(data));
    default:
      return work(static_cast<std::uint64_t*>(data));
  }
}

// Null: the general form decides, or a Python error is set.
PyObject* cast_by_map(PyArrayObject* array, DType to, const std::vector<Entry>& entries, const CastOptions& options) {
  const DType from = array_type(PyArray_DESCR(array)).dtype;
  const bool is_plain = PyArray_ISCARRAY_RO(array) && (from == DType::float64 || from == DType::float32);
  PyObject* const made = is_plain ? new_result(array, to) : nullptr;
  if (made == nullptr) return nullptr;
  const auto count = static_cast<std::size_t>(PyArray_SIZE(array));
  const Result<void> done = released(count, [&](bool (*stop)()) {
    return with_codes(PyArray_DATA(reinterpret_cast<PyArrayObject*>(made)), to, [&](auto* codes) -> Result<void> {
      const void* const data = PyArray_DATA(array);
      return from == DType::float64
                 ? cast_mapped(static_cast<const double*>(data), from, codes, to, count, entries, options, stop)
                 : cast_mapped(static_cast<const float*>(data), from, codes, to, count, entries, options, stop);
    });
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
    const std::optional<std::vector<Entry>> entries = entries_of(arguments[4], to, *options);
    if (!entries) return nullptr;
    return entries->empty() ? cast_plain(array, to, *options) : cast_by_map(array, to, *entries, *options);
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
