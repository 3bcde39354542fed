// node/launch/attempt_directories.hpp - the directories of attempts on a node:
// DIR/attempts/JOB-ATTEMPT, each of one keeper (node/keeper/keeper_launch.hpp), kept for a while
// after its end for the logs, without its scratch, and RUN/JOB-ATTEMPT
// (node/launch/run_directory.hpp), which goes with its end.
//
// Owned by NodeAttempts (node/attempts/node_attempts.hpp), used on its loop. An attempt is alive
// while a process holds its lock. One that is not alive is sealed before it is reported as over:
// without its launch file no keeper can come to life in it, not even one that an agent started just
// before it was killed.
// Cost: a few system calls per attempt; files are removed in small pieces.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/message.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {

/// Whether no process lives in the attempt's directory, and none ever will. Also false where both
/// keeper and guard were killed and processes of the ranks were left: these are killed, and the
/// caller asks again. O(1), and a look at all processes after such a death.
[[nodiscard]] bool seal_if_over(const KeeperFiles& files);

/// A process that wrote a log.
struct LoggedRank {
  std::uint32_t gang = 0;
  std::uint32_t rank = 0;
};

/// Returns all processes that ever began in the directory, ascending.
[[nodiscard]] std::vector<LoggedRank> logged_ranks(Storage& storage, const KeeperFiles& files);
/// Returns the path of a process's log.
[[nodiscard]] std::string log_path(const KeeperFiles& files, const LoggedRank& rank);

class AttemptDirectories {
 public:
  static constexpr std::size_t kEndedMax = 1'000;
  static constexpr std::uint64_t kEndedBytesMax = std::uint64_t{16} << 30;
  static constexpr Duration kEndedAge = Duration::hours(24);

  /// `storage` is borrowed; `directory` and `run` are the parents of the attempts' directories, and
  /// may be the same.
  AttemptDirectories(Storage& storage, std::string directory, std::string run,
                     std::uint64_t ended_bytes_max = kEndedBytesMax)
      : storage_(storage),
        directory_(std::move(directory)),
        run_(std::move(run)),
        ended_bytes_max_(ended_bytes_max) {}

  /// Returns the attempt's files. Looks for one file, because an agent before this one may have had
  /// no RUN.
  [[nodiscard]] KeeperFiles files(const AttemptId& id) const;
  /// Returns attempts whose keepers live; all others are sealed and noted as ended. Must be called
  /// once, at the start. Errors: the parent directory.
  [[nodiscard]] Result<std::vector<AttemptId>> find_living();

  /// Notes that the attempt's directory is in use, perhaps again.
  void note_started(const AttemptId& id);
  /// Notes that the attempt ended. Precondition: it is sealed.
  void note_ended(const AttemptId& id, Instant wall);
  /// Removes the scratch of ended attempts, and attempts older than kEndedAge or than the newest
  /// kEndedMax. While the rest takes more than `ended_bytes_max` of the disk, the largest attempt
  /// is removed, so that one which fills the disk costs no other its logs; a single one stays.
  /// Removes a few hundred files per call. Returns whether there is more to do.
  [[nodiscard]] bool remove_some(Instant wall);

 private:
  struct Ended {
    AttemptId id;
    Instant at;
    std::uint64_t bytes = 0;  ///< on the disk; 0 until its scratch is empty
  };
  [[nodiscard]] Result<std::vector<AttemptId>> find_all();
  void count(Ended& ended);
  [[nodiscard]] bool empty_scratch();
  [[nodiscard]] std::deque<Ended>::iterator next_to_go(Instant wall);

  Storage& storage_;
  std::string directory_;
  std::string run_;
  std::uint64_t ended_bytes_max_;
  std::deque<Ended> ended_;        ///< oldest first
  std::deque<AttemptId> scratch_;  ///< ended, whose scratch is still there
  std::uint64_t bytes_ = 0;        ///< of their files
};

}  // namespace orrery
