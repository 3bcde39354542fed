// node/keeper/keeper_wire.hpp - the messages of agent and keeper over the keeper's unix socket.
//
// A message is a frame of base/env.hpp's Transport: one byte, the version of the wire, then the
// fields in the binary form of control/codec/encoder.hpp. Both ends are of this project and on one
// machine, but not of one release: an agent that is replaced meets keepers of the release before.
// So the keeper uses its own version, and the agent all versions that are still running. Messages
// that were added within a version are sent to a keeper once it has reported that it understands
// them (KeeperAbilities); an older agent ignores those it does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "node/keeper/rank_log.hpp"
#include "node/launch/launch_environment.hpp"

namespace orrery {

// --- Agent to keeper ----------------------------------------------------------------------------

/// An order to the keeper. Its sender is the agent from then on; an earlier one is disconnected.
struct AgentOrder {
  KeeperOrder order;
  std::vector<GangLayout> gangs;  ///< of a LaunchRanks with a newer epoch; else empty
};

/// Asks for the output of process `rank` of a gang, from byte `from` on. The answer is a LogTail.
struct LogQuestion {
  std::uint32_t gang = 0;
  std::uint32_t rank = 0;
  std::uint64_t from = 0;
};

struct TerminalSize {
  std::uint16_t columns = 80;
  std::uint16_t rows = 24;

  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

/// Runs a command beside a rank: with the rank's user, environment, directory and limits. It ends
/// with the attempt, and with the connection of the agent.
struct ExecOpen {
  std::uint64_t id = 0;
  std::uint32_t gang = 0;
  std::uint32_t rank = 0;
  std::vector<std::string> command;      ///< empty: the shell that SHELL of the rank names
  std::optional<TerminalSize> terminal;  ///< none: it has pipes
  std::string terminal_type;             ///< its TERM
};

/// Input and control of a command that was opened.
struct ExecInput {
  std::uint64_t id = 0;
  std::string bytes;
  bool end = false;                      ///< nothing comes after these bytes
  std::optional<TerminalSize> terminal;  ///< the terminal has another size now
  std::uint64_t taken = 0;  ///< bytes of its output that its client took since the last message
  bool close = false;       ///< its client has gone: the command ends
};

/// The window of a command for each direction: so many bytes may be on their way that the other
/// end has not reported as taken.
inline constexpr std::uint64_t kExecBytesMax = std::uint64_t{128} << 10;

using KeeperInput = std::variant<AgentOrder, LogQuestion, ExecOpen, ExecInput>;

// --- Keeper to agent ----------------------------------------------------------------------------

/// What the ranks last reported.
struct RankProgress {
  std::uint64_t step = 0;
  std::uint64_t saved_step = 0;  ///< newest that a checkpoint covers
  std::uint64_t tokens = 0;
  double loss = 0;
  std::string checkpoint;
  std::uint64_t bad_lines = 0;

  friend bool operator==(const RankProgress&, const RankProgress&) = default;
};

struct KeeperStatus {
  AttemptReport report;
  RankProgress progress;
  std::vector<std::string> notes;  ///< what differs from what was asked for, and why
};

/// The time that a rank computes in a step, without waiting for others: the median of its newest
/// steps.
struct RankPace {
  std::uint32_t rank = 0;
  double seconds = 0;

  friend bool operator==(const RankPace&, const RankPace&) = default;
};

/// The paces of the ranks here that report them.
struct RankPaces {
  std::vector<RankPace> paces;
};

/// Ranks here compute results that differ from those of other ranks for the same input.
struct WrongResults {
  std::string evidence;
};

struct LogTail {
  LogQuestion question;
  bool found = false;  ///< there is such a process
  LogPart part;
};

/// What a keeper understands beyond the first release; sent before the first status.
struct KeeperAbilities {
  bool commands = false;  ///< ExecOpen and ExecInput
};

struct ExecOutput {
  std::uint64_t id = 0;
  std::string output;
  std::string errors;
  std::uint64_t taken = 0;  ///< bytes of its input that it took since the last message

  friend bool operator==(const ExecOutput&, const ExecOutput&) = default;
};

/// The last message of a command.
struct ExecEnd {
  std::uint64_t id = 0;
  std::uint32_t status = 0;  ///< exit status; 128 + the signal that ended it
  std::string error;         ///< why there is no status; empty: there is one

  friend bool operator==(const ExecEnd&, const ExecEnd&) = default;
};

/// A keeper of an earlier release sends only the first ones.
using KeeperOutput = std::variant<KeeperStatus, LogTail, RankPaces, WrongResults, KeeperAbilities,
                                  ExecOutput, ExecEnd>;

// --- Bytes --------------------------------------------------------------------------------------

[[nodiscard]] std::string encode(const KeeperInput& message);
[[nodiscard]] std::string encode(const KeeperOutput& message);
/// Errors: another version, or bytes that no encode() produced.
[[nodiscard]] Result<KeeperInput> decode_keeper_input(std::string_view frame);
[[nodiscard]] Result<KeeperOutput> decode_keeper_output(std::string_view frame);

}  // namespace orrery
