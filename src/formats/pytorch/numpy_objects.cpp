// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/numpy_objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/npy/npy_text.hpp"
#include "formats/pytorch/pickle_names.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats::pytorch {
namespace {

struct Element {
  const TorchType* type = nullptr;
  bool big_endian = false;
};

// `dtype` has a byte order, a kind and a size: "<f4".
std::optional<Element> element_of(const Value& dtype) {
  const std::string_view text = dtype.text;
  const TorchType* type = text.size() > 1 ? find_numpy_type(text.substr(1)) : nullptr;
  if (dtype.kind != Kind::numpy_dtype || type == nullptr) return std::nullopt;
  return Element{.type = type, .big_endian = text.front() == '>'};
}

std::string type_of(const Value& dtype) {
  constexpr std::size_t longest = 40;
  if (dtype.text == "<f16" || dtype.text == ">f16") return "longdouble";  // f16 reads like float16
  return dtype.kind == Kind::numpy_dtype ? shown(dtype.text.substr(1, longest)) : "another kind";
}

// Makes what is no array of plain numbers, such as one of texts, dates or records, an object that is only named.
Value other_array(const Value& dtype, Ref content) {
  return {.kind = Kind::foreign, .text = "numpy.ndarray of type " + type_of(dtype), .items = {content}};
}

// Reports whether an array of a type that is not known has numbers, such as int4 of ml_dtypes or a long double.
bool has_numbers(const Value& dtype) {
  constexpr std::string_view others = "USaOVMmT";  // text, objects, records, dates
  if (dtype.kind != Kind::numpy_dtype || dtype.text.size() < 2) return false;
  const bool is_other = others.find(dtype.text[1]) != std::string_view::npos;
  return !is_other || dtype.text.find_first_not_of("0123456789", 2) != std::string::npos;
}

// The numbers of such an array may be weights.
Result<Value> unread_array(Objects& objects, Ref dtype) {
  const Ref made = TRY(objects.add_unread(
      unsupported(fmt::format("the checkpoint has a NumPy array of {}, which is not read", type_of(objects[dtype])),
                  "save array.astype(numpy.float32) instead")));
  objects[made].text = "numpy";
  return objects[made];
}

// Returns the text of numpy.str_; nothing for what is none.
Result<std::optional<std::string>> text_of_scalar(const Value& dtype, const Value& data) {
  constexpr std::size_t character_bytes = 4;
  if (dtype.kind != Kind::numpy_dtype || dtype.text.size() < 2 || dtype.text[1] != 'U' || data.kind != Kind::bytes ||
      data.text.empty() || data.text.size() % character_bytes != 0) {
    return std::nullopt;
  }
  const npy::ElementLayout layout{
      .item_bytes = data.text.size(), .big_endian = dtype.text[0] == '>', .text = npy::Text::utf32};
  std::vector<char> utf8;
  TRY(npy::decode_text(std::as_bytes(std::span(data.text)), layout, utf8));
  return std::string(utf8.begin(), utf8.end());
}

// Returns a tensor over the bytes of `data`, of a type that element_of() knows.
Result<StridedTensor> array_over(const Objects& objects, Ref data, Ref dtype, std::vector<std::int64_t> shape,
                                 bool fortran_order) {
  const Element element = *element_of(objects[dtype]);
  const Result<std::size_t> count = element_count(shape);
  if (!count) return malformed_pickle("a NumPy array: " + count.error().message);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(*count, std::uint64_t{element.type->item_bytes}, &bytes) ||
      bytes != objects[data].text.size()) {
    return malformed_pickle(fmt::format("a NumPy array of {} elements in {} bytes", *count, objects[data].text.size()));
  }
  StridedTensor tensor{.type = element.type, .storage = data, .big_endian = element.big_endian};
  tensor.strides.resize(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t dimension = fortran_order ? i : shape.size() - 1 - i;
    tensor.strides[dimension] = step;
    step *= std::max<std::int64_t>(shape[dimension], 1);
  }
  tensor.shape = std::move(shape);
  return tensor;
}

}  // namespace

Result<Ref> make_numpy_dtype(Objects& objects, const Arguments& arguments) {
  const Ref name = TRY(arguments.at(0));
  const Value& value = objects[name];
  if (value.kind == Kind::string) return objects.add({.kind = Kind::numpy_dtype, .text = "<" + value.text});
  if (value.kind != Kind::function) return malformed_pickle("a type of NumPy without a name");
  // The class of a type that NumPy lacks, such as ml_dtypes.bfloat16.
  constexpr std::string_view module = "ml_dtypes.";
  const std::string text = value.text.starts_with(module) ? value.text.substr(module.size()) : value.text;
  return objects.add({.kind = Kind::numpy_dtype, .text = "<" + text});
}

