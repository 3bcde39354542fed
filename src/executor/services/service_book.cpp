#include "executor/services/service_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "control/services/service_updates.hpp"
#include "executor/services/report_sums.hpp"
#include "executor/services/routed_duty.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

constexpr double kMillion = 1e6;
/// Shares of requests are kept in parts of this.
constexpr double kWholeShare = 10'000;

bool takes_requests(const Job& job) {
  const ReplicaState* replica = replica_of(job);
  return job.phase == JobPhase::kRunning && replica != nullptr &&
         replica->report.phase == ReplicaPhase::kReady;
}

/// Returns what a spec says of its service; a spec of rehearsals says nothing.
ServiceSpec service_in(const std::string& text) {
  const Result<Document> document = Document::parse(text, "the job's spec");
  if (!document) return {};
  Result<JobSpec> spec = read_job_spec(*document);
  return spec ? std::move(spec->service) : ServiceSpec();
}

std::string state_word(const Job& job) {
  switch (job.phase) {
    case JobPhase::kHeld:
      return job.hold == JobHold::kResting ? "resting" : "requested";
    case JobPhase::kQueued:
      return "requested";
    case JobPhase::kStarting:
    case JobPhase::kRunning:
      if (const ReplicaState* replica = replica_of(job)) {
        return std::string(word_of(replica->report.phase));
      }
      return "placed";
    case JobPhase::kStopping:
      return "draining";
    case JobPhase::kFailed:
      return "failed";
    case JobPhase::kFinished:
    case JobPhase::kCancelled:
      break;
  }
  return "gone";
}

std::vector<RoutedTenant> routed(const std::vector<ServiceTenantSpec>& tenants) {
  std::vector<RoutedTenant> made;
  for (const ServiceTenantSpec& each : tenants) {
    made.push_back({each.name, each.weight, each.priority, each.tokens_per_s.value_or(0)});
  }
  return made;
}

/// Whether a table has limits, which its gateways share.
bool has_limits(const RouteTable& table) {
  return std::ranges::any_of(table.services, [](const RoutedService& service) {
    return std::ranges::any_of(service.tenants,
                               [](const RoutedTenant& each) { return each.tokens_per_s > 0; });
  });
}

const ServiceReport* report_on(const GatewayReport& gateway, std::uint64_t service) {
  const auto at = std::ranges::find(gateway.services, service, &ServiceReport::service);
  return at == gateway.services.end() ? nullptr : &*at;
}

/// Requests that a gateway was given within the limits of their tenants, but for those that
/// replicas have. What it refused as replicas were full is asked for, too.
std::uint64_t came_to(const ServiceReport& report) {
  const ServiceCounts& counts = report.counts;
  return counts.completed + counts.cancelled + counts.failed + counts.shed - counts.over_limit +
         report.waiting;
}

std::uint64_t tokens_of(const ServiceReport* report) {
  return report == nullptr ? 0 : report->counts.prompt_tokens + report->counts.output_tokens;
}

}  // namespace

bool is_replica(const Job& job) {
  if (job.submission != nullptr) return job.submission->request.kind == JobKind::kServe;
  return job.terms && job.terms->kind == JobKind::kServe;
}

std::string service_name(std::string_view job_name) {
  return std::string(job_name.substr(0, job_name.rfind('[')));
}

std::uint64_t ServiceBook::service_of(const Job& job) const {
  const ReplicaMembership* member = state_.services().membership(job.id);
  return member == nullptr ? job.id.value() : member->service.value();
}

bool ServiceBook::concerns(const Event& event) {
  return std::visit(
      [](const auto& what) {
        using What = std::decay_t<decltype(what)>;
        return std::is_same_v<What, ReplicaChanged> || std::is_same_v<What, JobStopping> ||
               std::is_same_v<What, JobRunning> || std::is_same_v<What, JobStarted> ||
               std::is_same_v<What, JobEnded> || std::is_same_v<What, JobSubmitted> ||
               std::is_same_v<What, TenantsSet> || std::is_same_v<What, ServiceUpdated> ||
               std::is_same_v<What, ServiceUpdating>;
      },
      event);
}

