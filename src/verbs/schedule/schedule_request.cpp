#include "verbs/schedule/schedule_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/system/real_clock.hpp"
#include "control/setup.hpp"
#include "fleet/spec/builder.hpp"
#include "scheduler/asked_policy.hpp"
#include "scheduler/pass/taking.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/request/resolve.hpp"
#include "scheduler/tenants/queue_order.hpp"
#include "twin/faults/failure_file.hpp"
#include "verbs/option_text.hpp"
#include "verbs/plan/spec_files.hpp"
#include "verbs/schedule/submit_request.hpp"

namespace orrery {
namespace {

/// Rounds of planning: a plan may lead to another type or size, whose plan is then asked for.
constexpr int kRoundsMax = 16;

/// Files as they are, directories as their files of YAML and JSON by name.
Result<std::vector<std::string>> files_of(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (is_file_name(entry.path().filename().string())) inside.push_back(entry.path().string());
    }
    if (error) return environment_error(fmt::format("{}: {}", path, error.message()));
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace

Status ScheduleRequest::load_fleet(const CommandOptions& options, const std::string& path) {
  const Result<FleetFile> file = load_fleet_file(path);
  if (!file) return tl::unexpected(file.error());
  Result<Facts> known = load_facts(options, file->facts);
  if (!known) return forward_error(known);
  facts_ = *std::move(known);
  Result<Topology> topology = build_topology(file->spec, facts_.catalog());
  if (!topology) return forward_error(topology);
  pristine_ = std::make_unique<PristineFleet>(*topology);
  fleet_ = std::make_unique<Fleet>(*std::move(topology));
  const PlannerFacts facts{facts_.catalog(), facts_.calibration()};
  Result<FleetCosts> costs = FleetCosts::make(facts, pristine_->topology(), {});
  if (!costs) return forward_error(costs);
  costs_ = *std::move(costs);
  power_tree_.emplace(pristine_->topology());
  caps_.emplace(*power_tree_);
  power_.emplace(*power_tree_);
  sizes_.emplace(PlanSources{facts, pristine_->topology()});
  return {};
}

Status ScheduleRequest::load_tenants(const std::string& file) {
  if (file.empty()) {
    tenants_ = default_tenant_tree(pristine_->topology());
  } else {
    Result<Document> document = Document::load(file);
    if (!document) return forward_error(document);
    Result<TenantsSpec> spec = read_tenants_spec(*document);
    if (!spec) return forward_error(spec);
    Result<TenantTree> tree = build_tenant_tree(*spec, pristine_->topology());
    if (!tree) return forward_error(tree);
    tenants_ = *std::move(tree);
  }
  usage_.emplace(*tenants_);
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
    Result<FailureSpec> spec = read_failure_spec(*document, facts_.catalog());
    if (!spec) return forward_error(spec);
    failures_per_node_second_ = spec->failures_per_1000_node_days / kThousandDays;
    return {};
  }
  Result<const FailureSpec*> known = facts_.catalog().require<FailureSpec>(name);
  if (!known) return input_error({}, "--failures: " + known.error().message);
  failures_per_node_second_ = (*known)->failures_per_1000_node_days / kThousandDays;
  return {};
}

Status ScheduleRequest::add_job(const std::string& file, const ScheduleOptions& asked) {
  Result<JobSpec> spec = load_job_spec(file);
  if (!spec) return forward_error(spec);
  if (Status bound = take_bounds(asked.by, asked.under, *spec); !bound) return bound;
  if (!spec->after.empty()) {
    HeldJob& held = held_.emplace_back(HeldJob{spec->name, {}});
    for (const AfterSpec& after : spec->after) held.after.push_back(after.job);
    return {};
  }
  // Without a file of tenants all jobs are of the one tenant.
  if (tenants_->size() == 2 && tenants_->find("default")) spec->tenant = "default";
  Result<JobRequest> job = resolve_job(*spec, {.fleet = *pristine_,
                                               .models = facts_.models(),
                                               .tenants = *tenants_,
                                               .works = works_,
                                               .sizes = &*sizes_,
                                               .now = now_});
  if (!job) {
    if (job.error().kind != ErrorKind::kInfeasible) return forward_error(job);
    refused_.push_back({spec->name, job.error().text()});
    return {};
  }
  job->class_id = classes_.of(*job);
  for (JobRequest& each : requests_of(*spec, *job, ArrayId::at(jobs_.size()), classes_)) {
    const JobRequest& one = jobs_.emplace_back(std::move(each));
    waiting_.push_back({JobId::at(jobs_.size() - 1), &one, now_, 0, 0});
  }
  return {};
}

Status ScheduleRequest::load_jobs(const ScheduleOptions& asked) {
  Result<std::vector<std::string>> files = files_of(asked.jobs);
  if (!files) return forward_error(files);
  for (const std::string& file : *files) {
    if (Status added = add_job(file, asked); !added) return added;
  }
  return {};
}

Result<std::unique_ptr<ScheduleRequest>> ScheduleRequest::load(const CommandOptions& options,
                                                               const ScheduleOptions& asked) {
  auto request = std::make_unique<ScheduleRequest>();
  request->now_ = RealClock().now_wall();
  Status fleet = request->load_fleet(options, asked.fleet);
  if (!fleet) return forward_error(fleet);
  if (Status status = request->load_tenants(asked.tenants); !status) return forward_error(status);
  if (Status status = request->load_policy(asked.policy); !status) return forward_error(status);
  if (Status status = request->load_failures(asked.failures); !status) return forward_error(status);
  if (Status status = request->load_jobs(asked); !status) return forward_error(status);
  return request;
}

Situation ScheduleRequest::situation() const {
  Situation s{.now = now_, .fleet = fleet_->view()};
  s.waiting = waiting_;
  s.running = running_;
  s.tenants = &*tenants_;
  s.usage = &*usage_;
  s.power = &*power_;
  s.caps = &*caps_;
  s.plans = &plans_;
  s.costs = &*costs_;
  s.failures_per_node_second = failures_per_node_second_;
  s.launch = ControlTiming().launch;
  return s;
}

std::vector<std::string> ScheduleRequest::not_reached(const PassResult& result) const {
  std::vector<bool> seen(jobs_.size());
  for (const Decision& decision : result.decisions) {
    if (const auto* start = std::get_if<StartJob>(&decision)) seen[start->job.value()] = true;
  }
  for (const StillWaits& waits : result.waiting) seen[waits.job.value()] = true;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (!seen[i]) names.push_back(jobs_[i].name);
  }
  return names;
}

