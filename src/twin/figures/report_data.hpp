// twin/figures/report_data.hpp - what a report of simulations shows: several policies on one fleet
// and trace.
//
// Plain values, filled by the caller that ran the simulations; nothing here is computed. Values
// that are empty, absent or not finite are left out of the report. "By type" is in the order of
// ReportData::types. Memory: as given; the report itself draws a bounded part of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/time.hpp"
#include "control/state/ledger.hpp"
#include "twin/figures/fairness.hpp"
#include "twin/information.hpp"
#include "twin/simulation.hpp"

namespace orrery {

/// The figures of one policy, in the units of their names.
struct PolicySummary {
  std::uint64_t jobs = 0;
  double avg_jct_s = 0;
  double avg_wait_s = 0;      ///< to the first start
  double avg_queueing_s = 0;  ///< before the first start and after each stop
  double p99_queueing_s = 0;
  double p50_jct_s = 0;
  double p99_jct_s = 0;
  double makespan_s = 0;
  double utilization = 0;  ///< share of device-time in use
  double goodput = 0;      ///< share of device-time that was useful
  double energy_kwh = 0;
  std::optional<double> cost_usd;
  std::optional<double> co2_kg;
  std::uint64_t preemptions = 0;
  std::uint64_t faults = 0;
  std::uint64_t corrupt = 0;    ///< jobs that finished with wrong results, undetected
  std::uint64_t never = 0;      ///< jobs that no state of the fleet could run
  std::uint64_t oversized = 0;  ///< jobs that ask for more than the fleet has
  std::uint64_t events = 0;
  double wall_s = 0;
  std::string history_hash;
};

/// The fleet at the instants `at`, ascending. Each other series is empty or as long as `at`.
struct FleetSamples {
  std::vector<Instant> at;
  std::vector<std::vector<double>> busy;  ///< devices in use, by type
  std::vector<double> free;               ///< devices
  std::vector<double> down;               ///< devices
  std::vector<double> power_w;
  std::vector<double> cap_w;        ///< what the fleet may draw; empty: not every part has a limit
  std::vector<double> queue;        ///< jobs waiting
  std::vector<double> usd_per_mwh;  ///< price of electricity
  std::vector<double> g_per_kwh;    ///< carbon of electricity
};

/// Jobs of one kind or size; both ascending.
struct JobClass {
  std::string name;
  std::vector<double> queueing_s;
  std::vector<double> jct_s;
};

struct FailureRecord {
  Instant at;
  std::string component;  ///< what failed: "accelerator memory", "switch"
  Duration detection;     ///< from the fault to its detection
  Duration repair;        ///< from the detection to the end of the repair
  std::uint32_t jobs_hit = 0;
};

/// Shares from 0 to 1 by row (a node, rack or pod) and then by equal parts of the window; NaN where
/// there is none.
struct RowMap {
  std::vector<std::string> rows;
  std::size_t columns = 0;
  std::vector<double> shares;
};

struct GanttRow {
  std::string name;
  std::uint32_t devices = 0;
};

/// The devices that one job held of one row, from its start there until it ended, stopped or
/// changed its devices.
struct GanttBar {
  std::string job;
  std::uint32_t row = 0;
  std::uint32_t group = 0;
  double devices = 0;  ///< shared devices count by their share
  Instant from;
  Instant to;
  bool fault = false;  ///< it ended by a fault of the hardware
};

/// Bars by start. `left_out` counts the attempts that are not drawn, those with the least work.
struct GanttChart {
  std::vector<GanttRow> rows;
  std::string grouped_by;
  std::vector<std::string> groups;
  std::vector<GanttBar> bars;
  std::size_t left_out = 0;
};

struct TenantUse {
  std::string name;
  double used_hours = 0;                   ///< device-hours
  std::optional<double> guaranteed_hours;  ///< device-hours promised over the window
};

struct SlowJob {
  std::string id;
  std::string tenant;
  std::string kind;
  std::uint32_t devices = 0;
  Duration queueing;
  Duration jct;
  std::string reason;               ///< reason for its wait
  std::vector<std::string> course;  ///< its submission, starts and stops, a line each
};

struct PolicyReport {
  std::string name;
  Information information = Information::kEstimate;
  PolicySummary summary;
  FleetSamples samples;
  std::vector<JobClass> classes;
  std::vector<UseHours> use;  ///< by type
  std::vector<FailureRecord> failures;
  RowMap fragmentation;  ///< share of the free devices that are in partly used nodes
  RowMap in_use;         ///< of all devices
  RowMap power;          ///< of a rack's limit, or of its nodes' ratings where it has none
  GanttChart gantt;
  std::vector<TenantUse> tenants;
  FairnessFigures fairness;
  std::vector<SlowJob> slowest;
};

/// Whether time is that of a calendar (a trace with dates) or only what passed since `from`.
enum class TimeAxis : std::uint8_t { kElapsed, kCalendar };

struct ReportData {
  std::string title;
  std::string fleet;
  std::string trace;
  Instant from;
  Instant to;
  TimeAxis time = TimeAxis::kElapsed;
  std::uint64_t seed = 0;
  std::string failures;  ///< the profile; empty: none were injected
  std::string measured;  ///< jobs that figures cover; empty: all
  std::string command;
  std::vector<std::string> notes;  ///< assumptions to report
  std::vector<std::string> types;  ///< accelerators of the fleet
  std::vector<PolicyReport> policies;
};

}  // namespace orrery
