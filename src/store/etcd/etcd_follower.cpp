#include "store/etcd/etcd_follower.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include "store/etcd/etcd_blob.hpp"
#include "store/etcd/etcd_reader.hpp"
#include "store/etcd/follow_outbox.hpp"
#include "store/etcd_api/etcd_watch.hpp"

namespace orrery {
namespace {

constexpr std::size_t kReadBytes = std::size_t{4} << 20;
constexpr Duration kSilenceMax = Duration::seconds(1);
constexpr Duration kPause = Duration::milliseconds(50);

}  // namespace

/// The work of the thread.
class EtcdFollower::Run {
 public:
  Run(std::unique_ptr<EtcdClient> client, std::shared_ptr<FollowOutbox> outbox, std::uint64_t after)
      : client_(std::move(client)), reader_(*client_), outbox_(std::move(outbox)), newest_(after) {}

  void run() {
    for (std::size_t member = 0; !outbox_->ended();) {
      StorageStatus followed = catch_up();
      if (followed) followed = watch(member);
      if (outbox_->ended()) return;
      if (!followed && !outlives(followed.error())) return;
      member = (member + 1) % client_->member_count();
      if (!followed) outbox_->wait(kPause);
    }
  }

  /// Called on the loop.
  void end() {
    outbox_->end();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (watch_ != nullptr) watch_->cancel();
  }

 private:
  /// Reports a failure, one of etcd's silence once. Returns whether to go on.
  bool outlives(const StorageError& error) {
    const bool silent = error.failure == StorageFailure::kUnavailable;
    if (!silent || !std::exchange(reported_, true)) outbox_->post_failure(error);
    return silent;
  }

  /// Delivers what etcd has and the follower has not.
  StorageStatus catch_up() {
    StorageResult<EtcdState> state = reader_.state();
    if (!state) return forward_failure(state);
    StorageStatus fits = check_open(*client_, *state);
    if (fits) fits = check_state(*state);
    if (!fits) return fits;
    if (newest_ < state->seen.newest) outbox_->post_ahead(state->seen.newest);
    while (newest_ < state->seen.newest && !outbox_->ended()) {
      if (StorageStatus read = read_some(state->seen.newest); !read) return read;
    }
    reported_ = false;
    const bool first = std::exchange(revision_, state->revision) == 0;
    if (!first) outbox_->post_texts();  // a watch may have lost that they were put
    const WriterSeen before = std::exchange(seen_, std::move(state->seen));
    seen_.newest = newest_;
    const bool unreported = std::exchange(changed_, false);
    if (first || unreported || !(before == seen_)) outbox_->post_seen(seen_);
    return {};
  }

  StorageStatus check_state(const EtcdState& state) const {
    if (state.seen.newest < newest_) {
      return store_error(StorageFailure::kOther,
                         fmt::format("{}: the newest batch is {}, and batch {} was seen",
                                     client_->name(), state.seen.newest, newest_));
    }
    if (state.oldest > newest_ + 1) return dropped(state.oldest);
    return {};
  }

