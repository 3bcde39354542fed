#include "runtime/checkpoint/checkpoint_directory.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "base/system/real_storage.hpp"

namespace orrery {
namespace {

constexpr std::string_view kStepPrefix = "step-";

struct FenceFile {
  std::string job;
  Incarnation newest;
};

template <class Visitor, SameStruct<FenceFile> Self>
void describe(Visitor& visitor, Self& fence) {
  visitor.required("job", fence.job);
  visitor.required("attempt", fence.newest.attempt);
  visitor.required("epoch", fence.newest.epoch);
}

std::string fence_path(const std::string& directory) { return directory + "/fence.json"; }

/// The lock of a directory, held until the descriptor is closed. The lock ends with its process,
/// but a frozen process keeps it, so the wait has a time limit.
Result<FileDescriptor> lock_directory(const std::string& directory) {
  constexpr int kTries = 300;
  constexpr int kPauseMilliseconds = 100;
  const std::string path = directory + "/lock";
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  for (int i = 0; lock.valid() && i < kTries; ++i) {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
  return environment_error(
      fmt::format("{}: cannot lock: {}", path, std::generic_category().message(errno)));
}

std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  std::uint64_t step = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (failed != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return step;
}

ListedCheckpoint look_at(const std::string& directory, std::uint64_t step) {
  RealStorage storage;
  ListedCheckpoint listed{.step = step};
  const std::string path = fmt::format("{}/{}", step_directory(directory, step), kManifestName);
  StorageResult<std::string> text = storage.read_file(path, Document::kSizeMax);
  if (!text && text.error().failure == StorageFailure::kNotFound) return listed;
  listed.state = ListedCheckpoint::State::kUnreadable;
  if (!text) {
    listed.fault = text.error().text();
    return listed;
  }
  Result<Manifest> manifest = parse_manifest(*text, path);
  if (manifest && manifest->id.step != step) {
    listed.fault = fmt::format("{}: expected step {}, found {}", path, step, manifest->id.step);
  } else if (!manifest) {
    listed.fault = manifest.error().text();
  } else {
    listed.state = ListedCheckpoint::State::kCommitted;
    listed.manifest = *std::move(manifest);
  }
  return listed;
}

/// Orders committed checkpoints newest first, and before all others.
bool is_before(const ListedCheckpoint& a, const ListedCheckpoint& b) {
  const auto key = [](const ListedCheckpoint& listed) {
    return std::tuple(listed.state == ListedCheckpoint::State::kCommitted, listed.manifest.id.by,
                      listed.step);
  };
  return key(a) > key(b);
}

/// Reads the fence, or derives it from the manifests when there is no such file. An empty job means
/// that the directory was never used.
Result<FenceFile> read_fence(const std::string& directory) {
  RealStorage storage;
  const std::string path = fence_path(directory);
  StorageResult<std::string> text = storage.read_file(path, Document::kSizeMax);
  FenceFile fence;
  if (text) {
    Result<Document> document = Document::parse(*text, path);
    if (!document) return forward_error(document);
    if (Status read = read_struct(document->root(), fence, {}); !read) return forward_error(read);
    return fence;
  }
  if (text.error().failure != StorageFailure::kNotFound) return forward_error(text);
  const Result<std::vector<ListedCheckpoint>> listed = list_checkpoints(directory);
  if (!listed) return tl::unexpected<Error>(listed.error());
  if (!listed->empty() && listed->front().state == ListedCheckpoint::State::kCommitted) {
    fence = {listed->front().manifest.id.job, listed->front().manifest.id.by};
  }
  return fence;
}

/// Accepts `id`, and nothing older from then on. Precondition: the lock is held.
Status pass_fence(const std::string& directory, const CheckpointId& id) {
  Result<FenceFile> fence = read_fence(directory);
  if (!fence) return forward_error(fence);
  if (!fence->job.empty() && fence->job != id.job) {
    return infeasible(fmt::format("{}: holds the checkpoints of job \"{}\", not of \"{}\"",
                                  directory, fence->job, id.job));
  }
  if (id.by < fence->newest) {
    return infeasible(fmt::format("{}: {} of job \"{}\" is over; {} has taken its place", directory,
                                  id.by.text(), id.job, fence->newest.text()));
  }
  if (id.by == fence->newest && !fence->job.empty()) return {};
  RealStorage storage;
  StorageStatus written =
      storage.write_file(fence_path(directory), to_json(FenceFile{id.job, id.by}).dump() + "\n");
  if (!written) return forward_error(written);
  return {};
}

/// Checks that no incarnation as new as that of `id` has committed its step.
Status check_uncommitted(const std::string& directory, const CheckpointId& id) {
  const ListedCheckpoint found = look_at(directory, id.step);
  if (found.state != ListedCheckpoint::State::kCommitted || found.manifest.id.by < id.by) return {};
  return infeasible(fmt::format("{}: step {} is committed already, by {}", directory, id.step,
                                found.manifest.id.by.text()));
}

Status check_shards_are_there(const std::string& directory, const Manifest& manifest) {
  for (const ShardRecord& shard : manifest.shards) {
    const std::string path = directory + "/" + shard.file;
    std::error_code failed;
    const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
    if (!failed && bytes == shard.bytes) continue;
    return environment_error(fmt::format("{}: expected a shard of {} bytes, found {}", path,
                                         shard.bytes,
                                         failed ? failed.message() : fmt::format("{}", bytes)));
  }
  return {};
}

// --- Retention ----------------------------------------------------------------------------------

/// Returns the incarnation that wrote a shard, from its name.
std::optional<Incarnation> writer_of(const std::string& name) {
  const std::size_t attempt = name.find(".a");
  const std::size_t epoch = name.find(".e");
  if (!name.ends_with(".shard") || attempt == std::string::npos || epoch == std::string::npos) {
    return std::nullopt;
  }
  Incarnation by;
  const char* const end = name.data() + name.size();
  const bool read = std::from_chars(name.data() + attempt + 2, end, by.attempt).ec == std::errc{} &&
                    std::from_chars(name.data() + epoch + 2, end, by.epoch).ec == std::errc{};
  return read ? std::optional(by) : std::nullopt;
}

/// Removes a step with all its files; the manifest first, so that no crash leaves a manifest
/// without its shards.
Status remove_step(const std::string& directory) {
  RealStorage storage;
  const StorageStatus manifest = storage.remove(fmt::format("{}/{}", directory, kManifestName));
  if (!manifest && manifest.error().failure != StorageFailure::kNotFound) {
    return tl::unexpected<Error>(manifest.error());
  }
  std::error_code failed;
  std::filesystem::remove_all(directory, failed);
  if (!failed) return {};
  return environment_error(fmt::format("{}: cannot remove: {}", directory, failed.message()));
}

/// Decides whether a shard of a name and step can no longer become part of a checkpoint.
struct Past {
  Incarnation fence;
  CheckpointId newest;  ///< committed

  [[nodiscard]] bool has(const std::string& name, std::uint64_t step) const {
    const std::optional<Incarnation> by = writer_of(name);
    return by && (*by < fence || (*by == newest.by && step < newest.step));
  }
};

/// Removes a step that is not a checkpoint, if no incarnation can still be writing to it.
Status remove_remains(const std::string& directory, const ListedCheckpoint& listed,
                      const Past& past) {
  RealStorage storage;
  StorageResult<std::vector<std::string>> names = storage.list(directory);
  if (!names) return forward_error(names);
  std::erase(*names, kManifestName);
  const auto is_past = [&](const std::string& name) { return past.has(name, listed.step); };
  // An empty directory may have been created just now.
  if (names->empty() || !std::ranges::all_of(*names, is_past)) return {};
  return remove_step(directory);
}

/// Removes from a kept checkpoint the shards that neither its manifest nor a later one can name.
Status remove_strangers(const std::string& directory, const ListedCheckpoint& listed,
                        const Past& past) {
  RealStorage storage;
  StorageResult<std::vector<std::string>> names = storage.list(directory);
  if (!names) return forward_error(names);
  const auto is_named = [&](const std::string& name) {
    return std::ranges::find(listed.manifest.shards, name, &ShardRecord::file) !=
           listed.manifest.shards.end();
  };
  for (const std::string& name : *names) {
    if (is_named(name) || !past.has(name, listed.step)) continue;
    if (StorageStatus gone = storage.remove(fmt::format("{}/{}", directory, name)); !gone) {
      return forward_error(gone);
    }
  }
  return {};
}

}  // namespace

std::string step_directory(const std::string& directory, std::uint64_t step) {
  return fmt::format("{}/{}{:09}", directory, kStepPrefix, step);
}

Result<std::vector<ListedCheckpoint>> list_checkpoints(const std::string& directory) {
  RealStorage storage;
  StorageResult<std::vector<std::string>> names = storage.list(directory);
  std::vector<ListedCheckpoint> listed;
  if (!names && names.error().failure == StorageFailure::kNotFound) return listed;
  if (!names) return forward_error(names);
  for (const std::string& name : *names) {
    if (const auto step = step_of(name)) listed.push_back(look_at(directory, *step));
  }
  std::ranges::sort(listed, is_before);
  return listed;
}

Result<Incarnation> newest_incarnation(const std::string& directory) {
  Result<FenceFile> fence = read_fence(directory);
  if (!fence) return forward_error(fence);
  return fence->newest;
}

Status claim_checkpoints(const std::string& directory, const CheckpointId& id) {
  if (Status good = check_id(id); !good) return good;
  RealStorage storage;
  if (StorageStatus made = storage.make_directories(directory); !made) return forward_error(made);
  Result<FileDescriptor> lock = lock_directory(directory);
  if (!lock) return forward_error(lock);
  return pass_fence(directory, id);
}

Result<std::string> prepare_shard(const std::string& directory, const ShardName& name) {
  if (Status open = check_uncommitted(directory, name.id); !open) return forward_error(open);
  std::string step = step_directory(directory, name.id.step);
  RealStorage storage;
  if (StorageStatus made = storage.make_directories(step); !made) return forward_error(made);
  const StorageStatus gone = storage.remove(fmt::format("{}/{}", step, name.file()));
  if (!gone && gone.error().failure != StorageFailure::kNotFound) {
    return tl::unexpected<Error>(gone.error());
  }
  return step;
}

Status commit_checkpoint(const std::string& directory, const Manifest& manifest) {
  Result<std::string> text = manifest_text(manifest);
  if (!text) return forward_error(text);
  Result<FileDescriptor> lock = lock_directory(directory);
  if (!lock) return forward_error(lock);
  if (Status passed = pass_fence(directory, manifest.id); !passed) return passed;
  if (Status open = check_uncommitted(directory, manifest.id); !open) return open;
  const std::string step = step_directory(directory, manifest.id.step);
  if (Status there = check_shards_are_there(step, manifest); !there) return there;
  RealStorage storage;
  StorageStatus written = storage.write_file(fmt::format("{}/{}", step, kManifestName), *text);
  if (!written) return forward_error(written);
  return {};
}

Status prune_checkpoints(const std::string& directory, const Retention& retention) {
  ORRERY_ASSERT(retention.newest > 0, "the newest checkpoint is always kept");
  Result<FileDescriptor> lock = lock_directory(directory);
  if (!lock) return forward_error(lock);
  Result<std::vector<ListedCheckpoint>> listed = list_checkpoints(directory);
  if (!listed) return forward_error(listed);
  if (listed->empty() || listed->front().state != ListedCheckpoint::State::kCommitted) return {};
  Result<FenceFile> fence = read_fence(directory);
  if (!fence) return forward_error(fence);
  const Past past{fence->newest, listed->front().manifest.id};
  std::uint32_t kept = 0;
  for (const ListedCheckpoint& checkpoint : *listed) {
    const std::string step = step_directory(directory, checkpoint.step);
    Status done;
    if (checkpoint.state != ListedCheckpoint::State::kCommitted) {
      done = remove_remains(step, checkpoint, past);
    } else if (kept < retention.newest ||
               (retention.every != 0 && checkpoint.step % retention.every == 0)) {
      ++kept;
      done = remove_strangers(step, checkpoint, past);
    } else {
      done = remove_step(step);
    }
    if (!done) return done;
  }
  return {};
}

}  // namespace orrery
