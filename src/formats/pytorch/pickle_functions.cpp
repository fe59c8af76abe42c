// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/pickle_functions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/npy/npy_text.hpp"
#include "formats/pytorch/numpy_objects.hpp"
#include "formats/pytorch/pickle_arguments.hpp"
#include "formats/pytorch/pickle_names.hpp"

namespace tensorcast::formats::pytorch {
namespace {

bool is_empty(const Value& value) {
  return value.kind == Kind::none ||
         (value.items.empty() && (value.kind == Kind::dict || value.kind == Kind::tuple || value.kind == Kind::list));
}

bool has_sign(const TorchType& type) {
  return is_complex(type) || type.dtype == DType::float64 || type.dtype == DType::float32 ||
         type.dtype == DType::float16 || type.dtype == DType::bfloat16;
}

// Applies {'conj': True, 'neg': True}: the elements are those of the storage with other signs.
Result<void> set_view(const Objects& objects, Ref properties, StridedTensor& tensor) {
  const Value& dict = objects[properties];
  if (dict.kind == Kind::none) return {};
  constexpr std::size_t most = 4;  // keys and values
  if (dict.kind != Kind::dict || dict.items.size() > most) {
    return malformed_pickle("properties of a tensor that are not a dict of two");
  }
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Value& key = objects[dict.items[i]];
    const Value& value = objects[dict.items[i + 1]];
    const bool is_set = value.kind == Kind::boolean && value.integer == 1;
    if (key.kind == Kind::string && key.text == "conj" && is_set && is_complex(*tensor.type)) {
      tensor.conjugated = true;
    } else if (key.kind == Kind::string && key.text == "neg" && is_set && has_sign(*tensor.type)) {
      tensor.negated = true;
    } else {
      return unsupported(fmt::format("the checkpoint has a tensor of {} with the property \"{}\", which is not known",
                                     tensor.type->name, key.kind == Kind::string ? key.text.substr(0, 40) : ""),
                         "save tensor.clone() instead");
    }
  }
  return {};
}

// (storage, offset, size, strides, requires_grad, hooks[, properties]); v3 has the type before the properties.
Result<Ref> rebuild_tensor(Objects& objects, const Arguments& arguments, bool has_type) {
  StridedTensor tensor;
  tensor.storage = TRY(arguments.at(0, Kind::storage));
  const Storage& stored = objects.storages[static_cast<std::size_t>(objects[tensor.storage].integer)];
  tensor.type = stored.type;
  if (has_type) {
    const Ref type = TRY(arguments.at(6));
    const std::string& name = objects[type].text;
    tensor.type = name.starts_with("torch.") ? find_torch_type(std::string_view(name).substr(6)) : nullptr;
    if (tensor.type == nullptr) {
      return unsupported(fmt::format("the checkpoint has a tensor of {}, which is not read", shown(name)),
                         "save tensor.view(torch.uint8) instead");
    }
  }
  if (tensor.type == nullptr) return malformed_pickle("a tensor of bytes without a type");
  tensor.offset = TRY(arguments.size_at(1));
  tensor.shape = TRY(arguments.sizes_at(2));
  tensor.strides = TRY(arguments.sizes_at(3));
  if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > max_rank) {
    return malformed_pickle(
        fmt::format("a tensor of {} dimensions with {} strides", tensor.shape.size(), tensor.strides.size()));
  }
  const std::size_t properties = has_type ? 7 : 6;
  if (arguments.count() > properties) {
    TRY(set_view(objects, *arguments.at(properties), tensor));
  }
  return add_tensor(objects, std::move(tensor));
}

// Reports whether a state is empty, or has only the attributes by which modules know their buffers.
bool is_plain_state(const Objects& objects, const Value& state) {
  constexpr std::size_t most = 4;  // keys and values
  if (state.kind != Kind::dict || state.items.size() > most) return is_empty(state);
  for (std::size_t i = 0; i < state.items.size(); i += 2) {
    const Value& key = objects[state.items[i]];
    if (key.kind != Kind::string || (key.text != "_is_buffer" && key.text != "persistent")) return false;
  }
  return true;
}

// Returns the tensor if it has no attributes, which would be lost.
Result<Ref> without_state(const Objects& objects, Ref tensor, Ref state) {
  const Value& value = objects[state];
  // A pair has those of __dict__ and of __slots__.
  const bool plain =
      is_plain_state(objects, value) ||
      (value.kind == Kind::tuple && value.items.size() == 2 &&
       std::ranges::all_of(value.items, [&](Ref item) { return is_plain_state(objects, objects[item]); }));
  if (plain) return tensor;
  return unsupported("the checkpoint has a tensor with attributes of its own, which no other file can hold",
                     "save tensor.detach() instead");
}

// (function, type, arguments, state)
Result<Ref> called(Objects& objects, Ref function, Ref arguments_ref);

