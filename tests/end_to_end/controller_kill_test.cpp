// kill -9 of the controller, again and again, while clients submit, cancel and read: what was
// acknowledged exists, once, and one order of single steps explains all answers.
//
// ORRERY_KILLS (20) is the number of kills; `scripts/soak live` runs it with more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "api/cluster_directory.hpp"
#include "api/grpc/client.hpp"
#include "base/numbers/rng.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_storage.hpp"
#include "executor/lab_test.hpp"
#include "orrery/v1/orrery.pb.h"
#include "store/history.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "tests/end_to_end/job_history.hpp"
#include "tests/end_to_end/test_seed.hpp"

namespace orrery {
namespace {

constexpr int kClients = 16;
constexpr int kReaders = 4;

class ControllerKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_kill_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::ofstream(directory_ + "/fleet.yaml") << kLabFleet;
    // Makes the controller also compact its log between kills, and be killed while it does.
    std::ofstream(directory_ + "/controller.yaml")
        << "apiVersion: orrery/v1\nkind: Controller\nsnapshot_every: 64 KiB\n";
    listen();
    start();
    EXPECT_EQ(heard().substr(0, 8), "READY=1\n");
  }
  void TearDown() override {
    kill();
    std::filesystem::remove_all(directory_);
  }

  /// Listens as a service manager does, for the notifications of the first controller.
  void listen() {
    const std::string path = directory_ + "/notify";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::ranges::copy(path, address.sun_path);
    manager_ = FileDescriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(manager_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  std::string heard() {
    std::array<char, 256> bytes{};
    const ssize_t got = ::recv(manager_.get(), bytes.data(), bytes.size(), 0);
    ::unsetenv("NOTIFY_SOCKET");  // later notifications have no receiver
    manager_.reset();
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

  /// Starts the controller and waits until it serves.
  void start() {
    const std::string file = directory_ + "/cluster.json";
    const bool again = std::filesystem::exists(file);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    const std::string errors = directory_ + "/errors";
    ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_CREAT | O_WRONLY | O_APPEND,
                                       0600);
    std::string program = ORRERY_DAEMON;
    std::string option = "--dir";
    char* arguments[] = {program.data(), option.data(), directory_.data(), nullptr};
    ASSERT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    if (again) return;
    while (!std::filesystem::exists(file)) {
      ASSERT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0) << "the controller has ended";
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  void kill() {
    ASSERT_EQ(::kill(pid_, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
    // The controller has not ended by itself.
    EXPECT_TRUE(WIFSIGNALED(status)) << "the controller ended with status " << status;
  }

  [[nodiscard]] Client client() const {
    RealStorage storage;
    const ClusterAddress at = read_cluster_address(storage, directory_).value();
    return Client({.address = at.address,
                   .authority = at.authority,
                   .token = at.token,
                   .retry = Duration::minutes(1),
                   .patience = Duration::minutes(1)});
  }

  std::string directory_;
  FileDescriptor manager_;
  pid_t pid_ = 0;
};

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

std::optional<JobSeen> seen_of(const v1::Job& job) {
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
std::size_t compare(const std::vector<Told>& told, Client& own) {
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

/// The store once its log is compacted. A controller that was killed soon after each start may not
/// have compacted it yet, so more jobs are submitted.
StorageResult<std::unique_ptr<StoreReader>> compacted_store(Client& client,
                                                            const std::string& directory) {
  Submitter more(client, kClients);
  auto store = SqliteStore::open_to_read(directory);
  for (int round = 0; store && (*store)->extent()->oldest == 1 && round < 200; ++round) {
    for (int job = 0; job < 50; ++job) more.step();
    store = SqliteStore::open_to_read(directory);
  }
  return store;
}

TEST_F(ControllerKillTest, LosesAndDoublesNothingThatWasAcknowledged) {
  const char* asked = std::getenv("ORRERY_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 20;
  std::atomic<bool> over = false;
  std::atomic<bool> failed = false;
  std::atomic<int> accepted = 0;
  std::vector<Told> told(kClients + kReaders);
  std::vector<std::thread> clients;
  clients.reserve(told.size());
  for (std::size_t at = kClients; at < told.size(); ++at) {
    clients.emplace_back([&, at] {
      Client own = client();
      Reader reader(own, Rng::stream(at, "readers"));
      while (!over && reader.told.wrong.empty()) reader.step();
      if (!reader.told.wrong.empty()) failed = true;
      told[at] = std::move(reader.told);
    });
  }
  for (int at = 0; at < kClients; ++at) {
    clients.emplace_back([&, at] {
      Client own = client();
      Submitter submitter(own, at);
      while (!over && submitter.told.wrong.empty()) {
        submitter.step();
        ++accepted;
      }
      if (!submitter.told.wrong.empty()) failed = true;
      told[static_cast<std::size_t>(at)] = std::move(submitter.told);
    });
  }
  Rng rng = Rng::stream(test_seed(), "kills");
  for (int i = 0; i < kills && !failed; ++i) {
    // Kills it at some moment after it serves again.
    const int before = accepted;
    while (accepted < before + kClients && !failed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(50'000)));
    kill();
    start();
  }
  over = true;
  for (std::thread& each : clients) each.join();

  Client own = client();
  const std::size_t jobs = compare(told, own);
  const auto store = compacted_store(own, directory_ + "/store");
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_GT((*store)->extent()->oldest, 1U) << "the log was never compacted";
  const HistoryResult<VerifiedHistory> verified = verify_history(**store);
  EXPECT_TRUE(verified) << verified.error().text();
  RecordProperty("kills", kills);
  RecordProperty("jobs", static_cast<int>(jobs));
  if (asked != nullptr) std::printf("%d kills, %zu jobs\n", kills, jobs);
}

}  // namespace
}  // namespace orrery
