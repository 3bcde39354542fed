// bench/live_turnover.hpp - jobs that come and go, or fill a cluster, for benchmarks of a live one.
//
// Free functions, on the caller's thread, which waits for the jobs.
#pragma once

#include <memory>
#include <string>

#include "bench/live_cluster.hpp"
#include "bench/live_load.hpp"

namespace orrery {

struct Turnover {
  double seconds = 0;      ///< a job
  double cpu_seconds = 0;  ///< a job
};

/// Measures from the submission of an array of jobs to the end of the last of them. No other load
/// of the cluster has the name `request`.
inline Turnover turn_over(const LiveCluster& cluster, const std::string& request,
                          const LoadJob& jobs) {
  const std::unique_ptr<Client> client = cluster.client();
  const auto ended = [&] {
    const auto now = call_or_exit<v1::Cluster>(*client, "GetCluster", v1::GetClusterRequest());
    return now.jobs_running() == 0 && now.jobs_waiting() == 0;
  };
  const double before = cluster.cpu_seconds();
  const double seconds = seconds_of([&] {
    v1::WaitJobRequest last;
    last.set_id(submit_load(*client, request, jobs) + static_cast<std::uint64_t>(jobs.count) - 1);
    (void)client->wait<v1::Job>("WaitJob", last);
    while (!ended()) pause(0.001);
  });
  return {seconds / jobs.count, (cluster.cpu_seconds() - before) / jobs.count};
}

/// Starts a job that does not end, and waits until it runs. Returns its number. `more`: further
/// lines of its file.
inline std::uint64_t start_endless(Client& client, std::uint32_t accelerators,
                                   const std::string& more = "") {
  v1::GetJobRequest asked;
  asked.set_id(submit_load(
      client, "endless",
      {.accelerators = accelerators, .command = R"("sleep", "infinity")", .more = more}));
  while (call_or_exit<v1::Job>(client, "GetJob", asked).phase() != "running") pause(0.001);
  return asked.id();
}

}  // namespace orrery
