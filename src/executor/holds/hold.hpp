// executor/holds/hold.hpp - a hold: nodes that a resource manager (Slurm) lends for a time, and
// what is ordered from it and reported by it.
//
// Only agents run ranks; a resource manager lends nodes, on which own agents run. Plain values.
// A manager's answers are hints: it may forget what it acknowledged, give an id to another's work
// after a restart, and list nothing where it knows much. So a hold is named by its HoldKey, which
// the manager keeps as a text, and never by the manager's id alone.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/time.hpp"

namespace orrery {

/// Names a hold for good: `id` counts the holds that a controller asked for, and `epoch` is that
/// controller's term. A pilot serves many jobs; another hold serves one.
struct HoldKey {
  std::uint64_t id = 0;
  std::uint64_t epoch = 0;
  std::optional<std::uint32_t> job;  ///< that alone it serves; none: it is a pilot

  friend auto operator<=>(const HoldKey&, const HoldKey&) = default;
};

/// Returns the text by which managers, agents and users know a hold: "pilot-EPOCH-ID", or
/// "job-JOB-EPOCH-ID".
[[nodiscard]] std::string text_of(const HoldKey& key);
/// Returns the key in such a text; none: it is something else.
[[nodiscard]] std::optional<HoldKey> hold_key_of(std::string_view text);

// --- Orders to a resource manager ---------------------------------------------------------------

/// Asks for a hold. It may be repeated: two holds of one key are the fault of a lost answer, and
/// one of them is released.
struct EnsureHold {
  HoldKey key;
  std::uint32_t nodes = 1;
  Duration time;                   ///< the manager ends the hold after this time
  std::string join_token;          ///< admits the hold's agents
  std::vector<std::string> avoid;  ///< nodes that would be of no use
  std::string tenant;              ///< path of the tenant of its job; empty: it is a pilot
};

/// Ends a hold, if the manager's `id` is still that of the hold.
struct ReleaseHold {
  HoldKey key;
  std::string id;
};

/// Lists the cluster's own holds, the nodes, and the work of others on them.
struct ListHolds {
  Instant asked;         ///< returned with the answer
  bool foreign = false;  ///< whether the work of others is listed, too
};

struct ManagerOrder {
  std::uint32_t manager = 0;  ///< its place in managers.yaml
  std::variant<EnsureHold, ReleaseHold, ListHolds> what;
};

// --- Reports of a resource manager --------------------------------------------------------------

/// Why a manager refuses a hold.
enum class HoldRefusal : std::uint8_t {
  kNever,  ///< the request can never be met: no such partition, more nodes than there are
  kQuota,  ///< a limit of the account, user or partition
  kAuth,   ///< the manager does not accept the caller
  kBusy,   ///< another reason, which may pass
};

inline std::array<EnumWord<HoldRefusal>, 4> enum_words(HoldRefusal) {
  return {{{"never", HoldRefusal::kNever},
           {"quota", HoldRefusal::kQuota},
           {"auth", HoldRefusal::kAuth},
           {"busy", HoldRefusal::kBusy}}};
}

/// The answer to EnsureHold.
struct HoldAnswer {
  HoldKey key;
  std::string id;                      ///< the manager's; empty: refused, or no answer came
  std::optional<HoldRefusal> refused;  ///< none: accepted, or no answer came
  std::string text;                    ///< the manager's own words
};

/// The life of a hold as its manager sees it.
enum class HoldPhase : std::uint8_t {
  kWaiting,
  kRunning,
  kEnding,      ///< being ended: processes may be left
  kEnded,       ///< no process is left
  kEndedDirty,  ///< ended by the failure of a node: a process may be left there
};

/// One hold of this cluster in the list of its manager.
struct HoldSeen {
  HoldKey key;
  std::string id;
  HoldPhase phase = HoldPhase::kWaiting;
  std::string reason;                 ///< the manager's own words; why it waits or ended
  bool stuck = false;                 ///< it waits, and never starts unless a person sees to it
  std::vector<std::string> nodes;     ///< while it runs or ends
  std::optional<Duration> starts_in;  ///< the manager's estimate, from the time of the list
  std::optional<Duration> left;       ///< until its time is over; none: unlimited
  std::optional<Instant> started;     ///< by the manager's record, in whole seconds of the day
  std::optional<Instant> ended;       ///< likewise, once it has ended
  std::uint32_t asked = 0;            ///< nodes, while it waits; 0: not known
};

/// Work of others that has nodes of a manager.
struct ForeignWork {
  std::string id;  ///< the manager's
  std::string user;
  std::vector<std::string> nodes;
  std::optional<Duration> left;  ///< until its time is over; none: unlimited
};

/// A node as its manager sees it.
struct ManagerNode {
  std::string name;
  bool out_of_service = false;  ///< down, drained or failed in the manager
  bool drained = false;         ///< its administrators take it out of service: its jobs are to end
  std::string reason;           ///< the manager's own words; empty: none
};

/// The answer to ListHolds. A list that is not complete says nothing of what is not in it.
struct ManagerListing {
  Instant asked;
  bool complete = false;
  std::string trouble;  ///< why it is not complete; empty: it is
  std::vector<HoldSeen> holds;
  std::vector<ManagerNode> nodes;
  std::optional<std::vector<ForeignWork>> foreign;  ///< none: it was not listed
};

struct ManagerReport {
  std::uint32_t manager = 0;
  std::variant<HoldAnswer, ManagerListing> what;
};

}  // namespace orrery
