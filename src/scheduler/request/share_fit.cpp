#include "scheduler/request/share_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr double kNoFit = -std::numeric_limits<double>::infinity();
/// Kinds of requests cached before all are dropped: bounds the memory, not the answers.
constexpr std::size_t kKindsMax = 1024;

// The largest node of the public trace, by which the authors of FGD scale their best fit.
constexpr double kCpuMax = 128'000;
constexpr double kThousandthsMax = 8'000;

// Weights of the worth rule, set on other draws of the trace than those docs/benchmarks.md reports.
constexpr double kHostWeight = 0.5;
/// Worth that a free device is assumed to lose on a node in use: keeps empty nodes empty.
constexpr double kSpread = 0.0125;

/// Devices to try for a part: of those with equal free capacity only the first.
template <class Try>
void for_each_distinct_device(const ShareNode& node, int thousandths, Try&& attempt) {
  const auto begin = node.device_free.begin();
  for (int device = 0; device < node.devices; ++device) {
    const auto at = begin + device;
    if (*at < thousandths || std::find(begin, at, *at) != at) continue;
    attempt(static_cast<ShareDevices>(1U << device));
  }
}

double best_fit(const ShareNode& left) {
  return -static_cast<double>(left.cpu_free) / kCpuMax -
         static_cast<double>(left.free_thousandths()) / kThousandthsMax;
}

/// Whole points of 100, from falling fragmentation (above 50) to growing.
double gradient_points(double growth) {
  return std::floor(100 / (1 + exp(growth / kDeviceThousandths)));
}

/// For each node the nearest earlier one that is equal, or itself.
std::vector<std::size_t> twins_of(std::span<const ShareNode> nodes) {
  std::map<ShareNode, std::size_t> last;
  std::vector<std::size_t> twins;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto [found, fresh] = last.try_emplace(nodes[i], i);
    twins.push_back(found->second);
    found->second = i;
  }
  return twins;
}

/// The score of taking the request from devices already chosen.
class Judge {
 public:
  Judge(ShareRule rule, const ShareNode& node, const TypicalRequests& typical)
      : rule_(rule), node_(node), typical_(typical) {
    if (rule == ShareRule::kFragmentation) before_ = node_fragmentation(node, typical);
    if (rule == ShareRule::kWorth) before_ = node_worth(node, typical);
  }

  [[nodiscard]] double score(const ShareRequest& request, ShareDevices devices) const {
    ShareNode left = node_;
    take(left, request, devices);
    switch (rule_) {
      case ShareRule::kBestFit:
        return best_fit(left);
      case ShareRule::kFragmentation:
        return gradient_points(node_fragmentation(left, typical_) - before_);
      case ShareRule::kWorth:
        return node_worth(left, typical_) - before_ -
               kSpread * left.free_thousandths() / kDeviceThousandths;
    }
    return kNoFit;
  }

 private:
  ShareRule rule_;
  const ShareNode& node_;
  const TypicalRequests& typical_;
  double before_ = 0;
};

}  // namespace

double node_fragmentation(const ShareNode& node, const TypicalRequests& typical) {
  const int all = node.free_thousandths();
  double unusable = 0;
  for (const TypicalRequests::Common& kind : typical.common()) {
    int holding = 0;
    int usable = 0;
    for (int device = 0; device < node.devices; ++device) {
      const int free = node.device_free[static_cast<std::size_t>(device)];
      if (free < kind.thousandths) continue;
      ++holding;
      usable += free;
    }
    const bool serves = kind.thousandths > 0 && kind.cpu <= node.cpu_free &&
                        holding >= kind.devices && ((kind.types >> node.type) & 1U) != 0;
    unusable += kind.frequency * (serves ? all - usable : all);
  }
  return unusable;
}

double node_worth(const ShareNode& node, const TypicalRequests& typical) {
  double devices = 0;
  for (int device = 0; device < node.devices; ++device) {
    devices += typical.worth(node.device_free[static_cast<std::size_t>(device)]);
  }
  if (devices == 0) return 0;
  const auto cpu = static_cast<double>(node.cpu_free);
  const auto memory = static_cast<double>(node.memory_free);
  double usable = 0;
  for (const TypicalRequests::Host& host : typical.hosts()) {
    if (((host.types >> node.type) & 1U) == 0) continue;
    double limit = devices;
    if (limit * host.cpu_per_worth > cpu) limit = cpu / host.cpu_per_worth;
    if (limit * host.memory_per_worth > memory) limit = memory / host.memory_per_worth;
    usable += host.share * limit;
  }
  return devices + kHostWeight * usable;
}

ShareScore share_score(ShareRule rule, const ShareNode& node, const ShareRequest& request,
                       const TypicalRequests& typical) {
  const Judge judge(rule, node, typical);
  const ShareDevices tightest = tightest_devices(node, request);
  ShareScore best{.value = judge.score(request, tightest), .devices = tightest};
  if (!request.is_part() || rule == ShareRule::kBestFit) return best;
  for_each_distinct_device(node, request.thousandths, [&](ShareDevices devices) {
    const double value = judge.score(request, devices);
    if (value > best.value) best = {value, devices};
  });
  return best;
}

ShareFit::ShareFit(ShareRule rule, TypicalRequests typical, std::vector<ShareNode> nodes)
    : rule_(rule),
      typical_(std::move(typical)),
      nodes_(std::move(nodes)),
      twins_(twins_of(nodes_)),
      changed_at_(nodes_.size(), changes_) {}

ShareFit::Kind& ShareFit::kind_of(const ShareRequest& request) {
  const auto found = kinds_.find(request);
  if (found != kinds_.end()) return found->second;
  if (kinds_.size() >= kKindsMax) kinds_.clear();
  Kind& kind = kinds_[request];
  kind.scores.resize(nodes_.size());
  return kind;
}

ShareScore ShareFit::judged(const Kind& kind, std::size_t i, const ShareRequest& request) const {
  // Ties go to the first, so the untouched nodes of one make are the last: one judgement for all.
  const std::size_t twin = twins_[i];
  if (twin != i && nodes_[i] == nodes_[twin]) return kind.scores[twin];
  if (!fits(nodes_[i], request)) return {.value = kNoFit};
  return share_score(rule_, nodes_[i], request, typical_);
}

std::optional<ShareChoice> ShareFit::choose(const ShareRequest& request) {
  Kind& kind = kind_of(request);
  ShareScore best{.value = kNoFit};
  ShareNodeId chosen;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    ShareScore& score = kind.scores[i];
    if (changed_at_[i] > kind.seen) score = judged(kind, i, request);
    if (score.value <= best.value) continue;
    best = score;
    chosen = ShareNodeId::at(i);
  }
  kind.seen = changes_;
  if (!chosen.valid()) return std::nullopt;
  return ShareChoice{.node = chosen, .devices = best.devices};
}

void ShareFit::take(const ShareRequest& request, const ShareChoice& choice) {
  orrery::take(nodes_[choice.node.value()], request, choice.devices);
  changed_at_[choice.node.value()] = ++changes_;
}

void ShareFit::give_back(const ShareRequest& request, const ShareChoice& choice) {
  orrery::give_back(nodes_[choice.node.value()], request, choice.devices);
  changed_at_[choice.node.value()] = ++changes_;
}

}  // namespace orrery
