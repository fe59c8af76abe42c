#include "tensorcast/graph.hpp"

namespace tensorcast {

struct Program::Impl {
  Graph graph;
};

Result<Program> Program::compile(Graph graph) {
  return Program(std::make_shared<const Impl>(Impl{std::move(graph)}));
}

std::span<const ValueInfo> Program::inputs() const noexcept { return impl_->graph.inputs; }
std::span<const ValueInfo> Program::outputs() const noexcept { return impl_->graph.outputs; }

}  // namespace tensorcast
