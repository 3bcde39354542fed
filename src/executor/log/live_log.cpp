#include "executor/log/live_log.hpp"

#include <algorithm>
#include <utility>

#include "control/state/snapshot.hpp"
#include "store/group_commit.hpp"

namespace orrery {
namespace {

std::unique_ptr<LogCommits> make_commits(const MakeCommits& make, CommitOptions options) {
  if (make) return make(std::move(options));
  return std::make_unique<GroupCommit>(std::move(options));
}

}  // namespace

LiveLog::LiveLog(const Env& env, const Log& log, Options options)
    : env_(env),
      log_(log),
      state_(options.state),
      settings_(options.settings),
      writer_(std::move(options.writer)),
      record_(std::move(options.record)),
      waiting_(env.clock, options.commit_times),
      since_snapshot_(options.history.read.bytes),
      speaking_{options.claim.store.traits().speaks_for,
                options.claim.at,
                std::move(options.may_speak),
                {},
                options.claim.term,
                options.history.newest},
      commits_(make_commits(
          options.claim.make_commits,
          {.store = options.claim.store,
           .term = options.claim.term,
           .newest = options.history.newest,
           .clock = env.clock,
           .inbox = env.inbox,
           .durable =
               [this, durable = std::move(options.durable)](std::uint64_t batch) {
                 const std::uint64_t input = waiting_.durable(batch);
                 if (input != 0) durable(input);
               },
           .failed = [failed =
                          std::move(options.failed)](const StorageError& error) { failed(error); },
           .spoke = [this](Instant began) { spoke(began); },
           .answers = [this](const StorageStatus& status) { note_answers(status); },
           .snapshot_put =
               [this](const StorageStatus& put) {
                 if (!put) {
                   log_.warning(env_.clock.now_wall(), "no snapshot",
                                {{"why", put.error().message}});
                 }
               },
           .archive_put = std::move(options.archive_put),
           .make_room = std::move(options.make_room)})) {}

void LiveLog::note(const Input& input) {
  if (record_ != nullptr) record_->note(input);
}

std::uint64_t LiveLog::append(Instant at, std::span<const Event> events) {
  writer_->append(at, events);
  if (record_ != nullptr) record_->append(at, events);
  return ++inputs_;
}

void LiveLog::commit() {
  if (held_ == Held::kNo) flush();
}

void LiveLog::release() {
  held_ = Held::kNo;
  flush();
}

void LiveLog::flush() {
  if (record_ != nullptr) look_at_record(record_->flush());
  const std::string bytes = writer_->take();
  if (bytes.empty()) return;
  since_snapshot_ += bytes.size();
  waiting_.submit(commits_->submit(bytes, state_.jobs()), inputs_);
}

/// Ends a recording that failed; the cluster goes on.
void LiveLog::look_at_record(const Status& status) {
  if (status || record_ == nullptr) return;
  log_.warning(env_.clock.now_wall(), "recording ends", {{"why", status.error().text()}});
  record_.reset();
}

bool LiveLog::may_speak() const {
  return speaking_.lasts == Duration::max() ||
         env_.clock.now_monotonic() - speaking_.since < speaking_.lasts;
}

void LiveLog::spoke(Instant began) {
  const bool before = may_speak();
  speaking_.since = std::max(speaking_.since, began);
  if (!before && may_speak()) speaking_.again();
}

void LiveLog::note_answers(const StorageStatus& status) {
  const Instant at = env_.clock.now_wall();
  speaking_.why_not = status ? "" : status.error().message;
  if (status) return log_.info(at, "the store takes writes again", {});
  log_.error(at, "the store takes no writes: nothing is decided until it does",
             {{"why", speaking_.why_not}});
}

std::string LiveLog::silence() const {
  if (may_speak() || speaking_.why_not.empty()) return {};
  return "the log cannot be written, so that nothing is decided; jobs run on: " + speaking_.why_not;
}

void LiveLog::put_texts(const StoreTexts& texts) {
  commits_->put_texts(texts);
  if (record_ != nullptr) look_at_record(record_->put_texts(texts));
}

void LiveLog::put_archived(std::vector<ArchivedJob> jobs) {
  commits_->put_archived(std::move(jobs));
}

void LiveLog::snapshot_if_due() {
  if (static_cast<double>(since_snapshot_) < settings_.snapshot_every.value()) return;
  since_snapshot_ = 0;
  flush();
  commits_->put_snapshot(writer_->snapshot(state_));
  writer_->begin_segment();
}

void LiveLog::compact(const ControlSetup& begun, Compacted answered) {
  flush();
  const std::string snapshot = snapshot_of(state_);
  State again(begun);
  if (Status restored = restore(again, snapshot); !restored) {
    return answered(forward_error(restored));
  }
  if (digest_of(again) != digest_of(state_)) {
    return answered(
        environment_error("the snapshot is not the state it was made of; the log stays as it is"));
  }
  since_snapshot_ = 0;
  commits_->compact(seal_snapshot(writer_->history_hash(), snapshot),
                    [answered = std::move(answered)](const StorageResult<CompactedLog>& log) {
                      if (log) return answered(*log);
                      answered(tl::unexpected<Error>(log.error()));
                    });
  writer_->begin_segment();
}

}  // namespace orrery
