// orrery-srun: what a script made for Slurm runs on, by the name it is called: srun starts a step
// (node/steps/step_client.hpp), scontrol knows `show hostnames`, and under its own name it holds a
// node for the script (node/steps/step_server.hpp).
//
// The keeper starts it as `orrery-srun SCRIPT ARGUMENT..`; it puts srun and scontrol beside SCRIPT,
// for the script alone to find.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/system/real_env.hpp"
#include "base/test_hooks.hpp"
#include "base/text/terminal_text.hpp"
#include "fleet/import/host_list.hpp"
#include "node/launch/process_environment.hpp"
#include "node/steps/srun_options.hpp"
#include "node/steps/step_client.hpp"
#include "node/steps/step_layout.hpp"
#include "node/steps/step_server.hpp"

namespace orrery {
namespace {

/// Environments are large: more than what other connections carry.
constexpr TransportLimits kLimits{.frame_bytes_max = std::size_t{4} << 20,
                                  .queue_bytes_max = std::size_t{32} << 20};

int complain(std::string_view program, const Error& error) {
  fmt::print(stderr, "{}: error: {}\n", program, terminal_text(error.text(), Newlines::kKept));
  return 1;
}

template <class Numbers>
void take_signals(const Numbers& numbers) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : numbers) sigaddset(&wanted, number);
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  (void)::signal(SIGPIPE, SIG_IGN);
}

// --- scontrol -----------------------------------------------------------------------------------

int control(const std::vector<std::string>& arguments) {
  const bool hosts = arguments.size() >= 2 && arguments[0] == "show" &&
                     (arguments[1] == "hostnames" || arguments[1] == "hostname");
  if (!hosts || arguments.size() > 3) {
    fmt::print(stderr, "scontrol: error: only `scontrol show hostnames [LIST]` is supported\n");
    return 1;
  }
  const std::string list = arguments.size() == 3
                               ? arguments[2]
                               : variable_of(process_environment(), "SLURM_JOB_NODELIST");
  const Result<std::vector<std::string>> names = expand_host_list(list);
  if (!names) return complain("scontrol", names.error());
  for (const std::string& name : *names) fmt::print("{}\n", name);
  return 0;
}

// --- srun ---------------------------------------------------------------------------------------

/// Counts the steps of a job by the bytes of a file: an append is atomic.
std::string next_step(const std::string& tools) {
  const std::string path = tools + "/steps";
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid() || ::write(file.get(), ".", 1) != 1) return "0";
  return fmt::format("{}", ::lseek(file.get(), 0, SEEK_CUR) - 1);
}

Result<StepClientSettings> step_of(const std::vector<std::string>& arguments) {
  const Variables own = process_environment();
  Result<StepGang> gang = StepGang::read(own);
  if (!gang) return forward_error(gang);
  Result<SrunOptions> options = read_srun_options(arguments, own);
  if (!options) return forward_error(options);
  Result<StepLayout> layout = step_layout(*options, *gang);
  if (!layout) return forward_error(layout);
  const std::string step = next_step(variable_of(own, "ORRERY_STEP_TOOLS"));
  Variables environment = exported(own, options->exports.value_or("ALL"));
  for (auto& [name, value] : step_variables(*layout, *gang, step)) {
    std::erase_if(environment, [&](const auto& each) { return each.first == name; });
    environment.emplace_back(name, std::move(value));
  }
  if (!options->cpus.empty()) {
    std::erase_if(environment,
                  [](const auto& each) { return each.first == "SLURM_CPUS_PER_TASK"; });
    environment.emplace_back("SLURM_CPUS_PER_TASK", options->cpus);
  }
  std::error_code failed;
  const auto present = std::filesystem::current_path(failed);
  return StepClientSettings{.options = *options,
                            .gang = *std::move(gang),
                            .layout = *std::move(layout),
                            .environment = std::move(environment),
                            .directory = (present / options->directory).string(),
                            .step = step};
}

int run_step(const std::vector<std::string>& arguments) {
  Result<StepClientSettings> step = step_of(arguments);
  if (!step) return complain("srun", step.error());
  for (const std::string& note : step->options.notes) fmt::print(stderr, "srun: {}\n", note);
  take_signals(kForwarded);
  const Result<std::unique_ptr<RealEnv>> real = RealEnv::create(kLimits, Durability::kUntilBoot);
  if (!real) return complain("srun", real.error());
  return StepClient(**real, *std::move(step)).run();
}

// --- The node -----------------------------------------------------------------------------------

/// Makes links to this program under the names that scripts use.
Status make_tools(const std::string& tools) {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  std::filesystem::create_directories(tools, failed);
  for (const char* name : {"srun", "scontrol"}) {
    const std::filesystem::path link = std::filesystem::path(tools) / name;
    std::error_code absent;
    std::filesystem::remove(link, absent);
    if (!failed) std::filesystem::create_symlink(program, link, failed);
  }
  if (!failed) return {};
  return environment_error(fmt::format("cannot make {}: {}", tools, failed.message()));
}

int hold_node(const std::vector<std::string>& script) {
  const std::string tools = (std::filesystem::path(script[0]).parent_path() / "tools").string();
  if (Status made = make_tools(tools); !made) return complain("orrery-srun", made.error());
  if (::chmod(script[0].c_str(), 0700) != 0) {
    const std::string why = std::generic_category().message(errno);
    return complain(
        "orrery-srun",
        {ErrorKind::kEnvironment, fmt::format("cannot make {} a program: {}", script[0], why), {}});
  }
  Variables own = process_environment();
  Result<StepGang> gang = StepGang::read(own);
  if (!gang) return complain("orrery-srun", gang.error());
  take_signals(std::array{SIGCHLD, SIGTERM, SIGINT});
  const Result<std::unique_ptr<RealEnv>> real = RealEnv::create(kLimits, Durability::kUntilBoot);
  if (!real) return complain("orrery-srun", real.error());
  std::error_code failed;
  const auto server =
      StepServer::open(**real, {.gang = *std::move(gang),
                                .environment = std::move(own),
                                .tools = tools,
                                .script = script,
                                .directory = std::filesystem::current_path(failed)});
  if (!server) return complain("orrery-srun", server.error());
  return (*server)->run();
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  using namespace orrery;
#ifdef ORRERY_TEST_HOOKS
  if (test_hooks::lists_keys()) {
    for (const std::string& each : audited_srun_options()) fmt::print("option {}\n", each);
    return 0;
  }
#endif
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const std::string name = std::filesystem::path(arguments[0]).filename();
  if (name == "srun") return run_step(words);
  if (name == "scontrol") return control(words);
  if (!words.empty() && words[0] == "--version") {
    fmt::print("orrery-srun {}\n", ORRERY_VERSION);
    return 0;
  }
  const bool help = !words.empty() && (words[0] == "--help" || words[0] == "-h");
  if (help || words.empty() || words[0][0] == '-') {
    fmt::print(
        help ? stdout : stderr,
        "usage: orrery-srun SCRIPT [ARGUMENT..]\n\n"
        "Runs an sbatch script on the first node of a job, and provides srun and scontrol for\n"
        "the script. Keepers start it; it is not meant to be started by hand.\n");
    return help ? 0 : 2;
  }
  return hold_node(words);
}
