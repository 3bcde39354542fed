#include "twin/protocol/protocol_controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/core/held_situation.hpp"

namespace orrery {
namespace {

constexpr Duration kFullPass = Duration::seconds(1);

}  // namespace

void ProtocolController::start() {
  if (host_) return;
  ProtocolContext& context = parts_.context;
  const Result<std::vector<TimedEvent>> events = parts_.disk.begin();
  if (!events) return context.wrong("the log cannot be read: " + events.error().text());
  auto core = std::make_unique<Core>(parts_.setup);
  for (const TimedEvent& event : *events) core->replay(event.at, event.what);
  core->resume();
  parts_.promises.begin(core->state());
  ++started_;
  context.note(fmt::format("controller {} starts with {} events", started_, events->size()));
  const Duration beat = context.rules().beat;
  const LinkSetup link{.cluster = kProtocolCluster,
                       .term = started_,
                       .heartbeats = {.interval = beat, .grace = beat * 6}};
  HostOutlet& outlet = *this;
  passes_.emplace(*parts_.setup.tree);
  host_ = std::make_unique<AgentHost>(std::move(core), AgentHost::Setup{.link = link}, outlet,
                                      context.now());
  if (std::optional<HoldSetup> setup = parts_.holds(started_)) {
    holds_ = std::make_unique<HoldHost>(*std::move(setup), *host_, parts_.order, context.now());
  }
  parts_.promises.check(state());
  die_if_doomed();
}

void ProtocolController::kill(const std::string& where) {
  if (!host_) return;
  parts_.context.note("the controller dies " + where);
  const bool all_durable = parts_.disk.crash();
  parts_.promises.crash(all_durable ? &state() : nullptr);
  doomed_ = false;
  holds_.reset();
  host_.reset();
}

std::size_t ProtocolController::linked_attempts() const {
  return host_ ? host_->link().attempts() : 0;
}

Instant ProtocolController::next_due() const {
  if (!host_) return Instant::max();
  return holds_ ? std::min(host_->next_due(), holds_->next_due()) : host_->next_due();
}

void ProtocolController::advance(Instant now) {
  if (parts_.context.chance(parts_.context.rules().crash)) return kill("between two inputs");
  if (holds_ && holds_->next_due() < host_->next_due()) {
    holds_->advance(now);
  } else {
    host_->advance(now);
  }
  die_if_doomed();
}

void ProtocolController::handle(const Input& input, ControlHost::Answered answered) {
  if (!host_) return;
  if (parts_.context.chance(parts_.context.rules().crash)) return kill("between two inputs");
  host_->handle(input, std::move(answered));
  die_if_doomed();
}

void ProtocolController::deliver(const Report& report) {
  if (!host_) return;
  host_->deliver(report, parts_.context.now());
  die_if_doomed();
}

void ProtocolController::deliver(const ManagerReport& report) {
  if (!holds_) return;
  holds_->deliver(report, parts_.context.now());
  die_if_doomed();
}

Status ProtocolController::admit(NodeId node, const AgentHold& agent) {
  Status admitted = holds_->admit(node, agent, parts_.context.now());
  die_if_doomed();
  return admitted;
}

void ProtocolController::end_hold(NodeId node) {
  if (!holds_) return;
  holds_->end(node, "its resource manager ends the hold", parts_.context.now());
  die_if_doomed();
}

std::uint64_t ProtocolController::append(Instant at, std::span<const Event> events) {
  parts_.promises.note(events);
  parts_.applied(events);
  if (host_) parts_.promises.check(state());
  if (parts_.context.chance(parts_.context.rules().crash)) doomed_ = true;
  return parts_.disk.append(at, events);
}

void ProtocolController::written() {
  if (parts_.context.chance(parts_.context.rules().crash)) return kill("before it acts");
  host_->durable(parts_.disk.durable());
  parts_.disk.write();
  die_if_doomed();
}

void ProtocolController::run_full_pass(Core& core, Instant now) {
  const auto held = core.hold(now);
  parts_.context.time().after(kFullPass,
                              [this, proposal = full_pass(*held, *passes_), by = started_] {
                                if (by == started_) handle({parts_.context.now(), proposal, {}});
                              });
}

}  // namespace orrery
