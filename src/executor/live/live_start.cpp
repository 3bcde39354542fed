#include "executor/live/live_start.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/format/checksum.hpp"
#include "base/format/little_endian.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

Result<std::string> read_step_key(const Env& env, const std::string& directory) {
  constexpr std::size_t kBytes = 32;
  const std::string path = directory + "/steps.key";
  StorageResult<std::string> key = env.storage.read_file(path, kBytes);
  if (!key && key.error().failure == StorageFailure::kNotFound) {
    std::string made(kBytes, '\0');
    for (std::size_t at = 0; at < kBytes; at += sizeof(std::uint64_t)) {
      store_little_endian(env.entropy.draw(), made.data() + at);
    }
    const StorageStatus written = env.storage.write_file(path, made);
    if (!written) return tl::unexpected<Error>(written.error());
    key = std::move(made);
  }
  if (!key) return forward_error(key);
  if (key->size() != kBytes) {
    return environment_error(fmt::format("{}: {} bytes, expected {}", path, key->size(), kBytes));
  }
  return *std::move(key);
}

struct LogTexts {
  StoreTexts texts;
  std::unique_ptr<LiveSetup> setup;
};

/// Returns the texts of the log, or those of a new log, with their setup.
Result<LogTexts> read_texts(const Env& env, const ClaimedStore& claimed,
                            const ControllerOptions& options) {
  StorageResult<StoreTexts> stored = claimed.store->texts();
  if (!stored) return forward_error(stored);
  const bool begins = stored->empty();
  if (begins) {
    SetupTexts setup = options.setup;
    setup.begin = env.clock.now_wall();
    *stored = store_texts(setup);
  }
  Result<std::unique_ptr<LiveSetup>> setup =
      LiveSetup::make(options.facts, *stored, options.settings);
  if (!setup) return forward_error(setup);
  if (begins) {
    if (StorageStatus put = claimed.store->put_texts(claimed.term, *stored); !put) {
      return forward_error(put);
    }
  }
  return LogTexts{*std::move(stored), *std::move(setup)};
}

/// What the steps that read the history share.
struct StartSteps {
  const Env& env;
  const Log& log;
  const ControllerOptions& options;
  const ClaimedStore& claimed;
};

/// Skips job numbers that the store's mark has and the log has not: a part of the log was lost, and
/// an operator has continued without it.
Status pass_over_lost(const StartSteps& steps, const State& state, LogTexts& log) {
  const std::uint64_t next = log.setup->control().next_job(state.jobs());
  const std::uint64_t marked = steps.claimed.store->mark().next_job;
  if (marked <= next) return {};
  const StoreTexts added = log.setup->lose_jobs({next, marked});
  if (StorageStatus put = steps.claimed.store->put_texts(steps.claimed.term, added); !put) {
    return forward_error(put);
  }
  log.texts.insert(added.begin(), added.end());
  steps.log.warning(steps.env.clock.now_wall(), "job numbers lost with a part of the log",
                    {{"from", next}, {"to", marked - 1}});
  return {};
}

Result<RecoveredCore> recover(const StartSteps& steps, LogTexts& log) {
  HistoryResult<RecoveredCore> recovered = recover_core(*steps.claimed.store, log.setup->control());
  if (!recovered) {
    recovered.error().message += repair_commands(steps.options.directory + "/store");
    return forward_error(recovered);
  }
  for (const std::string& why : recovered->history.passed_over) {
    steps.log.warning(steps.env.clock.now_wall(), "snapshot passed over", {{"why", why}});
  }
  const State& state = recovered->core->state();
  if (Status passed = pass_over_lost(steps, state, log); !passed) return forward_error(passed);
  log.setup->use(state);
  return *std::move(recovered);
}

Result<std::unique_ptr<LiveRecord>> begin_record(const ControllerOptions& options,
                                                 const StoreTexts& texts, const LiveStart& start) {
  if (options.record.empty()) return nullptr;
  const std::string directory =
      fmt::format("{}/{:010}", options.record, static_cast<std::uint64_t>(start.store.term));
  const std::uint64_t hash = start.writer->history_hash();
  return LiveRecord::create(directory,
                            {.texts = texts,
                             .settings = options.settings,
                             .catalog = options.catalog,
                             .snapshot = seal_snapshot(hash, snapshot_of(start.core->state())),
                             .history_hash = hash,
                             .writer = start.setup->texts().writer});
}

}  // namespace

Result<LiveStart> start_from(const Env& env, const Log& log, const ControllerOptions& options) {
  const Instant began = env.clock.now_wall();
  Result<ClaimedStore> claimed = ClaimedStore::open(env, log, options.directory);
  if (!claimed) return forward_error(claimed);
  Result<std::string> step_key = read_step_key(env, options.directory);
  if (!step_key) return forward_error(step_key);
  Result<AgentKeys> keys = AgentKeys::open(env, options.directory);
  if (!keys) return forward_error(keys);
  Result<LogTexts> texts = read_texts(env, *claimed, options);
  if (!texts) return forward_error(texts);
  Result<RecoveredCore> recovered = recover({env, log, options, *claimed}, *texts);
  if (!recovered) return forward_error(recovered);
  const ControlClock clock(env.clock, recovered->core->state().now());
  const SetupTexts& facts = texts->setup->texts();
  auto writer = std::make_unique<HistoryWriter>(
      HistoryWriterOptions{.writer = facts.writer,
                           .setup = setup_digest(facts),
                           .before = recovered->history.history_hash});
  LiveStart start{began,
                  checksum(setup_digest(facts), 0),
                  *std::move(claimed),
                  *std::move(step_key),
                  *std::move(keys),
                  std::move(texts->setup),
                  std::move(recovered->core),
                  std::move(recovered->history),
                  clock,
                  std::move(writer),
                  nullptr};
  Result<std::unique_ptr<LiveRecord>> record = begin_record(options, texts->texts, start);
  if (!record) return forward_error(record);
  start.record = *std::move(record);
  return start;
}

}  // namespace orrery