Result<Ref> rebuild_from_type(Objects& objects, const Arguments& arguments) {
  const Ref function = TRY(arguments.at(0, Kind::function));
  const auto rebuilds = static_cast<Function>(objects[function].integer);
  const Ref type = TRY(arguments.at(1, Kind::function));
  const std::string& name = objects[type].text;
  const bool plain = name == "torch.Tensor" || name == "torch.nn.parameter.Parameter";
  const bool known = rebuilds == Function::rebuild_tensor || rebuilds == Function::rebuild_tensor_v3 ||
                     rebuilds == Function::rebuild_parameter;
  if (!plain || !known) {
    return unsupported(fmt::format("the checkpoint has a tensor of a class of its own, {}, made by {}",
                                   name.substr(0, longest_name), objects[function].text.substr(0, longest_name)),
                       "save tensor.detach().as_subclass(torch.Tensor) instead");
  }
  const Ref inner = TRY(arguments.at(2, Kind::tuple));
  const Ref tensor = TRY(called(objects, function, inner));
  const Ref state = TRY(arguments.at(3));
  return without_state(objects, tensor, state);
}

// (tensor or array, type, device, requires_grad): tensors of devices whose storages cannot be saved.
Result<Ref> rebuild_device_tensor(const Objects& objects, const Arguments& arguments) {
  const Ref data = TRY(arguments.at(0, Kind::tensor));
  const Ref type = TRY(arguments.at(1, Kind::symbol));
  const StridedTensor& tensor = objects.tensors[static_cast<std::size_t>(objects[data].integer)];
  if (objects[type].text == fmt::format("torch.{}", tensor.type->name)) return data;
  return unsupported(fmt::format("the checkpoint has a tensor of {} that was saved as {}",
                                 objects[type].text.substr(0, longest_name), tensor.type->name),
                     "save tensor.cpu() instead");
}

// Bytes in protocols that lack them: a text whose characters are the bytes.
Result<Ref> encode(Objects& objects, const Arguments& arguments) {
  const Ref text = TRY(arguments.at(0, Kind::string));
  const Ref encoding = TRY(arguments.at(1, Kind::string));
  const std::string& name = objects[encoding].text;
  if (name != "latin1" && name != "latin-1") return malformed_pickle("a text in an encoding that is not Latin-1");
  const std::string utf8 = objects[text].text;
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
  const Ref from = TRY(arguments.at(0));
  const Value& source = objects[from];
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
  const Ref kind = TRY(arguments.at(0, Kind::string));
  std::string text = objects[kind].text;
  if (arguments.count() > 1) {
    const Ref index = TRY(arguments.at(1));
    if (objects[index].kind == Kind::integer) text += fmt::format(":{}", objects[index].integer);
  }
  return objects.add({.kind = Kind::symbol, .text = std::move(text)});
}

// copyreg's functions make an object of the class that is their first argument.
Result<Ref> make_foreign(Objects& objects, Ref function, Ref arguments) {
  const std::string* name = &objects[function].text;
  if (name->starts_with("copyreg.") || name->starts_with("copy_reg.")) {
    const std::vector<Ref>& items = objects[arguments].items;
    if (!items.empty() && objects[items[0]].kind == Kind::function) name = &objects[items[0]].text;
  }
  return objects.add({.kind = Kind::foreign, .text = *name, .items = {arguments}});
}

// getattr(class, name) is a name, such as that of a class inside of a class; getattr(object, name) is a method.
Result<Ref> get_attribute(Objects& objects, const Arguments& arguments, Ref arguments_ref) {
  const Ref object = TRY(arguments.at(0));
  const Ref attribute = TRY(arguments.at(1, Kind::string));
  const std::string owner = objects[object].text, name = objects[attribute].text;
  if (objects[object].kind == Kind::function) return find_name(objects, owner, name);
  if (objects[object].kind != Kind::foreign) return runs_a_program("builtins.getattr");
  return objects.add({.kind = Kind::foreign, .text = owner + "." + name, .items = {arguments_ref}});
}

Result<Ref> make_layout(Objects& objects, const Arguments& arguments) {
  const Ref name = TRY(arguments.at(0, Kind::string));
  return objects.add({.kind = Kind::symbol, .text = objects[name].text});
}

}  // namespace

Result<Ref> add_tensor(Objects& objects, StridedTensor tensor) {
  const std::uint64_t bytes = io::MemoryBudget::grown_bytes<StridedTensor> + 16 * tensor.shape.size();
  TRY(objects.budget().take(bytes));
  objects.tensors.push_back(std::move(tensor));
  return objects.add({.kind = Kind::tensor, .integer = static_cast<std::int64_t>(objects.tensors.size() - 1)});
}

