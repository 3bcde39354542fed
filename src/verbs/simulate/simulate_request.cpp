#include "verbs/simulate/simulate_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "base/format/gzip.hpp"
#include "base/text/count_text.hpp"
#include "base/text/utf8.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "fleet/spec/spec.hpp"
#include "scheduler/asked_policy.hpp"
#include "verbs/option_text.hpp"
#include "workload/trace/trace_generator.hpp"
#include "workload/trace/trace_mapping.hpp"

namespace orrery {
namespace {

constexpr std::size_t kSeriesBytesMax = std::size_t{64} << 20;

/// "fifo:blocking=true,node_fit=best,srtf" names two policies: an option goes with the name before.
std::vector<std::string> policy_texts(const std::string& list) {
  std::vector<std::string> texts;
  for (const std::string& piece : pieces(list)) {
    const std::size_t equals = piece.find('=');
    const bool option = equals != std::string::npos && piece.find(':') > equals;
    if (option && !texts.empty()) {
      texts.back() += "," + piece;
    } else {
      texts.push_back(piece);
    }
  }
  return texts;
}

Result<std::string> read_maybe_gzip(const std::string& path) {
  Result<std::string> bytes = read_file(path, kSeriesBytesMax);
  if (!bytes || !is_gzip(*bytes)) return bytes;
  return gunzip(*bytes, kSeriesBytesMax);
}

Result<std::vector<AcceleratorCount>> accelerator_counts(const std::string& list) {
  std::vector<AcceleratorCount> counts;
  for (const std::string& piece : pieces(list)) {
    const std::size_t colon = piece.rfind(':');
    int count = 0;
    const char* begin = piece.data() + (colon == std::string::npos ? piece.size() : colon + 1);
    const char* end = piece.data() + piece.size();
    const auto [stop, failed] = std::from_chars(begin, end, count);
    if (failed != std::errc() || stop != end || colon == std::string::npos) {
      return wrong("accelerators", fmt::format("\"{}\": expected TYPE:N, such as h100:64", piece));
    }
    counts.push_back({piece.substr(0, colon), count});
  }
  return counts;
}

std::string file_name_of(const std::string& label) {
  std::string name = label;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  }
  return name;
}

/// One end of a window: a time as --from takes it, or one since the simulation began.
Result<Instant> mark_of(const std::string& text, Instant begin) {
  if (Result<Instant> at = parse_trace_time(text)) return at;
  Result<Seconds> since = quantity_option<Seconds>("measure", text);
  if (!since) return forward_error(since);
  return begin + Duration::from_seconds(since->value());
}

}  // namespace

std::string price_of_accelerators(const SimulateOptions& asked) {
  if (asked.accelerators.empty() || !asked.price.empty()) return asked.price;
  return std::string(word_of(asked.prices.empty() ? PriceBasis::kOnDemand : PriceBasis::kOwned));
}

/// Reads the ownership from the words of `plan --price`, which also decide the payer of
/// electricity.
Result<NodeOwnership> SimulateRequest::ownership_asked_for(const SimulateOptions& asked) {
  const std::string price = price_of_accelerators(asked);
  const bool owned = price == word_of(PriceBasis::kOwned);
  if (!owned && price != word_of(PriceBasis::kOnDemand)) {
    return wrong("price", fmt::format("\"{}\": expected owned or on-demand", price));
  }
  assumptions_.push_back(fmt::format("--price {}: {}", price,
                                     owned ? "the cost is depreciation, maintenance and electricity"
                                           : "the cost is the rent, which includes electricity"));
  return owned ? NodeOwnership::kOwned : NodeOwnership::kRented;
}

/// Loads the facts, and the fleet file, which may bring some.
Status SimulateRequest::load_facts(const CommandOptions& options, const SimulateOptions& asked) {
  FactOverlay brought;
  if (!asked.fleet.empty()) {
    Result<FleetFile> file = files_.keep_fleet(asked.fleet);
    if (!file) return forward_error(file);
    fleet_ = std::move(file->spec);
    brought = std::move(file->facts);
  }
  Result<Facts> facts = orrery::load_facts(options, brought);
  if (!facts) return forward_error(facts);
  facts_ = *std::move(facts);
  return {};
}

