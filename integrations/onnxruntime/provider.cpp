// SPDX-License-Identifier: Apache-2.0
// A plugin execution provider: the runtime asks it which nodes of a model it takes, and has its kernels compute them.
// It takes ONNX's Cast between numeric types, on the CPU and in the runtime's own memory, so that nothing is copied.
#include <onnxruntime_c_api.h>

#include <tensorcast/c_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attributes.hpp"
#include "cast_kernel.hpp"
#include "element_type.hpp"
#include "runtime.hpp"

namespace tensorcast::onnxruntime {
namespace {

constexpr std::uint32_t oldest_release = 24;  // the first with kernels in plugins
constexpr const char* provider_name = "TensorcastExecutionProvider";
constexpr std::string_view own_domain = "ai.tensorcast";  // of the operators in the other library
// Versions of Cast whose types and attributes this library knows. The first has `to` as a number, as all since.
constexpr int first_version = 6;
constexpr int last_version = 28;

struct Factory : OrtEpFactory {
  Factory(const OrtApi& runtime, std::uint32_t version);

  const OrtApi& api;
  const OrtEpApi& plugins;
  Factory* before = nullptr;  // the factory that was made before
};

// Sessions outlive the registration of the library, and release their providers by its factory. So all stay, in a list
// that can be reached.
std::atomic<Factory*> factories_made = nullptr;

// One session's provider.
struct Provider : OrtEp {
  explicit Provider(const Factory& factory);

  const OrtApi& api;
  const OrtEpApi& plugins;
  std::unique_ptr<OrtKernelRegistry, decltype(OrtEpApi::ReleaseKernelRegistry)> kernels;
  std::string problem;  // of the node that refuse_node() gets
};

struct Kernel : OrtKernelImpl {
  Kernel(const Provider& provider, const OrtKernelInfo& info);

