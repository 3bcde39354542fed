#include "runtime/collectives/operation_queue.hpp"

#include <utility>

namespace orrery {

class Operation {
 public:
  Operation(OperationQueue* queue, Rounds rounds) : queue_(queue), rounds_(std::move(rounds)) {}

  /// Advances to its end, or with Wait::kNo until it would wait. Returns whether it is complete.
  [[nodiscard]] Shared<bool> advance(PeerExchange& exchange, Wait wait) {
    for (; at_ < rounds_.size(); ++at_) {
      const Shared<bool> through = advance_round(exchange, wait);
      if (!through || !*through) return through;
      shown_ = 0;
      views_.clear();
    }
    return exchange.settle(wait);
  }

  /// Detaches the operation from its queue, with its result.
  void end(const Shared<void>& result) {
    queue_ = nullptr;
    result_ = result;
    rounds_.clear();
  }

  /// Returns nullptr if the operation is complete.
  [[nodiscard]] OperationQueue* queue() const { return queue_; }
  [[nodiscard]] const Shared<void>& result() const { return result_; }

 private:
  /// Shows the parts of the round and uses those that the others show. Returns whether the round is
  /// complete.
  [[nodiscard]] Shared<bool> advance_round(PeerExchange& exchange, Wait wait) {
    Round& round = rounds_[at_];
    if (shown_ < round.shown.size()) {
      const auto more = exchange.show(std::span(round.shown).subspan(shown_), wait);
      if (!more) return tl::unexpected(more.error());
      shown_ += *more;
      if (shown_ < round.shown.size()) return false;
    }
    views_.reserve(round.from.size());
    while (views_.size() < round.from.size()) {
      const auto view = exchange.look(round.from[views_.size()], wait);
      if (!view) return tl::unexpected(view.error());
      if (!*view) return false;
      views_.push_back(**view);
    }
    use_views(round, views_);
    return true;
  }

  OperationQueue* queue_;
  Rounds rounds_;
  std::size_t at_ = 0;
  std::size_t shown_ = 0;
  std::vector<std::span<const std::byte>> views_;
  Shared<void> result_;
};

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this != &other) {
    finish();
    operation_ = std::move(other.operation_);
  }
  return *this;
}

bool Pending::done() const { return operation_->queue() == nullptr; }

Shared<void> Pending::wait() {
  finish();
  return operation_->result();
}

void Pending::finish() {
  if (operation_ == nullptr || done()) return;
  operation_->queue()->finish_to(*operation_);
}

OperationQueue::~OperationQueue() { fail({rank_}); }

Pending OperationQueue::begin(Rounds rounds) {
  rank_ = exchange_.rank();
  auto operation = std::make_shared<Operation>(this, std::move(rounds));
  if (lost_) {
    operation->end(tl::unexpected(*lost_));
    return Pending(std::move(operation));
  }
  begun_.push_back(operation);
  (void)progress();
  return Pending(std::move(operation));
}

bool OperationQueue::progress() {
  while (!begun_.empty()) {
    if (!advance_first(Wait::kNo)) return false;
  }
  return true;
}

Shared<void> OperationQueue::finish() {
  while (!begun_.empty()) (void)advance_first(Wait::kUntilDone);
  if (lost_) return tl::unexpected(*lost_);
  return {};
}

Shared<void> OperationQueue::run(Rounds rounds) {
  if (Shared<void> free = finish(); !free) return free;
  const Shared<bool> through =
      Operation(this, std::move(rounds)).advance(exchange_, Wait::kUntilDone);
  if (through) return {};
  lost_ = through.error();
  return tl::unexpected(through.error());
}

void OperationQueue::finish_to(const Operation& last) {
  while (last.queue() != nullptr) (void)advance_first(Wait::kUntilDone);
}

bool OperationQueue::advance_first(Wait wait) {
  Operation& first = *begun_.front();
  const Shared<bool> through = first.advance(exchange_, wait);
  if (!through) {
    fail(through.error());
    return true;
  }
  if (!*through) return false;
  first.end({});
  begun_.pop_front();
  return true;
}

void OperationQueue::fail(const PeerLost& lost) {
  lost_ = lost;
  for (const auto& operation : begun_) operation->end(tl::unexpected(lost));
  begun_.clear();
}

}  // namespace orrery
