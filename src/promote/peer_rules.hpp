// SPDX-License-Identifier: Apache-2.0
// The rules of other systems, for comparison with OpenVINO's.
#pragma once

#include "promote/lattice.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct PeerRules {
  std::string_view owner;  // the system's name for itself
  Lattice lattice;
};

// Null for openvino, which has no lattice, and for numbers without rules.
[[nodiscard]] const PeerRules* find_peer_rules(PromoteRules rules) noexcept;

// Precondition: find_peer_rules(options.rules) is not null.
[[nodiscard]] Result<DType> promote_as_peer(PromoteOperand a, PromoteOperand b, const PromoteOptions& options);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
