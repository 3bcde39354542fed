// executor/agents/report_delivery.hpp - hands the agents' reports to the host of the core. Ranks of
// jobs that the log never had, because a part of it was lost, halt the host with a line in the
// controller's log; or they are ended, if an operator accepted the loss.
//
// Owned by the controller, on its loop.
// Invariant: the number of a lost job whose ranks are ended is not given out again. Cost of a
// report: that of the host.
#pragma once

#include <vector>

#include "base/log.hpp"
#include "executor/control_host.hpp"
#include "executor/live/live_host.hpp"
#include "executor/live/live_setup.hpp"
#include "executor/log/live_log.hpp"

namespace orrery {

class ReportDelivery {
 public:
  struct Options {
    LiveHost& host;
    LiveSetup& setup;
    LiveLog& texts;  ///< keeps the lost numbers
    ControlHost::LostJobs lost_jobs = ControlHost::LostJobs::kAsk;
  };
  ReportDelivery(const Log& log, const Options& options) : log_(log), options_(options) {}

  /// Delivers a report to the host. The caller calls LiveHost::changed().
  void deliver(const Report& report);

 private:
  void log_unknown(const UnknownRanks& unknown);
  void skip_number(JobId lost);

  Log log_;
  Options options_;
  std::vector<UnknownRanks> ended_;  ///< unknown ranks that were logged, the first 1,000
};

}  // namespace orrery
