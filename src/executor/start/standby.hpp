// executor/start/standby.hpp - a controller that does not lead: it follows the log that another one
// writes, with a core that is ready to lead, and takes over when the writer is silent for too long.
//
// Made by orreryd for a shared log, used on its loop, and ended once it leads; a controller that
// shares its log always begins as one. It never decides anything. A standby that cannot apply the
// log, for example because a newer release wrote it, says so and never claims. A store that was
// never claimed is claimed at once.
// Invariant: it leads only with every batch of the log applied, and only if the writer has written
// nothing for SharedLog::claims_after by this machine's clock; docs/design/012-replicated-log.md
// says why the former writer is silent by then. Jobs that the leader archives go to the archive of
// this machine, too. Cost of a batch: that of applying it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/controller_options.hpp"
#include "executor/start/live_start.hpp"
#include "executor/start/log_sight.hpp"

namespace orrery {

class Standby {
 public:
  struct Events {
    /// The log has these texts, all of them, now or since a change.
    std::function<void(const StoreTexts&)> texts;
    /// Another controller leads; empty: none is known. Called on each change.
    std::function<void(const std::string& writer)> leader;
    /// The store was claimed in this term, and the start goes on: texts may be put.
    std::function<void(Store& store, StoreTerm term)> claimed;
    /// This one leads. The standby must not be ended inside the call.
    std::function<void(LiveStart)> lead;
    /// It cannot take over, now or ever: the log or the files of the directory, which may be of
    /// another cluster.
    std::function<void(const Error&)> failed;
  };
  /// Begins to follow, or waits for a store that gives no answer. `options` has a shared log, and
  /// outlives the standby. Errors: of the store; damage of the log with its place.
  [[nodiscard]] static Result<std::unique_ptr<Standby>> begin(const Env& env, const Log& log,
                                                              const ControllerOptions& options,
                                                              Events events);
  Standby(const Env& env, const Log& log, const ControllerOptions& options, Events events);
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;
  ~Standby();

  /// The newest batch that was applied, and the state after it; none: the log has not begun.
  [[nodiscard]] std::uint64_t newest() const { return core_ == nullptr ? 0 : core_->newest(); }
  [[nodiscard]] const State* state() const { return core_ == nullptr ? nullptr : &core_->state(); }
  /// The history hash up to that batch.
  [[nodiscard]] std::uint64_t history_hash() const {
    return core_ == nullptr ? 0 : core_->history_hash();
  }
  [[nodiscard]] StandbyProgress progress() const {
    return sight_.progress(newest(), env_.clock.now_monotonic());
  }

 private:
  [[nodiscard]] Status open();
  [[nodiscard]] bool is_away() const;
  [[nodiscard]] Status recover();
  void follow();
  void take(const Batch& batch);
  /// Notes the jobs that an event moves to the archive.
  void note_archived(const State& state, const TimedEvent& event);
  void keep_archived();
  void take_texts();
  void see(const WriterSeen& seen);
  void note_store(const StorageError& why);
  void call_at(Instant at, void (Standby::*then)());
  void claim_at(Instant at) { call_at(at, &Standby::claim); }
  /// The silence of the present writer after which it is replaced.
  [[nodiscard]] Duration patience() const;
  void open_again();
  /// Opens the store again after a pause, because it gave no answer to a read. The follower may be
  /// the caller, so it is destroyed only then; its reports until then are ignored.
  void wait_for_store(const Error& why);
  void claim();
  void probe();
  void lead(StoreTerm term, Instant began);
  /// Never claims from now on.
  void give_up(const Error& why);

  Env env_;
  Log log_;
  const ControllerOptions& options_;
  Events events_;
  std::unique_ptr<SharedStore> store_;
  LogTexts texts_;                      ///< empty: the log has not begun
  std::unique_ptr<FollowedCore> core_;  ///< none: the log has not begun
  std::vector<ArchivedJob> archived_;   ///< not yet in the archive
  std::unique_ptr<StoreFollower> follower_;
  bool texts_due_ = true;  ///< texts may have been put between recovery and following
  LogSight sight_;
  std::optional<TimerId> timer_;  ///< of the next claim, or try to open the store
  enum class Phase : std::uint8_t {
    kFollows,
    kWaits,  ///< for a store that gives no answer, to read all of it
    kLeads,
    kFailed
  } phase_ = Phase::kFollows;
};

}  // namespace orrery
