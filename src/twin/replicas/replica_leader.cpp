#include "twin/replicas/replica_leader.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr Duration kBeat = Duration::seconds(5);  ///< of agents

std::unique_ptr<AgentHost> make_host(LiveStart& start, HostOutlet& outlet) {
  const AgentHost::Setup setup{{.cluster = kReplicaCluster,
                                .term = static_cast<std::uint64_t>(start.store.term),
                                .heartbeats = {.interval = kBeat, .grace = kBeat * 6}},
                               ControlHost::LostJobs::kAsk};
  return std::make_unique<AgentHost>(std::move(start.core), setup, outlet, start.clock.now());
}

ClaimedStore with_commits(ClaimedStore store, ReplicaProcess& process) {
  store.make_commits = [&process](CommitOptions options) {
    return std::make_unique<VirtualCommits>(process, std::move(options));
  };
  return store;
}

}  // namespace

ReplicaLeader::ReplicaLeader(ReplicaProcess& process, const ControllerOptions& options,
                             LiveStart start, Outside outside)
    : options_(options),
      outside_(std::move(outside)),
      counts_{.since = start.began},
      setup_(std::move(start.setup)),
      host_(process.env.env().timers,
            {.clock = start.clock,
             .directory = options.directory,
             .wake = [this] { act_when_due(); },
             .changed = [this] { schedule(); }},
            make_host(start, *this)),
      store_(process.env.env(), process.log, with_commits(std::move(start.store), process),
             {.host = host_,
              .settings = options_.settings,
              .counts = counts_,
              .history = start.history,
              .writer = std::move(start.writer),
              .record = nullptr,
              .archived_form =
                  [this](JobId job) { return options_.archived_form({state(), job, {}, nullptr}); },
              .durable =
                  [this](std::uint64_t input) {
                    host_.control().durable(input);
                    store_.log().snapshot_if_due();
                    schedule();
                  },
              .may_speak = [this] { host_.control().release(); },
              .failed = [this](const Error& error) { outside_.failed(error); }}),
      agents_(*host_.state().setup().topology),
      submissions_({.host = host_,
                    .setup = *setup_,
                    .store = store_,
                    .agents = agents_,
                    .settings = options_.settings}) {
  store_.log().commit();
  schedule();
}

void ReplicaLeader::schedule() {
  host_.wake_at(std::min(host_.control().next_due(), store_.archive().next_due()));
}

void ReplicaLeader::act_when_due() {
  host_.advance(host_.now());
  if (host_.link().superseded_by() != 0) {
    outside_.failed({ErrorKind::kEnvironment, "another controller has taken over", {}});
  }
  store_.log().snapshot_if_due();
  store_.archive().move_due();
  schedule();
}

std::uint64_t ReplicaLeader::append(Instant at, std::span<const Event> events) {
  const std::uint64_t input = store_.log().append(at, events);
  for (const Event& event : events) {
    if (const auto* end = std::get_if<JobEnded>(&event)) store_.archive().on_end(at, end->job);
  }
  store_.log().commit();
  return input;
}

void ReplicaLeader::submit(const std::string& text, const std::string& request_id,
                           Submissions::Answered answered) {
  submissions_.submit({text, "job.yaml"}, request_id, std::move(answered));
  schedule();
}

void ReplicaLeader::cancel(JobId job, ControlHost::Answered answered) {
  host_.handle(CancelJob{job}, {}, std::move(answered));
  schedule();
}

void ReplicaLeader::deliver(const Report& report) {
  host_.control().deliver(report, host_.now());
  schedule();
}

void ReplicaLeader::compact() {
  store_.log().compact(setup_->control(), [](const Result<CompactedLog>&) {});
}

}  // namespace orrery
