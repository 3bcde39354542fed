#include "api/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <sstream>

#include "base/field_writer.hpp"

namespace orrery {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Families {
 public:
  struct Name {
    std::string name;
    std::string help;
    MetricType type = MetricType::Gauge;
  };

  MetricFamily& family(const Name& name) {
    return families_.emplace_back(MetricFamily{name.name, name.help, name.type, {}});
  }
  static void add(MetricFamily& family, double value, std::vector<ClientMetric::Label> labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    if (family.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    family.metric.push_back(std::move(metric));
  }
  void one(const Name& name, double value) { add(family(name), value, {}); }

  [[nodiscard]] std::string text() const {
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  std::vector<MetricFamily> families_;
};

template <class Count>
double number(Count count) {
  return static_cast<double>(count);
}

void add_jobs(const State& state, Families& families) {
  std::map<JobPhase, std::size_t> active;
  for (const RunningJob& run : state.running()) ++active[state.job(run.id).phase];
  active[JobPhase::kQueued] = state.waiting().size();
  active[JobPhase::kHeld] = state.held();
  MetricFamily& jobs = families.family({"orrery_jobs", "Jobs that have not ended, by phase."});
  for (const EnumWord<JobPhase>& phase : enum_words(JobPhase())) {
    if (ended(phase.value)) continue;
    Families::add(jobs, number(active[phase.value]), {{"phase", std::string(phase.word)}});
  }
  families.one({"orrery_jobs_submitted_total", "Jobs ever submitted.", MetricType::Counter},
               number(state.jobs()));
  families.one({"orrery_jobs_ended_total", "Jobs that have ended.", MetricType::Counter},
               number(state.ended_jobs()));
}

void add_nodes(const Controller& controller, Families& families) {
  const State& state = controller.state();
  const Topology& topology = *state.setup().topology;
  std::map<NodeHealth, std::size_t> health;
  std::size_t connected = 0;
  MetricFamily& power = families.family({"orrery_node_power_watts", "Power a node says it draws."});
  for (std::uint32_t at = 0; at < topology.node_count(); ++at) {
    const NodeId id(at);
    ++health[state.node(id).health];
    if (controller.agents().of(id).session == nullptr) continue;
    ++connected;
    Families::add(power, number(controller.link().signals(id).power_w),
                  {{"node", topology.node_name(id)}});
  }
  MetricFamily& nodes = families.family({"orrery_nodes", "Nodes, by health."});
  for (const EnumWord<NodeHealth>& each : enum_words(NodeHealth())) {
    Families::add(nodes, number(health[each.value]), {{"health", std::string(each.word)}});
  }
  families.one({"orrery_agents_connected", "Agents with a stream to this controller."},
               number(connected));
}

void add_accelerators(const Controller& controller, Families& families) {
  const State& state = controller.state();
  const Topology& topology = *state.setup().topology;
  MetricFamily& now = families.family(
      {"orrery_accelerators", "Accelerators, by type and by what they are used for."});
  MetricFamily time{"orrery_accelerator_seconds_total",
                    "Accelerator-seconds, by type and by what they were used for.",
                    MetricType::Counter,
                    {}};
  constexpr double kSecondsPerHour = 3600;
  for (std::uint32_t at = 0; at < topology.type_count(); ++at) {
    const FleetTypeId type(at);
    for (const EnumWord<DeviceUse>& use : enum_words(DeviceUse())) {
      const std::vector<ClientMetric::Label> labels{{"accelerator", topology.accelerator(type).id},
                                                    {"use", std::string(use.word)}};
      Families::add(now, number(state.ledger().count(type, use.value)), labels);
      const DeviceTime sum = state.ledger().sum(type, use.value, controller.now());
      Families::add(time, device_hours(sum) * kSecondsPerHour, labels);
    }
  }
  families.family({time.name, time.help, time.type}) = time;
}

}  // namespace

std::string metrics_text(const Controller& controller) {
  const State& state = controller.state();
  Families families;
  add_jobs(state, families);
  add_nodes(controller, families);
  add_accelerators(controller, families);
  families.one({"orrery_events_total", "Events of the log.", MetricType::Counter},
               number(state.version()));
  const Core::PassCounts& passes = controller.core().passes();
  MetricFamily& family = families.family(
      {"orrery_scheduler_passes_total", "Passes since the start, by kind.", MetricType::Counter});
  Families::add(family, number(passes.incremental), {{"kind", "incremental"}});
  Families::add(family, number(passes.full), {{"kind", "full"}});
  families.one({"orrery_energy_joules_total", "Energy of all jobs.", MetricType::Counter},
               state.total().joules);
  families.one({"orrery_cost_dollars_total", "Cost of all jobs.", MetricType::Counter},
               state.total().dollars);
  return families.text();
}

}  // namespace orrery
