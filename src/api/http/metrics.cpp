#include "api/http/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/views.hpp"
#include "base/format/field_writer.hpp"

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

/// Adds the numbers of waiting, running and held jobs, by tenant and phase.
void add_jobs_by_tenant(const State& state, Families& families) {
  std::map<std::pair<TenantId, JobPhase>, std::size_t> counts;
  const auto add = [&](JobId id) {
    const Job& job = state.job(id);
    ++counts[{job.tenant, job.phase}];
  };
  for (const RunningJob& run : state.running()) add(run.id);
  for (const WaitingJob& waiting : state.waiting()) add(waiting.id);
  for (const JobId held : state.held_jobs()) add(held);
  MetricFamily& jobs =
      families.family({"orrery_tenant_jobs", "Jobs that have not ended, by tenant and phase."});
  for (const auto& [key, count] : counts) {
    Families::add(
        jobs, number(count),
        {{"tenant", state.tenants().path(key.first)}, {"phase", std::string(word_of(key.second))}});
  }
}

void add_histogram(MetricFamily& family, const TimeHistogram& times,
                   std::vector<ClientMetric::Label> labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.histogram.sample_count = times.count();
  metric.histogram.sample_sum = times.sum();
  for (std::size_t at = 0; at <= times.bounds().size(); ++at) {
    const bool last = at == times.bounds().size();
    ClientMetric::Bucket& bucket = metric.histogram.bucket.emplace_back();
    bucket.cumulative_count = times.up_to(at);
    bucket.upper_bound = last ? std::numeric_limits<double>::infinity() : times.bounds()[at];
  }
  family.metric.push_back(std::move(metric));
}

void add_foreign_reports(const LiveCounts& counts, const Topology& topology, Families& families) {
  MetricFamily& reports = families.family(
      {"orrery_agent_foreign_reports_total",
       "Logs and notes of ranks that an agent sent and its node does not have; they are dropped.",
       MetricType::Counter});
  for (const auto& [node, count] : counts.foreign_reports) {
    Families::add(reports, number(count), {{"node", topology.node_name(node)}});
  }
}

/// Adds what this controller has counted since its start.
void add_counts(const LiveCounts& counts, Families& families) {
  constexpr MetricType kHistogram = MetricType::Histogram;
  add_histogram(families.family({"orrery_job_queue_wait_seconds",
                                 "From a job's submission to its first start.", kHistogram}),
                counts.queue_wait, {});
  MetricFamily& passes = families.family(
      {"orrery_scheduler_pass_seconds", "How long scheduler passes took, by kind.", kHistogram});
  add_histogram(passes, counts.pass, {{"kind", "incremental"}});
  add_histogram(passes, counts.full_pass, {{"kind", "full"}});
  add_histogram(families.family({"orrery_log_commit_seconds",
                                 "From events to the moment they are durable.", kHistogram}),
                counts.commit, {});
  MetricFamily& calls = families.family(
      {"orrery_api_calls_total", "Calls that ended, by method and code.", MetricType::Counter});
  for (const auto& [end, count] : counts.calls) {
    Families::add(calls, number(count), {{"method", end.first}, {"code", end.second}});
  }
  Families::add(families.family({"orrery_build_info", "The program's version."}), 1,
                {{"version", std::string(program_version())}});
}

/// One family of metrics of nodes, or of accelerators, with the values of readings that have them.
struct ReadingMetric {
  Families::Name name;
  std::function<std::optional<double>(const NodeReading&)> of_node = {};
  std::function<std::optional<double>(const AcceleratorReading&)> of_accelerator = {};
};

std::optional<double> number(const std::optional<std::uint64_t>& count) {
  return count ? std::optional(static_cast<double>(*count)) : std::nullopt;
}

std::vector<ReadingMetric> node_metrics() {
  using Reading = NodeReading;
  constexpr MetricType kCounter = MetricType::Counter;
  return {{{"orrery_node_cpu_busy_ratio", "Part of the CPUs that was busy between two readings."},
           [](const Reading& node) { return node.cpu_busy; }},
          {{"orrery_node_memory_bytes", "Memory of a node."},
           [](const Reading& node) { return number(node.memory_bytes); }},
          {{"orrery_node_memory_used_bytes", "Memory that no program could have."},
           [](const Reading& node) { return number(node.memory_used_bytes); }},
          {{"orrery_node_network_receive_bytes_total", "Received by a node.", kCounter},
           [](const Reading& node) { return number(node.received_bytes); }},
          {{"orrery_node_network_transmit_bytes_total", "Sent by a node.", kCounter},
           [](const Reading& node) { return number(node.sent_bytes); }},
          {{"orrery_node_network_errors_total", "Packets that came or left in error.", kCounter},
           [](const Reading& node) { return number(node.network_errors); }},
          {{"orrery_node_link_errors_total", "Errors of InfiniBand ports.", kCounter},
           [](const Reading& node) { return number(node.link_errors); }}};
}

