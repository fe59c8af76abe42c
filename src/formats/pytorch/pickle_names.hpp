// SPDX-License-Identifier: Apache-2.0
// The names that a pickle may call. Nothing behind a name is ever run.
#pragma once

#include <cstdint>
#include <string>

#include "formats/pytorch/pickle_values.hpp"

namespace tensorcast::formats::pytorch {

enum class Function : std::uint8_t {
  dict,
  list,
  tuple,
  set,
  constant,  // a class that is only named, such as the factory of a defaultdict
  counter,
  default_dict,
  encode,
  device,
  layout,
  storage,  // text: torch.FloatStorage
  rebuild_tensor,
  rebuild_tensor_v3,
  rebuild_parameter,
  rebuild_parameter_with_state,
  rebuild_from_type,
  numpy_scalar,
  numpy_dtype,
  numpy_reconstruct,
  numpy_from_buffer,
  rebuild_device_tensor,
  other_tensor,  // makes a tensor of a kind that is not read
  bytes,
  type,
  get_attribute,    // names a class inside of a class, or a method
  load_from_bytes,  // a storage as pickle.dump writes it
  foreign,          // any other class or function, which is never run
};

// Returns the value of a name such as torch._utils._rebuild_tensor_v2: a function or a symbol. Errors: unsupported, for
// names that run programs.
[[nodiscard]] Result<Ref> find_name(Objects& objects, const std::string& module, const std::string& name);

// A name of the file as messages show it.
[[nodiscard]] std::string shown(const std::string& name);

// Why a name is refused that may run a program.
[[nodiscard]] Error runs_a_program(const std::string& name);

[[nodiscard]] Error not_allowed(const std::string& name);

// Why a tensor is not read that the function of this name would make.
[[nodiscard]] Error other_tensor(const std::string& name);

}  // namespace tensorcast::formats::pytorch
