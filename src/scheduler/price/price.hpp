// scheduler/price/price.hpp - what starting a job in a certain way costs, term by term, in
// millionths of a dollar.
//
// Everything that a placement decides is converted to money by the weights of the policy
// (PriceWeights), so that a faster type, a warmer site, a healthier link and a lost hour of another
// job's work can be weighed against each other. Integers: equal on every CPU, summed in any order.
#pragma once

#include <array>
#include <cstdint>

#include "base/format/field_reader.hpp"

namespace orrery {

enum class PriceTerm : std::uint8_t {
  kHire,    ///< hire of the job's devices until it is done
  kEnergy,  ///< electricity of the devices
  kCarbon,
  kTime,           ///< time of the job's owner until the job is done
  kFragmentation,  ///< devices it leaves stranded
  kLostWork,       ///< lost work of the jobs that make room
  kData,           ///< copying data to where the job runs
  kFailure,        ///< expected loss to failures
  kLateness,       ///< time beyond the job's deadline
  kHeadroom,       ///< share taken of the tightest power limit
};

inline constexpr std::size_t kPriceTerms = 10;

inline std::array<EnumWord<PriceTerm>, kPriceTerms> enum_words(PriceTerm) {
  return {{{"hire", PriceTerm::kHire},
           {"energy", PriceTerm::kEnergy},
           {"carbon", PriceTerm::kCarbon},
           {"time", PriceTerm::kTime},
           {"fragmentation", PriceTerm::kFragmentation},
           {"lost-work", PriceTerm::kLostWork},
           {"data", PriceTerm::kData},
           {"failure", PriceTerm::kFailure},
           {"lateness", PriceTerm::kLateness},
           {"headroom", PriceTerm::kHeadroom}}};
}

struct Price {
  std::array<std::int64_t, kPriceTerms> micro_dollars{};

  [[nodiscard]] std::int64_t operator[](PriceTerm term) const {
    return micro_dollars[static_cast<std::size_t>(term)];
  }
  [[nodiscard]] std::int64_t& operator[](PriceTerm term) {
    return micro_dollars[static_cast<std::size_t>(term)];
  }
  [[nodiscard]] std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t term : micro_dollars) sum += term;
    return sum;
  }
  Price& operator+=(const Price& other) {
    for (std::size_t i = 0; i < kPriceTerms; ++i) micro_dollars[i] += other.micro_dollars[i];
    return *this;
  }
  friend bool operator==(const Price&, const Price&) = default;
};

}  // namespace orrery
