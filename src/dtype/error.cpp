#include "tensorcast/error.hpp"

#include "dtype/formatted.hpp"

namespace tensorcast {

std::string Error::describe() const {
  std::string text;
  if (!file.empty()) text += formatted("{}: ", file);
  if (!tensor.empty()) text += formatted("tensor \"{}\": ", tensor);
  if (element) text += formatted("element {}: ", *element);
  text += message;
  if (!hint.empty()) text += formatted("; {}", hint);
  return text;
}

}  // namespace tensorcast
