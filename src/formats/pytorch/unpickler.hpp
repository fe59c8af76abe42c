// SPDX-License-Identifier: Apache-2.0
// An interpreter of pickles, protocols 0 to 5, which runs no code.
#pragma once

#include "formats/bytes/window_reader.hpp"
#include "formats/pytorch/pickle_values.hpp"

namespace tensorcast::formats::pytorch {

// Reads one pickle, up to its STOP, and returns its value. Time and memory are proportional to the pickle.
// Errors: parse, unsupported (names that are not allowed, memory), io.
[[nodiscard]] Result<Ref> unpickle(WindowReader& input, Objects& objects);

}  // namespace tensorcast::formats::pytorch
