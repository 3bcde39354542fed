// bench/fault_data.hpp - three public records of failures as lists of observed faults.
//
//   infinitehbd_faults.json         400 servers of 8 GPUs, 348 days: stepfun-ai/InfiniteHBD-Trace
//   titan_gpu_gc_full.csv           GPUs of Titan, 2013 to 2019: olcf/TitanGPULife (Ostrouchov et
//                                   al., SC 2020)
//   lanl_campaign_disk_failures.csv disks of LANL's campaign storage: doi 10.13139/OLCF/2446874
//
// Here each is compressed with gzip. The files are not part of this repository.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "bench/openb_trace.hpp"
#include "hardware/reliability.hpp"
#include "twin/faults/failure_fit.hpp"

namespace orrery {

struct FaultRecord {
  std::vector<ObservedFault> faults;
  std::vector<FaultKind> kinds;  ///< of the faults
  std::uint32_t units = 0;
  Duration length;

  [[nodiscard]] Observation seen() const { return {faults, units, length}; }

  void add(const ObservedFault& fault, FaultKind kind) {
    faults.push_back(fault);
    kinds.push_back(kind);
  }
};

/// "2016-07-19 20:15:20" and "2021-05-04T17:03:13", taken as UTC.
inline std::optional<Instant> instant_of(std::string text) {
  if (text.size() != 19) return std::nullopt;
  text[10] = 'T';
  const Result<Instant> read = Instant::parse(text + "Z");
  return read ? std::optional(*read) : std::nullopt;
}

/// The fault kind for a class of the InfiniteHBD record.
inline FaultKind kind_of_class(std::string_view level, std::string_view name) {
  if (level == "Software Failure") return FaultKind::kSoftware;
  if (name == "GPU") return FaultKind::kAccelerator;
  if (name == "Parameter Plane Cable") return FaultKind::kOptics;
  if (name == "NIC") return FaultKind::kNic;
  if (level == "Hardware Failure") return FaultKind::kHost;
  if (name == "Stress Test Failure" || name == "Change" || name == "Test") {
    return FaultKind::kMaintenance;
  }
  return FaultKind::kSoftware;  // unknown causes, troubleshooting, crashes
}

inline std::optional<FaultRecord> read_infinitehbd(const std::string& folder) {
  const std::string text = gzip_text(folder + "/failures/infinitehbd_faults.json.gz");
  const nlohmann::json events = nlohmann::json::parse(text, nullptr, false);
  if (!events.is_array()) return std::nullopt;
  const auto at = [](double days) { return Instant() + Duration::from_seconds(days * 86400); };
  std::map<std::string, std::uint32_t> units;
  std::map<std::uint32_t, std::pair<Instant, FaultKind>> open;
  std::vector<std::pair<ObservedFault, FaultKind>> faults;
  for (const nlohmann::json& event : events) {
    const auto unit =
        units.try_emplace(event["node_id"], static_cast<std::uint32_t>(units.size())).first->second;
    const Instant when = at(event["event_time"].get<double>());
    const nlohmann::json& type = event["fault_type"];
    if (event["event_type"] == "fault_start") {
      open[unit] = {
          when, kind_of_class(type["Level"].get<std::string>(), type["Class"].get<std::string>())};
    } else if (const auto start = open.find(unit); start != open.end()) {
      faults.push_back({{start->second.first, when, unit}, start->second.second});
      open.erase(start);
    }
  }
  std::stable_sort(faults.begin(), faults.end(),
                   [](const auto& a, const auto& b) { return a.first.at < b.first.at; });
  FaultRecord record{.faults = {}, .kinds = {}, .units = 400, .length = Duration::hours(24) * 348};
  for (const auto& [fault, kind] : faults) record.add(fault, kind);
  return record;
}

/// A double-bit error is a memory fault, off the bus an accelerator fault. The length is such that
/// 18,688 GPUs have the hours that the rows sum to.
inline std::optional<FaultRecord> read_titan(const std::string& folder) {
  std::vector<std::pair<ObservedFault, FaultKind>> faults;
  std::map<std::string, std::uint32_t> units;
  double seconds = 0;
  for (const auto& row : gzip_csv(folder + "/failures/titan_gpu_gc_full.csv.gz")) {
    if (!row.at(4).empty()) seconds += std::stod(row.at(4));
    if (row.size() < 7 || row[6].empty()) continue;
    const std::optional<Instant> at = instant_of(row.at(3));
    if (!at) continue;
    const auto unit =
        units.try_emplace(row.at(0), static_cast<std::uint32_t>(units.size())).first->second;
    faults.push_back(
        {{*at, *at, unit}, row[6] == "DBE" ? FaultKind::kHbm : FaultKind::kAccelerator});
  }
  if (faults.empty()) return std::nullopt;
  std::stable_sort(faults.begin(), faults.end(),
                   [](const auto& a, const auto& b) { return a.first.at < b.first.at; });
  constexpr std::uint32_t kGpus = 18688;
  FaultRecord record{
      .faults = {}, .kinds = {}, .units = kGpus, .length = Duration::from_seconds(seconds / kGpus)};
  for (const auto& [fault, kind] : faults) record.add(fault, kind);
  return record;
}

/// A unit is an enclosure of a rack.
inline std::optional<FaultRecord> read_lanl(const std::string& folder) {
  FaultRecord record;
  std::map<std::string, std::uint32_t> units;
  for (const auto& row : gzip_csv(folder + "/failures/lanl_campaign_disk_failures.csv.gz")) {
    const std::optional<Instant> at = instant_of(row.at(1));
    if (!at) continue;
    const auto unit =
        units.try_emplace(row.at(3) + "/" + row.at(4), static_cast<std::uint32_t>(units.size()))
            .first->second;
    record.add({*at, *at, unit}, FaultKind::kHost);
  }
  if (record.faults.size() < 2) return std::nullopt;
  std::stable_sort(record.faults.begin(), record.faults.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  record.units = static_cast<std::uint32_t>(units.size());
  record.length = record.faults.back().at - record.faults.front().at;
  return record;
}

}  // namespace orrery
