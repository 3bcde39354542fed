#include "apps/orrery/submit_request.hpp"

#include <cctype>
#include <filesystem>

#include "apps/orrery/option_text.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

/// The program's own name, with '-' for what may not stand in a name.
std::string name_of_program(const std::string& program) {
  constexpr std::size_t kNameMax = 64;
  std::string name = std::filesystem::path(program).filename().string();
  for (char& c : name) {
    const bool fit =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!fit) c = '-';
  }
  name.resize(std::min(name.size(), kNameMax));
  return name.empty() ? "job" : name;
}

Result<std::string> absolute_directory(const std::string& asked) {
  std::error_code failed;
  const std::filesystem::path path =
      asked.empty() ? std::filesystem::current_path(failed)
                    : std::filesystem::absolute(asked, failed).lexically_normal();
  if (failed) return wrong("directory", failed.message());
  if (std::filesystem::is_directory(path, failed)) return path.string();
  return wrong("directory", fmt::format("{} is no directory here", path.string()));
}

Result<LaunchSpec> launch_of(const SubmitOptions& options,
                             const std::vector<std::string>& command) {
  LaunchSpec launch;
  launch.command = command;
  for (const std::string& variable : options.environment) {
    const std::size_t mark = variable.find('=');
    if (mark == std::string::npos || mark == 0) {
      return wrong("env", fmt::format("\"{}\": expected NAME=VALUE", variable));
    }
    launch.environment.emplace_back(variable.substr(0, mark), variable.substr(mark + 1));
  }
  Result<LaunchUnit> per = word_option<LaunchUnit>("per", options.per);
  if (!per) return forward_error(per);
  launch.per = *per;
  Result<std::string> directory = absolute_directory(options.directory);
  if (!directory) return forward_error(directory);
  launch.directory = *std::move(directory);
  return launch;
}

}  // namespace

Result<std::string> command_job_spec(const SubmitOptions& options,
                                     const std::vector<std::string>& command) {
  if (command.empty()) return input_error({}, "nothing behind --: expected a program to run");
  JobSpec spec;
  spec.name = options.name.empty() ? name_of_program(command.front()) : options.name;
  spec.tenant = options.tenant;
  spec.priority = options.priority;
  spec.software.framework = options.framework;
  spec.after = options.after;
  if (options.restarts) spec.restart.max = *options.restarts;
  if (!options.time_limit.empty()) {
    Result<Seconds> limit = quantity_option<Seconds>("time-limit", options.time_limit);
    if (!limit) return forward_error(limit);
    spec.time_limit = *limit;
  }
  RoleSpec role;
  role.accelerators = options.accelerators;
  for (const std::string& type : options.types) role.types.push_back({.type = type});
  spec.roles.push_back(std::move(role));
  Result<LaunchSpec> launch = launch_of(options, command);
  if (!launch) return forward_error(launch);
  spec.launch = *std::move(launch);
  std::string text = write_job_spec(spec);
  const Result<Document> document = Document::parse(text, "");
  if (!document) return input_error({}, document.error().message);
  const Result<JobSpec> read = read_job_spec(*document);
  // Its lines are of a text that the user has not seen.
  if (!read) return input_error({}, read.error().message);
  return text;
}

}  // namespace orrery
