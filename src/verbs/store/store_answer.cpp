#include "verbs/store/store_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "control/state/snapshot.hpp"
#include "orrery/v1/orrery.pb.h"
#include "store/etcd/etcd_store.hpp"
#include "store/etcd/store_url.hpp"
#include "store/etcd_api/etcd_location.hpp"
#include "store/event_json.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/store/store_setup.hpp"

namespace orrery {
namespace {

/// That there is no store, or that its URL is not well formed, is for the user to mend.
tl::unexpected<Error> store_failed(const StorageError& error) {
  Error out = error;
  const bool input = error.failure == StorageFailure::kNotFound || error.kind == ErrorKind::kInput;
  out.kind = input ? ErrorKind::kInput : ErrorKind::kEnvironment;
  return tl::unexpected(std::move(out));
}

/// What an operator does about damage, as the end of a message.
std::string after_damage(const std::string& path) {
  if (!is_etcd_url(path)) return repair_commands(path);
  return fmt::format(
      "\nnothing was changed. To go on with a backup: restore etcd with `etcdctl snapshot "
      "restore`, "
      "then orrery store adopt '{}' --state STATE",
      path);
}

/// The bytes of a snapshot of all there is, after it was restored and found to be the same state.
Result<Batch> checked_snapshot(SqliteStore& store, const ControlSetup& setup) {
  StateTarget target(setup);
  HistoryResult<RecoveredHistory> history = recover_history(store, nullptr, target);
  if (!history) return forward_error(history);
  const std::string state = snapshot_of(target.state());
  State again(setup);
  if (Status restored = restore(again, state); !restored) return forward_error(restored);
  if (digest_of(again) != digest_of(target.state())) {
    return environment_error(
        fmt::format("{}: the snapshot differs from the state it was made from; nothing was changed",
                    store.name()));
  }
  return Batch{history->newest, seal_snapshot(history->history_hash, state)};
}

struct AskedLeader {
  std::string address;  ///< empty: none of the cluster's controllers leads
  v1::ControllerState state;
};

AskedLeader find_leader(const LiveSession& session) {
  for (const std::string& address : session.controllers()) {
    Result<v1::ControllerState> state = session.client_of(address)->call<v1::ControllerState>(
        "GetController", v1::GetControllerRequest());
    if (state && state->leads()) return {address, *std::move(state)};
  }
  return {};
}

/// A claim names its writer by the address for gRPC and, after a space, that for HTTP.
std::string grpc_address(const std::string& writer) { return writer.substr(0, writer.find(' ')); }

/// Whether a leader is the writer of a log: it has the address and term of the log's claim, and its
/// newest batch is between those that were read `before` and `after` it was asked.
bool writes(const AskedLeader& leader, const WriterSeen& before, const WriterSeen& after) {
  const std::uint64_t batch = leader.state.batch();
  return leader.address == grpc_address(after.writer) && leader.state.term() == after.term &&
         before.newest <= batch && batch <= after.newest;
}

/// Error (kInput): the log at `url` is not that of the cluster which the options name.
Status check_cluster_of(const CommandOptions& options, const LiveSession& session,
                        const std::string& url) {
  constexpr int kTriesMax = 5;
  Result<EtcdLocation> location = parse_etcd_location(url);
  if (!location) return forward_error(location);
  auto log = EtcdStore::open_to_read(*location);
  if (!log) return store_failed(log.error());
  auto client = EtcdClient::make(*location);
  if (!client) return store_failed(client.error());
  EtcdReader reader(**client);
  AskedLeader leader;
  WriterSeen seen;
  // A leader learns of its newest batch slightly later than the readers of the log.
  for (int tries = 0; tries < kTriesMax; ++tries) {
    StorageResult<EtcdState> before = reader.state();
    if (!before) return store_failed(before.error());
    leader = find_leader(session);
    StorageResult<EtcdState> after = reader.state();
    if (!after) return store_failed(after.error());
    if (writes(leader, before->seen, after->seen)) return {};
    seen = std::move(after->seen);
  }
  const std::string directory = cluster_directory(options);
  const std::string led =
      leader.address.empty()
          ? fmt::format("the cluster in {} has no leader", directory)
          : fmt::format("the cluster in {} is led by {} (term {}, batch {})", directory,
                        leader.address, leader.state.term(), leader.state.batch());
  return input_error(
      {},
      fmt::format("{}: is written by the controller at {} (term {}, batch {}), but {}; expected "
                  "--dir of the cluster that uses this log",
                  location->text(), grpc_address(seen.writer), seen.term, seen.newest, led));
}

/// The controller that writes the store does it: that of the cluster which the options name.
Result<VerbAnswer> compact_online(const CommandOptions& options, const std::string& store) {
  constexpr Duration kPatience = Duration::minutes(10);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options, kPatience);
  if (!session) return forward_error(session);
  if (is_etcd_url(store)) {
    if (Status own = check_cluster_of(options, **session, store); !own) return forward_error(own);
  }
  Result<v1::CompactStoreResponse> done = (*session)->client().call<v1::CompactStoreResponse>(
      "CompactStore", v1::CompactStoreRequest());
  if (!done) return forward_error(done);
  return compacted_answer(store + ", by the running controller",
                          {done->snapshot(), done->snapshot_bytes(), done->dropped_batches()});
}

/// The directory of the cluster whose controller writes the store now; empty: none does.
std::string served_by(const std::string& store) {
  if (SqliteStore::lock(store)) return {};
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::canonical(store, failed);
  const std::string directory = path.parent_path().string();
  const bool ours = !failed && path.filename() == "store" &&
                    std::filesystem::exists(directory + "/cluster.json", failed);
  return ours ? directory : std::string();
}

}  // namespace

