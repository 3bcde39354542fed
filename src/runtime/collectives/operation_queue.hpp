// runtime/collectives/operation_queue.hpp - operations of an exchange that are begun now and
// complete while their rank computes.
//
// A PeerExchange owns one queue, which all communicators over it share; used by the exchange's
// thread only. Operations run one after the other, in the order in which they were begun, so all
// ranks agree on the order of their parts and the result has the same bits as that of a blocking
// call. They advance only in progress(), wait() and every operation that waits: there is no
// background thread. Invariant: once an operation has returned PeerLost, all later ones of the
// exchange do. Cost: one check for the head's next part; with sockets one poll.
#pragma once

#include <deque>
#include <memory>

#include "runtime/collectives/collective_plan.hpp"

namespace orrery {

class Operation;
class OperationQueue;

/// A pending operation. Its buffers belong to the operation until it is done. May outlive the
/// exchange: an operation that is not complete by then ends with PeerLost. Move-only; used by the
/// exchange's thread.
class [[nodiscard]] Pending {
 public:
  explicit Pending(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  /// Waits for the operation, since its owner may free the buffers afterwards.
  ~Pending() { finish(); }

  /// Whether it was done at the last progress(); does not advance it.
  [[nodiscard]] bool done() const;
  /// Waits until it and all operations begun before it are complete.
  [[nodiscard]] Shared<void> wait();

 private:
  void finish();
  std::shared_ptr<Operation> operation_;
};

class OperationQueue {
 public:
  /// `exchange` owns the queue.
  explicit OperationQueue(PeerExchange& exchange) : exchange_(exchange) {}
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;
  ~OperationQueue();

  /// Queues an operation and advances it as far as possible without waiting.
  [[nodiscard]] Pending begin(Rounds rounds);
  /// Advances all operations as far as possible without waiting. Returns whether none is left.
  bool progress();
  /// Waits until all operations begun so far are complete.
  [[nodiscard]] Shared<void> finish();
  /// Completes all operations begun so far, and then `rounds`.
  [[nodiscard]] Shared<void> run(Rounds rounds);

 private:
  friend class Pending;
  void finish_to(const Operation& last);
  /// Advances the first operation; returns whether it is complete.
  bool advance_first(Wait wait);
  void fail(const PeerLost& lost);

  PeerExchange& exchange_;
  std::uint32_t rank_ = 0;
  std::deque<std::shared_ptr<Operation>> begun_;
  std::optional<PeerLost> lost_;
};

}  // namespace orrery
