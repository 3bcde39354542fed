#include "node/agent/node_clocks.hpp"

#include <optional>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kClocksTextMax = 4096;

}  // namespace

NodeClocks::NodeClocks(const Env& env, const Log& log, Setup setup, Events events)
    : env_(env),
      log_(log),
      setup_(std::move(setup)),
      events_(std::move(events)),
      clocks_(setup_.devices, env.storage.read_file(setup_.file, kClocksTextMax).value_or("")) {}

void NodeClocks::want(const AttemptId& id, const std::vector<RankShare>& shares) {
  if (!setup_.by_driver) return;
  clocks_.want(id, shares);
  request();
}

void NodeClocks::forget(const AttemptId& id) {
  clocks_.forget(id);
  request();
}

void NodeClocks::request() {
  const std::vector<DeviceClocks::Change> changes = clocks_.take_changes();
  if (changes.empty()) return;
  write();
  for (const DeviceClocks::Change& change : changes) {
    events_.set(change, [this, change](const Status& answer) { note(change, answer); });
  }
}

void NodeClocks::write() const {
  const auto written = env_.storage.write_file(setup_.file, clocks_.text());
  if (written) return;
  log_.error(env_.clock.now_wall(), "clocks are not written down",
             {{"why", written.error().message}});
}

void NodeClocks::note(const DeviceClocks::Change& change, const Status& answer) {
  const std::string refusal = answer ? "" : answer.error().message;
  const bool news = refusal != clocks_.refusal();
  clocks_.note(change, refusal);
  write();
  if (!refusal.empty() && news) {
    log_.error(env_.clock.now_wall(), "a clock is not set",
               {{"device", change.device}, {"clock", change.clock}, {"why", refusal}});
  }
  events_.answered();
}

void NodeClocks::add_to(AttemptReport& report) const {
  if (setup_.by_driver) report.clocks = clocks_.held(report.token.id);
}

void NodeClocks::add_to(NodeReading& reading) const {
  reading.clock_refusal = clocks_.refusal();
  for (std::uint32_t at = 0; at < reading.accelerators.size(); ++at) {
    const double clock = clocks_.clock(at);
    reading.accelerators[at].clock = clock < 1 ? std::optional(clock) : std::nullopt;
  }
}

}  // namespace orrery
