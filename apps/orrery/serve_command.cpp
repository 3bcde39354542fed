#include "apps/orrery/serve_command.hpp"

#include <array>

namespace orrery {
namespace {

/// Options of training plans alone.
constexpr std::array<const char*, 13> kNotServed = {
    "--seq",        "--global-batch", "--task",       "--attention", "--budget",
    "--tokens",     "--layout",       "--runtime",    "--storage",   "--exhaustive",
    "--input-rate", "--html",         "--sensitivity"};

}  // namespace

void add_serve_options(CLI::App& verb, ServeChoice& serve) {
  ServeOptions& options = serve.options;
  CLI::Option* flag = verb.add_flag_callback(
      "--serve", [&serve] { serve.wanted = Serving::kYes; },
      "plan an inference service; --objective cost, energy or rack; --accelerators TYPE[:N],.. or "
      "any");
  const auto add = [&](const char* name, auto& value, const char* text) {
    verb.add_option(name, value, text)->needs(flag);
  };
  add("--input-tokens", options.input_tokens, "with --serve: tokens per prompt");
  add("--output-tokens", options.output_tokens, "with --serve: tokens generated per prompt");
  add("--rate", options.rate, "with --serve: requests per second");
  add("--requests", options.requests,
      "with --serve: requests to rehearse the plans with, in place of sizes and rate: "
      "FILE[:azure|mooncake|servegen|orrery]");
  add("--half", options.half, "with --requests: only the first or the second half of them");
  add("--ttft", options.ttft,
      "with --serve: limit on the mean time to the first token; with --requests, that 99 % of them "
      "are to keep");
  add("--tpot", options.tpot,
      "with --serve: limit on the mean time per output token; with --requests, that 99 % of them "
      "are to keep");
  add("--engine", options.engine,
      "with --serve: inference engine: vllm, tensorrt-llm:1.1, sglang, ...");
  verb.add_flag_callback(
          "--apart", [&options] { options.prompts = PrefillPlace::kApart; },
          "with --emit: the plan that has instances of their own for prefill and decode")
      ->needs(flag)
      ->needs("--emit");
  for (const char* name : kNotServed) {
    if (CLI::Option* other = verb.get_option_no_throw(name)) flag->excludes(other);
  }
}

}  // namespace orrery