namespace {

Result<Ref> called(Objects& objects, Ref function, Ref arguments_ref) {
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
      const Ref tensor = TRY(arguments.at(0, Kind::tensor));
      const Ref state = TRY(arguments.at(3));
      return without_state(objects, tensor, state);
    }
    case Function::rebuild_from_type:
      return rebuild_from_type(objects, arguments);
    case Function::rebuild_device_tensor:
      return rebuild_device_tensor(objects, arguments);
    case Function::foreign:
      return make_foreign(objects, function, arguments_ref);
    case Function::other_tensor:
      return other_tensor(objects[function].text);
    case Function::bytes:
      if (arguments.count() == 0) return objects.add({.kind = Kind::bytes});
      return make_foreign(objects, function, arguments_ref);
    case Function::type:
      return make_foreign(objects, function, arguments_ref);
    case Function::get_attribute:
      return get_attribute(objects, arguments, arguments_ref);
    case Function::load_from_bytes:
      return unsupported("the checkpoint has a tensor as pickle.dump writes it",
                         "load it in Python, and save it with torch.save");
    case Function::numpy_scalar:
      return make_numpy_scalar(objects, arguments);
    case Function::numpy_dtype:
      return make_numpy_dtype(objects, arguments);
    case Function::numpy_reconstruct:
      return objects.add({.kind = Kind::numpy_array});
    case Function::numpy_from_buffer:
      return make_numpy_array_of_buffer(objects, arguments);
    case Function::constant:
      if (objects[function].text.starts_with("builtins.")) return make_foreign(objects, function, arguments_ref);
      break;
    case Function::storage:
      break;
  }
  return not_allowed(objects[function].text);
}

}  // namespace

Result<Ref> call(Objects& objects, Ref function, Ref arguments) {
  // A parameter of a tensor that is not read is not read either.
  const std::vector<Ref>& given = objects[arguments].items;
  const bool is_parameter = objects[function].kind == Kind::function &&
                            objects[function].text.starts_with("torch._utils._rebuild_") &&
                            objects[arguments].kind == Kind::tuple && !given.empty();
  if (is_parameter && objects[given.front()].kind == Kind::unread) return given.front();
  Result<Ref> made = called(objects, function, arguments);
  if (made || made.error().code != ErrorCode::unsupported) return made;
  // What cannot be read is one tensor of many. Where memory is at its limit, this needs some, too.
  return objects.add_unread(std::move(made).error());
}

Result<Ref> call_with_names(Objects& objects, Ref function, Ref arguments, Ref named) {
  const Ref made = TRY(call(objects, function, arguments));
  if (is_empty(objects[named])) return made;
  if (objects[made].kind != Kind::foreign) return malformed_pickle("a call with named arguments");
  TRY(objects.append(made, named));
  return made;
}

Result<void> set_state(Objects& objects, Ref object, Ref state) {
  Value& value = objects[object];
  switch (value.kind) {
    case Kind::dict:
      // A class with slots has a pair of states.
      if (objects[state].kind != Kind::dict) return {};
      if (!objects[state].items.empty()) value.attributes = state;
      return {};
    case Kind::foreign:
      value.attributes = state;
      return objects.append(object, state);
    case Kind::numpy_dtype:
      return set_numpy_dtype_state(objects, object, state);
    case Kind::numpy_array:
      return set_numpy_array_state(objects, object, state);
    case Kind::unread:
      return {};
    default:
      break;
  }
  return unsupported("the checkpoint has an object with a state that is not known",
                     "save tensors and plain data only, as torch.save(model.state_dict(), path) does");
}

Result<Ref> make_storage(Objects& objects, Ref identifier) {
  if (objects[identifier].kind != Kind::tuple)
    return malformed_pickle("an identifier of a storage that is not a tuple");
  const Arguments arguments(objects, identifier);
  const Ref kind = TRY(arguments.at(0, Kind::string));
  // The older format's name of a class of modules: (class, its file, its source).
  if (objects[kind].text == "module") return arguments.at(1, Kind::function);
  if (objects[kind].text != "storage") {
    return not_allowed(fmt::format("\"{}\"", objects[kind].text.substr(0, 20)));
  }
  const Ref type = TRY(arguments.at(1, Kind::function));
  if (static_cast<Function>(objects[type].integer) != Function::storage) {
    return malformed_pickle("a storage whose type is not one");
  }
  const Ref key = TRY(arguments.at(2, Kind::string));
  const std::uint64_t items = TRY(arguments.size_at(4));
  const std::string& name = objects[type].text;
  Storage storage{
      .key = objects[key].text, .type = find_storage_type(name.substr(name.rfind('.') + 1)), .items = items};
  // The older format's view of another storage: (key, first item, items).
  if (arguments.count() > 5) {
    const Ref view = TRY(arguments.at(5));
    if (objects[view].kind == Kind::tuple) {
      const Arguments part(objects, view);
      storage.first = TRY(part.size_at(1));
    } else if (objects[view].kind != Kind::none) {
      return malformed_pickle("a view of a storage that is not a tuple");
    }
  }
  // Many storages may share the text of their key, of which each has a copy.
  const std::uint64_t bytes = io::MemoryBudget::grown_bytes<Storage> + 2 * storage.key.size();
  TRY(objects.budget().take(bytes));
  objects.storages.push_back(std::move(storage));
  return objects.add({.kind = Kind::storage, .integer = static_cast<std::int64_t>(objects.storages.size() - 1)});
}

}  // namespace tensorcast::formats::pytorch
