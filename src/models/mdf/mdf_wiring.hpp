// Which port feeds which, and an order in which every node follows those that feed it.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/mdf/mdf_model.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::mdf {

struct PortAddress {
  std::size_t node = 0;
  std::string port;
  friend auto operator<=>(const PortAddress&, const PortAddress&) = default;
};

struct Wiring {
  std::map<PortAddress, const Edge*> incoming;  // of input ports
  std::map<std::string, std::size_t, std::less<>> nodes;
  std::vector<bool> sends;         // nodes with an outgoing edge
  std::vector<std::size_t> order;  // of all nodes, as indices
};

// Of several edges into one port the last counts. Errors: parse: edges from or to nothing, a cycle; unsupported: ports
// that add or multiply what several edges bring, and, in the semantics of the reference engine, several edges with
// different values, whose order it leaves open.
[[nodiscard]] Result<Wiring> connect(const MdfModel& model, MdfSemantics semantics);

// An order of items in which each follows those that it needs; shorter than `needs` when there is a cycle.
[[nodiscard]] std::vector<std::size_t> ordered(const std::vector<std::vector<std::size_t>>& needs);

}  // namespace tensorcast::models::mdf
