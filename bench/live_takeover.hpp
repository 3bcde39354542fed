// bench/live_takeover.hpp - kill -9 of the controller that leads, again and again, while clients
// submit: how long until a standby decides, and whether a job is lost or doubled.
//
// Free functions, on the caller's thread and on those of the clients, which end before they return.
// The program ends where a call fails. tests/end_to_end/failover_test.cpp also kills members of
// etcd and judges every answer.
#pragma once

#include <atomic>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/live_cluster.hpp"
#include "bench/live_load.hpp"
#include "bench/live_turnover.hpp"

namespace orrery {

struct Takeovers {
  std::vector<double> seconds;  ///< from the kill to the answer to a submission after it, ascending
  std::size_t jobs = 0;         ///< acknowledged
  std::size_t wrong = 0;        ///< of them, not there once and under their number
};

/// Returns the process of the controller that leads.
inline pid_t leading_controller(const LiveCluster& cluster) {
  const std::string address = cluster.address().address;
  const auto local = nlohmann::json::parse(std::ifstream(cluster.path() + "/local.json"));
  const auto& listen = local.at("servers").at("listen");
  for (std::size_t at = 0; at < listen.size(); ++at) {
    if (listen[at] != address) continue;
    pid_t pid = 0;
    std::ifstream(fmt::format("{}/controllers/{}/orreryd.pid", cluster.path(), at + 1)) >> pid;
    return pid;
  }
  fmt::print(stderr, "benchmark: no controller listens at {}\n", address);
  std::exit(1);
}

/// Threads that submit jobs until they are ended.
class Submitters {
 public:
  explicit Submitters(const LiveCluster& cluster) : told_(kThreads) {
    threads_.reserve(kThreads);
    for (std::size_t at = 0; at < kThreads; ++at) {
      threads_.emplace_back([this, &cluster, at] {
        const std::unique_ptr<Client> client = cluster.client();
        for (int i = 0; !over_; ++i) {
          told_[at].push_back(submit_load(*client, fmt::format("submitter-{}-{}", at, i), {}));
          pause(kPauseSeconds);
        }
      });
    }
  }
  ~Submitters() { end(); }
  Submitters(const Submitters&) = delete;
  Submitters& operator=(const Submitters&) = delete;

  /// Ends the threads. Returns the numbers of the jobs that were acknowledged, by thread.
  const std::vector<std::vector<std::uint64_t>>& end() {
    over_ = true;
    for (std::thread& each : threads_) each.join();
    threads_.clear();
    return told_;
  }

 private:
  static constexpr std::size_t kThreads = 8;
  static constexpr double kPauseSeconds = 0.02;

  std::atomic<bool> over_ = false;
  std::vector<std::vector<std::uint64_t>> told_;
  std::vector<std::thread> threads_;
};

/// Returns how often the controller has a job of each number.
inline std::map<std::uint64_t, int> listed_jobs(Client& client) {
  std::map<std::uint64_t, int> listed;
  v1::ListJobsRequest asked;
  asked.set_all(true);
  asked.set_page_size(1'000);
  do {
    const auto page = call_or_exit<v1::ListJobsResponse>(client, "ListJobs", asked);
    for (const v1::Job& job : page.jobs()) ++listed[job.id()];
    asked.set_page_token(page.next_page_token());
  } while (!asked.page_token().empty());
  return listed;
}

/// Compares the jobs that are there with those that were acknowledged, each number once: a job that
/// is there and was never acknowledged is a double, since all submissions were answered.
inline void compare(const std::vector<std::uint64_t>& told, Client& client, Takeovers& result) {
  std::map<std::uint64_t, int> balance = listed_jobs(client);
  for (const std::uint64_t job : told) --balance[job];
  result.jobs = told.size();
  for (const auto& [job, difference] : balance) {
    result.wrong += static_cast<std::size_t>(std::abs(difference));
  }
}

/// Precondition: the cluster has eight accelerators, and several controllers.
inline Takeovers take_over(const LiveCluster& cluster, int takeovers) {
  Takeovers result;
  result.seconds.reserve(static_cast<std::size_t>(takeovers));
  const std::unique_ptr<Client> client = cluster.client();
  // What is submitted from now on waits.
  std::vector<std::uint64_t> told = {start_endless(*client, 8)};
  Submitters submitters(cluster);
  for (int i = 0; i < takeovers; ++i) {
    pause(0.5);
    const pid_t leader = leading_controller(cluster);
    result.seconds.push_back(seconds_of([&] {
      (void)::kill(leader, SIGKILL);
      told.push_back(submit_load(*client, fmt::format("probe-{}", i), {}));
    }));
    cluster.run("up");
  }
  for (const std::vector<std::uint64_t>& each : submitters.end()) {
    told.insert(told.end(), each.begin(), each.end());
  }
  compare(told, *client, result);
  std::ranges::sort(result.seconds);
  return result;
}

}  // namespace orrery
