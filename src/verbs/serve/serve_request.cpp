#include "verbs/serve/serve_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/runs/run_text.hpp"
#include "planner/fleet_machines.hpp"
#include "planner/launch/serving_flags.hpp"
#include "verbs/option_text.hpp"
#include "verbs/service_simulation/request_option.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kAcceleratorsMax = 1u << 24;

/// Families that perf/serving/serving_engine.hpp has constants of.
constexpr std::array<std::string_view, 8> kEngines = {
    "vllm", "tensorrt-llm", "sglang", "atom", "deepspeed", "habana", "neuronx", "jetstream"};

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

class RequestBuilder {
 public:
  RequestBuilder(const CommandOptions& options, const ServeCall& call)
      : options_(options), plan_(call.plan), serve_(call.serve) {}

  Result<ServeRequest> build() {
    Status done = load();
    if (done) done = set_load();
    if (done) done = set_words();
    if (done) done = set_machines();
    if (!done) return forward_error(done);
    return std::move(request_);
  }

 private:
  Status load() {
    FactOverlay brought;
    if (!plan_.machines.fleet.empty()) {
      Result<FleetFile> file = load_fleet_file(plan_.machines.fleet);
      if (!file) return forward_error(file);
      fleet_ = std::move(file->spec);
      brought = std::move(file->facts);
    }
    Result<QuestionFacts> facts = question_facts(options_, plan_.model, brought);
    if (!facts) return forward_error(facts);
    request_.known = std::move(facts->facts);
    request_.model = std::move(facts->model);
    request_.question.model = request_.model.get();
    return {};
  }

  Status set_load() {
    ServingQuestion& q = request_.question;
    if (!serve_.requests.empty()) {
      if (Status loaded = load_trace(q); !loaded) return loaded;
    } else {
      if (!serve_.half.empty()) return wrong("half", "needs --requests");
      if (!serve_.input_tokens) return wrong("input-tokens", "required with --serve");
      if (!serve_.output_tokens) return wrong("output-tokens", "required with --serve");
      q.input = *serve_.input_tokens;
      q.output = *serve_.output_tokens;
      q.rate = serve_.rate;
    }
    if (Status read = read_limit("ttft", serve_.ttft, q.limits.ttft); !read) return read;
    return read_limit("tpot", serve_.tpot, q.limits.tpot);
  }

  /// Sets the means of a trace, by which the plans to rehearse are found.
  Status load_trace(ServingQuestion& q) {
    if (serve_.input_tokens || serve_.output_tokens || serve_.rate) {
      return wrong(
          "requests",
          "expected no --input-tokens, --output-tokens and --rate, which the requests say");
    }
    Result<RequestTrace> trace = load_request_option({serve_.requests, serve_.half});
    if (!trace) return forward_error(trace);
    double prompts = 0;
    double outputs = 0;
    for (const TraceRequest& each : trace->requests) {
      prompts += each.prompt_tokens;
      outputs += each.output_tokens;
    }
    const auto count = static_cast<double>(trace->requests.size());
    q.input = std::max(std::round(prompts / count), 1.0);
    q.output = std::max(std::round(outputs / count), 1.0);
    const double span = trace->span.count_seconds();
    if (span > 0) q.rate = count / span;
    request_.assumptions.insert(request_.assumptions.end(), trace->notes.begin(),
                                trace->notes.end());
    request_.trace = *std::move(trace);
    return {};
  }

  static Status read_limit(std::string_view option, const std::string& text,
                           std::optional<Seconds>& limit) {
    if (text.empty()) return {};
    Result<Seconds> seconds = quantity_option<Seconds>(option, text);
    if (!seconds) return forward_error(seconds);
    limit = *seconds;
    return {};
  }

  Status set_words() {
    ServingQuestion& q = request_.question;
    q.best = plan_.top;
    if (!serve_.objective.empty()) {
      Result<ServingObjective> objective =
          word_option<ServingObjective>("objective", serve_.objective);
      if (!objective) return forward_error(objective);
      q.objective = *objective;
    }
    if (!serve_.precision.empty()) {
      for (const std::string& word : parts_of(serve_.precision)) {
        if (Status read = read_format(word); !read) return read;
      }
    }
    Result<EconomicsOptions> economics = economics_option(plan_);
    if (!economics) return forward_error(economics);
    economics_ = *std::move(economics);
    return set_engine();
  }

  Status read_format(const std::string& word) {
    std::vector<std::string> unread;
    const std::optional<NumberFormat> format = read_format_text(lower_case(word), unread);
    const bool served = format && *format != NumberFormat::kFp64 &&
                        *format != NumberFormat::kFp32 && *format != NumberFormat::kTf32;
    if (!served) {
      return wrong(
          "precision",
          fmt::format(
              "\"{}\": expected one or more of bf16, fp16, fp8, fp6, fp4, nvfp4, mxfp4, int8, int4",
              word));
    }
    request_.question.formats.push_back(*format);
    return {};
  }