const std::string& ServiceBook::model_of(std::uint64_t service, const std::string& name,
                                         const std::string& spec) {
  std::string& model = accounts_[service].model;
  if (model.empty()) {
    const ServiceSpec service_spec = service_in(spec);
    model = service_spec.revisions.empty() ? name : service_spec.revisions.front().model;
  }
  return model;
}

const ServiceBook::KnownRevision& ServiceBook::revision(std::uint64_t service, std::uint32_t number,
                                                        const std::string& spec) {
  KnownRevision& known = accounts_[service].revisions[number];
  if (known.id.empty() || known.spec != spec) {
    known.spec = spec;
    const ServiceSpec said = service_in(spec);
    known.id = said.revisions.empty() ? fmt::format("{}", number) : said.revisions.front().id;
    known.slo = said.slo;
    known.tenants = said.tenants;
    known.quality = said.quality;
    known.scaling = said.scaling;
    known.transfer = said.transfer;
  }
  return known;
}

void ServiceBook::add_tiers(std::map<std::uint64_t, RoutedService>& services) {
  for (auto& [id, service] : services) {
    const ServiceRevision& present = state_.services().find(JobId::at(id))->revision;
    const QualitySpec& quality = revision(id, present.number, present.texts.spec).quality;
    if (quality.small.empty()) continue;
    const auto small = std::ranges::find_if(services, [&](const auto& each) {
      return each.second.name == quality.small && each.second.tenant == service.tenant;
    });
    if (small == services.end() || small->first == id) continue;
    service.tiers =
        RoutedTiers{.small = small->first,
                    .loss_max = quality.max_loss,
                    .confidence = quality.confidence,
                    .audit_rate = quality.audit_rate,
                    .measure = quality.measure == QualityMeasure::kJudge ? TierMeasure::kJudge
                                                                         : TierMeasure::kExact};
  }
}

RoutedService ServiceBook::routed_service(const Service& known) {
  const JobRequest& request = known.revision.replica->request;
  RoutedService service{.id = known.id.value(), .name = service_name(request.name)};
  service.model = model_of(service.id, service.name, known.revision.texts.spec);
  service.tenant = state_.tenants().path(request.tenant);
  const KnownRevision& said =
      revision(service.id, known.revision.number, known.revision.texts.spec);
  service.tenants = routed(said.tenants);
  if (said.slo.batch_deadline) service.batch_deadline_s = said.slo.batch_deadline->value();
  if (said.slo.ttft.p99) service.ttft_p99_s = said.slo.ttft.p99->value();
  if (said.slo.tpot.p99) service.tpot_p99_s = said.slo.tpot.p99->value();
  for (const JobId replica : known.live) {
    const Job& job = state_.job(replica);
    if (!takes_requests(job)) continue;
    const ReplicaReport& report = replica_of(job)->report;
    const RoutedDuty part = routed_duty(said.transfer, job.submission->request.roles.front().name);
    service.replicas.push_back({.job = replica.value(),
                                .attempt = job.attempt,
                                .endpoint = report.endpoint,
                                .slots = report.slots,
                                .revision = state_.services().membership(replica)->revision,
                                .pace = report.pace,
                                .usd_s = known_dollars_s(job),
                                .kv_tokens = report.kv_tokens,
                                .kv_events = report.kv_events,
                                .duty = part.duty,
                                .transfer = part.transfer});
  }
  if (said.scaling && said.scaling->min == 0) {
    // Twice the time, in whole parts of it, so that the table does not change with each start.
    constexpr std::int64_t kPartS = 10;
    const std::int64_t part = Duration::seconds(kPartS).count_ns();
    const std::int64_t parts = ((cold_start(service.id) * 2).count_ns() + part - 1) / part;
    service.wakes_in_s = static_cast<double>(kPartS * (parts + 1));
  }
  if (const std::optional<TrafficSplit> split = state_.services().split(known)) {
    service.canary = RoutedCanary{split->revision, split->share / kWholeShare};
  }
  return service;
}

