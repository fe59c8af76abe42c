// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/pickle_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "formats/npy/npy_text.hpp"

namespace tensorcast::formats::pytorch {
namespace {

struct AllowedName {
  std::string_view name;
  Function function;
};

constexpr auto allowed_names = std::to_array<AllowedName>({
    {"collections.OrderedDict", Function::dict},
    {"collections.Counter", Function::counter},
    {"collections.defaultdict", Function::default_dict},
    {"builtins.dict", Function::dict},
    {"builtins.list", Function::list},
    {"builtins.tuple", Function::tuple},
    {"builtins.set", Function::set},
    {"builtins.frozenset", Function::set},
    {"builtins.bytes", Function::bytes},
    {"builtins.type", Function::type},
    {"builtins.getattr", Function::get_attribute},
    {"builtins.int", Function::constant},
    {"builtins.long", Function::constant},
    {"builtins.unicode", Function::constant},
    {"builtins.float", Function::constant},
    {"builtins.str", Function::constant},
    {"builtins.bool", Function::constant},
    {"_codecs.encode", Function::encode},
    {"torch.Size", Function::tuple},
    {"torch.device", Function::device},
    {"torch.serialization._get_layout", Function::layout},
    {"torch.Tensor", Function::constant},
    {"torch.nn.parameter.Parameter", Function::constant},
    {"torch._utils._rebuild_tensor", Function::rebuild_tensor},
    {"torch._utils._rebuild_tensor_v2", Function::rebuild_tensor},
    {"torch._utils._rebuild_tensor_v3", Function::rebuild_tensor_v3},
    {"torch._utils._rebuild_parameter", Function::rebuild_parameter},
    {"torch._utils._rebuild_parameter_with_state", Function::rebuild_parameter_with_state},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", Function::rebuild_device_tensor},
    {"torch._utils._rebuild_device_tensor_from_numpy", Function::rebuild_device_tensor},
    {"torch._utils._rebuild_xla_tensor", Function::rebuild_device_tensor},
    {"torch.tensor._rebuild_from_type", Function::rebuild_from_type},
    {"torch._tensor._rebuild_from_type", Function::rebuild_from_type},
    {"torch._tensor._rebuild_from_type_v2", Function::rebuild_from_type},
    {"torch.storage.UntypedStorage", Function::storage},
    {"torch.storage._UntypedStorage", Function::storage},
    {"torch.storage._load_from_bytes", Function::load_from_bytes},
    {"numpy.ndarray", Function::constant},
    {"numpy.dtype", Function::numpy_dtype},
    {"numpy.core.multiarray.scalar", Function::numpy_scalar},
    {"numpy._core.multiarray.scalar", Function::numpy_scalar},
    {"numpy.core.multiarray._reconstruct", Function::numpy_reconstruct},
    {"numpy._core.multiarray._reconstruct", Function::numpy_reconstruct},
    {"numpy.core.numeric._frombuffer", Function::numpy_from_buffer},
    {"numpy._core.numeric._frombuffer", Function::numpy_from_buffer},
});

constexpr std::array<std::string_view, 6> torch_constants = {"strided",         "sparse_coo",    "contiguous_format",
                                                             "preserve_format", "channels_last", "channels_last_3d"};

// Tensors whose elements are not simply in a storage.
struct OtherTensor {
  std::string_view name;
  std::string_view what;
  std::string_view hint;
};

constexpr std::string_view dequantize = "save tensor.dequantize() instead";
constexpr auto other_tensors = std::to_array<OtherTensor>({
    {"torch._utils._rebuild_qtensor", "a quantized tensor", dequantize},
    {"torch._utils._rebuild_sparse_tensor", "a sparse tensor", "save tensor.to_dense() instead"},
    {"torch._utils._rebuild_nested_tensor", "a nested tensor", "save its parts, tensor.unbind(), instead"},
    {"torch._utils._rebuild_meta_tensor_no_storage", "a tensor on the meta device, which has no elements",
     "save the model after its weights are loaded"},
    {"torch._utils._rebuild_wrapper_subclass", "a tensor of a class that wraps other tensors",
     "save plain tensors: tensor.full_tensor() of a DTensor, tensor.dequantize() of a quantized one"},
});

// Modules with functions that run programs or open files; no checkpoint needs them.
constexpr auto dangerous_modules = std::to_array<std::string_view>(
    {"builtins",   "os",     "posix", "nt",     "sys",    "subprocess", "commands", "shutil", "socket",
     "importlib",  "runpy",  "pty",   "ctypes", "pickle", "_pickle",    "marshal",  "code",   "codeop",
     "webbrowser", "timeit", "pdb",   "bdb",    "pip",    "operator",   "_operator"});
// Types, constants and functions of numbers and containers. Those that call what they are given are not among them.
constexpr auto harmless_builtins = std::to_array<std::string_view>(
    {"bytearray",      "complex",    "object", "range", "slice",  "xrange",    "Ellipsis",
     "NotImplemented", "abs",        "all",    "any",   "divmod", "enumerate", "id",
     "isinstance",     "issubclass", "len",    "max",   "min",    "pow",       "print",
     "reversed",       "round",      "sorted", "sum",   "zip"});

bool is_exception(std::string_view name) {
  return name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning");
}

bool runs_programs(const std::string& module, const std::string& name) {
  const std::string_view top = std::string_view(module).substr(0, module.find('.'));
  if (!contains(dangerous_modules, top)) return false;
  return module != "builtins" || !(contains(harmless_builtins, name) || is_exception(name));
}

Result<Ref> add_function(Objects& objects, Function function, const std::string& name) {
  return objects.add({.kind = Kind::function, .integer = static_cast<std::int64_t>(function), .text = name});
}

}  // namespace

std::string shown(const std::string& name) {
  return npy::count_characters(name).ok() ? name.substr(0, longest_name) : "a name that is not UTF-8";
}

Error runs_a_program(const std::string& name) {
  return unsupported(fmt::format("the checkpoint names {}, which no tensor or data needs", shown(name)),
                     "loading it in Python may run a program: do that only if you trust its origin");
}

Error not_allowed(const std::string& name) {
  return unsupported(fmt::format("the checkpoint has an object made by {}, which is neither a tensor of a known kind "
                                 "nor plain data",
                                 shown(name)),
                     "save tensors and plain data only, as torch.save(model.state_dict(), path) does");
}

Error other_tensor(const std::string& name) {
  const auto* tensor = std::ranges::find(other_tensors, name, &OtherTensor::name);
  if (tensor == other_tensors.end()) return not_allowed(name);
  return unsupported(fmt::format("the checkpoint has {}", tensor->what), std::string(tensor->hint));
}

Result<Ref> find_name(Objects& objects, const std::string& given_module, const std::string& name) {
  const std::string module = given_module == "__builtin__" ? "builtins" : given_module;
  const std::string full = module + "." + name;
  const auto* found = std::ranges::find(allowed_names, full, &AllowedName::name);
  if (found != allowed_names.end()) return add_function(objects, found->function, full);
  if (module == "torch" || module == "torch.cuda") {
    if (find_storage_type(name) != nullptr) return add_function(objects, Function::storage, full);
  }
  if (module == "torch") {
    const bool is_constant =
        find_torch_type(name) != nullptr || std::ranges::find(torch_constants, name) != torch_constants.end();
    if (is_constant) return objects.add({.kind = Kind::symbol, .text = full});
  }
  if (full.starts_with("torch._utils._rebuild")) return add_function(objects, Function::other_tensor, full);
  if (runs_programs(module, name)) return runs_a_program(full);
  return add_function(objects, Function::foreign, full);
}

}  // namespace tensorcast::formats::pytorch
