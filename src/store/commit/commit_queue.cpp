#include "store/commit/commit_queue.hpp"

#include <utility>

namespace orrery {

std::uint64_t CommitQueue::submit(std::string_view bytes, std::uint64_t next_job) {
  const bool open = !works_.empty() && works_.back().kind == CommitWork::Kind::kBatch &&
                    works_.back().batch.bytes.size() < batch_bytes_;
  if (!open) works_.push_back({.batch = {.number = ++newest_}});
  Batch& batch = works_.back().batch;
  batch.bytes += bytes;
  batch.next_job = next_job;
  waiting_bytes_ += bytes.size();
  return newest_;
}

void CommitQueue::put_texts(StoreTexts texts, std::shared_ptr<std::promise<StorageStatus>> put) {
  works_.push_back(
      {.kind = CommitWork::Kind::kTexts, .texts = std::move(texts), .put = std::move(put)});
}

void CommitQueue::put_archived(std::vector<ArchivedJob> jobs) {
  works_.push_back({.kind = CommitWork::Kind::kArchive, .jobs = std::move(jobs)});
}

void CommitQueue::put_snapshot(CommitWork::Kind kind, std::string bytes,
                               LogCommits::Compacted done) {
  waiting_bytes_ += bytes.size();
  works_.push_back(
      {.kind = kind, .batch = {newest_, std::move(bytes)}, .compacted = std::move(done)});
}

void CommitQueue::put_beat() {
  if (works_.empty()) works_.push_back({.kind = CommitWork::Kind::kBeat});
}

CommitWork CommitQueue::take() {
  CommitWork work = std::move(works_.front());
  works_.pop_front();
  return work;
}

}  // namespace orrery
