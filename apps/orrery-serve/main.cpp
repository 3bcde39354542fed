// orrery-serve: the reference inference engine (inference/server/serving_replica.hpp).
//
// Started by Orrery it reports to its keeper where it serves (ORRERY_PROGRESS, ORRERY_ADDRESS); by
// itself it is a server of one model. SIGTERM and SIGINT end it once its requests have ended.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/option_hooks.hpp"
#include "apps/replica_program.hpp"
#include "apps/word_option.hpp"
#include "base/launch/listen_host.hpp"
#include "base/system/daemon_signals.hpp"
#include "base/system/real_env.hpp"
#include "base/text/quantity_text.hpp"
#include "inference/engine/model_files.hpp"
#include "inference/server/serving_replica.hpp"

namespace orrery {
namespace {

struct Options {
  ModelFiles files;
  std::string kv_memory;
  std::string listen;
  ServingReplica::Options replica;
};

constexpr const char* kProgram = "orrery-serve";

int serve(Options options) {
  if (!options.kv_memory.empty()) {
    const Result<Bytes> memory = parse<Bytes>(options.kv_memory);
    if (!memory) {
      return complain(kProgram, {ErrorKind::kInput, "--kv-memory: " + memory.error().message, {}});
    }
    options.replica.engine.kv_memory = *memory;
  }
  options.replica.engine.load = [files = options.files] { return load_served_model(files); };
  options.replica.host = launch_variable("ORRERY_ADDRESS", "127.0.0.1");
  options.replica.listen =
      options.listen.empty() ? listen_host(options.replica.host) + ":0" : options.listen;
  options.replica.progress = launch_variable("ORRERY_PROGRESS");
  options.replica.announce = announce_line;
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create();
  if (!real) return complain(kProgram, real.error());
  auto replica = ServingReplica::start((*real)->loop(), (*real)->env(), std::move(options.replica),
                                       [&real] { (*real)->stop(); });
  if (!replica) return complain(kProgram, replica.error());
  return run_replica(kProgram, **real, **replica, [&] { (*real)->stop(); });
}

constexpr const char* kHelp =
    "orrery-serve, the reference inference engine of Orrery, serves a dense GPT or Llama with the "
    "API of OpenAI: /v1/completions, /v1/chat/completions, /v1/models, /health, /metrics. The "
    "model is a checkpoint of orrery-train, a directory of Hugging Face (LlamaForCausalLM, "
    "GPT2LMHeadModel) or a GGUF file (llama; F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, "
    "Q5_K, Q6_K).\n\n"
    "  orrery-serve --checkpoint build/quickstart/run/checkpoint\n"
    "                                 the model of scripts/quickstart, on any free port\n"
    "  orrery-serve --checkpoint DIR --training FILE --listen 127.0.0.1:8000\n"
    "  orrery-serve --checkpoint model.gguf\n\n"
    "A chat is written by the model's chat template, which may show tools; without one it is the "
    "contents of its messages, each followed by a newline. Beyond OpenAI's parameters, top_k, "
    "ignore_eos, return_token_ids and continue are known; n, echo, logprobs and penalties are "
    "refused.\n";

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  orrery::Options options;
  auto& engine = options.replica.engine;
  CLI::App app(orrery::kHelp, "orrery-serve");
  app.set_version_flag("--version", ORRERY_VERSION);
  app.add_option("--checkpoint", options.files.checkpoint,
                 "directory of checkpoints or of Hugging Face, or a GGUF file")
      ->required();
  app.add_option(
      "--training", options.files.training,
      "training spec of a checkpoint (default: training.yaml in the directory or above it)");
  app.add_option("--tokenizer", options.files.tokenizer,
                 "SentencePiece model of a checkpoint (default: data.tokenizer of the spec)");
  app.add_option(
      "--model", options.replica.server.model,
      "name of the served model (default: that of the training spec, of the directory or "
      "of the file)");
  app.add_option(
      "--listen", options.listen,
      "HOST:PORT to listen on, the address in numbers; port 0: any (default: any port of "
      "ORRERY_ADDRESS, else of 127.0.0.1)");
  app.add_option("--context", options.files.context_max,
                 "most tokens of a text, prompt and answer (default: as many as the model has, at "
                 "most 65536)")
      ->check(CLI::Range(2, 1 << 16));
  orrery::add_word_option(
      app, "--weights", options.files.weights,
      "how the engine keeps the weights: f32, bf16 in half the memory, or int8 in a quarter, "
      "whose products round the activations as well");
  app.add_option("--slots", engine.limits.slots, "texts that are generated at once")
      ->capture_default_str();
  auto* blocks = app.add_option("--kv-blocks", engine.limits.blocks,
                                "blocks of 16 tokens of the KV cache (default: enough for the "
                                "whole context in each slot)");
  app.add_option("--kv-memory", options.kv_memory, "memory of the KV cache, such as \"512 MB\"")
      ->excludes(blocks);
  app.add_option("--step-tokens", engine.limits.step_tokens, "most tokens computed in a step")
      ->capture_default_str();
  app.add_option("--waiting", options.replica.server.waiting_max,
                 "requests that may wait for a slot; more are refused with 429")
      ->capture_default_str();
  app.add_option(
      "--kv-events", options.replica.kv_events,
      "HOST:PORT where it publishes the events of its KV cache as vLLM does (ZeroMQ), the address "
      "in numbers; port 0: any. All who reach the port read the tokens of prompts (default: it "
      "publishes none)");
  app.add_option("--step-log", engine.step_log,
                 "CSV file with a line for each step: time, tokens, seconds");
  orrery::hook_options(app);
  CLI11_PARSE(app, argc, argv);
  orrery::drop_ignored_option(app);
  orrery::block_signals(orrery::DaemonSignals::kEnd);
  return orrery::serve(std::move(options));
}