  CastKernel cast;
};

Kernel::Kernel(const Provider& provider, const OrtKernelInfo& info)
    : OrtKernelImpl(), cast(provider.api, info, CastKind::onnx) {
  ort_version_supported = provider.ort_version_supported;
  Compute = [](OrtKernelImpl* me, OrtKernelContext* context) noexcept {
    const CastKernel& kernel = static_cast<Kernel*>(me)->cast;
    return guarded(kernel.api(), [&] { kernel.compute(*context); });
  };
  Release = [](OrtKernelImpl* me) noexcept { delete static_cast<Kernel*>(me); };
}

OrtStatus* create_kernel(void* provider, const OrtKernelInfo* info, OrtKernelImpl** kernel) noexcept {
  const auto& owner = *static_cast<const Provider*>(provider);
  return guarded(owner.api, [&] { *kernel = new Kernel(owner, *info); });
}

OrtStatus* refuse_node(void* provider, const OrtKernelInfo* /*info*/, OrtKernelImpl** /*kernel*/) noexcept {
  const auto& owner = *static_cast<const Provider*>(provider);
  return guarded(owner.api, [&] { fail(owner.api, ORT_INVALID_GRAPH, owner.problem); });
}

// Adds a kernel for nodes of the operators' domain that are wrong.
void add_refusal(Provider& provider, const char* op) {
  const OrtEpApi& plugins = provider.plugins;
  OrtKernelDefBuilder* made = nullptr;
  check(plugins.CreateKernelDefBuilder(&made));
  const std::unique_ptr<OrtKernelDefBuilder, decltype(plugins.ReleaseKernelDefBuilder)> builder(
      made, plugins.ReleaseKernelDefBuilder);
  check(plugins.KernelDefBuilder_SetOperatorType(made, op));
  check(plugins.KernelDefBuilder_SetDomain(made, own_domain.data()));
  check(plugins.KernelDefBuilder_SetSinceVersion(made, 1, 1));
  check(plugins.KernelDefBuilder_SetExecutionProvider(made, provider_name));
  OrtKernelDef* definition = nullptr;
  check(plugins.KernelDefBuilder_Build(made, &definition));
  const std::unique_ptr<OrtKernelDef, decltype(plugins.ReleaseKernelDef)> owner(definition, plugins.ReleaseKernelDef);
  check(plugins.KernelRegistry_AddKernel(provider.kernels.get(), definition, refuse_node, &provider));
}

// Adds a kernel from each of `from` to each of `to`. The runtime may let the result overwrite the input if `in_place`.
void add_kernel(Provider& provider, const std::vector<const OrtDataType*>& from,
                const std::vector<const OrtDataType*>& to, bool in_place) {
  const OrtEpApi& plugins = provider.plugins;
  OrtKernelDefBuilder* made = nullptr;
  check(plugins.CreateKernelDefBuilder(&made));
  const std::unique_ptr<OrtKernelDefBuilder, decltype(plugins.ReleaseKernelDefBuilder)> builder(
      made, plugins.ReleaseKernelDefBuilder);
  check(plugins.KernelDefBuilder_SetOperatorType(made, "Cast"));
  check(plugins.KernelDefBuilder_SetDomain(made, ""));
  check(plugins.KernelDefBuilder_SetSinceVersion(made, first_version, last_version));
  check(plugins.KernelDefBuilder_SetExecutionProvider(made, provider_name));
  check(plugins.KernelDefBuilder_AddTypeConstraint(made, "T1", from.data(), from.size()));
  check(plugins.KernelDefBuilder_AddTypeConstraint(made, "T2", to.data(), to.size()));
  const int first = 0;
  if (in_place) check(plugins.KernelDefBuilder_AddInputOutputMutableAliases(made, &first, &first, 1));
  OrtKernelDef* definition = nullptr;
  check(plugins.KernelDefBuilder_Build(made, &definition));
  const std::unique_ptr<OrtKernelDef, decltype(plugins.ReleaseKernelDef)> owner(definition, plugins.ReleaseKernelDef);
  check(plugins.KernelRegistry_AddKernel(provider.kernels.get(), definition, create_kernel, &provider));
}

// Adds kernels for all numeric types that the runtime has. Strings stay the runtime's, so that a model prints what it
// printed before.
void add_kernels(Provider& provider) {
  const TypeSystem system = type_system(provider.api);
  std::vector<const OrtDataType*> all;
  std::vector<const OrtDataType*> bytes;
  std::vector<const OrtDataType*> packed;
  for (const tc_dtype dtype : system.types) {
    if (dtype == string_type) continue;
    const OrtDataType* type = nullptr;
    check(provider.plugins.GetTensorDataType(system.declared(dtype), &type));
    all.push_back(type);
    (is_packed(dtype) ? packed : bytes).push_back(type);
  }
  add_kernel(provider, bytes, all, true);
  // The runtime takes types of fewer than 8 bits for bytes when it compares the sizes of input and result.
  add_kernel(provider, packed, all, false);
  add_refusal(provider, "Cast");
  add_refusal(provider, "CastLike");
}

// What is wrong with a node of the operators' domain, whose attributes the runtime shows to providers alone; empty for
// nothing.
std::string problem_of(const OrtApi& api, const OrtNode& node, const char* op) {
  std::size_t count = 0;
  check(api.Node_GetNumAttributes(&node, &count));
  std::vector<const OrtOpAttr*> attributes(count);
  check(api.Node_GetAttributes(&node, attributes.data(), count));
  for (const OrtOpAttr* attribute : attributes) {
    const char* name = nullptr;
    check(api.OpAttr_GetName(attribute, &name));
    if (!has_attribute(op, name)) return std::string(op) + " has no attribute " + name;
  }
  return {};
}

// Takes the nodes of `graph`, which may be the body of a node, that there is a kernel for. The runtime ignores an error
// here, and reports one of a kernel: so a node that is wrong gets one that is refused.
void take_nodes(Provider& provider, const OrtGraph& graph, OrtEpGraphSupportInfo& taken) {
  std::size_t count = 0;
  check(provider.api.Graph_GetNumNodes(&graph, &count));
  std::vector<const OrtNode*> nodes(count);
  check(provider.api.Graph_GetNodes(&graph, nodes.data(), count));
  for (const OrtNode* node : nodes) {
    const char* domain = nullptr;
    const char* op = nullptr;
    check(provider.api.Node_GetDomain(node, &domain));
    check(provider.api.Node_GetOperatorType(node, &op));
    const OrtKernelDef* kernel = nullptr;
    check(provider.plugins.EpGraphSupportInfo_LookUpKernel(&taken, node, &kernel));
    if (kernel == nullptr) continue;
    if (std::string_view(domain) == own_domain) {
      std::string problem = problem_of(provider.api, *node, op);
      if (problem.empty()) continue;  // the operators' library computes it
      provider.problem = std::move(problem);
    }
    check(provider.plugins.EpGraphSupportInfo_AddSingleNode(&taken, node));
  }
}

Provider::Provider(const Factory& factory)
    : OrtEp(), api(factory.api), plugins(factory.plugins), kernels(nullptr, plugins.ReleaseKernelRegistry) {
  ort_version_supported = factory.ort_version_supported;
  GetName = [](const OrtEp*) noexcept { return provider_name; };
  GetCapability = [](OrtEp* me, const OrtGraph* graph, OrtEpGraphSupportInfo* taken) noexcept {
    auto& provider = *static_cast<Provider*>(me);
    return guarded(provider.api, [&] { take_nodes(provider, *graph, *taken); });
  };
  GetKernelRegistry = [](OrtEp* me, const OrtKernelRegistry** registry) noexcept -> OrtStatus* {
    *registry = static_cast<const Provider*>(me)->kernels.get();
    return nullptr;
  };
  OrtKernelRegistry* registry = nullptr;
  check(plugins.CreateKernelRegistry(&registry));
  kernels.reset(registry);
  add_kernels(*this);
}

// Names the CPU, once, as a device that the provider runs on.
void add_device(Factory& factory, const OrtHardwareDevice* const* devices, std::size_t count, OrtEpDevice** found,
                std::size_t& found_count) {
  found_count = 0;
  for (std::size_t i = 0; i < count && found_count == 0; ++i) {
    if (factory.api.HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    check(factory.plugins.CreateEpDevice(&factory, devices[i], nullptr, nullptr, found));
    found_count = 1;
  }
}

Factory::Factory(const OrtApi& runtime, std::uint32_t version)
    : OrtEpFactory(), api(runtime), plugins(*runtime.GetEpApi()) {
  ort_version_supported = version;
  GetName = [](const OrtEpFactory*) noexcept { return provider_name; };
  GetVendor = [](const OrtEpFactory*) noexcept { return "tensorcast"; };
  GetVendorId = [](const OrtEpFactory*) noexcept -> std::uint32_t { return 0; };
  GetVersion = [](const OrtEpFactory*) noexcept { return tc_version(); };
  GetSupportedDevices = [](OrtEpFactory* me, const OrtHardwareDevice* const* devices, std::size_t count,
                           OrtEpDevice** found, std::size_t found_max, std::size_t* found_count) noexcept {
    auto& factory = *static_cast<Factory*>(me);
    return guarded(factory.api, [&] { add_device(factory, devices, found_max == 0 ? 0 : count, found, *found_count); });
  };
  CreateEp = [](OrtEpFactory* me, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, std::size_t,
                const OrtSessionOptions*, const OrtLogger*, OrtEp** provider) noexcept {
    const auto& factory = *static_cast<const Factory*>(me);
    return guarded(factory.api, [&] { *provider = new Provider(factory); });
  };
  ReleaseEp = [](OrtEpFactory*, OrtEp* provider) noexcept { delete static_cast<Provider*>(provider); };
  // The runtime's own memory of the CPU; nothing runs ahead of its caller.
  CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                       OrtAllocator** allocator) noexcept -> OrtStatus* {
    *allocator = nullptr;
    return nullptr;
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
  CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
    *transfer = nullptr;
    return nullptr;
  };
  IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
}

}  // namespace
}  // namespace tensorcast::onnxruntime

extern "C" {

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(const char* /*registered_name*/,
                                                                    const OrtApiBase* base, const OrtLogger* /*logger*/,
                                                                    OrtEpFactory** factories, std::size_t factories_max,
                                                                    std::size_t* count) {
  using namespace tensorcast::onnxruntime;
  *count = 0;
  return with_runtime(*base, oldest_release, [&](const OrtApi& api, std::uint32_t version) {
    if (factories_max == 0) fail(api, ORT_INVALID_ARGUMENT, "there is no room for an execution provider");
    auto* made = new Factory(api, version);
    made->before = factories_made.exchange(made);
    *factories = made;
    *count = 1;
  });
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* /*factory*/) { return nullptr; }

}  // extern "C"
