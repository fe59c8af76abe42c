#include "tensorcast/model.hpp"

#include "models/model_format.hpp"

namespace tensorcast {

Result<Model> load_model(const std::string& path, const LoadModelOptions& options) {
  for (const models::ModelFormat& format : models::model_formats()) {
    if (options.format != format.name) continue;
    Result<Graph> graph = format.load(path, options);
    if (!graph) return std::move(graph).error();
    return Model{std::string(format.name), *std::move(graph)};
  }
  return Error{.code = ErrorCode::unsupported, .message = "not a model of a known format", .file = path};
}

}  // namespace tensorcast
