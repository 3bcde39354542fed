#include "store/etcd_size/log_survey.hpp"

#include <chrono>

#include "store/etcd/etcd_blob.hpp"
#include "store/etcd/etcd_keys.hpp"

namespace orrery {
namespace {

constexpr int kPage = 16;
constexpr std::int64_t kBytesPerSecond = std::int64_t{8} << 20;
constexpr Duration kAgain = Duration::seconds(1);

}  // namespace

LogSurvey::LogSurvey(const EtcdLocation& location, LogSizes& sizes)
    : location_(location), sizes_(sizes), thread_([this] { run(); }) {}

LogSurvey::~LogSurvey() {
  {
    const std::scoped_lock lock(mutex_);
    phase_ = Phase::kEnding;
  }
  changed_.notify_all();
  thread_.join();
}

bool LogSurvey::wait(Duration time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::nanoseconds(time.count_ns()),
                            [this] { return phase_ == Phase::kEnding; });
}

void LogSurvey::run() {
  const auto client = EtcdClient::make(location_);
  if (!client) return;
  for (const Kind kind : {Kind::kSnapshots, Kind::kBatches, Kind::kTexts}) {
    if (!read(**client, kind)) return;
  }
}

bool LogSurvey::read(EtcdClient& client, Kind kind) {
  const EtcdKeys keys(location_.prefix());
  EtcdKeyRange left = keys_under(kind == Kind::kBatches     ? keys.log()
                                 : kind == Kind::kSnapshots ? keys.snapshots()
                                                            : keys.texts());
  while (wait(Duration())) {
    etcd::RangeRequest request = range_request(left);
    request.set_limit(kPage);
    const auto page = client.range(request, kPage * 2 * kBlobHeadBytes);
    if (!page && page.error().failure != StorageFailure::kUnavailable) return false;
    if (!page) {
      if (!wait(kAgain)) return false;
      continue;
    }
    std::int64_t bytes = 0;
    for (const etcd::KeyValue& each : page->kvs()) {
      note(client, kind, each);
      bytes += static_cast<std::int64_t>(each.value().size());
    }
    if (!page->more() || page->kvs().empty()) return true;
    left.from = page->kvs(page->kvs_size() - 1).key() + '\0';
    if (!wait(Duration::nanoseconds(bytes * 1'000'000'000 / kBytesPerSecond))) return false;
  }
  return false;
}

/// A damaged head counts as it is: reading the log names it.
void LogSurvey::note(const EtcdClient& client, Kind kind, const etcd::KeyValue& found) {
  const EtcdKeys keys(location_.prefix());
  const auto head = parse_blob_head(client.name(), found);
  const std::uint64_t bytes = head ? head->length() : found.value().size();
  if (kind == Kind::kTexts) {
    return sizes_.found_text(found.key().substr(keys.texts().size()), bytes);
  }
  const std::string prefix = kind == Kind::kBatches ? keys.log() : keys.snapshots();
  const std::optional<std::uint64_t> number = EtcdKeys::number_in(found.key(), prefix);
  if (!number) return;
  if (kind == Kind::kBatches) {
    sizes_.found_batch(*number, bytes);
  } else {
    sizes_.found_snapshot(*number, bytes);
  }
}

}  // namespace orrery
