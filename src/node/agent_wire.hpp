// node/agent_wire.hpp - the messages between an agent and its controller: the orders and reports of
// agent/message.hpp, and beside them what only real nodes need: the opening of a stream, the
// program to launch, logs and notes.
//
// Plain values. The stream that carries them is a ControllerChannel (node/controller_channel.hpp);
// proto/orrery/v1/agent.proto is their form on the network, src/api writes and reads it.
// Logs, notes and readings are soft: they are never resent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "node/keeper/keeper_wire.hpp"

namespace orrery {

/// The controller's words to an agent whose node is not lent any more, as its hold ends.
inline constexpr std::string_view kNodeNotLent = "the node is not lent to the cluster any more";

// --- Opening a stream ---------------------------------------------------------------------------

/// The hardware and software that a node was found to have.
struct NodeInventory {
  std::string accelerator;  ///< catalog id of its type; empty: none
  std::uint32_t accelerators = 0;
  bool emulated = false;  ///< declared for a test or demonstration, not found
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
  std::string kernel;
  std::string driver;   ///< of the accelerators, with its version
  std::string machine;  ///< host name
  std::string firmware;
  std::string processor;  ///< its model
  std::uint32_t packages = 0;
  std::uint32_t numa_nodes = 0;
};

/// The POSIX users that a node runs jobs as.
enum class JobUsers : std::uint8_t {
  kUntold,  ///< the agent is older than this field
  kOwn,     ///< its agent is not root: jobs run as the agent's own user alone
  kMapped,  ///< its agent is root: jobs that have a user, and no others
  kAny,     ///< as kMapped, and jobs without a user run as root, because the operator allows it
};

inline std::array<EnumWord<JobUsers>, 4> enum_words(JobUsers) {
  return {{{"", JobUsers::kUntold},
           {"own", JobUsers::kOwn},
           {"mapped", JobUsers::kMapped},
           {"any", JobUsers::kAny}}};
}

/// The certificate that an agent shows.
struct ShownKey {
  std::string hash;  ///< of its public key; empty: none
  Instant issued;

