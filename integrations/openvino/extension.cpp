// SPDX-License-Identifier: Apache-2.0
// The library that OpenVINO loads. It finds out which OpenVINO called, and loads the operations for its interface.
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "interface.hpp"

namespace tensorcast::openvino {
namespace {

constexpr Functions functions = {&::tc_cast, &::tc_cast_options_init_sized, &::tc_promote,
                                 &::tc_promote_options_init_sized, &::tc_last_error};

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error("tensorcast: " + message); }

struct Release {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const Release&, const Release&) = default;
  [[nodiscard]] std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

// Releases whose classes have the same layout and virtual functions, as compilers print them, up to the newest that the
// tests ran on. The operations are compiled for the first.
struct Interface {
  Release first;
  Release last;
};
constexpr std::array<Interface, 4> interfaces = {{
    {{2024, 4}, {2024, 4}},
    {{2024, 5}, {2025, 0}},
    {{2025, 1}, {2025, 4}},
    {{2026, 0}, {2026, 4}},
}};

// OpenVINO's ov::Version.
struct Version {
  const char* build_number;
  const char* description;
};

struct Runtime {
  std::string path;
  Release release;
};

// The OpenVINO that `caller` is a part of, or links.
Runtime find_runtime(const void* caller) {
  Dl_info info = {};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) fail("the library that loads the extension is unknown");
  void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) handle = dlopen(nullptr, RTLD_LAZY);  // the program itself
  void* symbol = handle == nullptr ? nullptr : dlsym(handle, "get_openvino_version");
  if (handle != nullptr) dlclose(handle);
  if (symbol == nullptr || dladdr(symbol, &info) == 0) fail(std::string(info.dli_fname) + " is not OpenVINO");
  const auto version = reinterpret_cast<Version (*)()>(symbol)();
  Runtime runtime;
  runtime.path = info.dli_fname;
  char* end = nullptr;
  runtime.release.major = static_cast<int>(std::strtol(version.build_number, &end, 10));
  if (*end == '.') runtime.release.minor = static_cast<int>(std::strtol(end + 1, nullptr, 10));
  return runtime;
}

std::filesystem::path operations_for(const Runtime& runtime) {
  Dl_info self = {};
  if (dladdr(&functions, &self) == 0) fail("the extension does not find itself");
  const std::filesystem::path folder = std::filesystem::path(self.dli_fname).parent_path();
  const auto file = [&](const Release& release) {
    return folder / ("libtensorcast_openvino_" + release.text() + ".so");
  };
  std::filesystem::path found = file(runtime.release);
  if (std::filesystem::exists(found)) return found;
  for (const Interface& known : interfaces) {
    if (runtime.release < known.first || known.last < runtime.release) continue;
    found = file(known.first);
    if (std::filesystem::exists(found)) return found;
  }
  fail("no operations for OpenVINO " + runtime.release.text() + " in " + folder.string() +
       "; build them with -DTENSORCAST_OPENVINO_INCLUDES=FOLDER, its headers");
}

void create(void* extensions, const void* caller) {
  const Runtime runtime = find_runtime(caller);
  const std::filesystem::path path = operations_for(runtime);
  // The operations name no OpenVINO, so that every patch will do. Programs in Python load it for themselves alone; from
  // here on, libraries that are loaded later see it, too.
  void* global = dlopen(runtime.path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
  void* operations = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = operations == nullptr ? dlerror() : nullptr;
  const std::string reason = error == nullptr ? "" : error;
  if (global != nullptr) dlclose(global);
  if (operations == nullptr) fail("OpenVINO " + runtime.release.text() + " does not fit: " + reason);
  void* symbol = dlsym(operations, create_operations_name);
  if (symbol == nullptr) fail(path.string() + " is not a library of operations");
  reinterpret_cast<CreateOperations>(symbol)(extensions, functions);  // stays loaded, as models may outlive all else
}

}  // namespace
}  // namespace tensorcast::openvino

// OpenVINO declares it with a std::vector<std::shared_ptr<ov::Extension>>&.
extern "C" __attribute__((visibility("default"))) void create_extensions(void* extensions) {
  tensorcast::openvino::create(extensions, __builtin_return_address(0));
}
