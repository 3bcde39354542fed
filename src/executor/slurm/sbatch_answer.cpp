#include "executor/slurm/sbatch_answer.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// The connection broke after the request may have been sent.
constexpr std::array<std::string_view, 14> kInDoubt = {
    "Socket timed out on send/recv operation",
    "Unable to contact slurm controller (send failure)",
    "Unable to contact slurm controller (receive failure)",
    "Unable to contact slurm controller (shutdown failure)",
    "Zero Bytes were transmitted or received",
    "Message send failure",
    "Message receive failure",
    "Unexpected message received",
    "Insane message length",
    "Connection reset by peer",
    "Transport endpoint is not connected",
    "Connection timed out writing",
    "Connection timed out reading",
    "Kernel reported delayed socket error"};

constexpr std::array<std::string_view, 21> kNever = {
    "nvalid partition specified",  // sbatch writes it with a small letter, too
    "Invalid partition name specified",
    "No partition specified or system default partition",
    "Requested node configuration is not available",
    "Requested topology configuration is not available",
    "Requested nodes not in this partition",
    "Requested time limit is invalid",
    "Requested reservation is invalid",
    "Requested operation not supported on this system",
    "More processors requested than permitted",
    "ode count specification invalid",
    "CPU count specification invalid",
    "Invalid node name specified",
    "Invalid feature specification",
    "Invalid qos specification",
    "Invalid wckey specification",
    "Invalid license specification",
    "Invalid generic resource (gres) specification",
    "Invalid Trackable RESource (TRES) specification",
    "Incompatible versions of client and server code",
    "unrecognized option"};

constexpr std::array<std::string_view, 5> kQuota = {
    "Job violates accounting/QOS policy",
    "Requested partition configuration not available now",  // beyond a limit of the partition
    "Requested account has breached requested QOS usage threshold", "MaxJobCount limit reached",
    "job queue full"};

constexpr std::array<std::string_view, 8> kAuth = {
    "Access/permission denied",
    "User's group not permitted to use this partition",
    "Invalid account or account/partition combination specified",
    "Invalid or unknown association",
    "Access denied to requested reservation",
    "Protocol authentication error",
    "Invalid user id",
    "Munge encode failed"};

bool has_any(std::string_view text, const auto& words) {
  for (const std::string_view each : words) {
    if (text.find(each) != text.npos) return true;
  }
  return false;
}

std::optional<HoldRefusal> refusal_of(std::string_view text) {
  if (text.empty() || has_any(text, kInDoubt)) return std::nullopt;
  if (has_any(text, kAuth)) return HoldRefusal::kAuth;
  if (has_any(text, kQuota)) return HoldRefusal::kQuota;
  if (has_any(text, kNever)) return HoldRefusal::kNever;
  return HoldRefusal::kBusy;
}

/// Joins the lines, without the name of the program before each.
std::string on_one_line(std::string_view text) {
  constexpr std::size_t kShown = 400;
  std::string joined;
  joined.reserve(text.size());
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    for (const std::string_view head : {"sbatch: ", "error: ", "fatal: "}) {
      if (line.starts_with(head)) line.remove_prefix(head.size());
    }
    if (line.empty()) continue;
    if (!joined.empty()) joined += "; ";
    joined += line;
  }
  return printable(joined, kShown);
}

}  // namespace

bool is_slurm_job_id(std::string_view text) {
  constexpr std::size_t kDigitsMax = 10;
  return !text.empty() && text.size() <= kDigitsMax &&
         text.find_first_not_of("0123456789") == text.npos;
}

Result<std::string> read_sbatch(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::string_view id = line.substr(0, line.find(';'));  // "17;CLUSTER" of several clusters
  if (line.size() + 1 != text.size() || !is_slurm_job_id(id)) {
    return environment_error(
        fmt::format("sbatch printed \"{}\", not the id of a job", printable(text, 60)));
  }
  return std::string(id);
}

SbatchFailure read_sbatch_errors(std::string_view text) {
  return {.refused = refusal_of(text), .text = on_one_line(text)};
}

}  // namespace orrery