  friend bool operator==(const ShownKey&, const ShownKey&) = default;
};

/// Names a hold of a resource manager (executor/holds/hold.hpp).
struct HoldName {
  std::string key;
  std::string id;  ///< the resource manager's
};

/// The first message of an agent.
struct AgentOpening {
  std::string node;     ///< its name in the fleet
  std::string address;  ///< by which ranks on other nodes reach this one
  std::uint64_t boot = 0;
  std::uint64_t incarnation = 0;
  std::string version;  ///< of the agent's program
  NodeInventory inventory;
  std::uint64_t process = 0;  ///< drawn at its start
  ShownKey key;               ///< set by the server, never on the wire
  std::string user;           ///< POSIX user of the agent
  JobUsers job_users = JobUsers::kUntold;
  bool runs_commands = false;  ///< whether it understands AttemptExecOpen
  HoldName hold;               ///< hold in which it runs; without a key: in none
};

/// The answer to AgentOpening.
struct AgentWelcome {
  std::uint64_t cluster = 0;
  NodeId node;  ///< its number in the fleet
  Duration beat = Duration::seconds(1);
  Duration repeat = Duration::seconds(2);
};

// --- Orders -------------------------------------------------------------------------------------

/// The program to start, and where its gangs are. The node adds what only it knows: names of
/// devices, cores, paths.
struct NodeProgram {
  std::string job;     ///< its name
  std::string tenant;  ///< its path
  std::string plan;    ///< JSON
  std::string framework;
  LaunchUnit per = LaunchUnit::kAccelerator;
  std::vector<std::string> command;
  Variables environment;  ///< of the spec
  std::string directory;  ///< empty: one that the node makes
  std::uint32_t restarts_max = 0;
  std::uint64_t work_steps = 0;   ///< of the whole job; 0: unknown
  std::vector<GangLayout> gangs;  ///< of every share
  std::string user;               ///< its name; empty: the agent's own user
  std::vector<RankNeeds> needs;   ///< of the gangs that need something
  OutputNames copies;             ///< the node replaces %t, %N and %u
};

struct NodeOrder {
  Order order;
  NodeProgram program;  ///< of a LaunchRanks; else empty
};

// --- Logs, notes, readings -----------------------------------------------------------------------

/// A question's `from` that asks for the newest RankLog::kTailBytes.
inline constexpr std::uint64_t kFromTail = ~std::uint64_t{0};

/// What a rank wrote, from a byte on. The answer is an AttemptLogPart of the same id.
struct AttemptLogQuestion {
  std::uint64_t id = 0;
  AttemptId attempt;
  LogQuestion log;
  std::optional<Instant> since;  ///< also asks where output since this time begins
};

struct AttemptLogPart {
  std::uint64_t id = 0;
  bool found = false;      ///< there was such a process
  std::uint64_t size = 0;  ///< of all that was ever written
  LogPart part;            ///< begins later than asked for where earlier bytes are gone
  /// As LogTimes::offset_since(); none: it was not asked for, or is not known.
  std::optional<std::uint64_t> since_from = std::nullopt;
};

/// Orders a burn-in of the node, unless something runs there; its readings report the result.
struct BurnIn {};

/// The end of what a rank wrote, when its attempt is over: the controller keeps it.
struct KeptLog {
  AttemptId attempt;
  std::uint32_t gang = 0;
  std::uint32_t rank = 0;
  LogPart part;
};

/// The resource manager ends the hold in which the agent runs: the ranks here are to end now.
struct HoldEnding {
  std::string why;
};

/// What an accelerator's driver reads; a value that it does not report is absent.
struct AcceleratorReading {
  std::optional<double> power_w;
  std::optional<double> temperature_c;
  std::optional<double> busy;  ///< 0 to 1
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_errors;  ///< uncorrected, since boot
  std::optional<std::uint64_t> link_errors;    ///< replays, since boot
  std::optional<double> clock;  ///< clock that was set, of the full one; absent: the full one
};

/// A node's periodic reading of itself. Counters are since boot.
struct NodeReading {
  double cpu_busy = 0;  ///< part of the CPUs, since the reading before; 0 to 1
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  std::uint64_t received_bytes = 0;  ///< of its network
  std::uint64_t sent_bytes = 0;
  std::uint64_t network_errors = 0;              ///< packets
  std::uint64_t link_errors = 0;                 ///< of InfiniBand ports
  std::vector<AcceleratorReading> accelerators;  ///< by device; empty: there is no driver to read
                                                 ///< them
  std::string unwell;                            ///< what its checks found wrong; empty: nothing
  std::string clock_refusal;  ///< why an ordered clock is not held; empty: all are
  std::string burn_in;        ///< state or result of the newest one; empty: there was none
};

/// What the ranks of an attempt last reported, and what differs from what was asked for.
struct AttemptNotes {
  AttemptId attempt;
  RankProgress progress;
  std::vector<std::string> notes;
  std::vector<RankPace> paces;  ///< of the ranks of this node that report it

  friend bool operator==(const AttemptNotes&, const AttemptNotes&) = default;
};

// --- Commands beside ranks: they end with the stream --------------------------------------------

/// Runs a command beside a rank of an attempt; the answers are ExecOutput and, at last, ExecEnd.
struct AttemptExecOpen {
  AttemptId attempt;
  ExecOpen open;
};

using AgentMessage = std::variant<AgentOpening, Report, AttemptLogPart, KeptLog, AttemptNotes,
                                  NodeReading, ExecOutput, ExecEnd, HoldEnding>;
using ControllerMessage =
    std::variant<AgentWelcome, NodeOrder, AttemptLogQuestion, BurnIn, AttemptExecOpen, ExecInput>;

}  // namespace orrery
