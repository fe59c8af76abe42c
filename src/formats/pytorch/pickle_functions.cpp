#include "formats/pytorch/pickle_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "formats/npy/npy_text.hpp"
#include "formats/pytorch/numpy_objects.hpp"
#include "formats/pytorch/pickle_arguments.hpp"

namespace tensorcast::formats::pytorch {
namespace {

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
};

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
    {"builtins.int", Function::constant},
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
    {"torch._tensor._rebuild_from_type_v2", Function::rebuild_from_type},
    {"torch.storage.UntypedStorage", Function::storage},
    {"torch.storage._UntypedStorage", Function::storage},
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
constexpr std::size_t max_rank = 64;

Result<Ref> add_function(Objects& objects, Function function, const std::string& name) {
  Value value{.kind = Kind::function, .text = name};
  value.integer = static_cast<std::int64_t>(function);
  return objects.add(std::move(value));
}

Error not_allowed(const std::string& name) {
  constexpr std::size_t longest_name = 200;
  const std::string shown =
      npy::count_characters(name).ok() ? name.substr(0, longest_name) : "a name that is not UTF-8";
  return Error{
      .code = ErrorCode::unsupported,
      .message = fmt::format("the checkpoint has an object made by {}, which is neither a tensor of a known kind "
                             "nor plain data",
                             shown),
      .hint = "save tensors and plain data only, as torch.save(model.state_dict(), path) does"};
}

bool is_empty(const Value& value) {
  return value.kind == Kind::none ||
         (value.items.empty() && (value.kind == Kind::dict || value.kind == Kind::tuple || value.kind == Kind::list));
}

// (storage, offset, size, strides, requires_grad, hooks ...); v3 also has the type.
Result<Ref> rebuild_tensor(Objects& objects, const Arguments& arguments, bool has_type) {
  StridedTensor tensor;
  const Result<Ref> storage = arguments.at(0, Kind::storage);
  if (!storage) return storage.error();
  tensor.storage = *storage;
  const Storage& stored = objects.storages[static_cast<std::size_t>(objects[*storage].integer)];
  tensor.type = stored.type;
  if (has_type) {
    const Result<Ref> type = arguments.at(6, Kind::symbol);
    if (!type) return type.error();
    const std::string& name = objects[*type].text;
    tensor.type = name.starts_with("torch.") ? find_torch_type(std::string_view(name).substr(6)) : nullptr;
    if (tensor.type == nullptr) return not_allowed(name);
  }
  if (tensor.type == nullptr) return malformed_pickle("a tensor of bytes without a type");
  const Result<std::uint64_t> offset = arguments.size_at(1);
  if (!offset) return offset.error();
  Result<std::vector<std::int64_t>> shape = arguments.sizes_at(2);
  if (!shape) return std::move(shape).error();
  Result<std::vector<std::int64_t>> strides = arguments.sizes_at(3);
  if (!strides) return std::move(strides).error();
  if (shape->size() != strides->size() || shape->size() > max_rank) {
    return malformed_pickle(fmt::format("a tensor of {} dimensions with {} strides", shape->size(), strides->size()));
  }
  tensor.offset = *offset;
  tensor.shape = *std::move(shape);
  tensor.strides = *std::move(strides);
  return add_tensor(objects, std::move(tensor));
}

// Returns the tensor if it has no attributes, which would be lost.
Result<Ref> without_state(const Objects& objects, Ref tensor, Ref state) {
  const Value& value = objects[state];
  // A pair has those of __dict__ and of __slots__.
  const bool empty =
      is_empty(value) || (value.kind == Kind::tuple && value.items.size() == 2 &&
                          std::ranges::all_of(value.items, [&](Ref item) { return is_empty(objects[item]); }));
  if (empty) return tensor;
  return Error{.code = ErrorCode::unsupported,
               .message = "the checkpoint has a tensor with attributes of its own, which no other file can hold",
               .hint = "save tensor.detach() instead"};
}

// (function, type, arguments, state)
Result<Ref> rebuild_from_type(Objects& objects, const Arguments& arguments) {
  const Result<Ref> function = arguments.at(0, Kind::function);
  if (!function) return function.error();
  const auto rebuilds = static_cast<Function>(objects[*function].integer);
  const Result<Ref> type = arguments.at(1, Kind::function);
  if (!type) return type.error();
  const std::string& name = objects[*type].text;
  const bool plain = name == "torch.Tensor" || name == "torch.nn.parameter.Parameter";
  const bool known = rebuilds == Function::rebuild_tensor || rebuilds == Function::rebuild_tensor_v3 ||
                     rebuilds == Function::rebuild_parameter;
  if (!plain || !known) return not_allowed(plain ? objects[*function].text : name);
  const Result<Ref> inner = arguments.at(2, Kind::tuple);
  if (!inner) return inner.error();
  const Result<Ref> tensor = call(objects, *function, *inner);
  if (!tensor) return tensor;
  const Result<Ref> state = arguments.at(3);
  return state ? without_state(objects, *tensor, *state) : state;
}

// Bytes in protocols that lack them: a text whose characters are the bytes.
Result<Ref> encode(Objects& objects, const Arguments& arguments) {
  const Result<Ref> text = arguments.at(0, Kind::string);
  if (!text) return text;
  const Result<Ref> encoding = arguments.at(1, Kind::string);
  if (!encoding) return encoding;
  const std::string& name = objects[*encoding].text;
  if (name != "latin1" && name != "latin-1") return malformed_pickle("a text in an encoding that is not Latin-1");
  const std::string utf8 = objects[*text].text;
  std::string bytes;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto first = static_cast<unsigned char>(utf8[i]);
    if (first < 0x80) {
      bytes += utf8[i];
      continue;
    }
    if ((first != 0xC2 && first != 0xC3) || i + 1 == utf8.size()) return malformed_pickle("bytes above 255");
    bytes += static_cast<char>((first & 3u) << 6 | (static_cast<unsigned char>(utf8[++i]) & 0x3Fu));
  }
  return objects.add({.kind = Kind::bytes, .text = std::move(bytes)});
}