const RouteTable& ServiceBook::table() {
  std::map<std::uint64_t, RoutedService> services;
  for (const auto& [number, known] : state_.services().all()) {
    services.emplace(number.value(), routed_service(known));
  }
  std::erase_if(accounts_, [&](const auto& each) {
    const bool over = !services.contains(each.first);
    if (over) scales_.forget(JobId::at(each.first));
    return over;
  });
  add_tiers(services);
  std::erase_if(dollars_s_, [&](const auto& each) { return !state_.has(each.first); });
  // The first of a tenant's services with one model that has a replica has the requests.
  std::map<std::pair<std::string, std::string>, RoutedService> by_model;
  for (auto& [id, service] : services) {
    const auto [at, fresh] = by_model.try_emplace({service.tenant, service.model}, service);
    if (!fresh && at->second.replicas.empty() && !service.replicas.empty()) at->second = service;
  }
  forget_silent();
  RouteTable next{.epoch = table_.epoch, .services = {}, .keys = keys_};
  for (auto& [key, service] : by_model) next.services.push_back(std::move(service));
  std::ranges::sort(next.services, {}, &RoutedService::id);
  next.peers = peers();
  // Without limits and peers, a gateway that comes or goes is no change.
  if (has_limits(next)) {
    next.gateways = static_cast<std::uint32_t>(std::max<std::size_t>(gateways_.size(), 1));
  }
  if (next == table_ && table_.epoch != 0) return table_;
  const auto milliseconds =
      static_cast<std::uint64_t>((clock_.wall() - Instant()).count_ns() / 1'000'000);
  next.epoch = std::max(table_.epoch + 1, milliseconds);
  return table_ = std::move(next);
}

void ServiceBook::add_tokens(const GatewayReport& before, const GatewayReport& now) {
  for (const ServiceReport& report : now.services) {
    if (replicas_of(report.service).empty()) continue;
    const double dollars = dollars_of(report.service);
    Account& account = accounts_[report.service];
    if (!account.dollars) {
      account.dollars = dollars;
      continue;  // what came before is in neither sum
    }
    const std::uint64_t earlier = tokens_of(report_on(before, report.service));
    const std::uint64_t later = tokens_of(&report);
    account.tokens += later < earlier ? later : later - earlier;  // it was started anew
  }
}

std::uint32_t ServiceBook::running(const GatewayReport& report, std::uint64_t service) const {
  std::uint32_t sum = 0;
  for (const ReplicaLoad& load : report.replicas) {
    const ReplicaMembership* member = state_.services().membership(JobId::at(load.job));
    if (member != nullptr && member->service.value() == service) sum += load.in_flight;
  }
  return sum;
}

void ServiceBook::add_flow(const GatewayReport& before, const GatewayReport& now) {
  for (const ServiceReport& later : now.services) {
    const ServiceReport* const earlier = report_on(before, later.service);
    // Counters that fall are those of a gateway that was started anew.
    const bool goes_on = earlier != nullptr && earlier->counts.completed <= later.counts.completed;
    ServiceFlow& flow = accounts_[later.service].flow;
    const auto with_running = [&](const GatewayReport& report, const ServiceReport& of) {
      return static_cast<std::int64_t>(came_to(of) + running(report, later.service));
    };
    flow.requests += with_running(now, later) - (goes_on ? with_running(before, *earlier) : 0);
    const ServiceCounts counted = goes_on ? earlier->counts : ServiceCounts();
    flow.prompt_tokens += later.counts.prompt_tokens - counted.prompt_tokens;
    flow.output_tokens += later.counts.output_tokens - counted.output_tokens;
    flow.answered += later.counts.timed - counted.timed;
    flow.late += later.counts.late - counted.late;
  }
}

