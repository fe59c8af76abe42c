// The functions and classes that a checkpoint may name, and what they make. Nothing else is ever called.
#pragma once

#include <string>
#include <string_view>

#include "formats/pytorch/pickle_values.hpp"

namespace tensorcast::formats::pytorch {

// The value of a name such as torch._utils._rebuild_tensor_v2: a function or a symbol.
// Errors: unsupported, for every name that is not in the list.
[[nodiscard]] Result<Ref> find_name(Objects& objects, const std::string& module, const std::string& name);

// Calls a function with a tuple of arguments, or makes an object of a class. Errors: parse, unsupported.
[[nodiscard]] Result<Ref> call(Objects& objects, Ref function, Ref arguments);

// Gives an object its state, as its class does when it is loaded. Errors: parse, unsupported.
[[nodiscard]] Result<void> set_state(Objects& objects, Ref object, Ref state);

// Makes the storage of a persistent identifier: ('storage', type, key, location, items[, view]). Errors: parse,
// unsupported.
[[nodiscard]] Result<Ref> make_storage(Objects& objects, Ref identifier);

}  // namespace tensorcast::formats::pytorch
