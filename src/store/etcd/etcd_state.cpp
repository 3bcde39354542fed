#include "store/etcd/etcd_state.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "store/etcd/etcd_blob.hpp"

namespace orrery {
namespace {

/// The answers of read_state()'s one transaction, in this order.
enum StateAnswer : int { kFormat, kTerm, kBeat, kOldest, kCount, kSnapshots, kAnswers };

etcd::TxnRequest state_request(const EtcdKeys& keys) {
  EtcdTxn txn;
  txn.get(range_request({keys.format()}));
  txn.get(range_request({keys.term()}));
  txn.get(range_request({keys.beat()}));
  etcd::RangeRequest oldest = range_request(keys_under(keys.log()));
  oldest.set_limit(1);
  oldest.set_keys_only(true);
  txn.get(std::move(oldest));
  etcd::RangeRequest count = range_request(keys_under(keys.log()));
  count.set_count_only(true);
  txn.get(std::move(count));
  etcd::RangeRequest snapshots = range_request(keys_under(keys.snapshots()));
  snapshots.set_keys_only(true);
  txn.get(std::move(snapshots)).in_order(keys.prefix());
  return txn.request();
}

StorageStatus take_format(const std::string& store, const etcd::RangeResponse& found,
                          EtcdState& state) {
  if (found.kvs().empty()) return {};
  const etcd::KeyValue& format = found.kvs(0);
  state.format_mark = format.mod_revision();
  if (format.value() == kEtcdFormat) return {};
  if (format.value().starts_with(kEtcdMoved)) {
    state.moved_to = format.value().substr(std::string_view(kEtcdMoved).size());
    return {};
  }
  return store_error(StorageFailure::kOther,
                     fmt::format("{}: the key {} says that the log has the layout \"{}\", this "
                                 "program reads layout {}; a newer program may have written it",
                                 store, format.key(), format.value().substr(0, 40), kEtcdFormat));
}

StorageStatus take_term(const std::string& store, const etcd::RangeResponse& found,
                        EtcdState& state) {
  if (found.kvs().empty()) return {};
  StorageResult<EtcdClaim> claim = parse_claim(store, found.kvs(0));
  if (!claim) return forward_failure(claim);
  state.seen.term = claim->term;
  state.seen.writer = std::move(claim->writer);
  state.seen.speaks_for = claim->speaks_for;
  state.seen.claim_mark = static_cast<std::uint64_t>(found.kvs(0).mod_revision());
  state.nonce = claim->nonce;
  return {};
}

StorageStatus take_snapshots(const std::string& store, const EtcdKeys& keys,
                             const etcd::RangeResponse& found, EtcdState& state) {
  state.snapshots.reserve(static_cast<std::size_t>(found.kvs_size()));
  for (const etcd::KeyValue& each : found.kvs()) {
    const std::optional<std::uint64_t> covers = EtcdKeys::number_in(each.key(), keys.snapshots());
    if (!covers) return damaged_key(store, each.key(), "expected a number of 16 digits");
    state.snapshots.push_back(*covers);
  }
  return {};
}

/// Batches are numbered without gaps, so that their count gives the newest.
StorageStatus take_extent(const std::string& store, const EtcdKeys& keys,
                          const etcd::TxnResponse& answers, EtcdState& state) {
  const etcd::RangeResponse& first = answers.responses(kOldest).response_range();
  const auto count = static_cast<std::uint64_t>(answers.responses(kCount).response_range().count());
  state.seen.newest = state.snapshots.empty() ? 0 : state.snapshots.back();
  state.oldest = state.seen.newest + 1;
  if (first.kvs().empty()) return {};
  const std::string& key = first.kvs(0).key();
  const std::optional<std::uint64_t> oldest = EtcdKeys::number_in(key, keys.log());
  if (!oldest || *oldest == 0) return damaged_key(store, key, "expected a number of 16 digits");
  state.oldest = *oldest;
  state.seen.newest = *oldest + count - 1;
  return {};
}

}  // namespace

std::string EtcdClaim::json() const {
  return nlohmann::json{{"term", term},
                        {"writer", writer},
                        {"nonce", fmt::format("{:016x}", nonce)},
                        {"speaks_for_ns", speaks_for.count_ns()}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

StorageResult<EtcdClaim> parse_claim(const std::string& store, const etcd::KeyValue& found) {
  const nlohmann::json json = nlohmann::json::parse(found.value(), nullptr, false);
  const auto member = [&](const char* name) {
    return json.is_object() ? json.value(name, nlohmann::json()) : nlohmann::json();
  };
  const nlohmann::json term = member("term");
  const nlohmann::json writer = member("writer");
  const nlohmann::json nonce = member("nonce");
  const std::optional<std::uint64_t> number =
      nonce.is_string() ? EtcdKeys::number_in(nonce.get_ref<const std::string&>(), "")
                        : std::nullopt;
  if (!term.is_number_unsigned() || !writer.is_string() || !number) {
    return damaged_key(store, found.key(), "expected a claim: term, writer and nonce, as JSON");
  }
  const nlohmann::json speaks_for = member("speaks_for_ns");
  const std::int64_t lasts = speaks_for.is_number_integer() ? speaks_for.get<std::int64_t>() : 0;
  return EtcdClaim{term.get<std::uint64_t>(), writer.get<std::string>(), *number,
                   Duration::nanoseconds(lasts)};
}

StorageStatus check_open(const EtcdClient& client, const EtcdState& state) {
  if (state.moved_to.empty()) return {};
  const std::string start =
      is_etcd_url(state.moved_to)
          ? fmt::format("start the controllers with --store '{}' and its files", state.moved_to)
          : "start the controller with --dir DIR, where DIR/store is this copy";
  return store_error(
      StorageFailure::kOther,
      fmt::format("{}: is closed: `orrery store copy` moved the log to {}; {}. If no controller "
                  "has ever run on that copy, this log is opened again by: etcdctl put {} {}",
                  client.name(), state.moved_to, start,
                  EtcdKeys(client.location().prefix()).format(), kEtcdFormat));
}

StorageResult<EtcdState> read_state(EtcdClient& client, const EtcdKeys& keys) {
  auto answers = client.txn(state_request(keys));
  if (!answers) return forward_failure(answers);
  if (answers->responses_size() != kAnswers) {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: etcd gave {} answers to {} questions", client.name(),
                                   answers->responses_size(), static_cast<int>(kAnswers)));
  }
  const auto range = [&](StateAnswer each) -> const etcd::RangeResponse& {
    return answers->responses(each).response_range();
  };
  const std::string& store = client.name();
  EtcdState state;
  state.revision = answers->header().revision();
  StorageStatus taken = take_format(store, range(kFormat), state);
  if (taken) taken = take_term(store, range(kTerm), state);
  if (taken && !range(kBeat).kvs().empty()) {
    state.seen.beat_mark = static_cast<std::uint64_t>(range(kBeat).kvs(0).mod_revision());
  }
  if (taken) taken = take_snapshots(store, keys, range(kSnapshots), state);
  if (taken) taken = take_extent(store, keys, *answers, state);
  if (!taken) return forward_failure(taken);
  return state;
}

}  // namespace orrery
