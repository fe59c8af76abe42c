// SPDX-License-Identifier: Apache-2.0
// Connects ports, and orders nodes so that each comes after those that feed it.
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
  std::map<PortAddress, const Edge*> incoming;  // the edge of each input port
  std::map<std::string, std::size_t, std::less<>> nodes;
  std::vector<bool> sends;         // nodes with an outgoing edge
  std::vector<std::size_t> order;  // indices of all nodes
};

// The last of several edges into one port counts. Errors: parse: edges from or to a missing port, a cycle; unsupported:
// ports that add or multiply the values of several edges; under the reference engine's semantics, several edges with
// different values, as their order is undefined.
[[nodiscard]] Result<Wiring> connect(const MdfModel& model, MdfSemantics semantics);

}  // namespace tensorcast::models::mdf
