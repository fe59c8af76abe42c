// SPDX-License-Identifier: Apache-2.0
// Everything: all headers of the component `models`, which contains `files` and `core`. A source that casts arrays only
// compiles faster with tensorcast/typed_cast.hpp or tensorcast/cast.hpp (docs/headers.md).
#pragma once

#include "tensorcast/cast.hpp"
#include "tensorcast/detect_recipes.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/element.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/explain.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"
#include "tensorcast/node.hpp"
#include "tensorcast/prepared_cast.hpp"
#include "tensorcast/promote.hpp"
#include "tensorcast/quantized_file.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/tensor.hpp"
#include "tensorcast/tensor_file.hpp"
#include "tensorcast/typed_cast.hpp"
#include "tensorcast/version.hpp"
#include "tensorcast/view.hpp"
#include "tensorcast/whole_file.hpp"
