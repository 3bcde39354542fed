#include "executor/slurm/pilot_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace orrery {
namespace {

/// The ends of the certificate and of srun's standard input. No token or certificate has them.
constexpr std::string_view kCertificateEnd = "ORRERY-CERTIFICATE-END";
constexpr std::string_view kInputEnd = "ORRERY-INPUT-END";

/// Without the job's own SLURM_ variables, which srun passes on in any case.
constexpr std::string_view kSrun =
    "srun --nodes=\"$SLURM_JOB_NUM_NODES\" --ntasks=\"$SLURM_JOB_NUM_NODES\" --ntasks-per-node=1 "
    "--no-kill --kill-on-bad-exit=0 --mpi=none --cpu-bind=none --label "
    "--export=PATH,HOME,USER,LOGNAME,LD_LIBRARY_PATH";

/// What the shell of a node does before it runs the agent. A cut-off input ends it.
constexpr std::string_view kPrepareNode = R"(umask 077
mkdir -p -- "$directory" || exit 1
rm -f -- "$directory/pilot-join" "$directory/pilot-ca.pem"
IFS= read -r token || exit 1
printf "%s\n" "$token" > "$directory/pilot-join" || exit 1
while IFS= read -r line && [ "$line" != "$end" ]; do
  printf "%s\n" "$line"
done > "$directory/pilot-ca.pem" || exit 1
[ "$line" = "$end" ] || exit 1
)";

bool is_line(std::string_view text) {
  return !text.empty() && text.find_first_of(std::string_view("\n\0", 2)) == text.npos;
}

Status check(const PilotAgent& agent, const EnsureHold& hold) {
  const auto refuse = [](std::string what) { return input_error({}, std::move(what)); };
  const auto lines = [](const auto& words) {
    return std::all_of(words.begin(), words.end(), [](const auto& each) { return is_line(each); });
  };
  if (agent.controllers.empty()) return refuse("a pilot needs the address of a controller");
  if (!agent.directory.starts_with('/')) {
    return refuse("the directory of pilots must be an absolute path");
  }
  const auto has_mark = [](std::string_view text) { return text.find("ORRERY-") != text.npos; };
  if (!is_line(hold.join_token) || has_mark(hold.join_token)) {
    return refuse("a join token must be one line");
  }
  if (agent.authority.empty() || agent.authority.find('\0') != agent.authority.npos ||
      has_mark(agent.authority)) {
    return refuse("a CA certificate must be in PEM form");
  }
  if (!is_line(agent.program) || !is_line(agent.directory) || !lines(agent.options) ||
      !lines(agent.controllers)) {
    return refuse("words of the agent's command must not be empty or have more than one line");
  }
  return {};
}

std::string agent_command(const PilotAgent& agent, const HoldKey& key) {
  std::string command = fmt::format(
      "trap : TERM\nwhile :; do\n{} --node \"$SLURMD_NODENAME\" --dir \"$directory\" --controller "
      "{} "
      "--ca \"$directory/pilot-ca.pem\" --join \"@$directory/pilot-join\" "
      "--hold \"{}:$SLURM_JOB_ID\"",
      shell_word(agent.program), shell_word(fmt::format("{}", fmt::join(agent.controllers, ","))),
      text_of(key));
  std::size_t words = 0;
  for (const std::string& option : agent.options) words += 4 * option.size() + 3;
  command.reserve(command.size() + words + 16);
  for (const std::string& option : agent.options) command.append(" ").append(shell_word(option));
  return command +
         " </dev/null\nstatus=$?\n[ \"$status\" -gt 128 ] || exit \"$status\"\nsleep 1\ndone\n";
}

}  // namespace

std::string shell_word(std::string_view text) {
  std::string word = "'";
  word.reserve(text.size() + 8);
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + '\'';
}

Result<std::string> pilot_script(const PilotAgent& agent, const EnsureHold& hold) {
  if (Status good = check(agent, hold); !good) return forward_error(good);
  const std::string node =
      fmt::format("directory={}/\"$SLURMD_NODENAME\"\nend={}\n{}{}", shell_word(agent.directory),
                  kCertificateEnd, kPrepareNode, agent_command(agent, hold.key));
  const std::string_view newline = agent.authority.ends_with('\n') ? "" : "\n";
  return fmt::format(
      "#!/bin/sh\n"
      "# A pilot of Orrery: one agent on each node of this job.\n"
      "exec {} /bin/sh -c {} orrery-pilot <<'{}'\n{}\n{}{}{}\n{}\n",
      kSrun, shell_word(node), kInputEnd, hold.join_token, agent.authority, newline,
      kCertificateEnd, kInputEnd);
}

}  // namespace orrery
