// tests/end_to_end/cluster_clients.hpp - clients that submit, cancel and read jobs while a test
// does something to the cluster, and the check that one order of single steps explains all answers.
//
// The cluster has no agents, so that jobs stay queued until they are cancelled.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/grpc/client.hpp"
#include "base/numbers/rng.hpp"
#include "base/system/real_clock.hpp"
#include "orrery/v1/orrery.pb.h"
#include "tests/end_to_end/job_history.hpp"

namespace orrery {

/// The answers that one client received.
struct Told {
  std::map<std::string, std::uint64_t> jobs;  ///< by name
  std::set<std::uint64_t> cancelled;
  JobHistory history;
  std::vector<std::string> wrong;
};

/// A call, with when it was made and answered.
template <class Response>
class TimedCall {
 public:
  template <class Request>
  TimedCall(Client& client, const char* method, const Request& asked)
      : begin_(RealClock().now_monotonic()), answer_(client.call<Response>(method, asked)) {}

  [[nodiscard]] const Result<Response>& answer() const { return answer_; }
  [[nodiscard]] CallTime time() const { return {begin_, end_}; }

 private:
  Instant begin_;
  Result<Response> answer_;
  Instant end_ = RealClock().now_monotonic();
};

inline std::optional<JobSeen> seen_of(const v1::Job& job) {
  if (job.phase() == "queued") return JobSeen::kQueued;
  if (job.phase() == "cancelled") return JobSeen::kCancelled;
  return std::nullopt;
}

/// Reads jobs of all clients, by number and in lists.
class Reader {
 public:
  Reader(Client& client, Rng rng) : client_(client), rng_(rng) {}

  void step() {
    // The newest jobs are the ones that may be lost.
    if (newest_ == 0 || rng_.below(4) != 0) return list();
    v1::GetJobRequest asked;
    asked.set_id(rng_.below(newest_ + 1));
    const TimedCall<v1::Job> call(client_, "GetJob", asked);
    if (!call.answer()) return told.wrong.push_back(call.answer().error().text());
    const std::optional<JobSeen> seen = seen_of(*call.answer());
    if (!seen) return told.wrong.push_back("a job is " + call.answer()->phase());
    told.history.saw(call.answer()->name(), {call.answer()->id(), *seen}, call.time());
  }

  Told told;

 private:
  void list() {
    v1::ListJobsRequest asked;
    asked.set_all(true);
    asked.set_page_size(30);
    const TimedCall<v1::ListJobsResponse> call(client_, "ListJobs", asked);
    if (!call.answer()) return told.wrong.push_back(call.answer().error().text());
    std::map<std::string, ShownJob> jobs;
    for (const v1::Job& job : call.answer()->jobs()) {
      const std::optional<JobSeen> seen = seen_of(job);
      if (!seen) return told.wrong.push_back("a job is " + job.phase());
      if (!jobs.emplace(job.name(), ShownJob{job.id(), *seen}).second)
        told.wrong.push_back(job.name() + " twice");
      newest_ = std::max(newest_, job.id());
    }
    const bool last = call.answer()->next_page_token().empty();
    told.history.saw_page(jobs, last ? PageRest::kNone : PageRest::kOlder, call.time());
  }

  Client& client_;
  Rng rng_;
  std::uint64_t newest_ = 0;
};

class Submitter {
 public:
  Submitter(Client& client, int number) : client_(client), number_(number) {}

  /// Submits one job, reads it, and cancels one of three.
  void step() {
    const std::string name = "job-" + std::to_string(number_) + "-" + std::to_string(next_++);
    v1::SubmitJobRequest asked;
    asked.set_request_id(name);
    asked.set_spec("apiVersion: orrery/v1\nkind: Batch\nname: " + name +
                   "\nroles: [{accelerators: 8}]\nlaunch: {command: [\"true\"]}\n");
    const TimedCall<v1::SubmitJobResponse> accepted(client_, "SubmitJob", asked);
    if (!accepted.answer()) return told.wrong.push_back(accepted.answer().error().text());
    const std::uint64_t id = accepted.answer()->id();
    told.jobs[name] = id;
    answered = RealClock().now_monotonic();
    told.history.made(name, JobSeen::kQueued, accepted.time());
    see(id, name);
    if (next_ % 3 != 0) return;
    v1::CancelJobRequest cancel;
    cancel.set_request_id("cancel-" + name);
    cancel.set_id(id);
    const TimedCall<v1::CancelJobResponse> cancelled(client_, "CancelJob", cancel);
    // A cancel that was carried out and whose answer was lost finds the job ended.
    if (!cancelled.answer() &&
        cancelled.answer().error().text().find("already ended") == std::string::npos) {
      return told.wrong.push_back(cancelled.answer().error().text());
    }
    told.cancelled.insert(id);
    told.history.made(name, JobSeen::kCancelled, cancelled.time());
    see(id, name);
  }