Status ServiceBook::take(GatewayReport report) {
  if (const auto known = gateways_.find(report.gateway); known != gateways_.end()) {
    const auto& [before, heard] = known->second;
    const bool other = before.process != report.process && before.process != 0;
    if (other && clock_.now() < heard + kSameName) {
      return infeasible(fmt::format(
          "another gateway with the name \"{}\" reports, at {}: start this one with another "
          "--name",
          report.gateway, before.url));
    }
  }
  const auto [at, added] = gateways_.try_emplace(report.gateway);
  Gateway& gateway = at->second;
  add_tokens(gateway.report, report);
  // What came before the first report of a gateway is not of the time since then.
  if (!added) add_flow(gateway.report, report);
  gateway = {std::move(report), clock_.now()};
  forget_silent();
  return {};
}

std::optional<RoutedPeers> ServiceBook::peers() const {
  RoutedPeers peers{.key = peer_key_, .gateways = {}};
  for (const auto& [name, gateway] : gateways_) {
    const std::string& address = gateway.report.peer_address;
    if (!address.empty()) peers.gateways.push_back({name, address});
  }
  if (peers.gateways.size() < 2) return std::nullopt;
  return peers;
}

std::optional<std::uint64_t> ServiceBook::routed_by_all(Duration age) const {
  std::optional<std::uint64_t> oldest;
  for (const auto& [name, gateway] : gateways_) {
    if (gateway.heard + age < clock_.now()) continue;
    oldest = std::min(oldest.value_or(gateway.report.epoch), gateway.report.epoch);
  }
  return oldest;
}

void ServiceBook::forget_silent() {
  std::erase_if(gateways_, [&](const auto& each) {
    return each.second.heard + kGatewaySilent < clock_.now();
  });
}

std::vector<JobId> ServiceBook::replicas_of(std::uint64_t service) const {
  const JobId first = JobId::at(service);
  std::vector<JobId> jobs = state_.services().replicas(first);
  if (jobs.empty() && state_.has(first)) jobs.push_back(first);
  return jobs;
}

// A replica is archived long after it has ended, so what it had spent when last asked for is all.
double ServiceBook::dollars_of(std::uint64_t service) {
  Account& account = accounts_[service];
  for (const JobId job : replicas_of(service)) {
    account.spent[job] = state_.usage_of(job, clock_.now()).dollars;
  }
  double sum = 0;
  for (auto at = account.spent.begin(); at != account.spent.end();) {
    const bool kept = state_.has(at->first);
    (kept ? sum : account.archived) += at->second;
    at = kept ? std::next(at) : account.spent.erase(at);
  }
  return sum + account.archived;
}

double ServiceBook::mean_dollars_s(const Job& replica) const {
  const double held = (clock_.now() - replica.first_start).count_seconds();
  return held > 0 ? state_.usage_of(replica.id, clock_.now()).dollars / held : 0;
}

double ServiceBook::known_dollars_s(const Job& replica) {
  constexpr double kChange = 0.1;
  const double now = mean_dollars_s(replica);
  double& known = dollars_s_[replica.id];
  if (std::abs(now - known) > kChange * known) known = now;
  return known;
}

bool ServiceBook::is_shown(const Job& replica) const {
  constexpr Duration kFailedShown = Duration::hours(24);
  if (!ended(replica.phase)) return true;
  return replica.phase == JobPhase::kFailed && replica.end + kFailedShown > clock_.now();
}

const std::string& ServiceBook::revision_id(const Job& replica, const ReplicaMembership& member) {
  const auto& known = accounts_[member.service.value()].revisions;
  const auto found = known.find(member.revision);
  if (found != known.end()) return found->second.id;
  return revision(member.service.value(), member.revision, replica.spec).id;
}

ReplicaView ServiceBook::replica_view(const Job& job) {
  ReplicaView view;
  view.job = job.id;
  view.attempt = job.attempt;
  view.state = state_word(job);
  if (const ReplicaMembership* member = state_.services().membership(job.id)) {
    view.revision = revision_id(job, *member);
  }
  if (holds_devices(job.phase) && !job.placed.empty() && !job.placed[0].empty()) {
    view.node = job.placed[0][0].node;
  }
  if (const ReplicaState* replica = replica_of(job)) {
    view.report = replica->report;
    const Instant ready = replica->reached[static_cast<std::size_t>(ReplicaPhase::kReady)];
    if (ready < Instant::max()) {
      view.starts = ready - job.attempts.back().started;
    }
  }
  for (const auto& [name, gateway] : gateways_) {
    for (const ReplicaLoad& load : gateway.report.replicas) {
      if (load.job == job.id.value() && load.attempt == job.attempt) {
        view.in_flight += load.in_flight;
      }
    }
  }
  return view;
}

