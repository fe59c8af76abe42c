// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_wiring.hpp"

#include <fmt/format.h>

#include <limits>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "graph/node_order.hpp"

namespace tensorcast::models::mdf {
namespace {

Error edge_error(const MdfModel& model, const Edge& edge, ErrorCode code, const std::string& what) {
  return Error{
      .code = code,
      .message = fmt::format("graph \"{}\": edge \"{}\": {}", model.graph.substr(0, 60), edge.id.substr(0, 60), what)};
}

struct Ports {
  std::map<PortAddress, Reduce> inputs;
  std::set<PortAddress> outputs;
};

Result<void> check_edge(const MdfModel& model, const Wiring& wiring, const Ports& ports, const Edge& edge) {
  const auto missing = [&](std::string_view what, const std::string& id) {
    return edge_error(model, edge, ErrorCode::parse, fmt::format("there is no {} \"{}\"", what, id.substr(0, 60)));
  };
  const auto sender = wiring.nodes.find(edge.sender);
  if (sender == wiring.nodes.end()) return missing("node", edge.sender);
  const auto receiver = wiring.nodes.find(edge.receiver);
  if (receiver == wiring.nodes.end()) return missing("node", edge.receiver);
  if (!ports.outputs.contains({sender->second, edge.sender_port})) {
    return missing("output port", model.nodes[sender->second].id + "." + edge.sender_port);
  }
  if (!ports.inputs.contains({receiver->second, edge.receiver_port})) {
    return missing("input port", model.nodes[receiver->second].id + "." + edge.receiver_port);
  }
  return {};
}

double weight_of(const Edge& edge) {
  if (edge.weight == nullptr) return 1;
  if (const auto* integer = edge.weight->as<std::int64_t>()) return static_cast<double>(*integer);
  const auto* real = edge.weight->as<double>();
  return real == nullptr ? std::numeric_limits<double>::quiet_NaN() : *real;
}

// By the specification a port keeps "the last value supplied", unless it adds or multiplies.
Result<void> check_second(const MdfModel& model, MdfSemantics semantics, const Ports& ports,
                          const std::pair<const PortAddress, const Edge*>& first, const Edge& edge) {
  const std::string fed = fmt::format("the input port {}.{} is fed by the edge \"{}\" already",
                                      model.nodes[first.first.node].id.substr(0, 60), edge.receiver_port.substr(0, 60),
                                      first.second->id.substr(0, 60));
  const Reduce reduce = ports.inputs.at(first.first);
  if (reduce != Reduce::overwrite) {
    return edge_error(
        model, edge, ErrorCode::unsupported,
        fmt::format("{}; what edges bring is not {}", fed, reduce == Reduce::add ? "added" : "multiplied"));
  }
  const bool same_value = first.second->sender == edge.sender && first.second->sender_port == edge.sender_port &&
                          weight_of(*first.second) == weight_of(edge);
  if (semantics == MdfSemantics::onnx || same_value) return {};
  return edge_error(model, edge, ErrorCode::unsupported,
                    fed + ", and the reference engine leaves open which of them comes last");
}

}  // namespace

Result<Wiring> connect(const MdfModel& model, MdfSemantics semantics) {
  Wiring wiring;
  Ports ports;
  for (std::size_t index = 0; index < model.nodes.size(); ++index) {
    const Node& node = model.nodes[index];
    if (!wiring.nodes.emplace(node.key, index).second) {
      return parse_error(
          fmt::format("graph \"{}\": two nodes are named \"{}\"", model.graph.substr(0, 60), node.id.substr(0, 60)));
    }
    for (const InputPort& port : node.inputs) ports.inputs.emplace(PortAddress{index, port.id}, port.reduce);
    for (const OutputPort& port : node.outputs) ports.outputs.insert({index, port.id});
  }
  wiring.sends.resize(model.nodes.size());
  graph::Predecessors needs(model.nodes.size());
  for (const Edge& edge : model.edges) {
    TRY(check_edge(model, wiring, ports, edge));
    const std::size_t sender = wiring.nodes.find(edge.sender)->second;
    const std::size_t receiver = wiring.nodes.find(edge.receiver)->second;
    const auto [place, is_new] = wiring.incoming.emplace(PortAddress{receiver, edge.receiver_port}, &edge);
    if (!is_new) {
      TRY(check_second(model, semantics, ports, *place, edge));
      place->second = &edge;
    }
    wiring.sends[sender] = true;
    needs[receiver].push_back(sender);
  }
  wiring.order = graph::order_nodes(needs);
  if (wiring.order.size() == model.nodes.size()) return wiring;
  const Node& node = model.nodes[graph::find_cycle(needs, wiring.order).back()];
  return parse_error(fmt::format("graph \"{}\": node \"{}\" depends on its own output: a cycle",
                                 model.graph.substr(0, 60), node.id.substr(0, 60)));
}

}  // namespace tensorcast::models::mdf
