// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_literal.hpp"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::models::mdf {
namespace {

// The kinds of scalars in a list.
struct Kinds {
  bool boolean = false;
  bool integer = false;
  bool negative = false;
  bool large = false;  // some integer is out of int64's range
  bool real = false;
  bool text = false;
};

Result<void> survey(const Tree& tree, std::vector<std::int64_t>& shape, std::size_t depth, bool& first, Kinds& kinds,
                    std::vector<const Tree*>& scalars) {
  if (const auto* list = tree.as<Tree::List>()) {
    const auto length = static_cast<std::int64_t>(list->size());
    if (first) {
      shape.push_back(length);
    } else if (depth >= shape.size() || shape[depth] != length) {
      return parse_error("the lists within the list are not of equal length");
    }
    for (const Tree& item : *list) {
      TRY(survey(item, shape, depth + 1, first, kinds, scalars));
    }
    // An empty list also ends the shape.
    first = false;
    return {};
  }
  first = false;
  if (depth != shape.size()) return parse_error("the lists within the list are not of equal depth");
  scalars.push_back(&tree);
  if (tree.as<bool>() != nullptr) {
    kinds.boolean = true;
  } else if (const auto* integer = tree.as<std::int64_t>()) {
    kinds.integer = true;
    kinds.negative = kinds.negative || *integer < 0;
  } else if (tree.as<std::uint64_t>() != nullptr) {
    kinds.integer = kinds.large = true;
  } else if (tree.as<double>() != nullptr) {
    kinds.real = true;
  } else if (tree.as<std::string>() != nullptr) {
    kinds.text = true;
  } else {
    return parse_error(fmt::format("{} is not a number", tree.kind()));
  }
  return {};
}

double real_of(const Tree& tree) {
  if (const auto* truth = tree.as<bool>()) return *truth ? 1 : 0;
  if (const auto* integer = tree.as<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* large = tree.as<std::uint64_t>()) return static_cast<double>(*large);
  return *tree.as<double>();
}

std::uint64_t bits_of(const Tree& tree) {
  if (const auto* truth = tree.as<bool>()) return *truth ? 1 : 0;
  if (const auto* integer = tree.as<std::int64_t>()) return static_cast<std::uint64_t>(*integer);
  return *tree.as<std::uint64_t>();
}

template <class T, class Convert>
Result<Tensor> numbers(DType dtype, std::vector<std::int64_t> shape, const std::vector<const Tree*>& scalars,
                       Convert convert) {
  std::vector<std::byte> bytes(scalars.size() * sizeof(T));
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    const T value = convert(*scalars[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return Tensor::own(dtype, std::move(shape), std::move(bytes));
}

Result<Tensor> texts(std::vector<std::int64_t> shape, const std::vector<const Tree*>& scalars) {
  StringBuffer buffer;
  buffer.offsets.push_back(0);
  for (const Tree* scalar : scalars) {
    const auto& text = *scalar->as<std::string>();
    buffer.data.insert(buffer.data.end(), text.begin(), text.end());
    buffer.offsets.push_back(static_cast<std::int64_t>(buffer.data.size()));
  }
  return Tensor::own(std::move(shape), std::move(buffer));
}

template <class T>
T first_of(const Tensor& tensor) {
  T value{};
  std::memcpy(&value, tensor.bytes().data(), sizeof(T));
  return value;
}

}  // namespace

Result<Tensor> literal_tensor(const Tree& tree) {
  std::vector<std::int64_t> shape;
  std::vector<const Tree*> scalars;
  Kinds kinds;
  bool first = true;
  TRY(survey(tree, shape, 0, first, kinds, scalars));
  if (kinds.text) {
    if (kinds.boolean || kinds.integer || kinds.real) return parse_error("a list of texts and numbers");
    return texts(std::move(shape), scalars);
  }
  if (scalars.empty() || kinds.real) return numbers<double>(DType::float64, std::move(shape), scalars, real_of);
  if (!kinds.integer) return numbers<std::uint8_t>(DType::boolean, std::move(shape), scalars, bits_of);
  if (!kinds.large) return numbers<std::uint64_t>(DType::int64, std::move(shape), scalars, bits_of);
  if (kinds.negative) return parse_error("no integer type holds both the negative numbers and those beyond 2^63");
  return numbers<std::uint64_t>(DType::uint64, std::move(shape), scalars, bits_of);
}

std::optional<Number> number_of(const Tensor& tensor) {
  if (tensor.count() != 1) return std::nullopt;
  Number number;
  switch (tensor.dtype()) {
    case DType::boolean:
      number.is_integer = true;
      number.integer = first_of<std::uint8_t>(tensor) != 0 ? 1 : 0;
      number.real = static_cast<double>(number.integer);
      return number;
    case DType::int64:
      number.is_integer = true;
      number.integer = first_of<std::int64_t>(tensor);
      number.real = static_cast<double>(number.integer);
      return number;
    case DType::float64:
      number.real = first_of<double>(tensor);
      return number;
    default:
      return std::nullopt;
  }
}

Tensor tensor_of(std::int64_t number) { return Tensor::own(std::vector{number}, Shape{}).value(); }
Tensor tensor_of(double number) { return Tensor::own(std::vector{number}, Shape{}).value(); }

}  // namespace tensorcast::models::mdf