void ServiceBook::add_update(ServiceSummary& summary) {
  const Service* service = state_.services().find(JobId::at(summary.id));
  if (service == nullptr) return;
  const auto known = [&](const ServiceRevision& of) -> const KnownRevision& {
    return revision(summary.id, of.number, of.texts.spec);
  };
  summary.revision = known(service->revision).id;
  summary.aims.slo = known(service->revision).slo;
  summary.aims.quality = known(service->revision).quality;
  summary.aims.small_missing = std::ranges::none_of(state_.services().all(), [&](const auto& each) {
    const JobRequest& other = each.second.revision.replica->request;
    return each.first != service->id && other.tenant == service->revision.replica->request.tenant &&
           service_name(other.name) == summary.aims.quality.small;
  });
  summary.outcome = service->outcome;
  if (const std::optional<ScalingSpec>& scaling = known(service->revision).scaling) {
    const ServiceScaling* const last = state_.services().scaling(service->id);
    summary.aims.scaling = ScalingView{.min = scaling->min,
                                       .max = scaling->max,
                                       .replicas = wanted_replicas(state_, *service),
                                       .why = scales_.why(service->id),
                                       .last = last ? std::optional(*last) : std::nullopt};
  }
  if (!service->update) return;
  const ServiceUpdate& update = *service->update;
  UpdateView& view = summary.update.emplace();
  view = {known(update.to).id, update.replicas, 0, update.back, std::nullopt};
  if (is_canary(update)) {
    const std::vector<std::uint32_t>& shares = update.terms.canary;
    view.canary = {.stage = update.stage,
                   .stages = static_cast<std::uint32_t>(shares.size()),
                   .share = shares[update.stage] / kWholeShare,
                   .requests = canary_counts(*service).canary.requests,
                   .waits_for = canaries_.waits_for(service->id)};
  }
  for (const JobId replica : service->live) {
    const bool wanted = state_.services().membership(replica)->revision == update.to.number;
    if (wanted && takes_requests(state_.job(replica))) ++view.ready;
  }
}

CanaryReport ServiceBook::canary_counts(const Service& service) const {
  CanaryReport sum{.revision = service.update->to.number, .canary = {}, .others = {}};
  for (const auto& [name, gateway] : gateways_) {
    const ServiceReport* report = report_on(gateway.report, service.id.value());
    if (report == nullptr || !report->canary || report->canary->revision != sum.revision) continue;
    add(sum.canary, report->canary->canary);
    add(sum.others, report->canary->others);
  }
  return sum;
}

std::vector<CanaryVerdict> ServiceBook::judge_canaries() {
  std::vector<CanaryVerdict> verdicts;
  for (const JobId id : state_.services().updating()) {
    const Service& service = *state_.services().find(id);
    const ServiceUpdate& update = *service.update;
    if (!is_canary(update)) {
      canaries_.forget(id);
      continue;
    }
    SeenCanary seen{.service = service,
                    .counts = canary_counts(service),
                    .slo = revision(id.value(), update.to.number, update.to.texts.spec).slo};
    for (const JobId replica : service.live) {
      const bool fresh = state_.services().membership(replica)->revision == update.to.number;
      seen.ready += fresh && takes_requests(state_.job(replica)) ? 1 : 0;
    }
    if (auto verdict = canaries_.judge(seen, clock_.now())) {
      verdicts.push_back(*std::move(verdict));
    }
  }
  return verdicts;
}

