#include "executor/start/live_start.hpp"

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

/// Skips job numbers that the store's mark has and the log has not: a part of the log was lost, and
/// an operator has continued without it.
Status pass_over_lost(const Env& env, const Log& log, RecoveredStart& start) {
  const State& state = start.recovered.core->state();
  LiveSetup& setup = *start.log.setup;
  const std::uint64_t next = setup.control().next_job(state.jobs());
  const std::uint64_t marked = start.store.store->marked_next_job();
  if (marked <= next) return {};
  const StoreTexts added = setup.lose_jobs({next, marked});
  if (StorageStatus put = start.store.store->put_texts(start.store.term, added); !put) {
    return forward_error(put);
  }
  start.log.texts.insert(added.begin(), added.end());
  log.warning(env.clock.now_wall(), "job numbers lost with a part of the log",
              {{"from", next}, {"to", marked - 1}});
  return {};
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

Result<LogTexts> begin_texts(const Env& env, ClaimedStore& claimed,
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

Result<LiveStart> complete_start(const Env& env, const Log& log, const ControllerOptions& options,
                                 RecoveredStart start) {
  for (const std::string& why : start.recovered.history.passed_over) {
    log.warning(env.clock.now_wall(), "snapshot passed over", {{"why", why}});
  }
  Result<std::string> step_key = read_step_key(env, options.directory);
  if (!step_key) return forward_error(step_key);
  Result<AgentKeys> keys = AgentKeys::open(env, options.directory);
  if (!keys) return forward_error(keys);
  if (Status passed = pass_over_lost(env, log, start); !passed) return forward_error(passed);
  start.log.setup->use(start.recovered.core->state());
  const ControlClock clock(env.clock, start.recovered.core->state().now());
  const SetupTexts& facts = start.log.setup->texts();
  auto writer = std::make_unique<HistoryWriter>(
      HistoryWriterOptions{.writer = facts.writer,
                           .setup = setup_digest(facts),
                           .before = start.recovered.history.history_hash});
  LiveStart live{start.began,
                 checksum(setup_digest(facts), 0),
                 std::move(start.store),
                 *std::move(step_key),
                 *std::move(keys),
                 std::move(start.log.setup),
                 std::move(start.recovered.core),
                 std::move(start.recovered.history),
                 clock,
                 std::move(writer),
                 nullptr};
  Result<std::unique_ptr<LiveRecord>> record = begin_record(options, start.log.texts, live);
  if (!record) return forward_error(record);
  live.record = *std::move(record);
  return live;
}

Result<LiveStart> start_from(const Env& env, const Log& log, const ControllerOptions& options) {
  const Instant began = env.clock.now_wall();
  Result<ClaimedStore> claimed = ClaimedStore::open(env, log, options.directory);
  if (!claimed) return forward_error(claimed);
  Result<LogTexts> texts = begin_texts(env, *claimed, options);
  if (!texts) return forward_error(texts);
  HistoryResult<RecoveredCore> recovered = recover_core(*claimed->store, texts->setup->control());
  if (!recovered) {
    recovered.error().message += repair_commands(options.directory + "/store");
    return forward_error(recovered);
  }
  return complete_start(env, log, options,
                        {began, *std::move(claimed), *std::move(texts), *std::move(recovered)});
}

}  // namespace orrery
