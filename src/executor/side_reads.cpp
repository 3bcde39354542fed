#include "executor/side_reads.hpp"

#include <memory>
#include <utility>

namespace orrery {

bool SideReads::add(Prepare prepare) {
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back(std::move(prepare));
  begin_next();
  return true;
}

void SideReads::begin_next() {
  while (!running_ && !waiting_.empty()) {
    const Prepare prepare = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = prepare();
    if (!running_) continue;
    const std::shared_ptr<const HeldSituation> held = host_.control().hold(host_.now());
    thread_.run([this, held] {
      env_.post([this, finish = running_(*held)] {
        running_ = nullptr;
        finish();
        begin_next();
      });
    });
  }
}

}  // namespace orrery
