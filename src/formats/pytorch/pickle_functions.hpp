// SPDX-License-Identifier: Apache-2.0
// What the functions and classes make that a checkpoint may name (pickle_names.hpp). Nothing else is ever called.
#pragma once

#include "formats/pytorch/pickle_values.hpp"

namespace tensorcast::formats::pytorch {

// Calls a function with a tuple of arguments, or makes an object of a class. A name that is not known only becomes an
// object of Kind::foreign. Errors: parse, unsupported.
[[nodiscard]] Result<Ref> call(Objects& objects, Ref function, Ref arguments);

// The same with a dict of named arguments, which only objects of Kind::foreign may have.
[[nodiscard]] Result<Ref> call_with_names(Objects& objects, Ref function, Ref arguments, Ref named);

// Gives an object its state, as its class does when it is loaded. Errors: parse, unsupported.
[[nodiscard]] Result<void> set_state(Objects& objects, Ref object, Ref state);

// Makes the storage of a persistent identifier: ('storage', type, key, location, items[, view]). Errors: parse,
// unsupported.
[[nodiscard]] Result<Ref> make_storage(Objects& objects, Ref identifier);

}  // namespace tensorcast::formats::pytorch
