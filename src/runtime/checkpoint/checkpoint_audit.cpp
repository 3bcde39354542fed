#include "runtime/checkpoint/checkpoint_audit.hpp"

#include "runtime/checkpoint/checkpoint_reader.hpp"

namespace orrery {
namespace {

std::string_view verdict(const AuditedCheckpoint& audited) {
  switch (audited.state) {
    case ListedCheckpoint::State::kCommitted:
      return audited.good() ? "good" : "damaged";
    case ListedCheckpoint::State::kUncommitted:
      return "not committed";
    case ListedCheckpoint::State::kUnreadable:
      return "damaged";
  }
  return "";
}

}  // namespace

Result<std::vector<AuditedCheckpoint>> audit_checkpoints(const std::string& directory) {
  Result<std::vector<ListedCheckpoint>> listed = list_checkpoints(directory);
  if (!listed) return forward_error(listed);
  std::vector<AuditedCheckpoint> audited;
  audited.reserve(listed->size());
  for (ListedCheckpoint& checkpoint : *listed) {
    AuditedCheckpoint& now = audited.emplace_back();
    now.step = checkpoint.step;
    now.state = checkpoint.state;
    if (!checkpoint.fault.empty()) now.faults.push_back(std::move(checkpoint.fault));
    if (checkpoint.state != ListedCheckpoint::State::kCommitted) continue;
    now.by = checkpoint.manifest.id.by;
    for (const ShardRecord& shard : checkpoint.manifest.shards) now.bytes += shard.bytes;
    Result<CheckpointReader> reader =
        CheckpointReader::open(directory, std::move(checkpoint.manifest));
    if (!reader) {
      now.faults.push_back(reader.error().text());
      continue;
    }
    for (std::size_t shard = 0; shard < reader->manifest().shards.size(); ++shard) {
      if (Status good = reader->verify(shard); !good) now.faults.push_back(good.error().text());
    }
  }
  return audited;
}

std::string audit_text(const std::vector<AuditedCheckpoint>& audited) {
  std::string text;
  for (const AuditedCheckpoint& checkpoint : audited) {
    text += fmt::format("step {}  {}", checkpoint.step, verdict(checkpoint));
    if (checkpoint.state == ListedCheckpoint::State::kCommitted) {
      text += fmt::format("  {}  {:.1f} MB", checkpoint.by.text(),
                          static_cast<double>(checkpoint.bytes) / 1e6);
    }
    text += "\n";
    for (const std::string& fault : checkpoint.faults) text += fmt::format("  {}\n", fault);
  }
  return text.empty() ? "no checkpoints\n" : text;
}

}  // namespace orrery
