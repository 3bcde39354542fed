#include "verbs/service_simulation/service_simulation.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "base/text/count_text.hpp"
#include "base/text/text_table.hpp"
#include "twin/serving/service_run.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

/// "12.3 ms", "1.23 s".
std::string time_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 1000 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string share_text(double share) { return fmt::format("{:.1f} %", share * 100); }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double attained(const ClassFigures& figures) {
  return ratio(static_cast<double>(figures.within), static_cast<double>(figures.requests));
}

bool has_targets(const ModelledService& service) {
  return service.setup.targets.ttft_s > 0 || service.setup.targets.tpot_s > 0;
}

double tokens_per_s(const ServiceFigures& figures) {
  return ratio(figures.tokens(), figures.span.count_seconds());
}

/// Dollars for a million tokens of prompts and answers; none: no price is known.
std::optional<double> usd_per_million(const ServiceFigures& figures) {
  if (figures.replicas.usd <= 0 || figures.tokens() <= 0) return std::nullopt;
  return figures.replicas.usd / figures.tokens() * 1e6;
}

Json quantiles_json(const QuantilesOf& of) {
  return {{"mean", of.mean}, {"p50", of.p50}, {"p90", of.p90}, {"p99", of.p99}, {"max", of.max}};
}

Json class_json(const ClassFigures& of) {
  Json json;
  json["requests"] = of.requests;
  json["completed"] = of.completed;
  json["shed"] = of.shed;
  json["failed"] = of.failed;
  json["slo_attained"] = attained(of);
  json["ttft_s"] = quantiles_json(of.ttft);
  json["tpot_s"] = quantiles_json(of.tpot);
  json["e2e_s"] = quantiles_json(of.whole);
  return json;
}

double replicas_mean(const ServiceFigures& figures) {
  return ratio(figures.replicas.alive_s, figures.span.count_seconds());
}

/// What the replicas of a run came to, beside another one's.
Json replicas_json(const ServiceFigures& figures) {
  const auto usd = usd_per_million(figures);
  return {{"replicas_most", figures.replicas.most},
          {"replicas_mean", replicas_mean(figures)},
          {"replica_hours", figures.replicas.alive_s / 3600},
          {"usd_per_million_tokens", usd ? Json(*usd) : Json(nullptr)},
          {"slo_attained", attained(figures.all)}};
}

Json scaling_json(const ScaleTerms& terms, const PlayedService& run) {
  Json json = replicas_json(run.figures);
  json["min"] = terms.min;
  json["max"] = terms.max;
  json["quantile"] = terms.quantile;
  json["orders"] = run.figures.replicas.orders;
  json["unscaled"] = run.unscaled ? replicas_json(*run.unscaled) : Json(nullptr);
  return json;
}

/// A service under one policy: all its requests, then those of each class.
Json run_json(const ModelledService& service, const PlayedService& run) {
  const ServiceFigures& figures = run.figures;
  Json json = {{"name", service.name}, {"policy", run.policy}};
  json.update(class_json(figures.all));
  json["interactive"] = class_json(figures.interactive);
  json["batch"] = class_json(figures.batch);
  json["span_s"] = figures.span.count_seconds();
  json["prompt_tokens"] = figures.prompt_tokens;
  json["output_tokens"] = figures.output_tokens;
  json["tokens_per_s"] = tokens_per_s(figures);
  json["hit_rate"] = figures.hit_rate;
  json["hit_rate_of_one_endless_cache"] = figures.oracle_rate;
  json["preemptions"] = figures.detours.preemptions;
  json["waited"] = figures.detours.waited;
  json["retried"] = figures.detours.retried;
  json["moved"] = figures.detours.moved;
  json["apart"] = figures.detours.apart;
  json["steps"] = figures.replicas.steps;
  json["replica_seconds"] = figures.replicas.alive_s;
  json["busy"] = ratio(figures.replicas.busy_s, figures.replicas.alive_s);
  const auto usd = usd_per_million(figures);
  json["usd_per_million_tokens"] = usd ? Json(*usd) : Json(nullptr);
  json["usd"] = usd ? Json(figures.replicas.usd) : Json(nullptr);
  const double joules = figures.replicas.joules;
  json["joules"] = joules > 0 ? Json(joules) : Json(nullptr);
  json["joules_per_token"] = joules > 0 ? Json(ratio(joules, figures.tokens())) : Json(nullptr);
  json["scaling"] = service.scaling ? scaling_json(*service.scaling, run) : Json(nullptr);
  return json;
}

TextTable::Column right(std::string title) { return {std::move(title), Align::kRight}; }

