#include "verbs/service_simulation/modelled_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/count_text.hpp"
#include "executor/services/routed_duty.hpp"
#include "executor/services/scale_watch.hpp"
#include "planner/launch/serving_flags.hpp"
#include "twin/serving/demand_scaler.hpp"
#include "twin/serving/pace_file.hpp"
#include "verbs/option_text.hpp"
#include "verbs/service_simulation/accelerator_pace.hpp"
#include "verbs/service_simulation/engine_rules.hpp"
#include "verbs/service_simulation/request_option.hpp"
#include "verbs/services/service_request.hpp"
#include "workload/job_spec.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kReplicasMax = 4096;
constexpr std::uint32_t kGatewaysMax = 64;

class ServiceLoading {
 public:
  ServiceLoading(const CommandOptions& options, const ServiceSimulationOptions& asked)
      : options_(options), asked_(asked) {}

  Result<ModelledService> load() {
    Status done = load_spec();
    if (done) done = load_trace();
    if (done) done = set_pace();
    if (done) done = set_policies();
    if (done) set_rules();
    if (done) done = set_trouble();
    if (done) set_service();
    if (done) done = set_replicas();
    if (!done) return forward_error(done);
    return std::move(service_);
  }

 private:
  Status load_spec() {
    if (asked_.serve.empty()) {
      spec_.kind = JobKind::kServe;
      spec_.roles.emplace_back().accelerators = 1;
      service_.name = spec_.name = "service";
      return {};
    }
    const Result<Document> document = asked_.files.document(asked_.serve);
    if (!document) return tl::unexpected<Error>(document.error());
    Result<JobSpec> spec = read_job_spec(*document);
    if (!spec) return forward_error(spec);
    const bool apart = spec->service.transfer.has_value();
    if (spec->kind != JobKind::kServe || (spec->roles.size() != 1 && !apart)) {
      return input_error(spec->where, "expected kind Serve with one role, or with transfer");
    }
    spec_ = *std::move(spec);
    const std::optional<std::uint32_t> devices = spec_.roles[0].accelerators;
    for (const RoleSpec& role : spec_.roles) {
      if (role.accelerators == devices) continue;
      return input_error(role.where, fmt::format("role {} has other accelerators than role {}, and "
                                                 "one pace is known",
                                                 role.name, spec_.roles[0].name));
    }
    service_.name = spec_.name;
    if (!spec_.service.revisions.empty()) {
      engine_ = spec_.service.revisions.back().engine;
    } else if (!spec_.software.framework.empty()) {
      Result<EngineName> named = word_option<EngineName>("serve", spec_.software.framework);
      if (named) engine_.name = *named;
    }
    return {};
  }

  Status load_trace() {
    if (asked_.requests.file.empty()) return wrong("requests", "required of a service");
    if (!(asked_.requests.speed > 0 && asked_.requests.speed <= 1e6)) {
      return wrong("speed",
                   fmt::format("{}: expected more than 0, at most 1e6", asked_.requests.speed));
    }
    Result<RequestTrace> trace = load_request_option(
        {asked_.requests.file, asked_.requests.half, asked_.seed, asked_.files});
    if (!trace) return forward_error(trace);
    service_.trace = *std::move(trace);
    if (service_.trace.span.count_seconds() / asked_.requests.speed >
        kTraceSpanMax.count_seconds()) {
      return wrong("speed", "the requests arrive over more than 90 days");
    }
    if (asked_.requests.speed != 1) speed_up(service_.trace, asked_.requests.speed);
    service_.notes = service_.trace.notes;
    return {};
  }

  /// The accelerators of a replica.
  [[nodiscard]] std::uint32_t devices() const { return spec_.roles[0].accelerators.value_or(1); }

  Status set_pace() {
    if (asked_.pace.file.empty() == asked_.pace.accelerators.empty()) {
      return input_error({}, "expected either --pace FILE or --accelerators TYPE[:N]");
    }
    if (!asked_.pace.file.empty()) {
      if (!asked_.pace.model.empty()) return wrong("model", "needs --accelerators");
      Result<EngineStepFit> fit = load_pace(asked_.files.path(asked_.pace.file));
      if (!fit) return forward_error(fit);
      pace_.name = "measured";
      pace_.engine.fit = *fit;
    } else if (Status found = predict_pace(); !found) {
      return found;
    }
    note_fit();
    return {};
  }

