// executor/controller.hpp - a live cluster's controller: the host of the core with a real clock,
// the durable log, the connected agents, and queries of users.
//
// Built by orreryd over a directory; lives until the process ends. Runs on one loop, that of its
// Env; other threads post to it. It uses no sockets: the server (src/api) makes sessions and calls.
// Full passes and plan searches run beside the loop. Replies depend only on what is durable; a log
// that cannot be written ends the process. If the log lacks attempts that agents run, the
// controller halts until an operator chooses (ControllerOptions::lost_jobs). DIR/store holds the
// log, with the texts it depends on. The last log output of ended attempts' ranks is kept in
// memory, the newest 64 MiB of it. DIR/steps.key is the key for the secrets of scripts; without it
// running scripts cannot start steps. Cost of a call: that of the core; of a start: reading the
// log.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/agents/agent_book.hpp"
#include "executor/agents/agent_keys.hpp"
#include "executor/agents/command_book.hpp"
#include "executor/control_host.hpp"
#include "executor/controller_settings.hpp"
#include "executor/jobs/job_archive.hpp"
#include "executor/jobs/launch_program.hpp"
#include "executor/jobs/rank_logs.hpp"
#include "executor/jobs/submit_limits.hpp"
#include "executor/live/decision_log.hpp"
#include "executor/live/event_history.hpp"
#include "executor/live/live_counts.hpp"
#include "executor/live/live_record.hpp"
#include "executor/live/live_setup.hpp"
#include "executor/side_thread.hpp"
#include "store/group_commit.hpp"
#include "store/history.hpp"
#include "store/setup_texts.hpp"
#include "store/sqlite/disk_reserve.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {

class Controller;

struct ControllerOptions {
  std::string directory;
  SetupTexts setup;    ///< for a new log; an existing one has its own
  const Facts& facts;  ///< outlives the controller
  ControllerSettings settings = {};
  /// Returns the archive's form of a job that has ended; none: all jobs stay in the state.
  std::function<std::string(const Controller&, JobId)> archived_form = {};
  std::string record = {};   ///< directory for a record of each start; empty: no record
  std::string catalog = {};  ///< directory that overrides the built-in catalog; empty: none
                             ///< none
  /// What to do when an agent reports ranks of a job that is not in the log.
  ControlHost::LostJobs lost_jobs = ControlHost::LostJobs::kAsk;
  /// Called if the log cannot be written, or another controller has taken over: the process must
  /// end.
  std::function<void(const Error&)> failed;
};

/// What a new fleet file changes.
struct FleetChange {
  struct Busy {
    std::string node;
    std::vector<JobId> jobs;  ///< jobs with devices there, ascending
  };
  std::vector<std::string> added;  ///< names of nodes
  std::vector<std::string> retired;
  std::vector<Busy> busy;  ///< retired nodes that jobs still hold: the fleet cannot change yet
  bool applied = false;    ///< false: a dry run, or nodes are busy
};
enum class FleetApply : std::uint8_t { kDryRun, kApply };

class Controller final : private HostOutlet {
 public:
  /// Errors: of the texts; of the store (another process has it); damage of the log with its place.
  [[nodiscard]] static Result<std::unique_ptr<Controller>> open(const Env& env, const Log& log,
                                                                ControllerOptions options);
  Controller(const Env& env, const Log& log, ControllerOptions options);
  ~Controller() override;

  // --- Commands: `answered` is called once the answer is durable

  template <class T>
  using Answered = std::function<void(Result<T>)>;

  /// Submits the jobs of a text. A repeated call with the same request id returns the same jobs.
  void submit(const JobText& text, const std::string& request_id,
              Answered<std::vector<JobId>> answered);
  /// Returns JobIntake::appraise() of the jobs of a text that was not submitted yet. A text that
  /// names neither a deadline nor a budget is not read. Errors: those of submit().
  [[nodiscard]] Result<std::string> appraise(const JobText& text, const std::string& request_id);
  /// Handles any other command of an operator or a client.
  void command(InputKind what, const std::string& request_id, Answered<JobId> answered);
  /// Changes the fleet to that of a Fleet file; `answered` is called when the change is durable.
  /// Running jobs and the sessions of agents go on. Errors: those of the text
  /// ("fleet.yaml:3:5: ..."); a site or accelerator type of before that is gone or in another
  /// order.
  void apply_fleet(const std::string& yaml, FleetApply how, const std::string& request_id,
                   Answered<FleetChange> answered);
  /// Sets the class that a job has with the new values. Precondition: it has not ended.
  void classify(ChangeJob& change);
  /// Whether there is room for more work, and for one more submission of `tenant` (may be empty);
  /// the error says what is missing.
  [[nodiscard]] Status admission(const std::string& tenant);
  /// Returns why the controller is halted, and what an operator can do; empty: it is not halted.
  /// Commands are refused with the same text.
  [[nodiscard]] std::string halted() const;
  /// Replaces the log up to now by a snapshot of the present state, after a check that the snapshot
  /// restores to the same state; `answered` is called when that is durable. Errors: halted; no
  /// space on the disk. Cost: some seconds of the loop for 100,000 jobs.
  void compact(Answered<CompactedLog> answered);
  /// Applies the limits of other settings at once; their waits apply from the next start on.
  void set_limits(const ControllerSettings& settings);

