#include "executor/agents/report_delivery.hpp"

#include <algorithm>
#include <cstddef>

namespace orrery {
namespace {

/// The most ranks that are logged: an agent that invents them does not fill the log.
constexpr std::size_t kLoggedMax = 1'000;
/// A lost part of a log gave out fewer numbers; larger numbers are taken for an agent's invention.
constexpr std::uint64_t kLostMax = 1'000'000;

}  // namespace

void ReportDelivery::deliver(const Report& report) {
  LiveHost& host = options_.host;
  const bool halted = host.is_halted();
  if (options_.lost_jobs == ControlHost::LostJobs::kEnd) {
    for (const UnknownRanks& each : host.control().unknown_in(report)) {
      log_unknown(each);
      skip_number(each.attempt.job);
    }
  }
  host.control().deliver(report, host.now());
  if (!halted && host.is_halted()) {
    log_.error(host.clock().wall(), "halted", {{"why", host.halted()}});
  }
}

void ReportDelivery::log_unknown(const UnknownRanks& unknown) {
  const bool logged = std::find(ended_.begin(), ended_.end(), unknown) != ended_.end();
  if (logged || ended_.size() == kLoggedMax) return;
  ended_.push_back(unknown);
  const State& state = options_.host.state();
  log_.warning(options_.host.clock().wall(), "ranks of a lost job are ended",
               {{"job", unknown.attempt.job.value()},
                {"attempt", unknown.attempt.attempt},
                {"node", state.setup().topology->node_name(unknown.node)}});
}

/// Makes sure that numbers of unknown jobs are not given out before their ranks are ended.
void ReportDelivery::skip_number(JobId lost) {
  const std::uint64_t job = lost.value();
  const std::uint64_t next = options_.setup.control().next_job(options_.host.state().jobs());
  if (job < next || job - next > kLostMax) return;
  options_.texts.put_texts(options_.setup.lose_jobs({next, job + 1}));
}

}  // namespace orrery
