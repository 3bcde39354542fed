#include "twin/traffic/contention.hpp"

#include <algorithm>

#include "perf/machine/placement.hpp"
#include "perf/site/storage_path.hpp"

namespace orrery {
namespace {

/// Relative tolerance of rates; finer differences are not worth the events.
constexpr double kTolerance = 1e-3;

double nodes_of(const RunningJob& job) {
  double nodes = 0;
  for (const PlacedGang& gang : job.gangs) {
    nodes += static_cast<double>(gang.allocation.ranks.size());
  }
  return nodes;
}

}  // namespace

Contention::Contention(const FleetView& view, const Calibration& calibration, PlanBook& book)
    : book_(&book),
      topology_(&view.topology()),
      links_(kTolerance),
      traffic_(links_, view),
      storage_(links_, view.topology(), calibration) {}

bool Contention::concerns(const RunningJob& job, const State& state, PlanBook& book) {
  if (!job.request->data.empty()) return true;
  for (std::size_t i = 0; i < job.gangs.size(); ++i) {
    if (book.of(job, i, state).training() != nullptr) return true;
  }
  return false;
}

std::optional<StepTraffic> Contention::traffic_of(const RunningJob& job, std::size_t gang,
                                                  const State& state) const {
  const PlannedTraining* training = book_->of(job, gang, state).training();
  if (training == nullptr) return std::nullopt;
  const std::span<const NodeDevices> ranks = job.gangs[gang].allocation.ranks;
  Placement placement = placement_of(ranks, state.fleet().view());
  placement.scale_out_quality /= training->scale_out_quality;
  const Breakdown terms = training->model->reprice(training->plan, placement);
  return training_traffic(*training->model, training->plan, terms, layout_of(ranks, *topology_));
}

void Contention::run(const RunningJob& job, const State& state) {
  for (std::size_t i = 0; i < job.gangs.size(); ++i) {
    const std::optional<StepTraffic> traffic = traffic_of(job, i, state);
    if (!traffic) continue;
    const std::optional<FlowId> flow = traffic_.start(job.gangs[i].allocation.ranks, *traffic);
    if (!flow) continue;
    sending_[*flow] = {job.id, i, *traffic};
    flows_[job.id].push_back(*flow);
  }
}

bool Contention::reprice(const RunningJob& job, const State& state) {
  const auto flows = flows_.find(job.id);
  if (flows == flows_.end()) return false;
  const bool same = std::ranges::all_of(flows->second, [&](FlowId flow) {
    const Sending& sending = sending_.at(flow);
    const std::optional<StepTraffic> now = traffic_of(job, sending.gang, state);
    return now && now->seconds == sending.traffic.seconds;
  });
  if (same) return false;
  send_no_more(job.id);
  run(job, state);
  return true;
}

void Contention::send_no_more(JobId job) {
  const auto flows = flows_.find(job);
  if (flows == flows_.end()) return;
  for (const FlowId flow : flows->second) {
    traffic_.stop(flow);
    sending_.erase(flow);
  }
  flows_.erase(flows);
}

void Contention::leave(JobId job, Instant now) {
  send_no_more(job);
  std::erase_if(moving_, [&](const auto& each) {
    if (each.second.what.job != job) return false;
    (void)storage_.cancel(each.first, now);
    return true;
  });
}

double Contention::slowdown(JobId job) const {
  const auto flows = flows_.find(job);
  if (flows == flows_.end()) return 1;
  double most = 1;
  for (const FlowId flow : flows->second) most = std::max(most, sending_.at(flow).slowdown);
  return most;
}

Bytes Contention::copy_of(const RunningJob& job, const State& state) const {
  Bytes bytes;
  for (std::size_t i = 0; i < job.gangs.size(); ++i) {
    if (const PlannedTraining* training = book_->of(job, i, state).training())
      bytes += training->checkpoint;
  }
  return bytes;
}

std::uint32_t Contention::site_of(const RunningJob& job) const {
  const NodeId node = job.gangs.front().allocation.ranks.front().node;
  const DomainId domain = topology_->ancestor(topology_->place(node).rack, Level::kSite);
  const auto found = std::ranges::find(topology_->sites(), domain, &SiteFacts::domain);
  return static_cast<std::uint32_t>(found - topology_->sites().begin());
}

std::optional<StorageId> Contention::home(std::uint32_t site) const {
  std::optional<StorageId> inside;
  for (const StorageSpec& spec : topology_->sites()[site].spec.storage) {
    const StorageSystem& type = *topology_->catalog().find<StorageSystem>(spec.system);
    if (!type.write) continue;
    const StoragePlace place = place_of(type);
    if (place == StoragePlace::kShared) return storage_.find(site, spec.name);
    if (place == StoragePlace::kLocal && !inside) inside = storage_.find(site, spec.name);
  }
  return inside;
}

std::optional<TransferRequest> Contention::request_of(MoveKind kind, const RunningJob& job,
                                                      const State& state) const {
  TransferRequest request{
      .bytes = copy_of(job, state), .nodes = nodes_of(job), .site = site_of(job)};
  // A state to load was saved before, so copies can be written in all these cases.
  const std::optional<StorageId> system = home(request.site);
  if (!system || request.bytes.value() <= 0) return std::nullopt;
  if (kind == MoveKind::kLoad) request.from = system;
  if (kind == MoveKind::kSave) request.to = system;
  const NodeId node = job.gangs.front().allocation.ranks.front().node;
  request.node = &topology_->node_type(topology_->group(node));
  return request;
}

bool Contention::move(const Moving& what, const TransferRequest& request, Instant now) {
  const Result<BytesPerSecond> rate = storage_.rate_alone(request);
  if (!rate || rate->value() <= 0) return false;
  const Result<TransferId> id = storage_.start(request, now);
  if (!id) return false;
  moving_[*id] = what;
  return true;
}

bool Contention::move_state(MoveKind kind, const RunningJob& job, const State& state, Instant now) {
  const std::optional<TransferRequest> request = request_of(kind, job, state);
  return request && move({{job.id, kind}, {}}, *request, now);
}

std::optional<Duration> Contention::time_to_load(const RunningJob& job, const State& state) const {
  const std::optional<TransferRequest> request = request_of(MoveKind::kLoad, job, state);
  if (!request) return std::nullopt;
  const Result<BytesPerSecond> rate = storage_.rate_alone(*request);
  if (!rate || rate->value() <= 0) return std::nullopt;
  return Duration::from_seconds((request->bytes / *rate).value());
}

Staging Contention::stage(const RunningJob& job, std::size_t data, Instant now) {
  const DataRequest& what = job.request->data[data];
  const std::uint32_t site = site_of(job);
  const DataAt at{job.id, data, site};
  if (what.site == site || brought_.contains(at)) return Staging::kThere;
  const TransferRequest request{.bytes = what.size, .from = home(what.site), .to = home(site)};
  if (!request.from || !request.to) return Staging::kNoStorage;
  const bool moves = move({{job.id, MoveKind::kStage}, at}, request, now);
  return moves ? Staging::kMoving : Staging::kNoStorage;
}

std::span<const JobId> Contention::update(Instant now) {
  changed_.clear();
  const std::span<const FlowId> flows = links_.update();
  storage_.rates_changed(flows, now);
  for (const FlowId flow : flows) {
    const auto found = sending_.find(flow);
    if (found == sending_.end()) continue;
    Sending& sending = found->second;
    const double before = sending.slowdown;
    const Seconds step = stretched_step(sending.traffic, links_.rate(flow));
    sending.slowdown = std::max(1.0, step / sending.traffic.seconds);
    if (sending.slowdown != before) changed_.push_back(sending.job);
  }
  std::ranges::sort(changed_);
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  return changed_;
}

std::vector<Moved> Contention::advance(Instant now) {
  std::vector<Moved> moved;
  const std::vector<TransferId> arrived = storage_.advance(now);
  moved.reserve(arrived.size());
  for (const TransferId id : arrived) {
    const auto found = moving_.find(id);
    moved.push_back(found->second.what);
    if (found->second.data) brought_.insert(*found->second.data);
    moving_.erase(found);
  }
  return moved;
}

}  // namespace orrery
