// executor/slurm/squeue_list.hpp - what squeue prints, as holds and as work of others.
//
// Pure functions of a text, for Slurm 20.11 and later; any bytes may come. A list is read as a
// whole or not at all: a part of it would make holds vanish. Names, comments and reasons are free
// text that anybody who may submit a job chooses, so squeue is asked to part its fields by a text
// that is drawn anew for each list. Cost O(bytes + names of nodes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "executor/holds/hold.hpp"

namespace orrery {

/// Returns the text between two fields: no field has it unless its author knew the number, and it
/// never overlaps itself.
[[nodiscard]] std::string squeue_separator(std::uint64_t drawn);

/// Returns the argument of `squeue -h -o`, for read_squeue().
[[nodiscard]] std::string squeue_format(std::string_view separator);

/// What one list of squeue is read against.
struct SqueueReading {
  std::string_view separator;
  std::uint64_t cluster = 0;  ///< whose holds are read
  std::uint32_t uid = 0;      ///< of the user whose jobs holds are: others may give any name
  Instant now_wall;           ///< when squeue ran, by the wall clock of this machine
  bool foreign = false;       ///< whether jobs that are no holds are read, too
};

struct SqueueList {
  std::vector<HoldSeen> holds;
  std::optional<std::vector<ForeignWork>> foreign;  ///< none: it was not to be read
};

/// Returns the cluster's holds, and other jobs that have nodes now, in squeue's order. squeue must
/// have run in the time zone UTC.
/// The `nodes` of a hold are those that Slurm names, also after its end; none while it waits.
/// `asked` is given while it waits. `left` is given while it runs or ends, `starts_in` while it
/// waits, `started` once it runs or has run, and `ended` once it has run and ended: the StartTime
/// and EndTime of `scontrol show job`. Errors: output of another form or cut off; more than
/// 1,048,576 names of nodes in all; of a job that is read also: a state that is not known, no host
/// list, no time, no user.
[[nodiscard]] Result<SqueueList> read_squeue(std::string_view text, const SqueueReading& reading);

/// Returns the phase of a job in a state as squeue prints it, such as "NODE_FAIL"; none: there is
/// no such state.
[[nodiscard]] std::optional<HoldPhase> hold_phase(std::string_view state);

}  // namespace orrery
