#include "executor/live/live_host.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace orrery {

LiveHost::LiveHost(Timers& timers, Options options, std::unique_ptr<AgentHost> host)
    : timers_(timers), options_(std::move(options)), host_(std::move(host)) {}

LiveHost::~LiveHost() {
  if (timer_) timers_.cancel(*timer_);
}

void LiveHost::handle(InputKind what, const std::string& request_id,
                      ControlHost::Answered answered) {
  host_->handle({now(), std::move(what), request_id}, std::move(answered));
}

void LiveHost::advance(Instant until) {
  while (host_->next_due() <= until) host_->advance(until);
}

void LiveHost::wake_at(Instant due) {
  const Instant at = due == Instant::max() ? due : options_.clock.monotonic_at(due);
  if (timer_ && timer_->at == at) return;
  if (timer_) timers_.cancel(*timer_);
  timer_.reset();
  if (at == Instant::max()) return;
  timer_ = timers_.call_at(at, [this] {
    timer_.reset();
    options_.wake();
  });
}

std::string LiveHost::halted() const {
  const std::vector<UnknownRanks>& unknown = host_->halted_by();
  if (unknown.empty()) return {};
  const UnknownRanks& first = unknown.front();
  std::string text =
      fmt::format("the controller is halted: {} runs attempt {} of job {}, which the log never had",
                  state().setup().topology->node_name(first.node), first.attempt.attempt,
                  first.attempt.job.value());
  if (unknown.size() > 1) text += fmt::format(", and {} more", unknown.size() - 1);
  return text + fmt::format(
                    ": a part of the log is lost. Nothing is decided and no rank is ended. Stop "
                    "orreryd, then put a newer log back (orrery store restore BACKUP --dir {}) or "
                    "start it with --accept-lost-jobs, which ends those ranks",
                    options_.directory);
}

Status LiveHost::check_running() const {
  if (!is_halted()) return {};
  return environment_error(halted());
}

}  // namespace orrery