  Status predict_pace() {
    const std::optional<WorkSpec>& work = spec_.roles[0].work;
    AcceleratorQuestion question;
    question.model = asked_.pace.model.empty() && work ? work->model : asked_.pace.model;
    if (question.model.empty()) return wrong("model", "required with --accelerators");
    const std::size_t colon =
        std::min(asked_.pace.accelerators.rfind(':'), asked_.pace.accelerators.size());
    question.accelerator = asked_.pace.accelerators.substr(0, colon);
    question.accelerators = devices();
    if (const std::string_view planned = planned_engine(engine_.name); !planned.empty()) {
      question.engine = planned;
    }
    for (const TraceRequest& each : service_.trace.requests) {
      question.prompt_tokens += each.prompt_tokens;
      question.output_tokens += each.output_tokens;
    }
    const auto count = static_cast<double>(service_.trace.requests.size());
    question.prompt_tokens /= count;
    question.output_tokens /= count;
    if (Status there = set_available(colon); !there) return there;
    Result<AcceleratorPace> pace = pace_on_accelerator(options_, question);
    if (!pace) return forward_error(pace);
    pace_ = *std::move(pace);
    service_.notes.insert(service_.notes.end(), pace_.notes.begin(), pace_.notes.end());
    return {};
  }

  /// Reads how many accelerators there are, behind the colon.
  Status set_available(std::size_t colon) {
    if (colon >= asked_.pace.accelerators.size()) return {};
    const std::string text = asked_.pace.accelerators.substr(colon + 1);
    std::uint32_t count = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (code != std::errc() || end != text.data() + text.size() || count < devices()) {
      return wrong("accelerators", fmt::format("\"{}\": expected a count of at least {}, those of "
                                               "a replica",
                                               text, devices()));
    }
    replicas_of_machines_ = count / devices();
    return {};
  }

  Status set_policies() {
    if (asked_.policies.empty()) {
      service_.policies.push_back(RouterOptions{}.policy);
    } else if (asked_.policies == "all") {
      for (const auto& entry : enum_words(RoutePolicy{})) service_.policies.push_back(entry.value);
    } else {
      for (const std::string& word : pieces(asked_.policies)) {
        Result<RoutePolicy> policy = word_option<RoutePolicy>("policy", word);
        if (!policy) return forward_error(policy);
        service_.policies.push_back(*policy);
      }
    }
    return {};
  }

  void note_fit() {
    const EngineStepFit& fit = pace_.engine.fit;
    if (fit.samples == 0) return;
    service_.notes.push_back(fmt::format(
        "the seconds of a step are fitted to {} {}; the mean error of a step is {:.1f} %",
        counted(fit.samples, "step"), asked_.pace.file.empty() ? "of the cost model" : "of the log",
        fit.error * 100));
  }

  void set_rules() {
    ReplicaGroup& group = service_.setup.groups.emplace_back();
    group.name = pace_.name;
    group.cost = pace_.engine.fit.cost;
    group.request_s = pace_.engine.request_s;
    group.usd_h = pace_.usd_h;
    group.watts = pace_.watts;
    group.watts_idle = pace_.watts_idle;
    std::uint64_t kv_tokens = asked_.kv_tokens;
    if (kv_tokens == 0) kv_tokens = cache_tokens_in(engine_).value_or(pace_.engine.kv_tokens);
    if (kv_tokens == 0) {
      service_.notes.push_back(
          fmt::format("a replica's cache holds {} tokens (--kv-tokens)", kUnknownCacheTokens));
    }
    group.rules = engine_rules(engine_, {.sequences_max = pace_.engine.sequences_max,
                                         .step_tokens = pace_.engine.step_tokens,
                                         .kv_tokens = kv_tokens});
  }

  Status set_trouble() {
    if (asked_.replicas > kReplicasMax) {
      return wrong("replicas",
                   fmt::format("{}: expected at most {}", asked_.replicas, kReplicasMax));
    }
    if (asked_.gateways < 1 || asked_.gateways > kGatewaysMax) {
      return wrong("gateways", fmt::format("{}: expected 1 to {}", asked_.gateways, kGatewaysMax));
    }
    Result<Seconds> start = quantity_option<Seconds>("cold-start", asked_.trouble.cold_start);
    if (!start) return forward_error(start);
    if (start->value() > kTraceSpanMax.count_seconds()) {
      return wrong("cold-start", "expected at most 90 days");
    }
    service_.setup.groups[0].cold_start = Duration::from_seconds(start->value());
    service_.setup.crashes.reserve(asked_.trouble.crashes.size());
    for (const std::string& text : asked_.trouble.crashes) {
      Result<Seconds> at = quantity_option<Seconds>("crash", text);
      if (!at) return forward_error(at);
      if (at->value() > kTraceSpanMax.count_seconds()) {
        return wrong("crash", "expected at most 90 days");
      }
      const auto number = static_cast<std::uint32_t>(service_.setup.crashes.size());
      service_.setup.crashes.push_back(
          {.replica = number, .at = Duration::from_seconds(at->value())});
    }
    return {};
  }