/// The file of --fleet, or a fleet of --accelerators. A file says itself which nodes are owned.
Result<FleetSpec> SimulateRequest::fleet_asked_for(const SimulateOptions& asked) {
  if (asked.fleet.empty() == asked.accelerators.empty()) {
    return input_error({}, "expected either --fleet FILE or --accelerators TYPE:N");
  }
  if (!asked.fleet.empty()) {
    if (!asked.price.empty()) {
      return wrong("price", fmt::format("{}: expected no --price with {}, whose key `ownership` "
                                        "(of a site, or of the nodes of a rack) decides it",
                                        asked.price, asked.fleet));
    }
    return *fleet_;
  }
  Result<NodeOwnership> ownership = ownership_asked_for(asked);
  if (!ownership) return forward_error(ownership);
  Result<std::vector<AcceleratorCount>> counts = accelerator_counts(asked.accelerators);
  if (!counts) return forward_error(counts);
  Result<AcceleratorFleet> fleet =
      fleet_of_accelerators(facts_.catalog(), {*std::move(counts), rules_.node_accelerators});
  if (!fleet) return forward_error(fleet);
  if (!fleet->nodes.empty()) {
    Result<Catalog> more = facts_.catalog().with(fleet->nodes);
    if (!more) return forward_error(more);
    with_parts_ = *std::move(more);
  }
  for (SiteSpec& site : fleet->spec.sites) site.ownership = *ownership;
  notes_.insert(notes_.end(), fleet->assumptions.begin(), fleet->assumptions.end());
  return std::move(fleet->spec);
}

Status SimulateRequest::load_cluster(const SimulateOptions& asked) {
  Result<FleetSpec> spec = fleet_asked_for(asked);
  if (!spec) return forward_error(spec);
  const Catalog& catalog = with_parts_ ? *with_parts_ : facts_.catalog();
  if (!asked.tenants.empty()) {
    Result<Document> document = files_.keep(asked.tenants);
    if (!document) return forward_error(document);
    Result<TenantsSpec> tenants = read_tenants_spec(*document);
    if (!tenants) return forward_error(tenants);
    tenants_ = *std::move(tenants);
    const std::string& what = tenants_->description;
    notes_.push_back(fmt::format("tenants of {}{}", printable(tenants_->name, 60),
                                 what.empty() ? "" : ": " + printable(what, 200)));
  }
  Result<std::unique_ptr<ControlFacts>> cluster = ControlFacts::make(
      {catalog, facts_.calibration(), facts_.models()}, *spec, tenants_ ? &*tenants_ : nullptr);
  if (!cluster) return forward_error(cluster);
  cluster_ = *std::move(cluster);
  const FleetCosts& costs = cluster_->costs();
  assumptions_.insert(assumptions_.end(), costs.assumptions().begin(), costs.assumptions().end());
  for (const std::string& missing : costs.missing()) {
    assumptions_.push_back("left out: " + missing);
  }
  return {};
}

Status SimulateRequest::make_trace(const SimulateOptions& asked) {
  TraceShape shape;
  Result<TraceStyle> style = word_option<TraceStyle>("generate", asked.generate);
  if (!style) return forward_error(style);
  shape.style = *style;
  shape.accelerators = cluster_->topology().device_count();
  shape.utilisation = asked.load;
  if (asked.jobs > 0) shape.jobs = asked.jobs;
  if (!asked.span.empty()) {
    Result<Seconds> span = quantity_option<Seconds>("span", asked.span);
    if (!span) return forward_error(span);
    shape.span = Duration::from_seconds(span->value());
  }
  if (Status status = check_trace_shape(shape); !status) {
    return wrong("generate", status.error().message + " (--jobs or --span, --load)");
  }
  trace_ = generate_trace(shape, seed_);
  return {};
}