// (version, byte order, subtype, names, fields, size, alignment, flags)
Result<void> set_numpy_dtype_state(Objects& objects, Ref dtype, Ref state) {
  const Arguments arguments(objects, state);
  const Ref order = TRY(arguments.at(1, Kind::string));
  for (const std::size_t structured : {2, 3, 4}) {
    const Ref part = TRY(arguments.at(structured));
    if (objects[part].kind != Kind::none) objects[dtype].text = "|V";  // fails where elements are needed
  }
  if (objects[order].text == ">") objects[dtype].text.front() = '>';
  return {};
}

Result<Ref> make_numpy_scalar(Objects& objects, const Arguments& arguments) {
  const Ref dtype = TRY(arguments.at(0));
  const Ref data = TRY(arguments.at(1));
  const std::optional<Element> known = element_of(objects[dtype]);
  if (const auto text = TRY(text_of_scalar(objects[dtype], objects[data]))) {
    return objects.add({.kind = Kind::string, .text = *text});
  }
  if (!known || known->type->dtype == DType::undefined || objects[data].kind != Kind::bytes) {
    return objects.add(other_array(objects[dtype], data));
  }
  const Element element = *known;
  const TorchType& type = *element.type;
  std::string bytes = objects[data].text;
  if (bytes.size() != type.item_bytes) {
    return malformed_pickle(fmt::format("a NumPy scalar of {} bytes", bytes.size()));
  }
  if (element.big_endian) std::ranges::reverse(bytes);
  const std::int64_t one[] = {1};
  const std::span<const std::byte> source = std::as_bytes(std::span(bytes));
  if (family(type.dtype) == Family::floating) {
    double real = 0;
    const MutableTensorView target{DType::float64, one, std::as_writable_bytes(std::span(&real, 1))};
    TRY(cast({type.dtype, one, source}, target, {}));
    return objects.add({.kind = Kind::real, .real = real});
  }
  std::int64_t integer = 0;
  const MutableTensorView target{DType::int64, one, std::as_writable_bytes(std::span(&integer, 1))};
  TRY(cast({type.dtype, one, source}, target, {}));
  if (type.dtype == DType::uint64 && integer < 0) {
    return objects.add({.kind = Kind::big_integer, .text = fmt::format("{}", static_cast<std::uint64_t>(integer))});
  }
  return objects.add({.kind = type.dtype == DType::boolean ? Kind::boolean : Kind::integer, .integer = integer});
}

// (buffer, dtype, shape, order)
Result<Ref> make_numpy_array_of_buffer(Objects& objects, const Arguments& arguments) {
  const Ref data = TRY(arguments.at(0));
  const Ref dtype = TRY(arguments.at(1));
  std::vector<std::int64_t> shape = TRY(arguments.sizes_at(2));
  if (!element_of(objects[dtype])) {
    return objects.add(has_numbers(objects[dtype]) ? TRY(unread_array(objects, dtype))
                                                   : other_array(objects[dtype], data));
  }
  if (objects[data].kind != Kind::bytes) return malformed_pickle("a NumPy array whose elements are not bytes");
  const Ref order = TRY(arguments.at(3, Kind::string));
  StridedTensor tensor = TRY(array_over(objects, data, dtype, std::move(shape), objects[order].text == "F"));
  return add_tensor(objects, std::move(tensor));
}

// (version, shape, dtype, Fortran order, data)
Result<void> set_numpy_array_state(Objects& objects, Ref array, Ref state) {
  const Arguments arguments(objects, state);
  std::vector<std::int64_t> shape = TRY(arguments.sizes_at(1));
  const Ref dtype = TRY(arguments.at(2));
  const Ref fortran_order = TRY(arguments.at(3, Kind::boolean));
  if (!element_of(objects[dtype])) {
    Value made = has_numbers(objects[dtype]) ? TRY(unread_array(objects, dtype)) : other_array(objects[dtype], state);
    TRY(objects.budget().take(made.text.size() + sizeof(Ref)));
    objects[array] = std::move(made);
    return {};
  }
  const Ref data = TRY(arguments.at(4, Kind::bytes));
  StridedTensor tensor = TRY(array_over(objects, data, dtype, std::move(shape), objects[fortran_order].integer != 0));
  const Ref made = TRY(add_tensor(objects, std::move(tensor)));
  objects[array].kind = Kind::tensor;
  objects[array].integer = objects[made].integer;
  return {};
}

}  // namespace tensorcast::formats::pytorch
