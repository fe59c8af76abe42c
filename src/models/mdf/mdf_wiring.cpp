#include "models/mdf/mdf_wiring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace tensorcast::models::mdf {
namespace {

Error edge_error(const MdfModel& model, const Edge& edge, ErrorCode code, const std::string& what) {
  return Error{
      .code = code,
      .message = fmt::format("graph \"{}\": edge \"{}\": {}", model.graph.substr(0, 60), edge.id.substr(0, 60), what)};
}

struct Ports {
  std::set<PortAddress> inputs;
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
    return missing("output port", edge.sender + "." + edge.sender_port);
  }
  if (!ports.inputs.contains({receiver->second, edge.receiver_port})) {
    return missing("input port", edge.receiver + "." + edge.receiver_port);
  }
  return {};
}

}  // namespace

std::vector<std::size_t> ordered(const std::vector<std::vector<std::size_t>>& needs) {
  std::vector<std::size_t> missing(needs.size());
  std::vector<std::vector<std::size_t>> users(needs.size());
  for (std::size_t item = 0; item < needs.size(); ++item) {
    missing[item] = needs[item].size();
    for (const std::size_t before : needs[item]) users[before].push_back(item);
  }
  std::deque<std::size_t> ready;
  for (std::size_t item = 0; item < needs.size(); ++item) {
    if (missing[item] == 0) ready.push_back(item);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.front());
    ready.pop_front();
    for (const std::size_t user : users[order.back()]) {
      if (--missing[user] == 0) ready.push_back(user);
    }
  }
  return order;
}

Result<Wiring> connect(const MdfModel& model) {
  Wiring wiring;
  Ports ports;
  for (std::size_t index = 0; index < model.nodes.size(); ++index) {
    const Node& node = model.nodes[index];
    wiring.nodes.emplace(node.id, index);
    for (const InputPort& port : node.inputs) ports.inputs.insert({index, port.id});
    for (const OutputPort& port : node.outputs) ports.outputs.insert({index, port.id});
  }
  wiring.sends.resize(model.nodes.size());
  std::vector<std::vector<std::size_t>> needs(model.nodes.size());
  for (const Edge& edge : model.edges) {
    if (Result<void> checked = check_edge(model, wiring, ports, edge); !checked) return std::move(checked).error();
    const std::size_t sender = wiring.nodes.find(edge.sender)->second;
    const std::size_t receiver = wiring.nodes.find(edge.receiver)->second;
    const auto [place, is_new] = wiring.incoming.emplace(PortAddress{receiver, edge.receiver_port}, &edge);
    if (!is_new) {
      return edge_error(
          model, edge, ErrorCode::unsupported,
          fmt::format("the input port {}.{} is fed by the edge \"{}\" already", edge.receiver.substr(0, 60),
                      edge.receiver_port.substr(0, 60), place->second->id.substr(0, 60)));
    }
    wiring.sends[sender] = true;
    needs[receiver].push_back(sender);
  }
  wiring.order = ordered(needs);
  if (wiring.order.size() == model.nodes.size()) return wiring;

  // Going back from a node that has no place stays among such nodes, and so comes to a cycle.
  const std::set<std::size_t> placed(wiring.order.begin(), wiring.order.end());
  std::size_t at = 0;
  while (placed.contains(at)) ++at;
  for (std::set<std::size_t> seen; seen.insert(at).second;) {
    at =
        *std::find_if(needs[at].begin(), needs[at].end(), [&](std::size_t before) { return !placed.contains(before); });
  }
  return Error{.code = ErrorCode::parse,
               .message = fmt::format("graph \"{}\": node \"{}\" depends on its own output: a cycle",
                                      model.graph.substr(0, 60), model.nodes[at].id.substr(0, 60))};
}

}  // namespace tensorcast::models::mdf
