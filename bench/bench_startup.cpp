// How long `orrery` takes from the shell's view: start, catalog parsed, output, exit.
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <vector>

#include "bench/figure.hpp"

namespace orrery {
namespace {

void run_quietly(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1 /* write only */, 0);
  char* environment[] = {nullptr};
  pid_t child = 0;
  int status = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0 || waitpid(child, &status, 0) != child || status != 0) {
    fmt::print(stderr, "bench_startup: {} failed\n", fmt::join(arguments, " "));
  }
}

double median_ms(const std::vector<std::string>& arguments) {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) times.push_back(seconds_of([&] { run_quietly(arguments); }) * 1e3);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int run() {
  const double nothing = median_ms({"/bin/true"});
  const auto figure = [&](const std::string& verb, const std::vector<std::string>& arguments) {
    print_figure({.bench = "startup",
                  .name = "orrery " + verb,
                  .value = median_ms(arguments),
                  .unit = "ms",
                  .target = 50,
                  .peer = "/bin/true",
                  .peer_value = nothing});
  };
  figure("--help", {ORRERY_PROGRAM, "--help"});
  figure("catalog list", {ORRERY_PROGRAM, "catalog", "list"});
  figure("catalog show h100", {ORRERY_PROGRAM, "catalog", "show", "h100"});
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
