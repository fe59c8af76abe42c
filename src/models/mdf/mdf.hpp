// ModECI MDF: graphs of nodes with ports and parameters, as JSON, YAML or BSON.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "models/model_format.hpp"

namespace tensorcast::models::mdf {

[[nodiscard]] const ModelFormat& format();

}  // namespace tensorcast::models::mdf
