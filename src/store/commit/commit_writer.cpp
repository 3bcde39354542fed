#include "store/commit/commit_writer.hpp"

#include <utility>

namespace orrery {

/// Whether the store is asked again. One that is full and that others follow can be given room by
/// its operator, and the writer loses nothing by waiting.
bool CommitWriter::waits_for(const CommitWork& work, const StorageError& error) const {
  if (error.failure == StorageFailure::kUnavailable) return true;
  const bool log = work.kind == CommitWork::Kind::kBatch || work.kind == CommitWork::Kind::kBeat ||
                   work.kind == CommitWork::Kind::kTexts;
  return error.failure == StorageFailure::kFull && log && traits_.speaks_for != Duration::max();
}

bool CommitWriter::note(const CommitWork& work, Instant began, const StorageStatus& status) {
  // A snapshot that the second thread could not put is not put again.
  const bool over = work.beside && !*work.beside;
  const bool answered = status || over || !waits_for(work, status.error());
  if (options_.answers && answered == silent_) {
    options_.inbox.post([call = options_.answers, status] { call(status); });
  }
  if (status && work.shows_writer() && options_.spoke && traits_.speaks_for != Duration::max()) {
    options_.inbox.post([call = options_.spoke, began] { call(began); });
  }
  silent_ = !answered;
  return answered;
}

StorageStatus CommitWriter::commit(const CommitWork& work) {
  if (work.kind == CommitWork::Kind::kTexts) {
    return options_.store.put_texts(options_.term, work.texts);
  }
  if (work.kind == CommitWork::Kind::kBeat) return options_.store.beat(options_.term);
  return options_.store.append(options_.term, work.batch);
}

StorageStatus CommitWriter::write(CommitWork& work) {
  if (work.is_snapshot()) return write_snapshot(work);
  if (work.kind == CommitWork::Kind::kArchive) {
    return options_.store.put_archived(options_.term, work.jobs);
  }
  StorageStatus status = commit(work);
  if (status || status.error().failure != StorageFailure::kFull || !options_.make_room) {
    return status;
  }
  if (options_.make_room() == RoomMade::kNo) return status;
  return commit(work);
}

StorageStatus CommitWriter::write_snapshot(CommitWork& work) {
  Store& store = options_.store;
  if (traits_.snapshots_beside && !work.beside) {
    return store_error(StorageFailure::kExists, store.name() + ": a snapshot is being put already");
  }
  StorageStatus status = work.beside ? *work.beside : store.put_snapshot(options_.term, work.batch);
  if (!status) return status;
  if (work.kind == CommitWork::Kind::kSnapshot) return drop_before_previous(store, options_.term);
  StorageResult<CompactedLog> log = drop_to(store, options_.term, work.batch);
  if (!log) return tl::unexpected(log.error());
  work.log = *log;
  return {};
}

bool CommitWriter::is_final(const CommitWork& work, const StorageStatus& status) {
  if (status) return false;
  const StorageFailure failure = status.error().failure;
  // The log is complete without a snapshot, and the next one is put in its time.
  if (work.is_snapshot() && (failure == StorageFailure::kExists || work.beside)) {
    return failure != StorageFailure::kExists && failure != StorageFailure::kFull &&
           failure != StorageFailure::kUnavailable;
  }
  const bool can_wait = work.is_snapshot() || work.kind == CommitWork::Kind::kArchive;
  return !can_wait || failure != StorageFailure::kFull;
}

bool CommitWriter::finish(const CommitWork& work, const StorageStatus& status) const {
  if (work.put) work.put->set_value(status);
  const bool final = is_final(work, status);
  if (final) {
    options_.inbox.post([call = options_.failed, why = status.error()] { call(why); });
  } else if (work.kind == CommitWork::Kind::kBatch) {
    options_.inbox.post([call = options_.durable, number = work.batch.number] { call(number); });
  } else if (work.kind == CommitWork::Kind::kArchive && options_.archive_put) {
    options_.inbox.post([call = options_.archive_put, status] { call(status); });
  } else if (work.kind == CommitWork::Kind::kCompaction) {
    StorageResult<CompactedLog> log = work.log;
    if (!status) log = tl::unexpected(status.error());
    options_.inbox.post([call = work.compacted, log] { call(log); });
  } else if (work.kind == CommitWork::Kind::kSnapshot && options_.snapshot_put) {
    options_.inbox.post([call = options_.snapshot_put, status] { call(status); });
  }
  return final;
}

}  // namespace orrery
