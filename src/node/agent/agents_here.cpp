#include "node/agent/agents_here.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/format/document.hpp"
#include "node/agent/agent_spec.hpp"
#include "node/machine/kernel_file.hpp"

namespace orrery {
namespace {

/// The arguments of a process, without its program.
std::vector<std::string> arguments_of(const std::filesystem::path& process) {
  std::istringstream text(kernel_file(process / "cmdline"));
  std::vector<std::string> arguments;
  for (std::string each; std::getline(text, each, '\0');) arguments.push_back(each);
  if (!arguments.empty()) arguments.erase(arguments.begin());
  return arguments;
}

/// Returns the value of "--name VALUE" or "--name=VALUE"; empty: it is absent.
std::string value_of(const std::vector<std::string>& arguments, const std::string& name) {
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at] == name && at + 1 < arguments.size()) return arguments[at + 1];
    if (arguments[at].starts_with(name + "=")) return arguments[at].substr(name.size() + 1);
  }
  return {};
}

/// Returns allow_agent_user of agent.yaml, which overrides the command line; none: it is not set.
std::optional<bool> allowed_by_file(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return std::nullopt;
  const Result<Document> text = Document::load(path);
  if (!text) return std::nullopt;
  const Result<AgentSpec> spec = read_agent_spec(*text);
  return spec ? spec->allow_agent_user : std::nullopt;
}

std::optional<RootAgentFacts> root_agent(const std::filesystem::path& process) {
  struct stat owner{};
  if (::stat(process.c_str(), &owner) != 0 || owner.st_uid != 0) return std::nullopt;
  // The kernel keeps 15 characters of a program's name.
  if (kernel_file(process / "comm") != "orrery-agent\n") return std::nullopt;
  const std::vector<std::string> arguments = arguments_of(process);
  const std::string node = value_of(arguments, "--node");
  if (node.empty()) return std::nullopt;
  // A relative path starts at the agent's working directory.
  const std::string directory = value_of(arguments, "--dir");
  const std::string base = directory.starts_with('/') ? "" : (process / "cwd/").string();
  const bool flag = std::ranges::find(arguments, "--allow-agent-user") != arguments.end();
  return RootAgentFacts{node, allowed_by_file(base + directory + "/agent.yaml").value_or(flag)};
}

}  // namespace

std::vector<RootAgentFacts> root_agents_here() {
  std::vector<RootAgentFacts> agents;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (const auto agent = root_agent(at->path())) agents.push_back(*agent);
  }
  std::ranges::sort(agents, {}, &RootAgentFacts::node);
  return agents;
}

bool hides_processes(const std::string& mounts) {
  bool hidden = false;
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string device;
    std::string place;
    std::string type;
    std::string options;
    fields >> device >> place >> type >> options;
    if (place != "/proc" || type != "proc") continue;
    const std::size_t at = options.find("hidepid=");
    constexpr std::size_t kName = 8;
    const std::string value = at == options.npos ? "0" : options.substr(at + kName);
    hidden = !value.starts_with("0") && !value.starts_with("off");
  }
  return hidden;
}

}  // namespace orrery
