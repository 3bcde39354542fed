// orrery-engine: an inference engine of others as a replica of a service
// (adapter/engine_replica.hpp).
//
// Started by Orrery it reports to its keeper where the engine serves (ORRERY_PROGRESS,
// ORRERY_ADDRESS). SIGTERM and SIGINT end it once the engine's requests have ended; the second one
// does not wait for them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapter/engine_replica.hpp"
#include "apps/option_hooks.hpp"
#include "base/format/field_writer.hpp"
#include "base/launch/listen_host.hpp"
#include "base/system/daemon_signals.hpp"
#include "base/system/real_env.hpp"
#include "base/text/terminal_text.hpp"
#include "workload/engine_flags.hpp"

namespace orrery {
namespace {

/// What vLLM computes at a time where nobody says otherwise: its own choice follows from the device
/// and is not told.
constexpr std::uint32_t kVllmSlots = 256;

struct Options {
  std::string engine;
  EngineLaunch launch;
};

int complain(const Error& error) {
  fmt::print(stderr, "orrery-engine: {}\n", terminal_text(error.text(), Newlines::kKept));
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

std::string variable(const char* name, std::string absent = {}) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(absent) : value;
}

/// Returns how the engine is started and asked; writes the file that it reads its options from.
Result<EngineReplica::Options> replica_of(Options& asked, Env env) {
  EngineLaunch& launch = asked.launch;
  for (const auto& entry : enum_words(EngineName())) {
    if (entry.word == asked.engine) launch.engine = entry.value;
  }
  const std::string address = variable("ORRERY_ADDRESS", "127.0.0.1");
  launch.host = listen_host(address);
  const Result<std::uint16_t> port = free_port(launch.host, env.entropy);
  if (!port) return tl::unexpected(port.error());
  launch.port = *port;
  EngineReplica::Options replica;
  replica.slots = slots_in(launch.engine, launch.arguments);
  if (launch.engine == EngineName::kVllm && !replica.slots) {
    launch.shape.sequences = kVllmSlots;
    replica.slots = kVllmSlots;
  }
  Result<EngineCommand> command = engine_launch(launch);
  if (!command) return forward_error(command);
  if (!command->config.empty()) {
    if (auto written = env.storage.write_file(std::string(kEngineConfigFile), command->config);
        !written) {
      return forward_error(written);
    }
  }
  const bool all = launch.host == "0.0.0.0";
  const bool bare_v6 = address.find(':') != std::string::npos && address.front() != '[';
  replica.engine = launch.engine;
  replica.command = std::move(command->words);
  replica.endpoint = fmt::format("{}:{}", all ? "127.0.0.1" : launch.host, *port);
  replica.address = fmt::format("{}:{}", bare_v6 ? "[" + address + "]" : address, *port);
  replica.model = launch.model;
  replica.progress = variable("ORRERY_PROGRESS");
  replica.announce = [](const std::string& line) {
    fmt::print("orrery-engine: {}\n", terminal_text(line, Newlines::kKept));
    std::fflush(stdout);
  };
  return replica;
}

int run(Options asked) {
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create();
  if (!real) return complain(real.error());
  Result<EngineReplica::Options> options = replica_of(asked, (*real)->env());
  if (!options) return complain(options.error());
  auto replica =
      EngineReplica::start((*real)->loop(), *std::move(options), [&real] { (*real)->stop(); });
  if (!replica) return complain(replica.error());
  bool draining = false;
  const auto ending = watch_signals((*real)->loop(), DaemonSignals::kEnd, [&] {
    if (std::exchange(draining, true)) return (*replica)->stop();
    (*replica)->drain();
  });
  if (!ending) return complain(ending.error());
  (*real)->run();
  const std::optional<Error>& failure = (*replica)->failure();
  return failure ? complain(*failure) : 0;
}

constexpr const char* kHelp =
    "orrery-engine runs an inference engine of others as a replica of a service: vLLM, SGLang, "
    "TensorRT-LLM (trtllm-serve) or the server of llama.cpp. It reports where the engine serves "
    "once "
    "the engine has generated a token, watches it, and ends it when it is sick.\n\n"
    "  orrery-engine --engine vllm --artifact /models/llama --model llama\n"
    "  orrery-engine --engine llamacpp --artifact /models/llama.gguf --model llama -- -np 4\n\n"
    "Orrery starts it for revisions whose engine is one of these. What follows -- goes to the "
    "engine.\n";

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  orrery::Options options;
  orrery::EngineLaunch& launch = options.launch;
  CLI::App app(orrery::kHelp, "orrery-engine");
  app.set_version_flag("--version", ORRERY_VERSION);
  app.add_option("--engine", options.engine, "orrery, vllm, sglang, trtllm or llamacpp")
      ->check(CLI::IsMember({"orrery", "vllm", "sglang", "trtllm", "llamacpp"}))
      ->required();
  app.add_option("--artifact", launch.artifact,
                 "model as the engine takes it: a directory, a name on a model hub, a GGUF file")
      ->required();
  app.add_option("--model", launch.model, "name by which clients ask for the model")->required();
  app.add_option(
      "--program", launch.program,
      "path of the engine's program (default: by its name in PATH; of SGLang, the Python "
      "that has it)");
  app.add_option("arguments", launch.arguments, "arguments of the engine, after --");
  orrery::hook_options(app);
  CLI11_PARSE(app, argc, argv);
  orrery::drop_ignored_option(app);
  orrery::block_signals(orrery::DaemonSignals::kEnd);
  return orrery::run(std::move(options));
}