// What was left out of a trace, and whether its times run backwards.
void SimulateRequest::note_rows(const std::string& path, const TraceOptions& options) {
  if (!trace_.skipped.empty()) {
    notes_.push_back(fmt::format(
        "{} of the trace could not be read and {} skipped; the first: {}: {}",
        counted(trace_.skipped.size(), "row"), trace_.skipped.size() == 1 ? "was" : "were",
        trace_.skipped.front().where.text(), trace_.skipped.front().reason));
  } else if (options.bad_rows == TraceOptions::BadRows::kSkip) {
    notes_.push_back("all rows of the trace could be read");
  }
  for (const std::string& assumed : trace_.notes) notes_.push_back("trace: " + assumed);
  for (const LeftOutRows& rows : trace_.left_out) {
    notes_.push_back(fmt::format("{} of the trace {} {} left out; the first is line {}",
                                 counted(rows.rows, "row"), rows.reason,
                                 rows.rows == 1 ? "was" : "were", rows.first_line));
  }
  const auto earlier = std::is_sorted_until(
      trace_.jobs.begin(), trace_.jobs.end(),
      [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
  if (earlier == trace_.jobs.end()) return;
  notes_.push_back(
      fmt::format("{}: line {} has an earlier submit time than the line before it; jobs are "
                  "simulated in the order of their submit times",
                  path, earlier->line));
}

Status SimulateRequest::load_trace_file(const SimulateOptions& asked) {
  if (asked.trace.empty() == asked.generate.empty()) {
    return input_error({}, "expected either --trace FILE or --generate STYLE");
  }
  if (!asked.generate.empty()) {
    if (Status made = make_trace(asked); !made) return made;
    if (asked.map == SimulateOptions::Flag::kYes) map_trace(trace_, {}, seed_);
    return {};
  }
  TraceOptions options;
  std::string path = asked.trace;
  std::string format = asked.format;
  const std::size_t colon = path.rfind(':');
  if (format.empty() && colon != std::string::npos && trace_format(path.substr(colon + 1))) {
    format = path.substr(colon + 1);
    path.resize(colon);
  }
  if (!format.empty()) {
    Result<TraceFormat> known = trace_format(format);
    if (!known) return wrong("format", known.error().message);
    options.format = *known;
  }
  for (const std::string& where : asked.rows) {
    const std::size_t equals = where.find('=');
    if (equals == std::string::npos) {
      return wrong("where", fmt::format("\"{}\": expected column=value", where));
    }
    options.where.push_back({where.substr(0, equals), where.substr(equals + 1)});
  }
  for (const auto& [name, text, target] :
       {std::tuple{"from", &asked.from, &options.from}, std::tuple{"to", &asked.to, &options.to}}) {
    if (text->empty()) continue;
    Result<Instant> at = parse_trace_time(*text);
    if (!at) return wrong(name, at.error().message);
    *target = *at;
  }
  if (asked.bad_rows == SimulateOptions::Flag::kYes) {
    options.bad_rows = TraceOptions::BadRows::kSkip;
  }
  const auto text = asked.files.texts.find(path);
  path = asked.files.path(path);
  Result<Trace> trace = text == asked.files.texts.end()
                            ? load_trace(path, options)
                            : read_trace(text->second, text->first, options);
  if (!trace) return forward_error(trace);
  trace_ = *std::move(trace);
  note_rows(path, options);
  if (asked.map == SimulateOptions::Flag::kYes) map_trace(trace_, {}, seed_);
  if (!rules_.all_at_start && !trace_.jobs.empty()) {
    begin_ = options.from.value_or(trace_.first_submit());
  }
  return load_throughputs(asked, path);
}

// Those of Gavel lie beside its traces.
Status SimulateRequest::load_throughputs(const SimulateOptions& asked, const std::string& trace) {
  std::string throughputs = asked.files.path(asked.throughputs);
  if (throughputs.empty() && rules_.name == "gavel") {
    for (const char* name : {"simulation_throughputs.json", "simulation_throughputs.json.gz"}) {
      const std::filesystem::path beside = std::filesystem::path(trace).parent_path() / name;
      std::error_code error;
      if (std::filesystem::exists(beside, error)) throughputs = beside.string();
    }
  }
  if (throughputs.empty()) return {};
  Result<GavelThroughputs> rates = GavelThroughputs::load(throughputs);
  if (!rates) return forward_error(rates);
  throughputs_ = *std::move(rates);
  return {};
}

// A file has the name that it gives, unless that is taken: built-in policies keep theirs.
Status SimulateRequest::load_policies(const SimulateOptions& asked) {
  const auto taken = [&](const std::string& name) {
    return policy_named(name).has_value() ||
           std::any_of(policies_.begin(), policies_.end(),
                       [&](const NamedRun& run) { return run.label == name; });
  };
  for (const std::string& text : policy_texts(asked.policies)) {
    if (!is_file_name(text)) {
      Result<Policy> policy = policy_under(rules_, text, asked.policy_version);
      if (!policy) return wrong("policy", policy.error().message);
      policies_.push_back({text, *std::move(policy), text});
      continue;
    }
    Result<Document> document = files_.keep(text);
    if (!document) return forward_error(document);
    Result<Policy> policy = asked.policy_version == 0
                                ? asked_policy(*document)
                                : read_policy(*document, asked.policy_version);
    if (!policy) return forward_error(policy);
    const std::string label = taken(policy->name) ? text : policy->name;
    policies_.push_back({label, *std::move(policy), text});
  }
  for (const NamedRun& run : policies_) {
    const bool asks_for_times = run.policy.order == QueueOrder::kFinishTime ||
                                run.policy.order == QueueOrder::kDeadlineShares;
    if (!asks_for_times || information_ != Information::kBlind) continue;
    return wrong("policy", fmt::format("{} orders jobs by their end times, which are unknown with "
                                       "--information blind: expected oracle or estimate",
                                       run.label));
  }
  name_files(asked);
  return {};
}

// Labels that differ may have one file name; the later ones get a number.
void SimulateRequest::name_files(const SimulateOptions& asked) {
  std::set<std::string> taken;
  for (NamedRun& run : policies_) {
    const std::string usual = file_name_of(run.label);
    run.file_name = usual;
    for (int n = 2; !taken.insert(run.file_name).second; ++n) {
      run.file_name = fmt::format("{}-{}", usual, n);
    }
    if (run.file_name == usual || (asked.out.empty() && asked.record.empty())) continue;
    notes_.push_back(fmt::format("the files of {} are named {}: {} is the name for another policy",
                                 run.label, run.file_name, usual));
  }
}

// "1 day..8 days", "2017-10-02..2017-10-09"; an end that is left out is that of the simulation.
Status SimulateRequest::load_measure(const std::string& window) {
  if (window.empty()) return {};
  const std::size_t dots = window.find("..");
  if (dots == std::string::npos) {
    return wrong("measure", fmt::format("\"{}\": expected FROM..TO", window));
  }
  MeasureWindow measure{begin_, Instant::max()};
  const std::string from = window.substr(0, dots);
  const std::string to = window.substr(dots + 2);
  if (!from.empty()) {
    Result<Instant> at = mark_of(from, begin_);
    if (!at) return forward_error(at);
    measure.from = *at;
  }
  if (!to.empty()) {
    Result<Instant> at = mark_of(to, begin_);
    if (!at) return forward_error(at);
    measure.to = *at;
  }
  const bool any = std::any_of(jobs_.jobs.begin(), jobs_.jobs.end(), [&](const PlayedJob& job) {
    return job.submit >= measure.from && job.submit <= measure.to;
  });
  if (!any) return wrong("measure", fmt::format("no job is submitted in {}", window));
  measure_ = measure;
  return {};
}

// Hours of a trace with dates are those of the series, or the same of another of its periods.
template <class Value>
Result<StepSeries<Value>> SimulateRequest::played(const CsvSeries<Value>& series,
                                                  std::string_view option) {
  const Instant first = series.steps.front().from;
  if (!dated()) {
    notes_.push_back(
        fmt::format("--{}: the trace has no dates; the series starts at its first row, {}", option,
                    first.text()));
  } else if (begin_ < first || begin_ >= first + series.period) {
    notes_.push_back(
        fmt::format("--{}: the series starts at {} and does not cover {}; it repeats every {}",
                    option, first.text(), begin_.text(), series.period.text()));
  }
  constexpr Duration kCentury = Duration::hours(24) * 36'525;
  const std::size_t periods = std::max<std::size_t>((kSeriesStepsMax - 1) / series.steps.size(), 1);
  Duration length = std::min(series.period * static_cast<std::int64_t>(periods), kCentury);
  if (until_ != Instant::max()) {
    length = std::max(until_ - begin_, Duration::seconds(1));
  } else if (length < kCentury) {
    notes_.push_back(
        fmt::format("--{}: the series is too dense and is used for {} only; after that its last "
                    "row applies (--until ends the run earlier)",
                    option, length.text()));
  }
  return repeated(series, {.from = dated() ? begin_ : first, .at = begin_, .length = length});
}

Status SimulateRequest::load_series(const SimulateOptions& asked) {
  if (!asked.prices.empty()) {
    Result<std::string> text = read_maybe_gzip(asked.files.path(asked.prices));
    if (!text) return forward_error(text);
    const auto series = read_price_series(*text, asked.prices);
    if (!series) return tl::unexpected(series.error());
    auto steps = played(*series, "prices");
    if (!steps) return forward_error(steps);
    electricity_ = *std::move(steps);
  }
  if (!asked.carbon.empty()) {
    Result<std::string> text = read_maybe_gzip(asked.files.path(asked.carbon));
    if (!text) return forward_error(text);
    const auto series = read_carbon_series(*text, asked.carbon);
    if (!series) return tl::unexpected(series.error());
    auto steps = played(*series, "carbon");
    if (!steps) return forward_error(steps);
    carbon_ = *std::move(steps);
  }
  return {};
}

Status SimulateRequest::check_prices(const SimulateOptions& asked) const {
  const Topology& fleet = cluster_->topology();
  bool owned = asked.prices.empty();
  for (std::uint32_t i = 0; i < fleet.node_count() && !owned; ++i) {
    owned = fleet.group(NodeId(i)).ownership == NodeOwnership::kOwned;
  }
  if (owned) return {};
  return wrong(
      "prices",
      fmt::format("{}: no node is owned, and the rent includes electricity; {}", asked.prices,
                  asked.fleet.empty()
                      ? "--price owned makes the nodes owned"
                      : "`ownership: owned` of a site or of the nodes of a rack makes them owned"));
}

// Rates of --throughputs hold for the types of their names; what it has no rate of goes by --map.
void SimulateRequest::set_speeds(const SimulateOptions& asked, TraceJobOptions& options) {
  const Topology& fleet = cluster_->topology();
  const std::string first = asked.accelerators.substr(0, asked.accelerators.find(':'));
  options.reference = fleet.find_type(first).value_or(FleetTypeId(0));
  if (asked.map == SimulateOptions::Flag::kYes) {
    const Accelerator& recorded = fleet.accelerator(options.reference);
    options.speed = [&fleet, &recorded](std::string_view model, FleetTypeId type) {
      return type_speed(model_class(model), fleet.accelerator(type), recorded);
    };
    if (fleet.type_count() > 1) {
      notes_.push_back(
          fmt::format("run times are assumed to be those on {}; the speed of other types for a "
                      "model is an assumption of the mapping{}",
                      recorded.id, throughputs_ ? ", except where --throughputs has a rate" : ""));
    }
  }
  if (!throughputs_) return;
  std::vector<std::string> names(fleet.type_count());
  for (std::string& name : throughputs_->accelerators()) {
    if (const auto type = fleet.find_type(name)) names[type->value()] = std::move(name);
  }
  options.throughput = [this, names](FleetTypeId type, const TraceJob& job) {
    return throughputs_->steps_per_second(names[type.value()], {job.model, job.accelerators});
  };
}

Status SimulateRequest::make_jobs(const SimulateOptions& asked) {
  TraceJobOptions options;
  options.rules = rules_;
  options.information = information_;
  options.seed = seed_;
  options.plans = [this](const PlanKey& key) { return cluster_->plan(key); };
  Duration warm_restart = Duration::max();
  for (const auto& [name, text, target] :
       {std::tuple{"restart", &asked.restart, &options.restart},
        std::tuple{"warm-restart", &asked.warm_restart, &warm_restart},
        std::tuple{"fencing", &asked.fencing, &timing_.fencing},
        std::tuple{"checkpoint-cost", &asked.checkpoint_cost, &options.checkpoint_cost},
        std::tuple{"checkpoint-interval", &asked.checkpoint_interval,
                   &options.checkpoint_interval}}) {
    if (text->empty()) continue;
    Result<Seconds> time = quantity_option<Seconds>(name, *text);
    if (!time) return forward_error(time);
    *target = Duration::from_seconds(time->value());
  }
  if (warm_restart != Duration::max()) timing_.warm_restart = warm_restart;
  if (!asked.checkpoint_interval.empty()) options.interval = CheckpointInterval::kGiven;
  Result<RestartPolicy> policy = word_option<RestartPolicy>("restart-policy", asked.restart_policy);
  if (!policy) return forward_error(policy);
  options.restart_policy = *policy;
  set_speeds(asked, options);
  Result<TraceJobs> jobs =
      trace_jobs(trace_, cluster_->resolve_context(begin_), cluster_->classes(), options);
  if (!jobs) return forward_error(jobs);
  jobs_ = *std::move(jobs);
  note_jobs();
  return {};
}

void SimulateRequest::note_jobs() {
  if (!jobs_.oversized.empty()) {
    notes_.push_back(fmt::format("{} can never run on this fleet; the first: {} ({})",
                                 counted(jobs_.oversized.size(), "job"),
                                 jobs_.oversized.front().name, jobs_.oversized.front().why));
  }
  if (jobs_.fewer_types > 0) {
    notes_.push_back(
        fmt::format("jobs without a rate for every type of this fleet, which run only on the types "
                    "with a rate: {}; the first: {}",
                    jobs_.fewer_types, jobs_.first_of_fewer));
  }
  if (jobs_.cpu_jobs > 0) {
    notes_.push_back(
        fmt::format("{} without accelerators: not simulated", counted(jobs_.cpu_jobs, "job")));
  }
}

Result<std::unique_ptr<SimulateRequest>> SimulateRequest::load(const CommandOptions& options,
                                                               const SimulateOptions& asked) {
  auto request = std::make_unique<SimulateRequest>();
  SimulateRequest& r = *request;
  r.seed_ = asked.seed;
  r.spares_ = asked.spares;
  r.files_ = asked.files;
  Result<ReplayRules> rules = replay_rules(asked.rules);
  if (!rules) return wrong("rules", rules.error().message);
  r.rules_ = *std::move(rules);
  Result<Information> information = word_option<Information>("information", asked.information);
  if (!information) return forward_error(information);
  r.information_ = *information;
  if (Status status = r.load_facts(options, asked); !status) return forward_error(status);
  if (Status status = r.load_policies(asked); !status) return forward_error(status);
  if (Status status = r.load_failures(asked.failures); !status) return forward_error(status);
  if (Status status = r.load_cluster(asked); !status) return forward_error(status);
  if (Status status = r.load_trace_file(asked); !status) return forward_error(status);
  if (!asked.until.empty()) {
    Result<Instant> until = parse_trace_time(asked.until);
    if (!until) return wrong("until", until.error().message);
    r.until_ = *until;
  }
  if (Status status = r.load_series(asked); !status) return forward_error(status);
  if (Status status = r.load_arrivals(asked.arrivals); !status) return forward_error(status);
  if (Status status = r.load_events(asked.events); !status) return forward_error(status);
  if (Status status = r.make_jobs(asked); !status) return forward_error(status);
  if (Status status = r.load_measure(asked.measure); !status) return forward_error(status);
  return request;
}

PolicyRunInputs SimulateRequest::inputs(const NamedRun& run) {
  PolicyRunInputs in{.cluster = *cluster_,
                     .jobs = jobs_,
                     .label = run.label,
                     .policy = run.policy,
                     .rules = rules_};
  in.information = information_;
  in.timing = timing_;
  in.failures = failures_;
  in.seed = seed_;
  in.begin = begin_;
  in.until = until_;
  in.measure = measure_;
  in.spares = spares_;
  in.arrivals = arrivals_;
  in.commands = planned_.commands;
  in.faults = planned_.faults;
  in.electricity = electricity_ ? &*electricity_ : nullptr;
  in.carbon = carbon_ ? &*carbon_ : nullptr;
  return in;
}

Result<JobId> SimulateRequest::find(const std::string& name) const {
  std::vector<std::string_view> names;
  names.reserve(jobs_.jobs.size());
  for (std::size_t i = 0; i < jobs_.jobs.size(); ++i) {
    names.emplace_back(jobs_.jobs[i].submission.request.name);
    if (names.back() == name) return JobId::at(i);
  }
  return input_error({},
                     fmt::format("--explain: no job \"{}\"{}", name, did_you_mean(name, names)));
}

}  // namespace orrery
