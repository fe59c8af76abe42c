#include "models/openvino_ir/ir_order.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <deque>
#include <set>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

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

// Returns a layer of a cycle: the predecessors of a layer that cannot be placed include another such layer.
const Layer& on_a_cycle(const Document& document, const Wiring& wiring, const std::vector<std::size_t>& missing,
                        std::size_t start) {
  std::set<std::size_t> seen;
  std::size_t at = start;
  while (seen.insert(at).second) {
    const Layer& layer = document.layers[at];
    for (const Port& port : layer.inputs) {
      const std::size_t before = wiring.layers.at(wiring.source.at({layer.id, port.id}).layer);
      if (missing[before] == 0) continue;
      at = before;
      break;
    }
  }
  return document.layers[at];
}

Result<void> put_in_order(const Document& document, Wiring& wiring) {
  std::vector<std::size_t> missing(document.layers.size());  // number of inputs whose layer is not yet placed
  std::vector<std::vector<std::size_t>> consumers(document.layers.size());
  for (const auto& [to, from] : wiring.source) {
    const std::size_t consumer = wiring.layers.at(to.layer);
    ++missing[consumer];
    consumers[wiring.layers.at(from.layer)].push_back(consumer);
  }
  std::deque<std::size_t> ready;
  for (std::size_t index = 0; index < missing.size(); ++index) {
    if (missing[index] == 0) ready.push_back(index);
  }
  while (!ready.empty()) {
    const std::size_t index = ready.front();
    ready.pop_front();
    wiring.order.push_back(index);
    for (const std::size_t consumer : consumers[index]) {
      if (--missing[consumer] == 0) ready.push_back(consumer);
    }
  }
  for (std::size_t index = 0; index < missing.size(); ++index) {
    if (missing[index] == 0) continue;
    return parse_error(on_a_cycle(document, wiring, missing, index).described() +
                       " depends on its own output: a cycle");
  }
  return {};
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