  /// Notes what the spec says and the twin does not play.
  void note_left_out() {
    const ServiceSpec& spec = spec_.service;
    std::vector<std::string>& notes = service_.notes;
    if (!spec.quality.small.empty()) {
      notes.emplace_back("quality is not played: the service's own model answers");
    }
    const bool limits = std::ranges::any_of(
        spec.tenants, [](const ServiceTenantSpec& each) { return each.tokens_per_s.has_value(); });
    if (limits) notes.emplace_back("tokens_per_s of tenants is not played");
  }

  void set_service() {
    note_left_out();
    ServiceSetup& setup = service_.setup;
    setup.gateways = asked_.gateways;
    setup.seed = asked_.seed;
    setup.tenants = spec_.service.tenants;
    const SloSpec& slo = spec_.service.slo;
    const std::optional<WorkSpec>& work = spec_.roles[0].work;
    const auto target = [](const std::optional<Seconds>& limit,
                           const std::optional<Seconds>& other) {
      return limit ? limit->value() : other ? other->value() : 0.0;
    };
    setup.targets.ttft_s = target(slo.ttft.p99, work ? work->ttft : std::nullopt);
    setup.targets.tpot_s = target(slo.tpot.p99, work ? work->tpot : std::nullopt);
    if (slo.batch_deadline) setup.batch_wait = Duration::from_seconds(slo.batch_deadline->value());
  }

  /// Sets a group of replicas for each role of a service whose roles have duties.
  Status set_roles() {
    if (asked_.replicas > 0 || !asked_.scale.empty() || replicas_of_machines_) {
      const std::string_view option = asked_.replicas > 0    ? "replicas"
                                      : asked_.scale.empty() ? "accelerators"
                                                             : "scale";
      return wrong(option, "the numbers of replicas are those of the spec's roles");
    }
    const ReplicaGroup group = service_.setup.groups.front();
    service_.setup.groups.clear();
    for (const RoleSpec& role : spec_.roles) {
      ReplicaGroup& made = service_.setup.groups.emplace_back(group);
      made.count = std::clamp(role.replicas, 1u, kReplicasMax);
      const RoutedDuty part = routed_duty(spec_.service.transfer, role.name);
      made.duty = part.duty;
      made.transfer = part.transfer;
    }
    return {};
  }

  /// Sets with how many replicas the service begins, and what changes their number.
  Status set_replicas() {
    if (spec_.service.transfer) return set_roles();
    std::optional<ScalingSpec>& scaling = spec_.service.scaling;
    if (Status taken = take_scaling(asked_.scale, scaling); !taken) return taken;
    ReplicaGroup& group = service_.setup.groups[0];
    if (!scaling) {
      std::uint32_t count = replicas_of_machines_.value_or(spec_.roles[0].replicas);
      if (asked_.replicas > 0) count = asked_.replicas;
      group.count = std::clamp(count, 1u, kReplicasMax);
      return {};
    }
    if (Status fits = check_service(spec_.service); !fits) {
      return asked_.scale.empty() ? fits : wrong("scale", fits.error().message);
    }
    const std::uint32_t most = replicas_of_machines_.value_or(kReplicasMax);
    if (scaling->min > most) {
      return wrong("accelerators", fmt::format("they hold {}, and the service is to have at least "
                                               "{}",
                                               counted(most, "replica"), scaling->min));
    }
    scaling->max = std::min(scaling->max, most);
    group.count =
        replicas_within(scaling, asked_.replicas > 0 ? asked_.replicas : spec_.roles[0].replicas);
    service_.scaling = scale_terms_of(*scaling);
    ServiceSetup& setup = service_.setup;
    setup.scaler = demand_scaler({group}, {.terms = *service_.scaling,
                                           .ttft_s = setup.targets.ttft_s,
                                           .tpot_s = setup.targets.tpot_s});
    // Requests wait for a replica that rests as long as a table of routes would say.
    const Duration wakes = group.cold_start * 2 + Duration::seconds(10);
    if (scaling->min == 0) setup.queue_wait = std::max(setup.queue_wait, wakes);
    return {};
  }

  const CommandOptions& options_;
  const ServiceSimulationOptions& asked_;
  JobSpec spec_;
  EngineSpec engine_ = {.name = EngineName::kVllm};
  AcceleratorPace pace_;
  std::optional<std::uint32_t> replicas_of_machines_;
  ModelledService service_;
};

}  // namespace

Result<ModelledService> load_modelled_service(const CommandOptions& options,
                                              const ServiceSimulationOptions& asked) {
  return ServiceLoading(options, asked).load();
}

}  // namespace orrery
