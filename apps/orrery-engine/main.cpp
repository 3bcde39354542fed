// orrery-engine: an inference engine of others as a replica of a service
// (adapter/engine_replica.hpp).
//
// Started by Orrery it reports to its keeper where the engine serves (ORRERY_PROGRESS,
// ORRERY_ADDRESS). SIGTERM and SIGINT end it once the engine's requests have ended; the second one
// does not wait for them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapter/engine_replica.hpp"
#include "apps/option_hooks.hpp"
#include "apps/replica_program.hpp"
#include "base/format/field_writer.hpp"
#include "base/launch/listen_host.hpp"
#include "base/system/daemon_signals.hpp"
#include "base/system/free_address.hpp"
#include "base/system/real_env.hpp"
#include "control/setup.hpp"
#include "workload/engine_flags.hpp"

namespace orrery {
namespace {

/// Number of requests that vLLM is told to compute at a time where the arguments name none: its own
/// default depends on the device, and no metric shows it.
constexpr std::uint32_t kVllmSlots = 256;

struct Options {
  std::string engine;
  std::string duty;
  EngineLaunch launch;
};

constexpr const char* kProgram = "orrery-engine";

// Else SIGKILL would take an engine its last requests, and the reason of its end from people.
static_assert(EngineTimes().drain_max + EngineTimes().grace < ControlTiming().drain);

/// Sets what the engine computes of requests, and where replicas of the other duty reach it.
Status set_duty(Options& asked, const std::string& address, Env env) {
  EngineLaunch& launch = asked.launch;
  for (const auto& entry : enum_words(EnginePart())) {
    if (entry.word == asked.duty) launch.part = entry.value;
  }
  if (launch.part == EnginePart::kWhole) return {};
  if (launch.engine != EngineName::kVllm) {
    return input_error(
        {}, fmt::format("--duty {} with engine {}, expected vllm", asked.duty, asked.engine));
  }
  const auto port = FreeAddress::on(launch.host, env.entropy).map(&FreeAddress::port);
  if (!port) return tl::unexpected(port.error());
  launch.own_host = address;
  launch.own_port = *port;
  return {};
}

/// Returns how the engine is started and asked; writes the file that it reads its options from.
Result<EngineReplica::Options> replica_of(Options& asked, Env env) {
  EngineLaunch& launch = asked.launch;
  for (const auto& entry : enum_words(EngineName())) {
    if (entry.word == asked.engine) launch.engine = entry.value;
  }
  const std::string address = launch_variable("ORRERY_ADDRESS", "127.0.0.1");
  launch.host = listen_host(address);
  // The engine takes the port once this one has let it go.
  const auto port = FreeAddress::on(launch.host, env.entropy).map(&FreeAddress::port);
  if (!port) return tl::unexpected(port.error());
  launch.port = *port;
  if (Status set = set_duty(asked, address, env); !set) return forward_error(set);
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
  for (const auto& [name, value] : command->environment) give_variable(name, value);
  const bool all = launch.host == "0.0.0.0";
  const bool bare_v6 = address.find(':') != std::string::npos && address.front() != '[';
  replica.engine = launch.engine;
  replica.command = std::move(command->words);
  const std::string host = bare_v6 ? "[" + address + "]" : address;
  replica.endpoint = fmt::format("{}:{}", all ? "127.0.0.1" : launch.host, launch.port);
  replica.address = fmt::format("{}:{}", host, launch.port);
  if (launch.engine == EngineName::kVllm) {
    const auto events = kv_events_port_in(launch.arguments);
    if (events) replica.kv_events = fmt::format("{}:{}", host, *events);
  }
  replica.model = launch.model;
  replica.progress = launch_variable("ORRERY_PROGRESS");
  replica.announce = [](const std::string& line) {
    announce_line(fmt::format("{}: {}", kProgram, line));
  };
  return replica;
}

int run(Options asked) {
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create();
  if (!real) return complain(kProgram, real.error());
  Result<EngineReplica::Options> options = replica_of(asked, (*real)->env());
  if (!options) return complain(kProgram, options.error());
  auto replica =
      EngineReplica::start((*real)->loop(), *std::move(options), [&real] { (*real)->stop(); });
  if (!replica) return complain(kProgram, replica.error());
  return run_replica(kProgram, **real, **replica, [&] { (*replica)->stop(); });
}

constexpr const char* kHelp =
    "orrery-engine runs an inference engine of others as a replica of a service: vLLM, SGLang, "
    "TensorRT-LLM (trtllm-serve) or the server of llama.cpp. It reports where the engine serves "
    "once the engine has generated a token, watches it, and ends it when it is sick.\n\n"
    "  orrery-engine --engine vllm --artifact /models/llama --model llama\n"
    "  orrery-engine --engine llamacpp --artifact /models/llama.gguf --model llama -- -np 4\n\n"
    "Orrery starts it for revisions whose engine is one of these. What follows -- goes to the "
    "engine.\n\n"
    "SIGTERM lets the engine's requests end for 95 s, then the engine has 15 s to end: Orrery "
    "kills a replica two minutes after it has told it to end. A second SIGTERM does not wait for "
    "requests.\n";

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
  app.add_option("--duty", options.duty,
                 "what a replica of vllm computes of requests: both (default), prefill (prompts "
                 "alone) or decode (answers, and prompts where that is sooner)")
      ->check(CLI::IsMember({"both", "prefill", "decode"}));
  app.add_option("arguments", launch.arguments, "arguments of the engine, after --");
  orrery::hook_options(app);
  CLI11_PARSE(app, argc, argv);
  orrery::drop_ignored_option(app);
  orrery::block_signals(orrery::DaemonSignals::kEnd);
  return orrery::run(std::move(options));
}
