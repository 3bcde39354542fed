// scheduler/plans/typical_requests.hpp - the distribution of requests.
//
// Made from past requests; share_fit.hpp uses it to judge what a node is still good for. Immutable.
// It does not know which request comes next. Cost of make(): that of sorting, and part_prices().
#pragma once

#include <span>
#include <vector>

#include "scheduler/price/part_prices.hpp"
#include "scheduler/request/share_request.hpp"

namespace orrery {

class TypicalRequests {
 public:
  /// One kind of request as FGD defines it: memory is ignored.
  struct Common {
    std::int64_t cpu = 0;
    int devices = 0;
    int thousandths = 0;
    std::uint32_t types = 0;
    double frequency = 0;  ///< sums to 1 over common()

    auto operator<=>(const Common&) const = default;
  };

  /// What a kind of request needs in addition to the devices it pays for.
  struct Host {
    double cpu_per_worth = 0;     ///< thousandths of a core for each device's worth
    double memory_per_worth = 0;  ///< MiB
    std::uint32_t types = 0;
    double share = 0;  ///< fraction of all requested worth; sums to 1 over hosts()
  };

  /// `requests` is a sample in which each counts once. It may be empty.
  [[nodiscard]] static TypicalRequests make(std::span<const ShareRequest> requests);

  /// The most frequent kinds that together make up at least 95 % of all, most frequent first,
  /// including requests without devices.
  [[nodiscard]] std::span<const Common> common() const { return common_; }

  /// All kinds that request devices, merged where they have the same needs.
  [[nodiscard]] std::span<const Host> hosts() const { return hosts_; }

  /// Worth of a device with so many thousandths free, in whole devices: half by the prices of
  /// part_prices.hpp, half by the amount. A price alone does not distinguish between perfect
  /// packings.
  [[nodiscard]] double worth(int thousandths) const {
    return worth_[static_cast<std::size_t>(thousandths)];
  }

 private:
  std::vector<Common> common_;
  std::vector<Host> hosts_;
  PartPrices worth_{};
};

}  // namespace orrery
