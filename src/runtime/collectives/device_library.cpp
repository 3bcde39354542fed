#include "runtime/collectives/device_library.hpp"

namespace orrery {
namespace {

Result<std::unique_ptr<DynamicLibrary>> open_one(const std::vector<std::string>& names) {
  Result<std::unique_ptr<DynamicLibrary>> library = DynamicLibrary::open(names);
  if (library && *library == nullptr) {
    return environment_error(fmt::format("there is no {} on this machine", fmt::join(names, ", ")));
  }
  return library;
}

}  // namespace

DeviceLibraryNames DeviceLibraryNames::nvidia() {
  return {.collectives = {"libnccl.so.2"},
          .runtime = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
          .prefix = "cuda"};
}

DeviceLibraryNames DeviceLibraryNames::amd() {
  return {.collectives = {"librccl.so.1"},
          .runtime = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
          .prefix = "hip"};
}

Result<std::unique_ptr<DeviceLibrary>> DeviceLibrary::open(const DeviceLibraryNames& names) {
  auto library = std::make_unique<DeviceLibrary>();
  auto collectives = open_one(names.collectives);
  if (!collectives) return forward_error(collectives);
  library->collectives_ = std::move(*collectives);
  auto runtime = open_one(names.runtime);
  if (!runtime) return forward_error(runtime);
  library->runtime_ = std::move(*runtime);
  if (Status bound = library->bind(names.prefix); !bound) return forward_error(bound);
  return library;
}

Status DeviceLibrary::bind(const std::string& prefix) {
  Status all;
  const auto require = [&](const char* name, auto*& function) {
    if (all) all = collectives_->require(name, function);
  };
  require("ncclGetUniqueId", get_unique_id);
  require("ncclCommInitRankConfig", init);
  require("ncclCommFinalize", finalize);
  require("ncclCommDestroy", destroy);
  require("ncclCommAbort", abort);
  require("ncclCommGetAsyncError", async_error);
  require("ncclGetErrorString", words_of);
  require("ncclGroupStart", group_start);
  require("ncclGroupEnd", group_end);
  require("ncclAllReduce", all_reduce);
  require("ncclReduceScatter", reduce_scatter);
  require("ncclAllGather", all_gather);
  require("ncclBroadcast", broadcast);
  require("ncclSend", send);
  require("ncclRecv", receive);
  const auto beneath = [&](const char* name, auto*& function) {
    if (all) all = runtime_->require((prefix + name).c_str(), function);
  };
  beneath("SetDevice", set_device);
  beneath("StreamCreateWithFlags", stream_create);
  beneath("StreamQuery", stream_query);
  beneath("StreamDestroy", stream_destroy);
  return all;
}

}  // namespace orrery