// dict(pairs), list(items), ...: a container with the items of another one.
Result<Ref> make_container(Objects& objects, Kind kind, const Arguments& arguments) {
  if (arguments.count() == 0) return objects.add({.kind = kind});
  const Result<Ref> from = arguments.at(0);
  if (!from) return from;
  const Value& source = objects[*from];
  Value made{.kind = kind};
  if (kind != Kind::dict || source.kind == Kind::dict) {
    const bool has_items = source.kind == Kind::list || source.kind == Kind::tuple || source.kind == Kind::set ||
                           (kind == Kind::dict && source.kind == Kind::dict);
    if (!has_items) return malformed_pickle("a container of something that has no items");
    made.items = source.items;
    return objects.add(std::move(made));
  }
  if (source.kind != Kind::list && source.kind != Kind::tuple) return malformed_pickle("a dict of something else");
  for (const Ref pair : source.items) {
    const Value& entry = objects[pair];
    if ((entry.kind != Kind::list && entry.kind != Kind::tuple) || entry.items.size() != 2) {
      return malformed_pickle("a dict of something else than pairs");
    }
    made.items.insert(made.items.end(), entry.items.begin(), entry.items.end());
  }
  return objects.add(std::move(made));
}

Result<Ref> make_device(Objects& objects, const Arguments& arguments) {
  const Result<Ref> kind = arguments.at(0, Kind::string);
  if (!kind) return kind;
  std::string text = objects[*kind].text;
  if (arguments.count() > 1) {
    const Result<Ref> index = arguments.at(1);
    if (!index) return index;
    if (objects[*index].kind == Kind::integer) text += fmt::format(":{}", objects[*index].integer);
  }
  return objects.add({.kind = Kind::symbol, .text = std::move(text)});
}

Result<Ref> make_layout(Objects& objects, const Arguments& arguments) {
  const Result<Ref> name = arguments.at(0, Kind::string);
  if (!name) return name;
  return objects.add({.kind = Kind::symbol, .text = objects[*name].text});
}

}  // namespace

Result<Ref> add_tensor(Objects& objects, StridedTensor tensor) {
  const std::uint64_t bytes = io::MemoryBudget::grown_bytes<StridedTensor> + 16 * tensor.shape.size();
  if (auto taken = objects.budget().take(bytes); !taken) return std::move(taken).error();
  objects.tensors.push_back(std::move(tensor));
  Value value{.kind = Kind::tensor};
  value.integer = static_cast<std::int64_t>(objects.tensors.size() - 1);
  return objects.add(std::move(value));
}

Result<Ref> find_name(Objects& objects, const std::string& module, const std::string& name) {
  const std::string full = (module == "__builtin__" ? "builtins" : module) + "." + name;
  const auto* found = std::find_if(allowed_names.begin(), allowed_names.end(),
                                   [&](const AllowedName& allowed) { return allowed.name == full; });
  if (found != allowed_names.end()) return add_function(objects, found->function, full);
  if (module == "torch" || module == "torch.cuda") {
    if (find_storage_type(name) != nullptr) return add_function(objects, Function::storage, full);
  }
  if (module == "torch") {
    const bool is_constant = find_torch_type(name) != nullptr ||
                             std::find(torch_constants.begin(), torch_constants.end(), name) != torch_constants.end();
    if (is_constant) return objects.add({.kind = Kind::symbol, .text = full});
  }
  return not_allowed(full);
}