  [[nodiscard]] tl::unexpected<StorageError> dropped(std::uint64_t oldest) const {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: the batches after {} were dropped, the oldest is {}; a "
                                   "snapshot has their state",
                                   client_->name(), newest_, oldest));
  }

  StorageStatus read_some(std::uint64_t newest) {
    StorageResult<std::vector<Batch>> batches = reader_.read(newest_, kReadBytes);
    if (!batches) return forward_failure(batches);
    if (batches->empty()) {
      return store_error(StorageFailure::kUnavailable,
                         fmt::format("{}: batch {} is not there yet, and batch {} was counted",
                                     client_->name(), newest_ + 1, newest));
    }
    for (Batch& batch : *batches) {
      if (batch.number != newest_ + 1) return dropped(batch.number);
      deliver(std::move(batch));
    }
    return {};
  }

  void deliver(Batch batch) {
    newest_ = batch.number;
    outbox_->post_batch(std::move(batch));
  }

  /// Follows one member until its watch ends or is in doubt. Errors: those after which the follower
  /// ends, and kUnavailable.
  StorageStatus watch(std::size_t member) {
    etcd::WatchRequest request;
    const EtcdKeyRange all = keys_under(reader_.keys().prefix());
    request.mutable_create_request()->set_key(all.from);
    request.mutable_create_request()->set_range_end(all.end);
    request.mutable_create_request()->set_start_revision(revision_ + 1);
    request.mutable_create_request()->set_fragment(true);
    EtcdWatch watch(client_->channel(member), std::move(request));
    begin_watch(&watch);
    StorageStatus followed;
    Verdict verdict = Verdict::kGoOn;
    while (followed && verdict == Verdict::kGoOn && !outbox_->ended()) {
      const EtcdWatch::Next next = watch.next(kSilenceMax);
      if (next == EtcdWatch::Next::kEnded) break;
      StorageResult<Verdict> heard =
          next == EtcdWatch::Next::kSilence ? look() : hear(watch.message());
      if (heard) verdict = *heard;
      if (!heard) followed = forward_failure(heard);
    }
    begin_watch(nullptr);
    return followed;
  }

  void begin_watch(EtcdWatch* watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watch_ = watch;
  }

  /// Whether a watch can still be right.
  enum class Verdict : std::uint8_t { kGoOn, kDoubt };

  /// Compares what was seen with what is there.
  StorageResult<Verdict> look() {
    StorageResult<EtcdState> state = reader_.state();
    if (!state) return forward_failure(state);
    reported_ = false;
    const bool same = state->seen == seen_ && state->moved_to.empty();
    return same ? Verdict::kGoOn : Verdict::kDoubt;
  }

  StorageResult<Verdict> hear(const etcd::WatchResponse& message) {
    if (message.canceled()) return Verdict::kDoubt;
    for (const etcd::Event& event : message.events()) {
      if (event.type() != etcd::Event::PUT) continue;
      StorageResult<Verdict> taken = take(event.kv());
      if (!taken || *taken == Verdict::kDoubt) return taken;
    }
    if (message.fragment() || !changed_) return Verdict::kGoOn;
    changed_ = false;
    if (std::exchange(texts_changed_, false)) outbox_->post_texts();
    outbox_->post_seen(seen_);
    return Verdict::kGoOn;
  }

  StorageResult<Verdict> take(const etcd::KeyValue& put) {
    const EtcdKeys& keys = reader_.keys();
    if (put.mod_revision() <= revision_) return Verdict::kGoOn;  // it was read already
    if (put.key().starts_with(keys.log())) return take_batch(put);
    if (put.key() == keys.format()) return Verdict::kDoubt;
    if (put.key().starts_with(keys.texts())) texts_changed_ = changed_ = true;
    const auto mark = static_cast<std::uint64_t>(put.mod_revision());
    if (put.key() == keys.beat() && mark > seen_.beat_mark) {
      seen_.beat_mark = mark;
      changed_ = true;
    }
    if (put.key() == keys.term() && mark > seen_.claim_mark) {
      StorageResult<EtcdClaim> claim = parse_claim(client_->name(), put);
      if (!claim) return forward_failure(claim);
      seen_.claim_mark = mark;
      seen_.term = claim->term;
      seen_.writer = std::move(claim->writer);
      seen_.speaks_for = claim->speaks_for;
      changed_ = true;
    }
    return Verdict::kGoOn;
  }

  StorageResult<Verdict> take_batch(const etcd::KeyValue& put) {
    const std::optional<std::uint64_t> number =
        EtcdKeys::number_in(put.key(), reader_.keys().log());
    if (number && *number <= newest_) return Verdict::kGoOn;
    if (number && *number != newest_ + 1) return Verdict::kDoubt;
    StorageResult<Batch> batch = reader_.batch_of(put, put.mod_revision());
    const bool compacted = !batch && batch.error().failure == StorageFailure::kNotFound;
    if (compacted) return Verdict::kDoubt;
    if (!batch) return forward_failure(batch);
    deliver(*std::move(batch));
    seen_.newest = newest_;
    changed_ = true;
    return Verdict::kGoOn;
  }

  std::unique_ptr<EtcdClient> client_;
  EtcdReader reader_;
  std::shared_ptr<FollowOutbox> outbox_;
  std::uint64_t newest_;       ///< newest delivered batch
  std::int64_t revision_ = 0;  ///< at which the state was read; 0: never
  WriterSeen seen_;
  bool changed_ = false;  ///< seen_ or the texts, since they were last posted
  bool texts_changed_ = false;
  bool reported_ = false;  ///< that etcd gives no answer
  std::mutex mutex_;
  EtcdWatch* watch_ = nullptr;  ///< guarded by mutex_
};

EtcdFollower::EtcdFollower(const EtcdLocation& location, FollowOptions options) {
  const std::uint64_t after = options.after;
  auto outbox = std::make_shared<FollowOutbox>(std::move(options));
  auto client = EtcdClient::make(location);
  if (!client) outbox->post_failure(client.error());
  if (!client) return;
  run_ = std::make_unique<Run>(*std::move(client), std::move(outbox), after);
  thread_ = std::thread([this] { run_->run(); });
}

EtcdFollower::~EtcdFollower() {
  if (run_ != nullptr) run_->end();
  if (thread_.joinable()) thread_.join();
}

}  // namespace orrery
