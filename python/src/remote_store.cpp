// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bound_arguments.hpp"
#include "tensorcast/remote_store.hpp"

namespace tensorcast::python {

namespace {

// Makes an error of Python's exception: an OSError's number is kept, Ctrl-C stays pending.
Error error_of(nb::python_error& error, const std::string& url) {
  Error made{.code = ErrorCode::io, .message = {}, .file = url};
  if (error.matches(PyExc_OSError) && nb::hasattr(error.value(), "errno")) {
    const nb::object number = error.value().attr("errno");
    if (PyLong_Check(number.ptr())) made.system_error = static_cast<int>(PyLong_AsLong(number.ptr()));
    PyErr_Clear();
  }
  const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string words = nb::cast<std::string>(nb::str(error.value()));
  const bool is_ours = nb::cast<std::string>(nb::str(error.type().attr("__module__"))).starts_with("tensorcast");
  made.message = words.empty() ? type : is_ours ? words : type + ": " + words;
  if (error.matches(PyExc_KeyboardInterrupt)) error.restore();
  return made;
}

// Calls `work` with the GIL.
template <class T, class Work>
Result<T> called(const std::string& url, Work&& work) {
  const nb::gil_scoped_acquire acquired;
  try {
    if constexpr (std::is_void_v<T>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (nb::python_error& error) {
    return error_of(error, url);
  } catch (const nb::cast_error&) {
    return Error{.code = ErrorCode::internal, .message = "the store returned a value of a wrong type", .file = url};
  }
}

// An object of Python that threads without the GIL own.
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (!Py_IsInitialized()) {
      (void)object_.release();
      return;
    }
    const nb::gil_scoped_acquire acquired;
    object_.reset();
  }
  [[nodiscard]] nb::object& get() noexcept { return object_; }

 private:
  nb::object object_;
};

nb::object view_of(std::span<const std::byte> bytes, int flags) {
  void* data = const_cast<std::byte*>(bytes.data());  // read-only unless `flags` say PyBUF_WRITE
  return nb::steal(PyMemoryView_FromMemory(static_cast<char*>(data), static_cast<Py_ssize_t>(bytes.size()), flags));
}

using FileRow = std::tuple<std::string, std::uint64_t, std::string>;

RemoteFile file_of(FileRow row) {
  return {.url = std::move(std::get<0>(row)), .bytes = std::get<1>(row), .version = std::move(std::get<2>(row))};
}

class PythonWriter final : public RemoteWriter {
 public:
  PythonWriter(nb::object writer, std::string url) : writer_(std::move(writer)), url_(std::move(url)) {}
  PythonWriter(const PythonWriter&) = delete;
  PythonWriter& operator=(const PythonWriter&) = delete;
  ~PythonWriter() override {
    if (!done_) (void)called<void>(url_, [&] { writer_.get().attr("discard")(); });
  }
  Result<void> append(std::span<const std::byte> bytes) override {
    return called<void>(url_, [&] { writer_.get().attr("append")(view_of(bytes, PyBUF_READ)); });
  }
  Result<void> commit() override {
    done_ = true;
    return called<void>(url_, [&] { writer_.get().attr("commit")(); });
  }

 private:
  Held writer_;
  std::string url_;
  bool done_ = false;
};

class PythonStore final : public RemoteStore {
 public:
  explicit PythonStore(nb::object store) : store_(std::move(store)) {}

  Result<std::optional<RemoteFile>> find(const std::string& url) override {
    return called<std::optional<RemoteFile>>(url, [&]() -> std::optional<RemoteFile> {
      auto row = nb::cast<std::optional<FileRow>>(store_.get().attr("find")(url));
      return row ? std::optional(file_of(*std::move(row))) : std::nullopt;
    });
  }
  Result<std::vector<RemoteFile>> list(const std::string& folder) override {
    return called<std::vector<RemoteFile>>(folder, [&] {
      std::vector<RemoteFile> files;
      for (FileRow& row : nb::cast<std::vector<FileRow>>(store_.get().attr("list")(folder))) {
        files.push_back(file_of(std::move(row)));
      }
      return files;
    });
  }
  Result<bool> is_folder(const std::string& url) override {
    return called<bool>(url, [&] { return nb::cast<bool>(store_.get().attr("is_folder")(url)); });
  }
  Result<void> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) override {
    return called<void>(url, [&] { store_.get().attr("read")(url, offset, view_of(out, PyBUF_WRITE)); });
  }
  Result<std::unique_ptr<RemoteWriter>> create(const std::string& url) override {
    return called<std::unique_ptr<RemoteWriter>>(url, [&]() -> std::unique_ptr<RemoteWriter> {
      return std::make_unique<PythonWriter>(store_.get().attr("create")(url), url);
    });
  }
  Result<void> move(const std::string& from, const std::string& to) override {
    return called<void>(to, [&] { store_.get().attr("move")(from, to); });
  }
  Result<void> remove(const std::vector<std::string>& urls) override {
    return called<void>(urls.front(), [&] { store_.get().attr("remove")(urls); });
  }

 private:
  Held store_;
};

void set_store(nb::object store) {
  set_remote_store(store.is_none() ? nullptr : std::make_shared<PythonStore>(std::move(store)));
}

}  // namespace

void bind_remote_store(nb::module_& module) {
  module.def("set_remote_store", &set_store, nb::arg("store").none(), "Sets the store of all URLs.");
}

}  // namespace tensorcast::python