/// What the changes of the number of replicas came to, beside that number at its most.
std::string scaling_text(const ModelledService& service, std::span<const PlayedService> runs) {
  const ScaleTerms& terms = *service.scaling;
  TextTable table({{"POLICY"},
                   {"REPLICAS"},
                   right("MEAN"),
                   right("ORDERS"),
                   right("REPLICA-HOURS"),
                   right("$/M TOKENS"),
                   right("WITHIN TARGETS")});
  const auto add = [&](const std::string& policy, const std::string& replicas,
                       const ServiceFigures& figures) {
    const auto usd = usd_per_million(figures);
    table.add({policy, replicas, fmt::format("{:.2f}", replicas_mean(figures)),
               fmt::to_string(figures.replicas.orders),
               fmt::format("{:.2f}", figures.replicas.alive_s / 3600),
               usd ? fmt::format("{:.3f}", *usd) : "-",
               has_targets(service) ? share_text(attained(figures.all)) : "-"});
  };
  for (const PlayedService& run : runs) {
    add(run.policy, fmt::format("scaled, {} at most", run.figures.replicas.most), run.figures);
    if (!run.unscaled) continue;
    add(run.policy, fmt::format("{} all along", run.unscaled->replicas.most), *run.unscaled);
  }
  return fmt::format(
      "\nscaled between {} and {} replicas for {:.3g} % of forecasts, {} after an order\n\n{}",
      terms.min, terms.max, 100 * terms.quantile, service.setup.groups.front().cold_start.text(),
      table.text());
}

std::string table_of(const ModelledService& service, std::span<const PlayedService> runs) {
  TextTable table({{"POLICY"},
                   right("TTFT P50"),
                   right("P99"),
                   right("TPOT P50"),
                   right("P99"),
                   right("WITHIN TARGETS"),
                   right("SHED"),
                   right("CACHED"),
                   right("TOKENS/S"),
                   right("$/M TOKENS")});
  for (const PlayedService& run : runs) {
    const ServiceFigures& figures = run.figures;
    const auto usd = usd_per_million(figures);
    table.add({run.policy, time_text(figures.all.ttft.p50), time_text(figures.all.ttft.p99),
               time_text(figures.all.tpot.p50), time_text(figures.all.tpot.p99),
               has_targets(service) ? share_text(attained(figures.all)) : "-",
               fmt::to_string(figures.all.shed + figures.all.failed), share_text(figures.hit_rate),
               fmt::format("{:.0f}", tokens_per_s(figures)),
               usd ? fmt::format("{:.3f}", *usd) : "-"});
  }
  return table.text();
}

/// A line for each request, in the order of arrival.
std::string requests_csv(const RequestTrace& trace, const RequestBook& book) {
  std::string text = "arrival_s,prompt_tokens,output_tokens,fate,ttft_s,end_s\n";
  for (std::uint32_t i = 0; i < trace.requests.size(); ++i) {
    const TraceRequest& each = trace.requests[i];
    auto out = std::back_inserter(text);
    fmt::format_to(out, "{:.6f},{},{},{},", each.arrival.count_seconds(), each.prompt_tokens,
                   each.output_tokens, word_of(book.fate_of(i)));
    if (book.fate_of(i) == RequestFate::kCompleted) {
      fmt::format_to(out, "{:.6f},{:.6f}", seconds_of_ps(book.first_of(i) - book.arrival_of(i)),
                     seconds_of_ps(book.end_of(i)));
    } else {
      text += ",";
    }
    text += "\n";
  }
  return text;
}

Status write_file(const std::string& directory, const std::string& name, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return environment_error(fmt::format("{}: {}", directory, error.message()));
  return write_output_file((std::filesystem::path(directory) / name).string(), text);
}

/// Plays each policy again with the number of replicas that it had at its most.
void play_unscaled(const ModelledService& service, std::span<PlayedService> runs) {
  ServiceSetup setup = service.setup;
  setup.scaler = nullptr;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    setup.router.policy = service.policies[i];
    setup.groups.front().count = runs[i].figures.replicas.most;
    runs[i].unscaled = run_service(service.trace, setup);
  }
}

/// The replicas of all groups.
std::uint32_t replicas_of(const ModelledService& service) {
  std::uint32_t sum = 0;
  for (const ReplicaGroup& each : service.setup.groups) sum += each.count;
  return sum;
}