  // --- Reads

  [[nodiscard]] const State& state() const { return host_->state(); }
  [[nodiscard]] const Core& core() const { return host_->core(); }
  [[nodiscard]] const FleetLink& link() const { return host_->link(); }
  [[nodiscard]] const AgentBook& agents() const { return *agents_; }
  [[nodiscard]] AgentKeys& agent_keys() { return *agent_keys_; }
  static constexpr std::size_t kFileChangesMax = 20;
  /// The time of day.
  [[nodiscard]] Instant wall() const { return env_.clock.now_wall(); }
  [[nodiscard]] LiveCounts& counts() { return counts_; }
  [[nodiscard]] const LiveCounts& counts() const { return counts_; }
  /// Nodes that are only in the fleet's file (`unknown`), and those only in the log (`missing`).
  struct FleetDifference {
    std::vector<std::string> unknown;
    std::vector<std::string> missing;
  };
  [[nodiscard]] const FleetDifference& fleet_difference() const { return fleet_difference_; }
  /// Compares the nodes of the fleet's file with those of the log.
  void compare_fleet(const Topology& file);
  /// Notes that a line of a configuration file differs from what was last applied; the first
  /// kFileChangesMax are kept.
  void note_file_change(std::string change);
  /// The changes since this start, for example "tenants.yaml:4: "weight: 1" is now "weight: 3"".
  [[nodiscard]] const std::vector<std::string>& file_changes() const { return file_changes_; }
  /// Reads events of the log from the disk.
  void ask_events(EventsAsked asked, EventHistory::Answered answered) {
    events_->ask(std::move(asked), std::move(answered));
  }
  /// Writes an operator's command to the log.
  void note_operator(std::string_view what, const std::string& by, LogField of);
  /// Returns archived jobs with an id below `before`, descending. Reads the disk.
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) const {
    return archive_reader_->archived(before, count);
  }
  /// The free space on the log's disk. Costs two system calls.
  [[nodiscard]] DiskRoom disk_room() const { return reserve_->look(); }
  [[nodiscard]] std::uint64_t disk_free_bytes() const { return reserve_->free_bytes(); }
  [[nodiscard]] Instant now() const;
  [[nodiscard]] Instant started() const { return started_; }
  /// The texts that the log was begun with.
  [[nodiscard]] const SetupTexts& begun_with() const { return setup_->texts(); }
  /// The text of the fleet that holds now.
  [[nodiscard]] const std::string& fleet_text() const;
  /// Calls `then` when everything in the present state is durable.
  void after_durable(std::function<void()> then) { host_->after_durable(std::move(then)); }

  using WatchNumber = std::uint64_t;
  using EventWatch = std::function<void(const TimedEvent&)>;
  /// Calls `watch` with each event once it is durable, from the next one on, until unwatch().
  WatchNumber watch(EventWatch watch);
  void unwatch(WatchNumber number);
  [[nodiscard]] bool watched() const { return !watches_.empty(); }

  // --- Agents: sessions of the server

  void open_session(const AgentOpening& opening, AgentSession& session);
  void close_session(const AgentSession& session);
  /// Handles a message from an agent whose session is open. `number` is that of its AgentWelcome,
  /// which stays when the fleet changes.
  void receive(NodeId number, const AgentMessage& message);

  /// Makes a node test itself; its readings and an event report the result. Errors: jobs may run
  /// there, or its agent is not connected.
  [[nodiscard]] Status burn_in(NodeId node);
  [[nodiscard]] RankLogs& logs() { return *logs_; }
  [[nodiscard]] CommandBook& commands() { return *commands_; }

 private:
  [[nodiscard]] Result<FleetChange> fleet_change(const std::string& yaml) const;
  void use_fleet(const FleetMap& map);
  void number_nodes();
  void take_in(NodeId node, const Report& report);
  void refuse_agent(const AgentOpening& opening, const Error& why, AgentSession& session);
  void log_refused(const AgentOpening& opening, const Error& why);
  void note(const Input& input) override;
  std::uint64_t append(Instant at, std::span<const Event> events) override;
  void send(const Order& order) override;
  void run_full_pass(Core& core, Instant now) override;
  void search_plan(const PlanKey& key) override;

  [[nodiscard]] Status begin();
  [[nodiscard]] Status open_store();
  [[nodiscard]] Status read_step_key();
  [[nodiscard]] Result<StoreTexts> texts();
  [[nodiscard]] Status recover(StoreTexts texts);
  [[nodiscard]] Status pass_over_lost(const State& state, StoreTexts& texts);
  void end_unknown(const Report& report);
  [[nodiscard]] Status begin_record(const StoreTexts& texts, const State& state);
  void look_at_record(const Status& status);
  void begin_commits(const RecoveredHistory& history);
  void look_at_disk();
  void flush();
  void batch_durable(std::uint64_t batch);
  void tell_watches(std::uint64_t number);
  void snapshot_if_due();
  void archive_if_due();
  void archive_put(const StorageStatus& put);
  void schedule();
  void act_when_due();
  void count(const Event& event);
  void handle(InputKind what, const std::string& request_id = {},
              ControlHost::Answered answered = {});
  [[nodiscard]] Result<std::vector<SubmitJob>> read_jobs(const JobText& text);
  [[nodiscard]] std::vector<JobId> answered_before(const std::string& request_id) const;
  void note_foreign(NodeId node, const AttemptId& attempt);

  Env env_;
  Log log_;
  ControllerOptions options_;
  Instant started_;
  Duration ahead_;  ///< control's time is the monotonic clock plus this
  std::uint64_t cluster_ = 0;
  LaunchPrograms launches_;
  std::unique_ptr<LiveSetup> setup_;
  SubmitLimits limits_;
  std::unique_ptr<AgentBook> agents_;
  std::unordered_map<std::uint32_t, NodeId> numbered_;  ///< nodes by NodeRecord::number
  std::uint32_t fleets_ = 0;                            ///< changes of the fleet in this process
  std::optional<AgentKeys> agent_keys_;
  std::optional<CommandBook> commands_;
  std::unique_ptr<SqliteStore> store_;
  StoreTerm term_ = StoreTerm::kNone;
  std::unique_ptr<DiskReserve> reserve_;
  DiskRoom disk_room_ = DiskRoom::kEnough;  ///< as last logged
  std::optional<TimerId> disk_timer_;
  std::unique_ptr<StoreReader> archive_reader_;
  JobArchive archive_;
  std::vector<JobId> archiving_;  ///< jobs on their way to the disk
  std::unique_ptr<HistoryWriter> writer_;
  std::unique_ptr<LiveRecord> record_;  ///< none: no recording
  std::unique_ptr<AgentHost> host_;
  std::optional<RankLogs> logs_;
  std::unique_ptr<DecisionLog> decisions_;
  std::unique_ptr<EventHistory> events_;
  LiveCounts counts_;
  FleetDifference fleet_difference_;
  std::vector<std::string> file_changes_;
  std::optional<TimerId> timer_;

  /// Inputs with events are numbered from 1; a batch holds all inputs up to one of them.
  struct BatchEnd {
    std::uint64_t batch = 0;
    std::uint64_t input = 0;
    Instant submitted;
  };
  std::deque<BatchEnd> batches_;  ///< batches that are not durable yet
  std::uint64_t inputs_ = 0;
  enum class Gathering : std::uint8_t { kNo, kYes } gathering_ = Gathering::kNo;
  std::uint64_t bytes_since_snapshot_ = 0;

  struct Undurable {
    std::uint64_t input = 0;
    TimedEvent event;
  };
  std::deque<Undurable> undurable_;  ///< filled while there are watches
  std::map<WatchNumber, EventWatch> watches_;
  WatchNumber watch_numbers_ = 0;

  std::vector<UnknownRanks> ended_unknown_;  ///< unknown ranks that were logged
  std::unique_ptr<GroupCommit> commits_;     ///< destroyed before the store, which its thread uses
  std::optional<Scheduler> passes_;          ///< full passes; used by the thread of beside_
  SideThread beside_;                        ///< full passes
  SideThread searches_;                      ///< plan searches
};

}  // namespace orrery