  Told told;
  Instant answered;  ///< when the newest submission was acknowledged

 private:
  void see(std::uint64_t id, const std::string& name) {
    v1::GetJobRequest asked;
    asked.set_id(id);
    const TimedCall<v1::Job> call(client_, "GetJob", asked);
    const std::optional<JobSeen> seen =
        call.answer() ? seen_of(*call.answer()) : std::optional<JobSeen>();
    if (!call.answer()) {
      told.wrong.push_back(name + ": " + call.answer().error().text());
    } else if (call.answer()->name() != name || !seen) {
      told.wrong.push_back(name + " is " + call.answer()->name() + ", " + call.answer()->phase());
    } else {
      told.history.saw(name, {call.answer()->id(), *seen}, call.time());
    }
  }

  Client& client_;
  int number_;
  int next_ = 0;
};

/// Checks that the controller has exactly the jobs that were acknowledged to clients. Returns their
/// number.
inline std::size_t compare(const std::vector<Told>& told, Client& own) {
  std::map<std::string, std::uint64_t> jobs;
  std::set<std::uint64_t> cancelled;
  JobHistory history;
  for (const Told& each : told) {
    for (const std::string& wrong : each.wrong) ADD_FAILURE() << wrong;
    jobs.insert(each.jobs.begin(), each.jobs.end());
    cancelled.insert(each.cancelled.begin(), each.cancelled.end());
    history.add(each.history);
  }
  for (const std::string& wrong : history.contradictions(jobs)) ADD_FAILURE() << wrong;

  v1::ListJobsRequest list;
  list.set_all(true);
  list.set_page_size(1000);
  std::size_t seen = 0;
  do {
    const auto page = own.call<v1::ListJobsResponse>("ListJobs", list);
    if (!page) {
      ADD_FAILURE() << page.error().text();
      return seen;
    }
    for (const v1::Job& job : page->jobs()) {
      ++seen;
      const auto known = jobs.find(job.name());
      if (known == jobs.end()) {
        ADD_FAILURE() << job.name() << " was never acknowledged, or is there twice";
        return seen;
      }
      EXPECT_EQ(known->second, job.id()) << job.name();
      EXPECT_EQ(job.phase(), cancelled.contains(job.id()) ? "cancelled" : "queued") << job.name();
    }
    list.set_page_token(page->next_page_token());
  } while (!list.page_token().empty());
  EXPECT_EQ(seen, jobs.size());
  return seen;
}

/// Threads with a client each.
class ClusterClients {
 public:
  static constexpr int kClients = 16;
  static constexpr int kReaders = 4;

  /// `client` makes a client of the cluster; any thread.
  explicit ClusterClients(std::function<Client()> client)
      : client_(std::move(client)), told_(kClients + kReaders) {
    threads_.reserve(told_.size());
    for (std::size_t at = kClients; at < told_.size(); ++at) {
      threads_.emplace_back([this, at] { read(at); });
    }
    for (int at = 0; at < kClients; ++at) {
      threads_.emplace_back([this, at] { submit(at); });
    }
  }
  ~ClusterClients() { static_cast<void>(end()); }
  ClusterClients(const ClusterClients&) = delete;
  ClusterClients& operator=(const ClusterClients&) = delete;

  /// Whether an answer was wrong.
  [[nodiscard]] bool failed() const { return failed_; }
  /// Waits for this many further submissions.
  void wait_for(int submissions) const {
    const int before = accepted_;
    while (accepted_ < before + submissions && !failed_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// Ends the clients. Returns what each was told.
  [[nodiscard]] const std::vector<Told>& end() {
    over_ = true;
    for (std::thread& each : threads_) each.join();
    threads_.clear();
    return told_;
  }

 private:
  void read(std::size_t at) {
    Client own = client_();
    Reader reader(own, Rng::stream(at, "readers"));
    while (!over_ && reader.told.wrong.empty()) reader.step();
    if (!reader.told.wrong.empty()) failed_ = true;
    told_[at] = std::move(reader.told);
  }
  void submit(int at) {
    Client own = client_();
    Submitter submitter(own, at);
    while (!over_ && submitter.told.wrong.empty()) {
      submitter.step();
      ++accepted_;
    }
    if (!submitter.told.wrong.empty()) failed_ = true;
    told_[static_cast<std::size_t>(at)] = std::move(submitter.told);
  }

  std::function<Client()> client_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<int> accepted_ = 0;
  std::vector<Told> told_;
  std::vector<std::thread> threads_;
};

}  // namespace orrery