/// What was computed apart; "" where no replica computes prompts alone.
std::string apart_text(const ModelledService& service, std::span<const PlayedService> runs) {
  std::uint32_t prompts = 0;
  for (const ReplicaGroup& each : service.setup.groups) {
    if (each.duty == ReplicaDuty::kPrefill) prompts += each.count;
  }
  if (prompts == 0) return "";
  std::string text = fmt::format("\n{} computed prompts alone:", counted(prompts, "replica"));
  for (const PlayedService& run : runs) {
    text += fmt::format(" {} of {} requests by {}", run.figures.detours.apart,
                        run.figures.all.requests, run.policy);
  }
  return text + "\n";
}

}  // namespace

std::string service_text(const ModelledService& service, std::span<const PlayedService> runs) {
  const ReplicaGroup& group = service.setup.groups.front();
  const ServiceFigures& first = runs.front().figures;
  std::string text =
      fmt::format("{} in {} on {} ({}), {} sequences at a time, {} tokens of cache\n",
                  counted(first.all.requests, "request"), service.trace.span.text(),
                  counted(replicas_of(service), "replica"), group.name, group.rules.sequences_max,
                  std::uint64_t{group.rules.kv_blocks} * kKvBlockTokens);
  if (service.setup.gateways > 1) {
    text += fmt::format("by {} gateways, which tell each other their loads every {}\n",
                        service.setup.gateways, service.setup.tell.text());
  }
  const RequestTargets& targets = service.setup.targets;
  if (targets.ttft_s > 0) text += fmt::format("target TTFT {}\n", time_text(targets.ttft_s));
  if (targets.tpot_s > 0) text += fmt::format("target TPOT {}\n", time_text(targets.tpot_s));
  text += "\n" + table_of(service, runs) + apart_text(service, runs);
  if (service.scaling) text += scaling_text(service, runs);
  if (first.oracle_rate > 0) {
    text += fmt::format("\none cache without limits would have {} of the prompts\n",
                        share_text(first.oracle_rate));
  }
  for (const std::string& note : service.notes) text += "\nnote: " + note + "\n";
  return text;
}

Json service_json(const ModelledService& service, std::span<const PlayedService> runs) {
  const ReplicaGroup& group = service.setup.groups.front();
  Json json;
  json["service"] = service.name;
  json["replicas"] = replicas_of(service);
  json["gateways"] = service.setup.gateways;
  json["machine"] = group.name;
  json["engine"] = word_of(group.rules.discipline);
  json["sequences_max"] = group.rules.sequences_max;
  json["step_tokens"] = group.rules.step_tokens;
  json["kv_tokens"] = std::uint64_t{group.rules.kv_blocks} * kKvBlockTokens;
  json["pace"] = {{"step_s", group.cost.step_s},
                  {"sequence_s", group.cost.sequence_s},
                  {"context_token_s", group.cost.context_token_s},
                  {"prompt_token_s", group.cost.prompt_token_s},
                  {"prompt_pair_s", group.cost.prompt_pair_s}};
  json["request_s"] = group.request_s;
  json["usd_h"] = group.usd_h > 0 ? Json(group.usd_h) : Json(nullptr);
  json["target_ttft_s"] = service.setup.targets.ttft_s;
  json["target_tpot_s"] = service.setup.targets.tpot_s;
  json["services"] = Json::array();
  for (const PlayedService& run : runs) json["services"].push_back(run_json(service, run));
  json["notes"] = service.notes;
  return json;
}

Result<VerbAnswer> simulate_service(const CommandOptions& options,
                                    const ServiceSimulationOptions& asked) {
  Result<ModelledService> service = load_modelled_service(options, asked);
  if (!service) return forward_error(service);
  std::vector<PlayedService> runs;
  std::vector<std::string> tables;
  for (const RoutePolicy policy : service->policies) {
    service->setup.router.policy = policy;
    PlayedService& run = runs.emplace_back();
    run.policy = word_of(policy);
    run.figures = run_service(service->trace, service->setup, [&](const RequestBook& book) {
      if (!asked.out.empty()) tables.push_back(requests_csv(service->trace, book));
    });
  }
  if (service->scaling) play_unscaled(*service, runs);
  VerbAnswer answer{service_text(*service, runs), service_json(*service, runs)};
  if (asked.out.empty()) return answer;
  Status written = write_file(asked.out, "requests.jsonl", write_requests(service->trace));
  for (std::size_t i = 0; i < tables.size() && written; ++i) {
    written = write_file(asked.out, "requests-" + runs[i].policy + ".csv", tables[i]);
  }
  if (written) written = write_file(asked.out, "summary.json", answer.json.dump(2) + "\n");
  if (!written) return forward_error(written);
  return answer;
}

}  // namespace orrery
