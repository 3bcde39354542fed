#include "verbs/schedule/schedule_request.hpp"

#include "base/system/real_clock.hpp"
#include "control/setup.hpp"
#include "scheduler/asked_policy.hpp"
#include "scheduler/pass/taking.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/tenants/queue_order.hpp"
#include "twin/faults/failure_file.hpp"
#include "verbs/option_text.hpp"
#include "verbs/spec_files.hpp"

namespace orrery {
namespace {

/// Rounds of planning: a plan may lead to another type or size, whose plan is then asked for.
constexpr int kRoundsMax = 16;

}  // namespace

Status ScheduleRequest::load_tenants(const std::string& file) {
  if (file.empty()) {
    tenants_ = default_tenant_tree(fleet_.topology());
  } else {
    Result<Document> document = Document::load(file);
    if (!document) return forward_error(document);
    Result<TenantsSpec> spec = read_tenants_spec(*document);
    if (!spec) return forward_error(spec);
    Result<TenantTree> tree = build_tenant_tree(*spec, fleet_.topology());
    if (!tree) return forward_error(tree);
    tenants_ = *std::move(tree);
  }
  use_.emplace(fleet_, *tenants_);
  return {};
}

Status ScheduleRequest::load_policy(const std::string& name) {
  if (!is_file_name(name)) {
    Result<Policy> policy = asked_policy(name);
    if (!policy) return wrong("policy", policy.error().message);
    policy_ = *std::move(policy);
    return {};
  }
  Result<Document> document = Document::load(name);
  if (!document) return forward_error(document);
  Result<Policy> policy = asked_policy(*document);
  if (!policy) return forward_error(policy);
  policy_ = *std::move(policy);
  return {};
}

Status ScheduleRequest::load_failures(const std::string& name) {
  if (name == "none") return {};
  constexpr double kThousandDays = 1000 * 86400.0;
  if (is_file_name(name)) {
    Result<Document> document = Document::load(name);
    if (!document) return forward_error(document);
    Result<FailureSpec> spec = read_failure_spec(*document, fleet_.facts().catalog());
    if (!spec) return forward_error(spec);
    failures_per_node_second_ = spec->failures_per_1000_node_days / kThousandDays;
    return {};
  }
  Result<const FailureSpec*> known = fleet_.facts().catalog().require<FailureSpec>(name);
  if (!known) return input_error({}, "--failures: " + known.error().message);
  failures_per_node_second_ = (*known)->failures_per_1000_node_days / kThousandDays;
  return {};
}

Result<std::unique_ptr<ScheduleRequest>> ScheduleRequest::load(const CommandOptions& options,
                                                               const ScheduleOptions& asked) {
  auto request = std::make_unique<ScheduleRequest>();
  request->now_ = RealClock().now_wall();
  Status fleet = request->fleet_.load(options, asked.fleet);
  if (!fleet) return forward_error(fleet);
  if (Status status = request->load_tenants(asked.tenants); !status) return forward_error(status);
  if (Status status = request->load_policy(asked.policy); !status) return forward_error(status);
  if (Status status = request->load_failures(asked.failures); !status) return forward_error(status);
  const JobQueue::Place place{request->fleet_, *request->tenants_, request->now_};
  Status jobs = request->queue_.load(asked.jobs, place, {asked.by, asked.under});
  if (!jobs) return forward_error(jobs);
  return request;
}

Situation ScheduleRequest::situation() const {
  Situation s{.now = now_, .fleet = use_->fleet.view()};
  s.waiting = queue_.waiting();
  s.running = use_->running;
  s.tenants = &*tenants_;
  s.usage = &use_->usage;
  s.power = &use_->power;
  s.caps = &use_->caps;
  s.plans = &plans_;
  s.costs = &fleet_.costs();
  s.failures_per_node_second = failures_per_node_second_;
  s.launch = ControlTiming().launch;
  return s;
}

std::vector<std::string> ScheduleRequest::not_reached(const PassResult& result) const {
  std::vector<bool> seen(jobs().size());
  for (const Decision& decision : result.decisions) {
    if (const auto* start = std::get_if<StartJob>(&decision)) seen[start->job.value()] = true;
  }
  for (const StillWaits& waits : result.waiting) seen[waits.job.value()] = true;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < jobs().size(); ++i) {
    if (!seen[i]) names.push_back(jobs()[i].name);
  }
  return names;
}

PassResult ScheduleRequest::decide() {
  for (int round = 0;; ++round) {
    Scheduler scheduler(tree());
    PassResult result = scheduler.decide(situation(), policy_, PassKind::kFull);
    bool planned = false;
    for (const Decision& decision : result.decisions) {
      const auto* want = std::get_if<WantPlan>(&decision);
      if (want == nullptr || plans_.find(want->key) != nullptr) continue;
      plans_.put(want->key, plan_work(fleet_.sizes().sources(), queue_.works()[want->key.work],
                                      {want->key.type, want->key.devices}, 3));
      planned = true;
    }
    if (!planned || round == kRoundsMax) return result;
  }
}

std::vector<ScheduleRequest::Bound> ScheduleRequest::bounds() const {
  std::vector<Bound> bounds;
  const Situation now = situation();
  for (const WaitingJob& job : queue_.waiting()) {
    if (!job.request->deadline && !job.request->budget) continue;
    bounds.push_back({job.request->name,
                      judge_admission({now, policy_, tree(), fleet_.pristine().view(), job.id})});
  }
  return bounds;
}

ExpectedEnergy ScheduleRequest::energy_of_start(const StartJob& start) const {
  const Situation now = situation();
  const PriceContext context{now, policy_, use_->fleet.view(), nullptr};
  const WaitingJob job{start.job, &jobs()[start.job.value()], now_, 0, 0};
  ExpectedEnergy energy;
  for (std::size_t g = 0; g < start.gangs.size(); ++g) {
    energy += energy_of(context, job, start.gangs[g], start.terms[g]);
  }
  return energy;
}

void ScheduleRequest::carry_out(const PassResult& result) {
  for (const Decision& decision : result.decisions) {
    const auto* start = std::get_if<StartJob>(&decision);
    if (start == nullptr) continue;
    const JobRequest& job = jobs()[start->job.value()];
    RunningJob running{.id = start->job, .request = &job, .submitted = now_, .started = now_};
    running.expected_end = start->expected ? now_ + *start->expected : Instant::max();
    running.gangs = start->gangs;
    running.terms = start->terms;
    for (std::size_t g = 0; g < start->gangs.size(); ++g) {
      const PlacedGang& gang = start->gangs[g];
      const GangRequest& asked = job.roles[gang.role].options[gang.option].gang;
      take(use_->fleet, gang.allocation, gang.host);
      use_->usage.apply({job.tenant, asked.type, rank_of(job), asked.devices});
      use_->power.add(draws_of_gang(fleet_.power(), gang, start->terms[g].draw));
    }
    use_->running.push_back(std::move(running));
    queue_.take_out(start->job);
  }
}

}  // namespace orrery
