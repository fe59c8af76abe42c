#include "tensorcast/error.hpp"

#include <fmt/format.h>

namespace tensorcast {

std::string Error::describe() const {
  std::string text;
  if (!file.empty()) text += fmt::format("{}: ", file);
  if (!tensor.empty()) text += fmt::format("tensor \"{}\": ", tensor);
  if (element) text += fmt::format("element {}: ", *element);
  text += message;
  if (!hint.empty()) text += fmt::format("; {}", hint);
  return text;
}

}  // namespace tensorcast