Result<Ref> call(Objects& objects, Ref function, Ref arguments_ref) {
  if (objects[function].kind != Kind::function) return malformed_pickle("a call of something that is not a function");
  if (objects[arguments_ref].kind != Kind::tuple) return malformed_pickle("a call without a tuple of arguments");
  const Arguments arguments(objects, arguments_ref);
  switch (static_cast<Function>(objects[function].integer)) {
    case Function::dict:
    case Function::counter:
      return make_container(objects, Kind::dict, arguments);
    case Function::default_dict:
      return objects.add({.kind = Kind::dict});
    case Function::list:
      return make_container(objects, Kind::list, arguments);
    case Function::tuple:
      return make_container(objects, Kind::tuple, arguments);
    case Function::set:
      return make_container(objects, Kind::set, arguments);
    case Function::encode:
      return encode(objects, arguments);
    case Function::device:
      return make_device(objects, arguments);
    case Function::layout:
      return make_layout(objects, arguments);
    case Function::rebuild_tensor:
      return rebuild_tensor(objects, arguments, false);
    case Function::rebuild_tensor_v3:
      return rebuild_tensor(objects, arguments, true);
    case Function::rebuild_parameter:
      return arguments.at(0, Kind::tensor);
    case Function::rebuild_parameter_with_state: {
      const Result<Ref> tensor = arguments.at(0, Kind::tensor);
      if (!tensor) return tensor;
      const Result<Ref> state = arguments.at(3);
      return state ? without_state(objects, *tensor, *state) : state;
    }
    case Function::rebuild_from_type:
      return rebuild_from_type(objects, arguments);
    case Function::numpy_scalar:
      return make_numpy_scalar(objects, arguments);
    case Function::numpy_dtype:
      return make_numpy_dtype(objects, arguments);
    case Function::numpy_reconstruct:
      return objects.add({.kind = Kind::numpy_array});
    case Function::numpy_from_buffer:
      return make_numpy_array_of_buffer(objects, arguments);
    case Function::constant:
    case Function::storage:
      break;
  }
  return not_allowed(objects[function].text);
}

Result<void> set_state(Objects& objects, Ref object, Ref state) {
  Value& value = objects[object];
  switch (value.kind) {
    case Kind::dict:
      if (objects[state].kind != Kind::dict) break;
      if (!objects[state].items.empty()) value.attributes = state;
      return {};
    case Kind::numpy_dtype:
      return set_numpy_dtype_state(objects, object, state);
    case Kind::numpy_array:
      return set_numpy_array_state(objects, object, state);
    default:
      break;
  }
  return Error{.code = ErrorCode::unsupported,
               .message = "the checkpoint has an object with a state that is not known",
               .hint = "save tensors and plain data only, as torch.save(model.state_dict(), path) does"};
}

Result<Ref> make_storage(Objects& objects, Ref identifier) {
  if (objects[identifier].kind != Kind::tuple)
    return malformed_pickle("an identifier of a storage that is not a tuple");
  const Arguments arguments(objects, identifier);
  const Result<Ref> kind = arguments.at(0, Kind::string);
  if (!kind) return kind;
  if (objects[*kind].text != "storage") {
    return not_allowed(fmt::format("\"{}\"", objects[*kind].text.substr(0, 20)));
  }
  const Result<Ref> type = arguments.at(1, Kind::function);
  if (!type) return type;
  if (static_cast<Function>(objects[*type].integer) != Function::storage) {
    return malformed_pickle("a storage whose type is not one");
  }
  const Result<Ref> key = arguments.at(2, Kind::string);
  if (!key) return key;
  const Result<std::uint64_t> items = arguments.size_at(4);
  if (!items) return items.error();
  const std::string& name = objects[*type].text;
  Storage storage{
      .key = objects[*key].text, .type = find_storage_type(name.substr(name.rfind('.') + 1)), .items = *items};
  // The older format's view of another storage: (key, first item, items).
  if (arguments.count() > 5) {
    const Result<Ref> view = arguments.at(5);
    if (!view) return view;
    if (objects[*view].kind == Kind::tuple) {
      const Arguments part(objects, *view);
      const Result<std::uint64_t> first = part.size_at(1);
      if (!first) return first.error();
      storage.first = *first;
    } else if (objects[*view].kind != Kind::none) {
      return malformed_pickle("a view of a storage that is not a tuple");
    }
  }
  // Many storages may share the text of their key, of which each has a copy.
  const std::uint64_t bytes = io::MemoryBudget::grown_bytes<Storage> + 2 * storage.key.size();
  if (auto taken = objects.budget().take(bytes); !taken) return std::move(taken).error();
  objects.storages.push_back(std::move(storage));
  Value value{.kind = Kind::storage};
  value.integer = static_cast<std::int64_t>(objects.storages.size() - 1);
  return objects.add(std::move(value));
}

}  // namespace tensorcast::formats::pytorch
