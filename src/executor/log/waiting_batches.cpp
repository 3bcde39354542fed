#include "executor/log/waiting_batches.hpp"

namespace orrery {

void WaitingBatches::submit(std::uint64_t batch, std::uint64_t input) {
  if (!batches_.empty() && batches_.back().batch == batch) {
    batches_.back().input = input;
  } else {
    batches_.push_back({batch, input, clock_.now_monotonic()});
  }
}

std::uint64_t WaitingBatches::durable(std::uint64_t batch) {
  std::uint64_t input = 0;
  newest_durable_ = batch;
  while (!batches_.empty() && batches_.front().batch <= batch) {
    input = batches_.front().input;
    times_.observe(clock_.now_monotonic() - batches_.front().submitted);
    batches_.pop_front();
  }
  return input;
}

}  // namespace orrery
