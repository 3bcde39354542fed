#include "twin/protocol/protocol_clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

constexpr Duration kAskAgain = Duration::seconds(7);
constexpr std::uint32_t kElasticStep = 4;  ///< accelerators, half a node

std::string name_of(std::size_t n) { return fmt::format("job-{}", n); }

}  // namespace

Submission ProtocolClients::submission_of(std::size_t n, const State& state) const {
  const ProtocolJob& job = clients_[n].job;
  const Topology& topology = *state.setup().topology;
  Submission submission;
  submission.restart = job.restart;
  submission.request.name = name_of(n);
  submission.request.tenant = *state.tenants().find(job.tenant);
  submission.request.estimate = job.work;
  submission.request.preemptible = true;
  RoleRequest role;
  role.devices_max = job.devices;
  role.devices_min = job.devices_min == 0 ? job.devices : job.devices_min;
  for (std::uint32_t devices = role.devices_max; devices >= role.devices_min;) {
    GangRequest gang;
    gang.type = FleetTypeId(0);
    gang.devices = devices;
    gang.node_devices = std::min(devices, topology.node_devices_max(gang.type));
    gang.share = job.share;
    const double speed = static_cast<double>(devices) / static_cast<double>(job.devices);
    role.options.push_back({gang, speed, std::nullopt});
    devices -= std::min(devices, kElasticStep);
  }
  submission.request.roles.push_back(std::move(role));
  return submission;
}

void ProtocolClients::submit(const ProtocolJob& job) {
  clients_.push_back({.job = job});
  ask_submit(clients_.size() - 1);
}

void ProtocolClients::ask_submit(std::size_t n) {
  if (clients_[n].answered) return;
  context_.transmit([this, n] { refuse_or_submit(n); });
  context_.time().after(kAskAgain, [this, n] { ask_submit(n); });
}

void ProtocolClients::refuse_or_submit(std::size_t n) {
  if (disk_.full()) return context_.note("a submission is refused, the disk is full");
  const State* state = outside_.state();
  if (state == nullptr) return;
  const std::string& tenant = clients_[n].job.tenant;
  if (!state->tenants().find(tenant)) {
    return context_.note("a submission is refused, there is no tenant " + tenant);
  }
  outside_.request(
      {context_.now(), SubmitJob{submission_of(n, *state)}, fmt::format("request-{}", n)},
      [this, n](const Answer& answer) {
        const bool arrives = answer.status && !context_.chance(context_.rules().network.loss);
        if (arrives) clients_[n].answered = true;
      });
}

void ProtocolClients::cancel(std::size_t n) {
  if (clients_[n].cancels) return;
  clients_[n].cancels = true;
  ask_cancel(n);
}

void ProtocolClients::ask_cancel(std::size_t n) {
  if (clients_[n].cancelled) return;
  context_.transmit([this, n] {
    if (!clients_[n].answered) return;
    outside_.request({context_.now(), CancelJob{*clients_[n].made}, {}}, [this, n](const Answer&) {
      if (!context_.chance(context_.rules().network.loss)) clients_[n].cancelled = true;
    });
  });
  context_.time().after(kAskAgain, [this, n] { ask_cancel(n); });
}

JobPhase ProtocolClients::end_of(JobId job) const {
  return job.value() < ends_.size() ? ends_[job.value()] : JobPhase::kHeld;
}

void ProtocolClients::note_durable(std::span<const Event> events) {
  for (const Event& event : events) {
    if (const auto* end = std::get_if<JobEnded>(&event)) {
      ends_.resize(std::max(ends_.size(), std::size_t{end->job.value()} + 1), JobPhase::kHeld);
      ends_[end->job.value()] = end->phase;
    }
    const auto* submitted = std::get_if<JobSubmitted>(&event);
    if (submitted == nullptr) continue;
    for (std::size_t n = 0; n < clients_.size(); ++n) {
      if (submitted->submission.request.name != name_of(n)) continue;
      if (clients_[n].made) return context_.wrong(fmt::format("submission {} became two jobs", n));
      clients_[n].made = submitted->job;
      outside_.made(submitted->job, clients_[n].job);
    }
  }
}

std::string ProtocolClients::broken_promise(const State& state) const {
  for (std::size_t n = 0; n < clients_.size(); ++n) {
    const Client& client = clients_[n];
    if (!client.made) continue;
    const JobId id = *client.made;
    if (!state.has(id) || state.job(id).name != name_of(n)) {
      return fmt::format("submission {} is lost", n);
    }
    const Job& job = state.job(id);
    const JobPhase end = end_of(id);
    if (ended(end) && job.phase != end) {
      return fmt::format("job {} was {} and is {}", n, word_of(end), word_of(job.phase));
    }
    if (client.cancelled && !ended(job.phase) && job.phase != JobPhase::kStopping) {
      return fmt::format("job {} goes on though it was cancelled", n);
    }
  }
  return {};
}

bool ProtocolClients::all_ended(const State& state) const {
  return std::ranges::all_of(clients_, [&](const Client& client) {
    return client.made && ended(state.job(*client.made).phase);
  });
}

}  // namespace orrery
