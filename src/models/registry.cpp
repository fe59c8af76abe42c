#include "models/model_format.hpp"

namespace tensorcast::models {

std::span<const ModelFormat> model_formats() { return {}; }

}  // namespace tensorcast::models