std::string batches_text(const StoreExtent& extent) {
  if (extent.newest == 0) return "no batches yet";
  if (extent.oldest > extent.newest)
    return fmt::format("all batches up to {} dropped", extent.newest);
  return fmt::format("batches {} to {}", extent.oldest, extent.newest);
}

VerbAnswer compacted_answer(const std::string& name, const CompactedLog& log) {
  return {fmt::format("{}: wrote a snapshot of {} up to batch {}, dropped {}\n", name,
                      counted(log.snapshot_bytes, "byte"), log.covers,
                      log.dropped == 1 ? "1 batch" : fmt::format("{} batches", log.dropped)),
          {{"snapshot", log.covers},
           {"snapshot_bytes", log.snapshot_bytes},
           {"dropped_batches", log.dropped}}};
}

Result<JudgedAnswer> verify_store(const std::string& path) {
  auto store = open_store_to_read(path);
  if (!store) {
    const bool damage = store.error().failure == StorageFailure::kOther &&
                        store.error().kind == ErrorKind::kEnvironment;
    if (!damage) return store_failed(store.error());
    return JudgedAnswer{{"", {{"good", false}, {"why", store.error().message}}},
                        store_failed(store.error())};
  }
  HistoryResult<VerifiedHistory> verified = verify_history(**store);
  if (!verified) {
    const HistoryPlace& place = verified.error().place;
    Json json{{"good", false},
              {"segment", place.segment},
              {"batch", place.batch},
              {"offset", place.offset},
              {"why", verified.error().message}};
    verified.error().message += after_damage(path);
    return JudgedAnswer{{"", std::move(json)}, forward_error(verified)};
  }
  const HistoryReader::Counts& read = verified->read;
  const std::string hash = fmt::format("{:016x}", verified->history_hash);
  JudgedAnswer answer;
  answer.shown.json = {{"good", true},
                       {"oldest_batch", verified->extent.oldest},
                       {"newest_batch", verified->extent.newest},
                       {"segments", read.segments},
                       {"events", read.events},
                       {"snapshots", verified->snapshots},
                       {"history_hash", hash}};
  answer.shown.text = fmt::format("{}: good: {} with {} in {}, history hash {}\n", (*store)->name(),
                                  batches_text(verified->extent), counted(read.events, "event"),
                                  counted(read.segments, "segment"), hash);
  if (!verified->snapshots.empty()) {
    answer.shown.text +=
        fmt::format("snapshots up to batch {}\n", fmt::join(verified->snapshots, ", "));
  }
  return answer;
}

Status export_store(const std::string& path, const std::function<void(const Json&)>& show) {
  auto store = open_store_to_read(path);
  if (!store) return store_failed(store.error());
  HistoryResult<HistoryStart> start = oldest_start(**store);
  if (!start) return forward_error(start);
  HistoryResult<HistoryReader> reader = HistoryReader::open(**store, *start, nullptr);
  if (!reader) return forward_error(reader);
  const EventVisitor visit = [&](const TimedEvent& event) { show(event_json(event)); };
  while (true) {
    HistoryResult<bool> more = reader->next_batch(visit);
    if (!more) return forward_error(more);
    if (!*more) return {};
  }
}

Result<VerbAnswer> back_up_store(const std::string& path, const std::string& to) {
  if (is_etcd_url(path)) {
    return input_error(
        {}, fmt::format("\"{}\": expected a directory or a file; a log in etcd is backed up with "
                        "etcd, also while controllers run: etcdctl snapshot save {}",
                        path, to));
  }
  if (StorageStatus copied = SqliteStore::backup(path, to); !copied) {
    return store_failed(copied.error());
  }
  auto copy = SqliteStore::open_to_read(to);
  if (!copy) return store_failed(copy.error());
  StorageResult<StoreExtent> extent = (*copy)->extent();
  if (!extent) return store_failed(extent.error());
  return VerbAnswer{
      fmt::format("{}: {}\n", to, batches_text(*extent)),
      {{"backup", to}, {"oldest_batch", extent->oldest}, {"newest_batch", extent->newest}}};
}

Result<VerbAnswer> compact_store(const CommandOptions& options, const std::string& path) {
  if (is_etcd_url(path)) return compact_online(options, path);
  // To read first: opening to write would make a store where there is none.
  auto there = SqliteStore::open_to_read(path);
  if (!there) return store_failed(there.error());
  there->reset();
  if (const std::string cluster = served_by(path); !cluster.empty()) {
    CommandOptions own = options;
    own.cluster_directory = cluster;
    return compact_online(own, cluster + "/store");
  }
  auto store = SqliteStore::open(path);
  if (!store) return store_failed(store.error());
  StorageResult<StoreExtent> before = (*store)->extent();
  if (!before) return store_failed(before.error());
  if (before->newest == 0)
    return infeasible((*store)->name() + ": no batches yet, nothing to compact");
  Result<std::unique_ptr<StoredSetup>> setup =
      StoredSetup::load(with_catalog_of(options, path), **store);
  if (!setup) return forward_error(setup);
  Result<Batch> snapshot = checked_snapshot(**store, (*setup)->control());
  if (!snapshot) return forward_error(snapshot);
  StorageResult<StoreTerm> term = (*store)->claim();
  if (!term) return store_failed(term.error());
  StorageResult<CompactedLog> done = compact_to(**store, *term, *snapshot);
  if (!done) return store_failed(done.error());
  return compacted_answer((*store)->name(), *done);
}

}  // namespace orrery
