// SPDX-License-Identifier: Apache-2.0
#include "models/openvino_ir/ir_order.hpp"

#include <fmt/format.h>

#include <set>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "graph/node_order.hpp"

namespace tensorcast::models::openvino_ir {
namespace {

struct Ports {
  std::set<LayerPort> inputs;
  std::set<LayerPort> outputs;
};

Result<Ports> list_layers(const Document& document, Wiring& wiring) {
  Ports ports;
  std::set<std::string_view> names;
  for (std::size_t index = 0; index < document.layers.size(); ++index) {
    const Layer& layer = document.layers[index];
    if (!wiring.layers.emplace(layer.id, index).second) {
      return parse_error(fmt::format("{}: another layer has the id {} too", layer.described(), layer.id));
    }
    if (!layer.name.empty() && !names.insert(layer.name).second) {
      return parse_error(layer.described() + ": another layer has this name too");
    }
    for (const auto& [list, known] :
         {std::pair(&layer.inputs, &ports.inputs), std::pair(&layer.outputs, &ports.outputs)}) {
      for (const Port& port : *list) {
        if (known->insert({layer.id, port.id}).second) continue;
        return parse_error(fmt::format("{}: the port {} occurs twice", layer.described(), port.id));
      }
    }
  }
  return ports;
}

Result<void> check_end(const Document& document, const Wiring& wiring, const std::set<LayerPort>& ports, LayerPort end,
                       std::string_view side) {
  const auto layer = wiring.layers.find(end.layer);
  if (layer == wiring.layers.end()) {
    return parse_error(fmt::format("an edge names the layer {}, which does not exist", end.layer));
  }
  if (ports.contains(end)) return {};
  return parse_error(fmt::format("{}: an edge names its {} port {}, which does not exist",
                                 document.layers[layer->second].described(), side, end.port));
}

Result<void> put_in_order(const Document& document, Wiring& wiring) {
  graph::Predecessors before(document.layers.size());
  for (std::size_t index = 0; index < before.size(); ++index) {
    const Layer& layer = document.layers[index];
    for (const Port& port : layer.inputs) {
      before[index].push_back(wiring.layers.at(wiring.source.at({layer.id, port.id}).layer));
    }
  }
  wiring.order = graph::order_nodes(before);
  if (wiring.order.size() == before.size()) return {};
  const Layer& layer = document.layers[graph::find_cycle(before, wiring.order).back()];
  return parse_error(layer.described() + " depends on its own output: a cycle");
}

}  // namespace

Result<Wiring> connect(const Document& document) {
  Wiring wiring;
  Ports ports = TRY(list_layers(document, wiring));
  for (const LayerEdge& edge : document.edges) {
    TRY(check_end(document, wiring, ports.outputs, edge.from, "output"));
    TRY(check_end(document, wiring, ports.inputs, edge.to, "input"));
    if (!wiring.source.emplace(edge.to, edge.from).second) {
      return parse_error(fmt::format("{}: two edges lead to its port {}",
                                     document.layers[wiring.layers.at(edge.to.layer)].described(), edge.to.port));
    }
  }
  for (const LayerPort& port : ports.inputs) {
    if (wiring.source.contains(port)) continue;
    return parse_error(fmt::format("{}: no edge leads to its port {}",
                                   document.layers[wiring.layers.at(port.layer)].described(), port.port));
  }
  TRY(put_in_order(document, wiring));
  return wiring;
}

}  // namespace tensorcast::models::openvino_ir
