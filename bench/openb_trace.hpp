// bench/openb_trace.hpp - the public "openb" pods and nodes, and draws of arrivals from them.
//
// Source: the traces published with Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent", USENIX ATC 2023 (alibaba/clusterdata,
// cluster-trace-gpu-v2023): openb_pod_list_default.csv and openb_node_list_gpu_node.csv, here
// compressed with gzip. The files are not part of this repository.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "scheduler/request/share_request.hpp"

namespace orrery {

struct OpenbTrace {
  std::vector<ShareRequest> pods;
  std::vector<ShareNode> nodes;
  std::int64_t capacity = 0;  ///< thousandths of a device
};

/// Unpacks a gzip file; "" where it cannot be read.
inline std::string gzip_text(const std::string& path) {
  std::string text;
  std::FILE* pipe = popen(("gzip -dc '" + path + "' 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  char block[4096];
  for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) {
    text.append(block, n);
  }
  pclose(pipe);
  return text;
}

/// Rows of cells below the header; empty where the file cannot be read.
inline std::vector<std::vector<std::string>> gzip_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  const std::string text = gzip_text(path);
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}

/// Reads the trace; none where a file is missing. No pod of this list asks for a type of GPU.
inline std::optional<OpenbTrace> read_openb(const std::string& folder) {
  OpenbTrace trace;
  for (const auto& row : gzip_csv(folder + "/cluster/openb_pod_list_default.csv.gz")) {
    trace.pods.push_back({.cpu = std::stoll(row.at(1)),
                          .memory = std::stoll(row.at(2)),
                          .devices = std::stoi(row.at(3)),
                          .thousandths = std::stoi(row.at(4))});
  }
  std::map<std::string, int> types;
  for (const auto& row : gzip_csv(folder + "/cluster/openb_node_list_gpu_node.csv.gz")) {
    ShareNode node{.cpu_free = std::stoll(row.at(1)),
                   .memory_free = std::stoll(row.at(2)),
                   .devices = std::stoi(row.at(3))};
    node.type = types.try_emplace(row.at(4), static_cast<int>(types.size())).first->second;
    for (int i = 0; i < node.devices; ++i) {
      node.device_free[static_cast<std::size_t>(i)] = kDeviceThousandths;
    }
    trace.capacity += node.free_thousandths();
    trace.nodes.push_back(node);
  }
  if (trace.pods.empty() || trace.nodes.empty()) return std::nullopt;
  return trace;
}

template <class Value>
void shuffle(std::vector<Value>& values, Rng rng) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.below(i)]);
}

inline std::int64_t thousandths_of(const ShareRequest& pod) {
  return static_cast<std::int64_t>(pod.devices) * pod.thousandths;
}

/// Returns every pod of the trace once, shuffled, then pods drawn with replacement until the next
/// would pass 130 % of the capacity, as in the authors' program.
inline std::vector<ShareRequest> draw_arrivals(const OpenbTrace& trace, std::uint64_t seed) {
  std::vector<ShareRequest> arrivals = trace.pods;
  shuffle(arrivals, Rng::stream(seed, "openb order"));
  std::int64_t asked = 0;
  for (const ShareRequest& pod : arrivals) asked += thousandths_of(pod);
  Rng rng = Rng::stream(seed, "openb more");
  while (true) {
    const ShareRequest& pod = trace.pods[rng.below(trace.pods.size())];
    asked += thousandths_of(pod);
    if (asked * 10 > trace.capacity * 13) return arrivals;
    arrivals.push_back(pod);
  }
}

/// A variant of the trace's workload: pods more or less often, or changed.
struct OpenbMix {
  std::string_view name;
  double (*weight)(const ShareRequest& pod);
  ShareRequest (*change)(ShareRequest pod, Rng& rng);
};

/// Draws pods by the weights of the mix until they ask for as many GPUs as the trace's pods.
inline OpenbTrace mixed(OpenbTrace trace, const OpenbMix& mix) {
  double weight_max = 0;
  std::int64_t asked = 0;
  for (const ShareRequest& pod : trace.pods) {
    weight_max = std::max(weight_max, mix.weight(pod));
    asked += thousandths_of(pod);
  }
  Rng rng = Rng::stream(1, mix.name);
  std::vector<ShareRequest> pods;
  while (asked > 0) {
    const ShareRequest& pod = trace.pods[rng.below(trace.pods.size())];
    if (rng.uniform() * weight_max >= mix.weight(pod)) continue;
    pods.push_back(mix.change(pod, rng));
    asked -= thousandths_of(pods.back());
  }
  trace.pods = std::move(pods);
  return trace;
}

}  // namespace orrery