PassResult ScheduleRequest::decide() {
  for (int round = 0;; ++round) {
    Scheduler scheduler(pristine_->tree());
    PassResult result = scheduler.decide(situation(), policy_, PassKind::kFull);
    bool planned = false;
    for (const Decision& decision : result.decisions) {
      const auto* want = std::get_if<WantPlan>(&decision);
      if (want == nullptr || plans_.find(want->key) != nullptr) continue;
      plans_.put(want->key, plan_work(sizes_->sources(), works_[want->key.work],
                                      {want->key.type, want->key.devices}, 3));
      planned = true;
    }
    if (!planned || round == kRoundsMax) return result;
  }
}

std::vector<ScheduleRequest::Bound> ScheduleRequest::bounds() const {
  std::vector<Bound> bounds;
  const Situation now = situation();
  for (const WaitingJob& job : waiting_) {
    if (!job.request->deadline && !job.request->budget) continue;
    bounds.push_back({job.request->name, judge_admission({now, policy_, pristine_->tree(),
                                                          pristine_->view(), job.id})});
  }
  return bounds;
}

ExpectedEnergy ScheduleRequest::energy_of_start(const StartJob& start) const {
  const Situation now = situation();
  const PriceContext context{now, policy_, fleet_->view(), nullptr};
  const WaitingJob job{start.job, &jobs_[start.job.value()], now_, 0, 0};
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
    const JobRequest& job = jobs_[start->job.value()];
    RunningJob running{.id = start->job, .request = &job, .submitted = now_, .started = now_};
    running.expected_end = start->expected ? now_ + *start->expected : Instant::max();
    running.gangs = start->gangs;
    running.terms = start->terms;
    for (std::size_t g = 0; g < start->gangs.size(); ++g) {
      const PlacedGang& gang = start->gangs[g];
      const GangRequest& asked = job.roles[gang.role].options[gang.option].gang;
      take(*fleet_, gang.allocation, gang.host);
      usage_->apply({job.tenant, asked.type, rank_of(job), asked.devices});
      power_->add(draws_of_gang(*power_tree_, gang, start->terms[g].draw));
    }
    running_.push_back(std::move(running));
    std::erase_if(waiting_, [&](const WaitingJob& each) { return each.id == start->job; });
  }
}

}  // namespace orrery
