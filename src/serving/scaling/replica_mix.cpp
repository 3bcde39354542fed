#include "serving/scaling/replica_mix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace orrery {
namespace {

/// What sums of shares and dollars may differ by and count as equal.
constexpr double kRounding = 1e-9;
constexpr std::uint32_t kBranchesMax = 200'000;

class MixSearch {
 public:
  MixSearch(std::span<const MixVariant> variants, const MixLimits& limits)
      : variants_(variants), limits_(limits), order_(variants.size()), counts_(variants.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // The variants that serve most for their cost come first, so that the first mix is the greedy
    // one.
    std::ranges::sort(order_, {}, [this](std::size_t v) { return std::pair(dearness(v), v); });
  }

  ReplicaMix best() {
    branch(0, {});
    return std::move(best_);
  }

 private:
  /// What is chosen so far.
  struct Sum {
    std::uint32_t replicas = 0;
    double serves = 0;
    double usd_s = 0;
    double watts = 0;
  };

  [[nodiscard]] double cost(std::size_t variant) const {
    return variants_[variant].usd_s + limits_.usd_per_joule * variants_[variant].watts;
  }
  /// Dollars for what a variant serves.
  [[nodiscard]] double dearness(std::size_t variant) const {
    const double serves = variants_[variant].serves;
    return serves > 0 ? cost(variant) / serves : std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] Sum with(const Sum& sum, std::size_t variant, std::uint32_t count) const {
    const MixVariant& each = variants_[variant];
    return {sum.replicas + count, sum.serves + count * each.serves,
            sum.usd_s + count * cost(variant), sum.watts + count * each.watts};
  }
  [[nodiscard]] static double unserved(double serves) {
    return serves >= 1 - kRounding ? 0 : 1 - serves;
  }
  [[nodiscard]] bool draws_too_much(const Sum& sum) const {
    return limits_.watts && sum.watts > *limits_.watts + kRounding;
  }

  void take(const Sum& sum) {
    if (sum.replicas < limits_.least || draws_too_much(sum)) return;
    if (!best_.counts.empty() && !is_better(sum)) return;
    best_ = {counts_, sum.serves, sum.usd_s};
  }

  [[nodiscard]] bool is_better(const Sum& sum) const {
    const double missing = unserved(sum.serves) - unserved(best_.serves);
    if (std::abs(missing) > kRounding) return missing < 0;
    const double dollars = sum.usd_s - best_.usd_s;
    if (std::abs(dollars) > kRounding * (1 + best_.usd_s)) return dollars < 0;
    return counts_ > best_.counts;
  }

  /// Whether no mix that begins with these counts is better than the best one.
  [[nodiscard]] bool is_hopeless(std::size_t depth, const Sum& sum) const {
    if (draws_too_much(sum)) return true;
    if (best_.counts.empty()) return false;
    double serves = sum.serves;
    double ratio = std::numeric_limits<double>::infinity();
    for (std::size_t i = depth; i < order_.size(); ++i) {
      const MixVariant& each = variants_[order_[i]];
      serves += each.serves * std::min(each.most, limits_.most - sum.replicas);
      ratio = std::min(ratio, dearness(order_[i]));
    }
    const double missing = unserved(best_.serves);
    if (unserved(serves) > missing + kRounding) return true;
    const double needed = 1 - missing - sum.serves;
    const double more = needed > 0 && std::isfinite(ratio) ? needed * ratio : 0;
    const bool equal_at_most = unserved(serves) >= missing - kRounding;
    return equal_at_most && sum.usd_s + more > best_.usd_s + kRounding * (1 + best_.usd_s);
  }

  void branch(std::size_t depth, const Sum& sum) {
    if (++branches_ > kBranchesMax || is_hopeless(depth, sum)) return;
    if (depth == order_.size()) return take(sum);
    const std::size_t variant = order_[depth];
    const MixVariant& each = variants_[variant];
    const std::uint32_t most = std::min(each.most, limits_.most - sum.replicas);
    // More than serve the rest are of use only to reach the least number of replicas.
    const double rest = unserved(sum.serves);
    const double enough = each.serves > 0 ? std::ceil(rest / each.serves) : 0;
    const std::uint32_t missing = limits_.least - std::min(limits_.least, sum.replicas);
    const double useful =
        std::max({enough, static_cast<double>(missing), static_cast<double>(each.least)});
    auto count = static_cast<std::uint32_t>(std::min<double>(most, useful));
    for (;; --count) {
      if (count < each.least) break;
      counts_[variant] = count;
      branch(depth + 1, with(sum, variant, count));
      if (count == 0) break;
    }
    counts_[variant] = 0;
  }

  std::span<const MixVariant> variants_;
  const MixLimits& limits_;
  std::vector<std::size_t> order_;
  std::vector<std::uint32_t> counts_;
  ReplicaMix best_;
  std::uint32_t branches_ = 0;
};

}  // namespace

ReplicaMix least_cost_mix(std::span<const MixVariant> variants, const MixLimits& limits) {
  return MixSearch(variants, limits).best();
}

}  // namespace orrery
