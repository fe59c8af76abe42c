#include "formats/pytorch/numpy_objects.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats::pytorch {
namespace {

struct Element {
  const TorchType* type = nullptr;
  bool big_endian = false;
};

// `dtype` has a byte order, a kind and a size: "<f4".
Result<Element> element_of(const Value& dtype) {
  const std::string_view text = dtype.text;
  const TorchType* type = text.size() > 1 ? find_numpy_type(text.substr(1)) : nullptr;
  if (type != nullptr) return Element{.type = type, .big_endian = text.front() == '>'};
  return Error{.code = ErrorCode::unsupported,
               .message = fmt::format("the checkpoint has NumPy data of type {}, which are not plain numbers",
                                      text.size() > 1 ? text.substr(1, 20) : text),
               .hint = "save numbers and texts only"};
}

// Returns a tensor over the bytes of `data`.
Result<StridedTensor> array_over(const Objects& objects, Ref data, Ref dtype, std::vector<std::int64_t> shape,
                                 bool fortran_order) {
  const Result<Element> element = element_of(objects[dtype]);
  if (!element) return element.error();
  const Result<std::size_t> count = element_count(shape);
  if (!count) return malformed_pickle("a NumPy array: " + count.error().message);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(*count, std::uint64_t{element->type->item_bytes}, &bytes) ||
      bytes != objects[data].text.size()) {
    return malformed_pickle(fmt::format("a NumPy array of {} elements in {} bytes", *count, objects[data].text.size()));
  }
  StridedTensor tensor{.type = element->type, .storage = data, .big_endian = element->big_endian};
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
  const Result<Ref> name = arguments.at(0, Kind::string);
  if (!name) return name;
  return objects.add({.kind = Kind::numpy_dtype, .text = "<" + objects[*name].text});
}

// (version, byte order, subtype, names, fields, size, alignment, flags)
Result<void> set_numpy_dtype_state(Objects& objects, Ref dtype, Ref state) {
  const Arguments arguments(objects, state);
  const Result<Ref> order = arguments.at(1, Kind::string);
  if (!order) return order.error();
  for (const std::size_t structured : {2, 3, 4}) {
    const Result<Ref> part = arguments.at(structured);
    if (!part) return part.error();
    if (objects[*part].kind != Kind::none) objects[dtype].text = "|V";  // fails where elements are needed
  }
  if (objects[*order].text == ">") objects[dtype].text.front() = '>';
  return {};
}

Result<Ref> make_numpy_scalar(Objects& objects, const Arguments& arguments) {
  const Result<Ref> dtype = arguments.at(0, Kind::numpy_dtype);
  if (!dtype) return dtype;
  const Result<Ref> data = arguments.at(1, Kind::bytes);
  if (!data) return data;
  const Result<Element> element = element_of(objects[*dtype]);
  if (!element) return element.error();
  const TorchType& type = *element->type;
  std::string bytes = objects[*data].text;
  if (bytes.size() != type.item_bytes || type.dtype == DType::undefined) {
    return malformed_pickle(fmt::format("a NumPy scalar of {} bytes", bytes.size()));
  }
  if (element->big_endian) std::reverse(bytes.begin(), bytes.end());
  const std::int64_t one[] = {1};
  const std::span<const std::byte> source = std::as_bytes(std::span(bytes));
  Value value;
  if (family(type.dtype) == Family::floating) {
    value.kind = Kind::real;
    double real = 0;
    const MutableTensorView target{DType::float64, one, std::as_writable_bytes(std::span(&real, 1))};
    if (auto done = cast({type.dtype, one, source}, target, {}); !done) return std::move(done).error();
    value.real = real;
    return objects.add(std::move(value));
  }
  std::int64_t integer = 0;
  const MutableTensorView target{DType::int64, one, std::as_writable_bytes(std::span(&integer, 1))};
  if (auto done = cast({type.dtype, one, source}, target, {}); !done) return std::move(done).error();
  if (type.dtype == DType::uint64 && integer < 0) {
    return objects.add({.kind = Kind::big_integer, .text = fmt::format("{}", static_cast<std::uint64_t>(integer))});
  }
  value.kind = type.dtype == DType::boolean ? Kind::boolean : Kind::integer;
  value.integer = integer;
  return objects.add(std::move(value));
}

// (buffer, dtype, shape, order)
Result<Ref> make_numpy_array_of_buffer(Objects& objects, const Arguments& arguments) {
  const Result<Ref> data = arguments.at(0, Kind::bytes);
  if (!data) return data;
  const Result<Ref> dtype = arguments.at(1, Kind::numpy_dtype);
  if (!dtype) return dtype;
  Result<std::vector<std::int64_t>> shape = arguments.sizes_at(2);
  if (!shape) return std::move(shape).error();
  const Result<Ref> order = arguments.at(3, Kind::string);
  if (!order) return order;
  Result<StridedTensor> tensor = array_over(objects, *data, *dtype, *std::move(shape), objects[*order].text == "F");
  if (!tensor) return std::move(tensor).error();
  return add_tensor(objects, *std::move(tensor));
}

// (version, shape, dtype, Fortran order, data)
Result<void> set_numpy_array_state(Objects& objects, Ref array, Ref state) {
  const Arguments arguments(objects, state);
  Result<std::vector<std::int64_t>> shape = arguments.sizes_at(1);
  if (!shape) return std::move(shape).error();
  const Result<Ref> dtype = arguments.at(2, Kind::numpy_dtype);
  if (!dtype) return dtype.error();
  const Result<Ref> fortran_order = arguments.at(3, Kind::boolean);
  if (!fortran_order) return fortran_order.error();
  if (const Result<Element> element = element_of(objects[*dtype]); !element) return element.error();
  const Result<Ref> data = arguments.at(4, Kind::bytes);
  if (!data) return data.error();
  Result<StridedTensor> tensor =
      array_over(objects, *data, *dtype, *std::move(shape), objects[*fortran_order].integer != 0);
  if (!tensor) return std::move(tensor).error();
  const Result<Ref> made = add_tensor(objects, *std::move(tensor));
  if (!made) return made.error();
  objects[array].kind = Kind::tensor;
  objects[array].integer = objects[*made].integer;
  return {};
}

}  // namespace tensorcast::formats::pytorch
