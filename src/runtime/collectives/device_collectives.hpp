// runtime/collectives/device_collectives.hpp - the collective operations on memory of accelerators,
// by NCCL or RCCL.
//
// Built by all ranks of a Communicator together, which carries the libraries' unique id and tells
// who dies: they do not always notice themselves. It outlives this. Used by the communicator's
// thread; one device a rank. Operations are queued on a stream of their own and done after wait().
// A sum's order is the library's, not that of reduction_tree.hpp. Invariant: after one PeerLost all
// operations are PeerLost, and what runs on the device has been aborted. Cost: the library's.
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
  /// A device by the number that CUDA or HIP gives it here. Errors, the same at all ranks but for
  /// the words: a rank has no library, or its device does not come up; a rank is lost meanwhile.
  [[nodiscard]] static Result<std::unique_ptr<DeviceCollectives>> open(
      const DeviceLibraryNames& names, Communicator& ranks, int device);
  DeviceCollectives(std::unique_ptr<DeviceLibrary> library, Communicator& ranks, int device)
      : library_(std::move(library)), ranks_(ranks), device_(device) {}
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;
  /// Waits for what is queued here and for the peers to come here too, or aborts.
  ~DeviceCollectives();

  // As those of Communicator. They return when the operation is queued. A PeerLost names this rank
  // itself where the library failed and no peer is known to be lost.

  [[nodiscard]] Shared<void> all_reduce(const DeviceElements& in_out);
  /// `in` is `size` times as long as `out`, which may be its own part.
  [[nodiscard]] Shared<void> reduce_scatter(const void* in, const DeviceElements& out);
  /// `out` is `size` times as long as `in`.
  [[nodiscard]] Shared<void> all_gather(const DeviceElements& in, void* out);
  [[nodiscard]] Shared<void> broadcast(const DeviceElements& in_out, std::uint32_t root);
  /// Equal parts, by rank, of `in` and `out`; each of `count` elements in all.
  [[nodiscard]] Shared<void> all_to_all(const DeviceElements& in, void* out);
  [[nodiscard]] Shared<void> send(const DeviceElements& elements, std::uint32_t to);
  [[nodiscard]] Shared<void> receive(const DeviceElements& elements, std::uint32_t from);

  /// Until all that was queued is done.
  [[nodiscard]] Shared<void> wait();
  /// Ends what runs, without the peers: for who leaves the generation. All is PeerLost then.
  void abort();
  /// What the library said when it failed; "": it did not.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  using Code = DeviceLibrary::Code;
  /// The device and a stream on it.
  [[nodiscard]] Status prepare();
  [[nodiscard]] Shared<void> start(const DeviceLibrary::UniqueId& id);
  [[nodiscard]] Shared<void> queue(const std::function<Code()>& call);
  /// Until the library has taken what it was told.
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