Duration ServiceBook::cold_start(std::uint64_t service) const {
  constexpr auto kReady = static_cast<std::size_t>(ReplicaPhase::kReady);
  constexpr Duration kUnknown = Duration::seconds(60);
  constexpr double kShare = 0.9;
  std::vector<Duration> starts;
  for (const JobId job : replicas_of(service)) {
    for (const Attempt& attempt : state_.job(job).attempts) {
      if (!attempt.replica || attempt.replica->reached[kReady] == Instant::max()) continue;
      starts.push_back(attempt.replica->reached[kReady] - attempt.started);
    }
  }
  if (starts.empty()) return kUnknown;
  std::ranges::sort(starts);
  const auto rank = static_cast<std::size_t>(kShare * static_cast<double>(starts.size()));
  return starts[std::min(rank, starts.size() - 1)];
}

SeenScaling ServiceBook::seen_scaling(const Service& service, const KnownRevision& known) {
  const std::uint64_t id = service.id.value();
  SeenScaling seen{.service = service,
                   .terms = *known.scaling,
                   .slo = known.slo,
                   .last = state_.services().scaling(service.id),
                   .wanted = wanted_replicas(state_, service),
                   .flow = accounts_[id].flow,
                   .cold_start = cold_start(id)};
  for (const JobId replica : service.live) {
    const Job& job = state_.job(replica);
    if (takes_requests(job)) seen.ready.push_back(replica_of(job)->report);
  }
  for (const auto& [name, gateway] : gateways_) {
    if (const ServiceReport* report = report_on(gateway.report, id)) add(seen.measured, *report);
    seen.running += running(gateway.report, id);
  }
  return seen;
}

std::vector<ScaleOrder> ServiceBook::scale_orders() {
  std::vector<ScaleOrder> orders;
  constexpr Duration kOverdue = Duration::seconds(4);
  const bool overdue = std::ranges::any_of(
      gateways_, [&](const auto& each) { return each.second.heard + kOverdue < clock_.now(); });
  for (const auto& [id, service] : state_.services().all()) {
    const ServiceRevision& runs = service.revision;
    const KnownRevision& known = revision(id.value(), runs.number, runs.texts.spec);
    if (!known.scaling) {
      scales_.forget(id);
      continue;
    }
    const SeenScaling seen = seen_scaling(service, known);
    auto order = scales_.judge(seen, clock_.now());
    // The requests of a gateway that is not heard for a while may go on.
    if (order && !(overdue && order->replicas < seen.wanted)) orders.push_back(*std::move(order));
  }
  return orders;
}

ServiceSummary ServiceBook::summary(JobId one) {
  forget_silent();
  const Job& job = state_.job(one);
  ServiceSummary summary;
  summary.id = service_of(job);
  summary.name = service_name(job.name);
  summary.model = model_of(summary.id, summary.name, job.spec);
  add_update(summary);
  const std::vector<JobId> jobs = replicas_of(summary.id);
  const bool over = state_.services().find(JobId::at(summary.id)) == nullptr;
  std::vector<ReplicaReport> ready;
  double dollars_s = 0;
  for (const JobId id : jobs) {
    const Job& each = state_.job(id);
    if (over || is_shown(each)) summary.replicas.push_back(replica_view(each));
    if (!takes_requests(each)) continue;
    ready.push_back(replica_of(each)->report);
    dollars_s += mean_dollars_s(each);
  }
  summary.measured.service = summary.id;
  for (const auto& [name, gateway] : gateways_) {
    if (!gateway.report.url.empty()) summary.urls.push_back(gateway.report.url);
    if (const auto* report = report_on(gateway.report, summary.id)) add(summary.measured, *report);
  }
  const double dollars = dollars_of(summary.id);
  const Account& account = accounts_[summary.id];
  if (account.dollars && account.tokens > 0) {
    summary.usd_per_million_tokens =
        std::max(dollars - *account.dollars, 0.0) * kMillion / static_cast<double>(account.tokens);
  }
  const bool apart = std::ranges::any_of(
      account.revisions, [](const auto& each) { return each.second.transfer.has_value(); });
  // What two replicas do together, the paces of each alone do not tell.
  if (!apart) summary.predicted = predict_service(ready, summary.measured, dollars_s);
  return summary;
}

}  // namespace orrery
