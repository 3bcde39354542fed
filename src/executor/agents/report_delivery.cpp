#include "executor/agents/report_delivery.hpp"

#include <algorithm>

namespace orrery {

void ReportDelivery::deliver(const Report& report) {
  LiveHost& host = options_.host;
  const bool halted = host.is_halted();
  if (options_.lost_jobs == ControlHost::LostJobs::kEnd) {
    for (const UnknownRanks& each : host.control().unknown_in(report)) end_unknown(each);
  }
  host.control().deliver(report, host.now());
  if (!halted && host.is_halted()) {
    log_.error(host.clock().wall(), "halted", {{"why", host.halted()}});
  }
}

/// Makes sure that numbers of unknown jobs are not given out before their ranks are ended.
void ReportDelivery::end_unknown(const UnknownRanks& unknown) {
  if (std::find(ended_.begin(), ended_.end(), unknown) != ended_.end()) return;
  ended_.push_back(unknown);
  const State& state = options_.host.state();
  const std::uint64_t job = unknown.attempt.job.value();
  log_.warning(options_.host.clock().wall(), "ranks of a lost job are ended",
               {{"job", job},
                {"attempt", unknown.attempt.attempt},
                {"node", state.setup().topology->node_name(unknown.node)}});
  const std::uint64_t next = options_.setup.control().next_job(state.jobs());
  // A lost part of a log gave out fewer numbers; larger numbers are taken for an agent's invention.
  constexpr std::uint64_t kLostMax = 1'000'000;
  if (job < next || job - next > kLostMax) return;
  options_.texts.put_texts(options_.setup.lose_jobs({next, job + 1}));
}

}  // namespace orrery
