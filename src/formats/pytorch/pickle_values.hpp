// SPDX-License-Identifier: Apache-2.0
// What a pickle of a checkpoint describes: plain data and tensors. Values refer to each other by index, so that shared
// and cyclic structures cost nothing to keep and nothing to free.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "dtype/try.hpp"
#include "formats/pytorch/torch_types.hpp"
#include "io/memory_budget.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::pytorch {

using Ref = std::uint32_t;
inline constexpr Ref no_ref = 0xFFFFFFFF;
inline constexpr std::size_t max_rank = 64;       // as in PyTorch
inline constexpr std::size_t longest_name = 200;  // of a name in a message

enum class Kind : std::uint8_t {
  none,
  boolean,      // integer
  integer,      // integer
  big_integer,  // text: decimal digits
  real,         // real
  string,       // text: UTF-8; integer: 1 if characters that UTF-8 lacks were replaced
  bytes,        // text
  list,         // items
  tuple,        // items
  set,          // items
  dict,         // items: key, value, key, value ...; attributes
  symbol,       // text: a constant such as torch.float32 or cuda:0
  function,     // integer: a Function; text: its name
  storage,      // integer: index into Objects::storages
  tensor,       // integer: index into Objects::tensors
  numpy_dtype,  // text: "<f4", "<bfloat16" of ml_dtypes
  numpy_array,  // an array that BUILD fills
  foreign,      // an object of another class. text: its class; items: its arguments and states; attributes: the last
                // state; integer: the dict or list of what it holds as a dict or list does; 0: nothing
  unread,       // a tensor that is not read. integer: index into Objects::problems; text: "numpy" of an array
};

struct Value {
  Kind kind = Kind::none;
  Ref attributes = no_ref;  // a dict of attributes that a dict has, such as _metadata of a state_dict
  std::int64_t integer = 0;
  double real = 0;
  std::string text = {};
  std::vector<Ref> items = {};
};

// Elements that one or several tensors share.
struct Storage {
  std::string key;                  // its name in the checkpoint
  const TorchType* type = nullptr;  // null: untyped bytes
  std::uint64_t items = 0;          // of `type`; bytes if untyped
  std::uint64_t first = 0;          // where a view of another storage begins, in items
};

struct StridedTensor {
  const TorchType* type = nullptr;
  Ref storage = no_ref;      // a value that is a storage, or the bytes of a NumPy array
  std::uint64_t offset = 0;  // in items, like the strides
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};
  bool big_endian = false;  // NumPy's byte order; that of storages is the checkpoint's
  bool conjugated = false;  // the elements are the conjugates of those in the storage
  bool negated = false;     // the elements are the negatives of those in the storage
};

// All values of a pickle.
class Objects {
 public:
  // `budget` outlives this.
  explicit Objects(io::MemoryBudget& budget) : budget_(budget) {}

  // Adds a value. Errors: unsupported (memory).
  [[nodiscard]] Result<Ref> add(Value value) {
    constexpr std::size_t overhead = 16;  // of the deque and of allocations
    TRY(budget_.take(sizeof(Value) + overhead + value.text.size() + 4 * value.items.size()));
    if (values_.size() == no_ref) return io::MemoryBudget::exceeded();
    values_.push_back(std::move(value));
    return static_cast<Ref>(values_.size() - 1);
  }
  // Adds an item to a container. Errors: unsupported (memory).
  [[nodiscard]] Result<void> append(Ref container, Ref item) {
    TRY(budget_.take_grown<Ref>());
    values_[container].items.push_back(item);
    return {};
  }
  [[nodiscard]] Value& operator[](Ref ref) { return values_[ref]; }
  [[nodiscard]] const Value& operator[](Ref ref) const { return values_[ref]; }
  [[nodiscard]] io::MemoryBudget& budget() const noexcept { return budget_; }

  // Adds a tensor that cannot be read, for this reason. Errors: unsupported (memory).
  [[nodiscard]] Result<Ref> add_unread(Error problem) {
    TRY(budget_.take(io::MemoryBudget::grown_bytes<Error> + problem.message.size() + problem.hint.size()));
    problems.push_back(std::move(problem));
    return add({.kind = Kind::unread, .integer = static_cast<std::int64_t>(problems.size() - 1)});
  }

  std::vector<Error> problems;
  std::vector<Storage> storages;
  std::vector<StridedTensor> tensors;

 private:
  io::MemoryBudget& budget_;
  std::deque<Value> values_;
};

[[nodiscard]] Error malformed_pickle(std::string what);

}  // namespace tensorcast::formats::pytorch
