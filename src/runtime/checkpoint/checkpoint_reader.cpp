#include "runtime/checkpoint/checkpoint_reader.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

Status check_all(CheckpointReader& reader) {
  for (std::size_t shard = 0; shard < reader.manifest().shards.size(); ++shard) {
    if (Status good = reader.verify(shard); !good) return good;
  }
  return {};
}

}  // namespace

Result<CheckpointReader> CheckpointReader::open(const std::string& directory, Manifest manifest) {
  CheckpointReader reader;
  reader.step_directory_ = step_directory(directory, manifest.id.step);
  Result<std::vector<PlacedTensor>> tensors = placed_tensors(manifest);
  if (!tensors) return forward_error(tensors);
  reader.tensors_ = *std::move(tensors);
  reader.shards_.resize(manifest.shards.size());
  reader.manifest_ = std::move(manifest);
  return reader;
}

Status CheckpointReader::read(const TensorRange& range, std::span<std::byte> out) {
  const Result<const PlacedTensor*> found = find(range);
  if (!found) return tl::unexpected<Error>(found.error());
  const std::uint64_t width = bytes_of(range.type);
  ORRERY_ASSERT(out.size() == (range.end - range.begin) * width, "room for just the range");
  const std::vector<TensorPart>& parts = (*found)->parts;
  auto part = std::ranges::upper_bound(parts, range.begin, {}, &TensorPart::end);
  for (std::uint64_t at = range.begin; at < range.end; ++part) {
    ORRERY_ASSERT(part != parts.end() && part->begin <= at, "parts cover their tensor");
    const std::uint64_t end = std::min(part->end, range.end);
    Result<ShardReader*> reader = shard(part->shard);
    if (!reader) return forward_error(reader);
    const std::size_t bytes = (end - at) * width;
    Status read = (*reader)->read(part->offset + (at - part->begin) * width, out.first(bytes));
    if (!read) return read;
    out = out.subspan(bytes);
    at = end;
  }
  return {};
}

Status CheckpointReader::verify(std::size_t index) {
  Result<ShardReader*> reader = shard(index);
  if (!reader) return forward_error(reader);
  return (*reader)->verify();
}

Result<const PlacedTensor*> CheckpointReader::find(const TensorRange& range) const {
  const auto name_of = [](const PlacedTensor& tensor) -> std::string_view {
    return tensor.info.name;
  };
  const auto found = std::ranges::lower_bound(tensors_, range.tensor, {}, name_of);
  if (found == tensors_.end() || found->info.name != range.tensor) {
    std::vector<std::string_view> names;
    std::ranges::transform(tensors_, std::back_inserter(names), name_of);
    return no_such_tensor(range, names, step_directory_);
  }
  if (Status good = check_range(range, found->info, step_directory_); !good) {
    return forward_error(good);
  }
  return &*found;
}

Result<ShardReader*> CheckpointReader::shard(std::size_t index) {
  std::optional<ShardReader>& kept = shards_.at(index);
  if (kept) return &*kept;
  const ShardRecord& record = manifest_.shards[index];
  const std::string path = step_directory_ + "/" + record.file;
  Result<ShardReader> opened = ShardReader::open(path);
  if (!opened) return forward_error(opened);
  const ShardIndex& found = opened->index();
  if (checksum_text(found.checksum) != record.checksum || found.header.pieces != record.pieces ||
      found.header.name.id != manifest_.id) {
    return input_error({path}, "a shard, but not the one its manifest names");
  }
  kept.emplace(*std::move(opened));
  return &*kept;
}

Result<FoundCheckpoint> open_newest_good(const std::string& directory) {
  Result<std::vector<ListedCheckpoint>> listed = list_checkpoints(directory);
  if (!listed) return forward_error(listed);
  FoundCheckpoint found;
  for (ListedCheckpoint& checkpoint : *listed) {
    if (checkpoint.state == ListedCheckpoint::State::kUnreadable) {
      found.passed_over.push_back(std::move(checkpoint.fault));
    }
  }
  for (ListedCheckpoint& checkpoint : *listed) {
    if (checkpoint.state != ListedCheckpoint::State::kCommitted) continue;
    Result<CheckpointReader> reader =
        CheckpointReader::open(directory, std::move(checkpoint.manifest));
    Status good = reader ? check_all(*reader) : forward_error(reader);
    if (good) {
      found.reader.emplace(*std::move(reader));
      return found;
    }
    found.passed_over.push_back(good.error().text());
  }
  return found;
}

}  // namespace orrery