std::vector<ReadingMetric> accelerator_metrics() {
  using Reading = AcceleratorReading;
  const auto metric = [](Families::Name name, auto member) {
    const auto read = [member](const Reading& each) { return number(each.*member); };
    return ReadingMetric{std::move(name), {}, read};
  };
  const auto gauge = [](Families::Name name, auto member) {
    return ReadingMetric{
        std::move(name), {}, [member](const Reading& each) { return each.*member; }};
  };
  constexpr MetricType kCounter = MetricType::Counter;
  return {
      gauge({"orrery_accelerator_power_watts", "Power an accelerator draws."}, &Reading::power_w),
      gauge({"orrery_accelerator_temperature_celsius", "Temperature of an accelerator."},
            &Reading::temperature_c),
      gauge({"orrery_accelerator_busy_ratio", "Part of the time that something ran on it."},
            &Reading::busy),
      gauge({"orrery_accelerator_clock_ratio",
             "Clock an accelerator was given, of its full one, where that is less."},
            &Reading::clock),
      metric({"orrery_accelerator_memory_bytes", "Memory of an accelerator."},
             &Reading::memory_bytes),
      metric({"orrery_accelerator_memory_used_bytes", "Memory in use on an accelerator."},
             &Reading::memory_used_bytes),
      metric({"orrery_accelerator_memory_errors_total", "Uncorrected errors of memory.", kCounter},
             &Reading::memory_errors),
      metric({"orrery_accelerator_link_errors_total", "Replays on its link.", kCounter},
             &Reading::link_errors)};
}

void add_reading(const ReadingMetric& metric, const std::string& node, const NodeReading& reading,
                 MetricFamily& family) {
  if (metric.of_node) {
    if (const auto value = metric.of_node(reading)) Families::add(family, *value, {{"node", node}});
    return;
  }
  for (std::size_t at = 0; at < reading.accelerators.size(); ++at) {
    const std::optional<double> value = metric.of_accelerator(reading.accelerators[at]);
    if (!value) continue;
    Families::add(family, *value, {{"node", node}, {"device", std::to_string(at)}});
  }
}

