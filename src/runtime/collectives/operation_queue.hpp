// runtime/collectives/operation_queue.hpp - operations of an exchange that are begun now and come
// to their end while their rank computes.
//
// A PeerExchange owns one, which all communicators over it share; used by one thread, the
// exchange's. Operations come one after the other, in the order in which they were begun, so all
// ranks agree on the order of their parts and the result has the bits of a call that waits. They go
// on in progress(), wait() and every operation that waits, and at no other time: no thread is
// behind them. Invariant: once one has met a lost peer, all later ones of the exchange have.
// Cost: a look at the head's next part, for sockets one poll.
#pragma once

#include <deque>
#include <memory>

#include "runtime/collectives/collective_plan.hpp"

namespace orrery {

class Operation;
class OperationQueue;

/// An operation on its way. Its buffers are the operation's until it is done. May outlive the
/// exchange: what has not come to its end by then has met a lost peer. Move-only; used by the
/// exchange's thread.
class [[nodiscard]] Pending {
 public:
  explicit Pending(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  /// Waits: who drops a handle may free the buffers.
  ~Pending() { finish(); }

  /// Without going on: as of the last progress().
  [[nodiscard]] bool done() const;
  /// Until it and all begun before it have come to their end.
  [[nodiscard]] Shared<void> wait();

 private:
  void finish();
  std::shared_ptr<Operation> operation_;
};

class OperationQueue {
 public:
  /// `exchange` owns it.
  explicit OperationQueue(PeerExchange& exchange) : exchange_(exchange) {}
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;
  ~OperationQueue();

  /// Goes as far as it does without waiting.
  [[nodiscard]] Pending begin(Rounds rounds);
  /// Every operation that can goes on, as far as it does without waiting. Whether none is left.
  bool progress();
  /// Until all that were begun have come to their end.
  [[nodiscard]] Shared<void> finish();
  /// The same, and `rounds` after them.
  [[nodiscard]] Shared<void> run(Rounds rounds);

 private:
  friend class Pending;
  void finish_to(const Operation& last);
  /// Whether the first is at its end.
  bool advance_first(Wait wait);
  void fail(const PeerLost& lost);

  PeerExchange& exchange_;
  std::uint32_t rank_ = 0;
  std::deque<std::shared_ptr<Operation>> begun_;
  std::optional<PeerLost> lost_;
};

}  // namespace orrery
