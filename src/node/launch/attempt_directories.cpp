#include "node/launch/attempt_directories.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "node/keeper/left_processes.hpp"
#include "node/launch/tree_removal.hpp"

namespace orrery {
namespace {

/// Entries removed in one piece of work.
constexpr int kEntriesMax = 300;

/// Returns the numbers A and B of "A" + between + "B".
std::optional<std::pair<std::uint32_t, std::uint32_t>> two_numbers(std::string_view text,
                                                                   std::string_view between) {
  std::pair<std::uint32_t, std::uint32_t> numbers;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto first = std::from_chars(begin, end, numbers.first);
  if (first.ec != std::errc()) return std::nullopt;
  const std::string_view rest(first.ptr, static_cast<std::size_t>(end - first.ptr));
  if (!rest.starts_with(between)) return std::nullopt;
  const auto second = std::from_chars(first.ptr + between.size(), end, numbers.second);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return numbers;
}

Instant changed_at(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return Instant();
  return Instant() + Duration::seconds(status.st_mtim.tv_sec) +
         Duration::nanoseconds(status.st_mtim.tv_nsec);
}

/// Returns the bytes on disk of a directory's files and those below it: a sparse file counts only
/// its written blocks. Entries after the first kCountedMax are not counted.
std::uint64_t bytes_of(const std::string& directory) {
  constexpr int kCountedMax = 1'000;
  constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks, whatever the file system
  std::uint64_t bytes = 0;
  std::error_code failed;
  int counted = 0;
  for (std::filesystem::recursive_directory_iterator at(directory, failed), end;
       !failed && at != end && counted < kCountedMax; at.increment(failed), ++counted) {
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    bytes += static_cast<std::uint64_t>(status.st_blocks) * kBlock;
  }
  return bytes;
}

}  // namespace

bool seal_if_over(const KeeperFiles& files) {
  const FileDescriptor lock(::open(files.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  // An attempt whose lock cannot be opened may be alive; without a directory it is not.
  if (!lock.valid()) return errno == ENOENT;
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // A guard that saw the last process end has removed it.
  if (::access(files.launch().c_str(), F_OK) == 0 && !none_left(files)) return false;
  // A keeper reads it with the lock held.
  return ::unlink(files.launch().c_str()) == 0 || errno == ENOENT;
}

std::vector<LoggedRank> logged_ranks(Storage& storage, const KeeperFiles& files) {
  constexpr std::string_view kPrefix = "gang-";
  constexpr std::string_view kSuffix = ".log";
  std::vector<LoggedRank> ranks;
  for (const std::string& name : storage.list(files.logs).value_or(std::vector<std::string>())) {
    const std::string_view text(name);
    if (!text.starts_with(kPrefix) || !text.ends_with(kSuffix)) continue;
    const std::size_t size = text.size() - kPrefix.size() - kSuffix.size();
    const auto numbers = two_numbers(text.substr(kPrefix.size(), size), "-rank-");
    if (numbers) ranks.push_back({numbers->first, numbers->second});
  }
  std::sort(ranks.begin(), ranks.end(), [](const LoggedRank& a, const LoggedRank& b) {
    return std::pair(a.gang, a.rank) < std::pair(b.gang, b.rank);
  });
  return ranks;
}

std::string log_path(const KeeperFiles& files, const LoggedRank& rank) {
  return files.log(RankStart{.slots = {{rank.gang, 0}}, .rank = rank.rank});
}

KeeperFiles AttemptDirectories::files(const AttemptId& id) const {
  const std::string name = fmt::format("{}-{}", id.job.value(), id.attempt);
  KeeperFiles own{fmt::format("{}/{}", directory_, name)};
  if (std::string older = own.directory + "/logs"; ::access(older.c_str(), F_OK) == 0) {
    own.logs = std::move(older);
  }
  if (run_ == directory_ || ::access(own.launch().c_str(), F_OK) == 0) return own;
  own.run = fmt::format("{}/{}", run_, name);
  return own;
}

Result<std::vector<AttemptId>> AttemptDirectories::find_all() {
  std::vector<AttemptId> all;
  for (const std::string& place : {directory_, run_}) {
    if (auto made = storage_.make_directories(place); !made) return forward_error(made);
    auto names = storage_.list(place);
    if (!names) return forward_error(names);
    for (const std::string& name : *names) {
      const auto numbers = two_numbers(name, "-");
      if (numbers) all.push_back({JobId(numbers->first), numbers->second});
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Result<std::vector<AttemptId>> AttemptDirectories::find_living() {
  Result<std::vector<AttemptId>> all = find_all();
  if (!all) return all;
  std::vector<AttemptId> living;
  for (const AttemptId& id : *all) {
    if (seal_if_over(files(id))) {
      note_ended(id, changed_at(files(id).directory));
    } else {
      living.push_back(id);
    }
  }
  std::sort(ended_.begin(), ended_.end(), [](const Ended& a, const Ended& b) {
    return std::pair(a.at, a.id) < std::pair(b.at, b.id);
  });
  return living;
}

void AttemptDirectories::note_started(const AttemptId& id) {
  std::erase(scratch_, id);
  std::erase_if(ended_, [&](const Ended& each) {
    if (each.id != id) return false;
    bytes_ -= each.bytes;
    return true;
  });
}

void AttemptDirectories::note_ended(const AttemptId& id, Instant wall) {
  const KeeperFiles over = files(id);
  // There are a few files per gang; any more stay until the next agent starts.
  if (over.run != over.directory) (void)TreeRemoval(kEntriesMax).remove(over.run);
  ended_.push_back({id, wall});
  if (::access(over.scratch().c_str(), F_OK) == 0) return scratch_.push_back(id);
  count(ended_.back());
}

void AttemptDirectories::count(Ended& ended) {
  bytes_ -= ended.bytes;
  ended.bytes = bytes_of(files(ended.id).directory);
  bytes_ += ended.bytes;
}

/// Returns whether there is more to do.
bool AttemptDirectories::empty_scratch() {
  while (!scratch_.empty()) {
    const AttemptId id = scratch_.front();
    TreeRemoval removal(kEntriesMax);
    if (!removal.remove(files(id).scratch()) && removal.removed() > 0) return true;
    scratch_.pop_front();
    const auto ended = std::find_if(ended_.begin(), ended_.end(),
                                    [&](const Ended& each) { return each.id == id; });
    if (ended != ended_.end()) count(*ended);
  }
  return false;
}

/// Returns the attempt to remove next; end(): none.
std::deque<AttemptDirectories::Ended>::iterator AttemptDirectories::next_to_go(Instant wall) {
  if (ended_.empty()) return ended_.end();
  if (ended_.size() > kEndedMax || ended_.front().at + kEndedAge < wall) return ended_.begin();
  if (ended_.size() < 2 || bytes_ <= ended_bytes_max_) return ended_.end();
  return std::max_element(ended_.begin(), ended_.end(),
                          [](const Ended& a, const Ended& b) { return a.bytes < b.bytes; });
}

bool AttemptDirectories::remove_some(Instant wall) {
  if (empty_scratch()) return true;
  for (auto goes = next_to_go(wall); goes != ended_.end(); goes = next_to_go(wall)) {
    TreeRemoval removal(kEntriesMax);
    // An attempt whose files cannot be removed is not tried for ever.
    if (!removal.remove(files(goes->id).directory) && removal.removed() > 0) return true;
    bytes_ -= goes->bytes;
    ended_.erase(goes);
  }
  return false;
}

}  // namespace orrery