/// Adds readings of connected agents: the last readings of others are of no use to a graph.
void add_readings(const Controller& controller, Families& families) {
  const Topology& topology = *controller.state().setup().topology;
  std::vector<ReadingMetric> metrics = node_metrics();
  std::vector<ReadingMetric> more = accelerator_metrics();
  std::move(more.begin(), more.end(), std::back_inserter(metrics));
  for (const ReadingMetric& metric : metrics) {
    MetricFamily& family = families.family(metric.name);
    for (std::uint32_t at = 0; at < topology.node_count(); ++at) {
      const AgentRecord& agent = controller.agents().of(NodeId(at));
      if (agent.session == nullptr || !agent.heard) continue;
      add_reading(metric, topology.node_name(NodeId(at)), agent.heard->reading, family);
    }
  }
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
    const std::uint32_t watts = controller.host().link().signals(id).power_w;
    if (watts > 0) Families::add(power, number(watts), {{"node", topology.node_name(id)}});
  }
  MetricFamily& clocks = families.family(
      {"orrery_node_clock_ratio",
       "Lowest clock that accelerators of a node are ordered to run at, of the full one, where "
       "that is less."});
  std::map<NodeId, double> lowest;
  for (const RunningJob& run : state.running()) {
    for (std::size_t g = 0; g < run.gangs.size() && g < run.terms.size(); ++g) {
      if (run.terms[g].clock >= 1) continue;
      for (const NodeDevices& at : run.gangs[g].allocation.ranks) {
        const auto [found, added] = lowest.emplace(at.node, run.terms[g].clock);
        found->second = std::min(found->second, run.terms[g].clock);
      }
    }
  }
  for (const auto& [node, clock] : lowest) {
    Families::add(clocks, clock, {{"node", topology.node_name(node)}});
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

/// Adds what is known of the resource managers that lend nodes.
void add_managers(const HoldLink& link, Families& families) {
  std::vector<std::map<HoldState, std::size_t>> holds(link.pools().size());
  std::vector<std::size_t> lent(link.pools().size());
  for (const Hold& hold : link.holds()) {
    ++holds[hold.manager][hold.state];
    lent[hold.manager] += hold.nodes.size();
  }
  const auto of_each = [&](const Families::Name& name, const auto& value) {
    MetricFamily& family = families.family(name);
    for (std::uint32_t at = 0; at < link.pools().size(); ++at) {
      Families::add(family, value(at), {{"manager", link.pools()[at].manager}});
    }
  };
  of_each({"orrery_manager_trouble", "1 while a resource manager cannot be asked."},
          [&](std::uint32_t at) { return link.manager(at).trouble.empty() ? 0 : 1; });
  of_each({"orrery_manager_refused", "1 from a refusal of a hold until a hold is granted."},
          [&](std::uint32_t at) { return link.manager(at).refused.text.empty() ? 0 : 1; });
  of_each({"orrery_manager_newer",
           "1 while nothing is asked for, as holds are of a controller with a newer log."},
          [&](std::uint32_t at) { return link.manager(at).newer.empty() ? 0 : 1; });
  of_each({"orrery_manager_nodes_out_of_service",
           "Nodes that a resource manager keeps out of service, or does not have."},
          [&](std::uint32_t at) { return number(link.manager(at).out_of_service.size()); });
  of_each({"orrery_lent_nodes", "Nodes that a resource manager lends now."},
          [&](std::uint32_t at) { return number(lent[at]); });
  MetricFamily& states = families.family({"orrery_holds", "Holds, by manager and state."});
  for (std::uint32_t at = 0; at < link.pools().size(); ++at) {
    for (const EnumWord<HoldState>& state : enum_words(HoldState())) {
      Families::add(states, number(holds[at][state.value]),
                    {{"manager", link.pools()[at].manager}, {"state", std::string(state.word)}});
    }
  }
}

/// Adds a controller's part in the log; `leads` is 1 or 0.
void add_log_part(const StandbyProgress& progress, double leads, Families& families) {
  families.one({"orrery_leader", "1 on the controller that leads, 0 on a standby."}, leads);
  families.one({"orrery_log_term", "Newest claim of the log that this controller knows."},
               number(progress.term));
  families.one({"orrery_log_batch", "Newest batch of the log that this controller has."},
               number(progress.batch));
  families.one({"orrery_standby_lag_batches",
                "Batches of the log that a standby knows of and does not have yet."},
               number(progress.behind_batches));
  families.one({"orrery_standby_lag_seconds",
                "Time since a standby last had everything that the leader had written."},
               progress.behind.count_seconds());
}

}  // namespace

std::string metrics_text(const StandbyProgress& progress) {
  Families families;
  add_log_part(progress, 0, families);
  return families.text();
}

std::string metrics_text(const Controller& controller) {
  const State& state = controller.state();
  Families families;
  add_jobs(state, families);
  add_jobs_by_tenant(state, families);
  add_counts(controller.counts(), families);
  add_foreign_reports(controller.counts(), *controller.state().setup().topology, families);
  add_nodes(controller, families);
  add_readings(controller, families);
  add_accelerators(controller, families);
  if (const HoldLink* link = controller.holds().link()) add_managers(*link, families);
  const LiveLog& log = controller.store().log();
  add_log_part({.leader = {},
                .term = static_cast<std::uint64_t>(log.term()),
                .batch = log.newest(),
                .behind_batches = 0,
                .behind = {}},
               1, families);
  families.one({"orrery_log_bytes", "Bytes of a log that controllers share; 0 of another one."},
               number(controller.store().room().bytes()));
  families.one({"orrery_disk_free_bytes", "Free on the disk of the log."},
               number(controller.store().disk().free_bytes()));
  families.one({"orrery_store_full", "1 while submissions are refused for want of room."},
               controller.store().disk().room() == DiskRoom::kLow ? 1 : 0);
  families.one({"orrery_log_silent", "1 while the log cannot be written."},
               log.silence().empty() ? 0 : 1);
  families.one({"orrery_halted", "1 while nothing is decided: a part of the log is lost."},
               controller.host().halted().empty() ? 0 : 1);
  families.one({"orrery_events_total", "Events of the log.", MetricType::Counter},
               number(state.version()));
  const Core::PassCounts& passes = controller.host().core().passes();
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
