// runtime/collectives/device_collectives.hpp - the collective operations on memory of accelerators,
// by NCCL or RCCL.
//
// Built by all ranks of a Communicator together. The Communicator carries the library's unique id
// and reports dead ranks, which the library does not always notice; it outlives this object. Used
// by the communicator's thread; one device per rank. Operations are queued on a stream of their own
// and are done after wait(). The order of a sum is the library's, not that of reduction_tree.hpp.
// Invariant: after one PeerLost all operations return PeerLost, and what ran on the device has been
// aborted. Cost: the library's.
#pragma once

#include <functional>
#include <memory>

#include "runtime/collectives/communicator.hpp"
#include "runtime/collectives/device_library.hpp"

namespace orrery {

/// Elements in a device's memory.
struct DeviceElements {
  void* at = nullptr;
  std::size_t count = 0;
  SumType type = SumType::kFloat32;
};

class DeviceCollectives {
 public:
  /// `device` is the number that CUDA or HIP gives it here. Errors occur at all ranks alike, only
  /// with different messages: a rank has no library, its device does not come up, or a rank is lost
  /// meanwhile.
  [[nodiscard]] static Result<std::unique_ptr<DeviceCollectives>> open(
      const DeviceLibraryNames& names, Communicator& ranks, int device);
  DeviceCollectives(std::unique_ptr<DeviceLibrary> library, Communicator& ranks, int device)
      : library_(std::move(library)), ranks_(ranks), device_(device) {}
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;
  /// Waits for what is queued and for the peers to get here, too, or aborts.
  ~DeviceCollectives();

  // The operations of Communicator. They return when the operation is queued. A PeerLost names this
  // rank itself if the library failed and no peer is known to be lost.

  [[nodiscard]] Shared<void> all_reduce(const DeviceElements& in_out);
  /// `in` is `size` times as long as `out`, which may be this rank's part of `in`.
  [[nodiscard]] Shared<void> reduce_scatter(const void* in, const DeviceElements& out);
  /// `out` is `size` times as long as `in`.
  [[nodiscard]] Shared<void> all_gather(const DeviceElements& in, void* out);
  [[nodiscard]] Shared<void> broadcast(const DeviceElements& in_out, std::uint32_t root);
  /// Equal parts, by rank, of `in` and `out`; each of `count` elements in all.
  [[nodiscard]] Shared<void> all_to_all(const DeviceElements& in, void* out);
  [[nodiscard]] Shared<void> send(const DeviceElements& elements, std::uint32_t to);
  [[nodiscard]] Shared<void> receive(const DeviceElements& elements, std::uint32_t from);

  /// Waits until all queued operations are done.
  [[nodiscard]] Shared<void> wait();
  /// Aborts what runs, without the peers, when this rank leaves the generation. All operations
  /// return PeerLost afterwards.
  void abort();
  /// The library's error message when it failed; "": it did not fail.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  using Code = DeviceLibrary::Code;
  /// Selects the device and creates a stream on it.
  [[nodiscard]] Status prepare();
  [[nodiscard]] Shared<void> start(const DeviceLibrary::UniqueId& id);
  [[nodiscard]] Shared<void> queue(const std::function<Code()>& call);
  /// Waits until the library has accepted the operation.
  [[nodiscard]] Shared<void> taken(Code code);
  [[nodiscard]] Shared<void> poll(const std::function<Shared<bool>()>& done);
  [[nodiscard]] Shared<bool> ready();
  [[nodiscard]] tl::unexpected<PeerLost> fail(std::string why);
  [[nodiscard]] tl::unexpected<PeerLost> give_up(const PeerLost& lost);

  std::unique_ptr<DeviceLibrary> library_;
  Communicator& ranks_;
  int device_;
  DeviceLibrary::Comm* comm_ = nullptr;
  DeviceLibrary::Stream* stream_ = nullptr;
  std::optional<PeerLost> lost_;
  std::string failure_;
};

}  // namespace orrery
