#include "verbs/schedule/submit_request.hpp"

#include <cctype>
#include <filesystem>

#include "node/launch/process_environment.hpp"
#include "verbs/option_text.hpp"
#include "workload/slurm/sbatch_script.hpp"

namespace orrery {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

Result<std::string> absolute_directory(const std::string& asked) {
  std::error_code failed;
  const std::filesystem::path path =
      asked.empty() ? std::filesystem::current_path(failed)
                    : std::filesystem::absolute(asked, failed).lexically_normal();
  if (failed) return wrong("directory", failed.message());
  if (std::filesystem::is_directory(path, failed)) return path.string();
  return wrong("directory", fmt::format("{} is not a directory on this machine", path.string()));
}

Result<Variables> variables_of(const SubmitOptions& options) {
  Variables variables;
  variables.reserve(options.launch.environment.size());
  for (const std::string& variable : options.launch.environment) {
    const std::size_t mark = variable.find('=');
    if (mark == std::string::npos || mark == 0) {
      return wrong("env", fmt::format("\"{}\": expected NAME=VALUE", variable));
    }
    variables.emplace_back(variable.substr(0, mark), variable.substr(mark + 1));
  }
  return variables;
}

/// Reads a point in time in the form of a spec, or as "2026-11-27 18:00" in UTC.
Result<Instant> point_in_time(std::string text) {
  constexpr std::size_t kDate = 10;
  constexpr std::size_t kToMinutes = 16;
  if (text.size() == kToMinutes && (text[kDate] == ' ' || text[kDate] == 'T')) {
    text[kDate] = 'T';
    text += ":00Z";
  }
  return Instant::parse(text);
}

Status take_time_limit(const SubmitOptions& options, JobSpec& spec) {
  if (options.terms.time_limit.empty()) return {};
  Result<Seconds> limit = quantity_option<Seconds>("time-limit", options.terms.time_limit);
  if (!limit) return forward_error(limit);
  spec.time_limit = *limit;
  return {};
}

Status add_dependencies(const SubmitOptions& options, JobSpec& spec) {
  for (const std::string& text : options.terms.after) {
    Result<AfterSpec> after = parse_after(text);
    if (!after) return wrong("after", after.error().message);
    spec.after.push_back(*std::move(after));
  }
  return {};
}

/// Sets a variable; a later value replaces an earlier one of the same name.
void set(Variables& variables, const std::pair<std::string, std::string>& variable) {
  std::erase_if(variables, [&](const auto& each) { return each.first == variable.first; });
  variables.push_back(variable);
}

/// Refuses options that a script or a spec states itself: size, types and model of a job.
Status check_size_is_not_said(const SubmitOptions& options) {
  const SubmitOptions none;
  const auto is_no = [](std::string_view option) {
    return wrong(
        option,
        "expected no such option with a file: the spec or its #SBATCH lines state the value");
  };
  if (options.resources.accelerators != none.resources.accelerators) return is_no("accelerators");
  if (options.resources.types != none.resources.types) return is_no("type");
  if (options.launch.framework != none.launch.framework) return is_no("framework");
  if (options.launch.per != none.launch.per) return is_no("per");
  if (options.resources.cpus) return is_no("cpus");
  if (!options.resources.memory.empty()) return is_no("memory");
  return {};
}

Status overrule_launch(const SubmitOptions& options, JobSpec& spec) {
  Result<Variables> variables = variables_of(options);
  if (!variables) return forward_error(variables);
  const bool said = !variables->empty() || !options.launch.output.empty() ||
                    !options.launch.error.empty() || !options.launch.directory.empty();
  if (!said) return {};
  if (!spec.launch)
    return input_error({options.file.name, 0, 0}, "the spec has no launch to change");
  for (const auto& each : *variables) set(spec.launch->environment, each);
  if (!options.launch.output.empty()) spec.launch->output = options.launch.output;
  if (!options.launch.error.empty()) spec.launch->error = options.launch.error;
  if (options.launch.directory.empty()) return {};
  Result<std::string> directory = absolute_directory(options.launch.directory);
  if (!directory) return forward_error(directory);
  spec.launch->directory = *std::move(directory);
  return {};
}

/// Whether an option is given that replaces a key of the spec or a directive of the script.
bool overrules(const SubmitOptions& options) {
  const SubmitOptions none;
  const bool words = !options.name.empty() || options.tenant != none.tenant ||
                     !options.terms.time_limit.empty() || !options.launch.directory.empty() ||
                     !options.terms.by.empty() || !options.terms.under.empty() ||
                     !options.launch.output.empty() || !options.launch.error.empty();
  return words || options.terms.priority != 0 || options.terms.restarts || options.terms.hold ||
         !options.terms.after.empty() || !options.launch.environment.empty();
}

/// Replaces the keys of the spec by the options that were given.
Status overrule(const SubmitOptions& options, JobSpec& spec) {
  if (!options.name.empty()) spec.name = options.name;
  if (options.tenant != SubmitOptions().tenant) spec.tenant = options.tenant;
  if (options.terms.priority != 0) spec.priority = options.terms.priority;
  if (options.terms.restarts) spec.restart.max = *options.terms.restarts;
  if (options.terms.hold) spec.hold = true;
  if (Status added = add_dependencies(options, spec); !added) return added;
  if (Status launched = overrule_launch(options, spec); !launched) return launched;
  if (Status bound = take_bounds(options.terms.by, options.terms.under, spec); !bound) return bound;
  return take_time_limit(options, spec);
}

Result<LaunchSpec> launch_of(const SubmitOptions& options,
                             const std::vector<std::string>& command) {
  LaunchSpec launch;
  launch.command = command;
  Result<Variables> variables = variables_of(options);
  if (!variables) return forward_error(variables);
  launch.environment = *std::move(variables);
  Result<LaunchUnit> per = word_option<LaunchUnit>("per", options.launch.per);
  if (!per) return forward_error(per);
  launch.per = *per;
  Result<std::string> directory = absolute_directory(options.launch.directory);
  if (!directory) return forward_error(directory);
  launch.directory = *std::move(directory);
  launch.output = options.launch.output;
  launch.error = options.launch.error;
  return launch;
}

}  // namespace