  /// An engine whose command is wanted is the one that is planned for.
  Status set_engine() {
    const std::string_view wanted = serve_.emit ? planned_engine(*serve_.emit) : "";
    if (serve_.engine.empty() && !wanted.empty()) request_.question.engine = wanted;
    if (serve_.engine.empty()) return {};
    const std::size_t colon = std::min(serve_.engine.find(':'), serve_.engine.size());
    const std::string name = lower_case(serve_.engine.substr(0, colon));
    if (std::find(kEngines.begin(), kEngines.end(), name) == kEngines.end()) {
      std::string list;
      for (const std::string_view engine : kEngines) {
        list += (list.empty() ? "" : ", ") + std::string(engine);
      }
      return wrong("engine",
                   fmt::format("\"{}\" is none of {}{}", name, list, did_you_mean(name, kEngines)));
    }
    if (!wanted.empty() && wanted != name) {
      return wrong("emit", fmt::format("\"{}\" with --engine {}, expected one engine",
                                       word_of(*serve_.emit), name));
    }
    request_.question.engine = name;
    if (colon < serve_.engine.size()) {
      request_.question.engine_version = serve_.engine.substr(colon + 1);
    }
    return {};
  }

  Status set_machines() {
    if (plan_.machines.accelerators.empty() == plan_.machines.fleet.empty()) {
      return input_error({}, "expected either --accelerators TYPE[:N] (or any) or --fleet FILE");
    }
    if (!plan_.machines.fleet.empty()) return add_fleet();
    if (plan_.machines.accelerators == "any") return add_priced();
    for (const std::string& part : parts_of(plan_.machines.accelerators)) {
      if (Status added = add_type(part); !added) return added;
    }
    return {};
  }

  void add(ServingChoice choice) {
    choice.economics = economics_;
    request_.question.machines.push_back(std::move(choice));
  }

  Status add_type(const std::string& text) {
    const std::size_t colon = std::min(text.rfind(':'), text.size());
    Result<const Accelerator*> accelerator =
        request_.known->catalog().require<Accelerator>(text.substr(0, colon));
    if (!accelerator) return wrong("accelerators", accelerator.error().message);
    std::optional<std::uint64_t> there;
    if (colon < text.size()) {
      const std::string number = text.substr(colon + 1);
      std::uint64_t count = 0;
      const auto [end, failed] =
          std::from_chars(number.data(), number.data() + number.size(), count);
      if (failed != std::errc() || end != number.data() + number.size() || count == 0 ||
          count > kAcceleratorsMax) {
        return wrong("accelerators",
                     fmt::format("\"{}\": expected a count from 1 to {}", text, kAcceleratorsMax));
      }
      there = count;
    }
    add(serving_choice(request_.known->catalog(), **accelerator, there));
    return {};
  }

  Status add_priced() {
    std::size_t left_out = 0;
    for (const Accelerator& accelerator : request_.known->catalog().all<Accelerator>()) {
      if (request_.known->catalog().price(accelerator) == nullptr) {
        ++left_out;
        continue;
      }
      add(serving_choice(request_.known->catalog(), accelerator, std::nullopt));
    }
    if (left_out > 0) {
      request_.assumptions.push_back(
          fmt::format("left out: accelerators of the catalog without a price ({})", left_out));
    }
    return {};
  }

  Status add_fleet() {
    Result<Topology> topology = build_topology(*fleet_, request_.known->catalog());
    if (!topology) return forward_error(topology);
    request_.topology = std::make_unique<Topology>(*std::move(topology));
    for (FleetPool& pool : fleet_pools(*request_.topology, economics_)) {
      request_.question.machines.push_back({.label = std::move(pool.label),
                                            .accelerator = pool.accelerator,
                                            .node = pool.node,
                                            .accelerators = pool.accelerators,
                                            .domain = pool.domain,
                                            .joined = std::move(pool.joined),
                                            .economics = std::move(pool.economics)});
    }
    if (!request_.question.machines.empty()) return {};
    return infeasible(
        fmt::format("{}: the fleet has no accelerators to plan for", plan_.machines.fleet));
  }

  const CommandOptions& options_;
  const PlanOptions& plan_;
  const ServeOptions& serve_;
  EconomicsOptions economics_;
  std::optional<FleetSpec> fleet_;  ///< of --fleet
  ServeRequest request_;
};

}  // namespace

Result<ServeRequest> serve_request(const CommandOptions& options, const ServeCall& call) {
  return RequestBuilder(options, call).build();
}

}  // namespace orrery
