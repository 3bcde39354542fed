// runtime/collectives/device_library.hpp - the functions of NCCL or RCCL, and of CUDA's or HIP's
// runtime beneath, that collectives on devices call.
//
// Opened at run time, so that the libraries are not needed to build or to start. Declares the part
// of their C interface that is used: types, values and signatures as in nccl.h of NCCL 2.17 (RCCL's
// rccl.h has the same), cudaError of the CUDA Runtime API and hipError_t of HIP. Immutable once
// opened; the libraries stay loaded as long as it lives.
#pragma once

#include <array>
#include <climits>
#include <memory>
#include <string>
#include <vector>

#include "base/system/dynamic_library.hpp"

namespace orrery {

/// Possible sonames or paths of the two libraries, and the prefix of the runtime's functions.
struct DeviceLibraryNames {
  std::vector<std::string> collectives;
  std::vector<std::string> runtime;
  std::string prefix;

  [[nodiscard]] static DeviceLibraryNames nvidia();
  [[nodiscard]] static DeviceLibraryNames amd();
};

struct DeviceLibrary {
  struct Comm;    // the library's
  struct Stream;  // the runtime's
  struct UniqueId {
    std::array<char, 128> bytes;
  };
  /// ncclConfig_t of NCCL 2.17; newer libraries read only `size` bytes of it.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21700;
    int blocking = 0;
    int cluster_size = INT_MIN;  // this and the next two: the library's choice
    int blocks_min = INT_MIN;
    int blocks_max = INT_MIN;
    const char* net_name = nullptr;
  };
  using Code = int;  ///< ncclResult_t, or the runtime's error; 0: success
  static constexpr Code kInProgress = 7;
  static constexpr Code kNotReady = 600;  ///< cudaErrorNotReady, hipErrorNotReady
  static constexpr int kNonBlocking = 1;  ///< cudaStreamNonBlocking, hipStreamNonBlocking
  static constexpr int kSum = 0;
  static constexpr int kUint8 = 1;
  static constexpr int kInt32 = 2;
  static constexpr int kFloat32 = 7;
  static constexpr int kBfloat16 = 9;

  /// Errors: a library is missing, cannot be loaded, or lacks a function; the message names it.
  [[nodiscard]] static Result<std::unique_ptr<DeviceLibrary>> open(const DeviceLibraryNames& names);

  Code (*get_unique_id)(UniqueId*) = nullptr;
  Code (*init)(Comm**, int ranks, UniqueId, int rank, Config*) = nullptr;
  Code (*finalize)(Comm*) = nullptr;
  Code (*destroy)(Comm*) = nullptr;
  Code (*abort)(Comm*) = nullptr;
  Code (*async_error)(Comm*, Code*) = nullptr;
  const char* (*words_of)(Code) = nullptr;
  Code (*group_start)() = nullptr;
  Code (*group_end)() = nullptr;
  Code (*all_reduce)(const void*, void*, std::size_t, int type, int op, Comm*, Stream*) = nullptr;
  Code (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, Comm*,
                         Stream*) = nullptr;
  Code (*all_gather)(const void*, void*, std::size_t, int type, Comm*, Stream*) = nullptr;
  Code (*broadcast)(const void*, void*, std::size_t, int type, int root, Comm*, Stream*) = nullptr;
  Code (*send)(const void*, std::size_t, int type, int peer, Comm*, Stream*) = nullptr;
  Code (*receive)(void*, std::size_t, int type, int peer, Comm*, Stream*) = nullptr;
  // Functions of the runtime.
  Code (*set_device)(int) = nullptr;
  Code (*stream_create)(Stream**, unsigned flags) = nullptr;
  Code (*stream_query)(Stream*) = nullptr;
  Code (*stream_destroy)(Stream*) = nullptr;

 private:
  [[nodiscard]] Status bind(const std::string& prefix);

  std::unique_ptr<DynamicLibrary> runtime_;
  std::unique_ptr<DynamicLibrary> collectives_;
};

}  // namespace orrery