std::string job_name_of(const std::string& path) {
  constexpr std::size_t kNameMax = 64;
  std::string name = std::filesystem::path(path).filename().string();
  for (char& c : name) {
    const bool fit =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!fit) c = '-';
  }
  name.resize(std::min(name.size(), kNameMax));
  return name.empty() ? "job" : name;
}

Result<std::string> checked_job_text(const JobSpec& spec) {
  std::string text = write_job_spec(spec);
  const Result<Document> document = Document::parse(text, "");
  if (!document) return input_error({}, document.error().message);
  const Result<JobSpec> read = read_job_spec(*document);
  if (!read) return input_error({}, read.error().message);
  return text;
}

Status take_bounds(const std::string& by, const std::string& under, JobSpec& spec) {
  if (!by.empty()) {
    const Result<Instant> deadline = point_in_time(by);
    if (!deadline) return wrong("by", deadline.error().message);
    spec.deadline = *deadline;
  }
  if (under.empty()) return {};
  const Result<Dollars> budget = quantity_option<Dollars>("under", under);
  if (!budget) return tl::unexpected(budget.error());
  spec.budget = *budget;
  return {};
}

Result<std::string> command_job_spec(const SubmitOptions& options,
                                     const std::vector<std::string>& command) {
  if (command.empty()) return input_error({}, "nothing after --: expected a program to run");
  JobSpec spec;
  spec.name = options.name.empty() ? job_name_of(command.front()) : options.name;
  spec.tenant = options.tenant;
  spec.priority = options.terms.priority;
  spec.software.framework = options.launch.framework;
  spec.hold = options.terms.hold;
  if (Status added = add_dependencies(options, spec); !added) return forward_error(added);
  if (options.terms.restarts) spec.restart.max = *options.terms.restarts;
  if (Status limited = take_time_limit(options, spec); !limited) return forward_error(limited);
  Status bound = take_bounds(options.terms.by, options.terms.under, spec);
  if (!bound) return forward_error(bound);
  RoleSpec role;
  role.accelerators = options.resources.accelerators;
  for (const std::string& type : options.resources.types) role.types.push_back({.type = type});
  role.host.cpu = options.resources.cpus.value_or(0);
  if (!options.resources.memory.empty()) {
    const Result<Bytes> memory = quantity_option<Bytes>("memory", options.resources.memory);
    if (!memory) return tl::unexpected(memory.error());
    role.host.memory = *memory;
  }
  spec.roles.push_back(std::move(role));
  Result<LaunchSpec> launch = launch_of(options, command);
  if (!launch) return forward_error(launch);
  spec.launch = *std::move(launch);
  return checked_job_text(spec);
}

Result<std::string> overruled_job_spec(const SubmitOptions& options, std::string text) {
  if (Status unsaid = check_size_is_not_said(options); !unsaid) return forward_error(unsaid);
  if (!overrules(options)) return text;  // the controller checks it, and names its lines
  const Result<Document> document = Document::parse(text, options.file.name);
  if (!document) return tl::unexpected(document.error());
  Result<JobSpec> spec = read_job_spec(*document);
  if (!spec) return forward_error(spec);
  if (Status said = overrule(options, *spec); !said) return forward_error(said);
  return checked_job_text(*spec);
}

bool is_script(const std::string& file, std::string_view text) {
  return is_sbatch_script(text) || file.ends_with(".sbatch") || file.ends_with(".sh");
}

Result<ScriptSpec> script_job_spec(const SubmitOptions& options, std::string_view script) {
  if (Status unsaid = check_size_is_not_said(options); !unsaid) return forward_error(unsaid);
  Result<std::string> directory = absolute_directory(options.launch.directory);
  if (!directory) return forward_error(directory);
  const auto unknown =
      options.file.lenient ? UnknownSbatchOption::kNote : UnknownSbatchOption::kError;
  Result<SbatchJob> job = read_sbatch_script(script, {.file = options.file.name,
                                                      .directory = *std::move(directory),
                                                      .arguments = options.file.arguments,
                                                      .environment = process_environment(),
                                                      .unknown = unknown});
  if (!job) return forward_error(job);
  if (Status said = overrule(options, job->spec); !said) return forward_error(said);
  Result<std::string> text = checked_job_text(job->spec);
  if (!text) return input_error({options.file.name, 0, 0}, text.error().message);
  return ScriptSpec{*std::move(text), std::move(job->notes)};
}

}  // namespace orrery
