// twin/design/design.hpp - from power, money and a mix of work to a fleet: what to buy, how many,
// with which storage and spares, and what it will achieve.
//
// Every candidate gets a rate at each work (a plan search each). A fleet of one type, or of two
// with the works divided between them, is then the solution of a linear programme whose only limits
// are power and money. The best is sized exactly: built by the fleet builder, with network,
// storage, spares and cooling, and cut until it is inside its limits.
// Values that point into the catalog and the spec, which must outlive them. Pure and deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "twin/design/design_site.hpp"

namespace orrery {

enum class DesignLimit : std::uint8_t { kPower, kMoney };

inline std::array<EnumWord<DesignLimit>, 2> enum_words(DesignLimit) {
  return {{{"power", DesignLimit::kPower}, {"money", DesignLimit::kMoney}}};
}

/// A possible fleet, by rates, ratings and prices alone: no network, storage or spares yet.
struct DesignOption {
  std::vector<std::size_t> candidate_of;  ///< by work
  double work = 0;   ///< in accelerators of the reference, while the mix is kept
  double score = 0;  ///< by the objective
  Watts power;       ///< at the meter
  std::optional<Dollars> cost;
  DesignLimit limit = DesignLimit::kPower;
  std::string label;  ///< "nvidia-h100-sxm5-80g"
  std::string why;    ///< reason why it was not chosen
};

/// Parts of the time of all accelerators; they sum to 1.
struct DesignUse {
  double useful = 0;
  double checkpoints = 0;
  double lost = 0;
  double undetected = 0;
  double starting = 0;
  double unused = 0;  ///< spare, broken, or left over
};

template <class Visitor, SameStruct<DesignUse> Self>
void describe(Visitor& visitor, Self& u) {
  visitor.required("useful", u.useful);
  visitor.required("checkpoints", u.checkpoints);
  visitor.required("lost", u.lost);
  visitor.required("undetected", u.undetected);
  visitor.required("starting", u.starting);
  visitor.required("unused", u.unused);
}

/// The result of one work on the fleet.
struct DesignedWork {
  const DesignWork* asked = nullptr;
  std::size_t group = 0;
  WorkRate rate;
  std::uint32_t jobs = 0;  ///< at a time
  JobGoodput goodput;      ///< of one
  double tokens = 0;       ///< a second, of all jobs, net of faults and checkpoints

  [[nodiscard]] double accelerators() const { return double{1} * jobs * rate.accelerators; }
};

/// Groups point to the candidates, so it can be moved but not copied.
struct Design {
  Design() = default;
  Design(Design&&) = default;
  Design& operator=(Design&&) = default;

  const DesignSpec* spec = nullptr;
  double beside = 0;  ///< price of network and storage over that of the nodes
  std::vector<DesignCandidate> candidates;
  DesignOption chosen;
  std::vector<DesignOption> others;  ///< best first
  std::vector<std::string> refused;  ///< candidates that cannot do all the work, and why
  std::vector<DesignGroup> groups;
  std::vector<DesignedWork> works;
  StorageChoice storage;
  DesignedSite site;
  std::vector<BillRow> bill;
  DesignUse predicted;
  const FailureSpec* failures = nullptr;
  std::string reference;  ///< candidate in whose accelerators work is measured
  std::optional<Dollars> energy_per_year;
  std::optional<Dollars> useful_hour;  ///< of one accelerator, purchase and electricity

  [[nodiscard]] double accelerators() const;
};

/// Called with each candidate before its plans are searched.
using DesignProgress = std::function<void(const DesignCandidate&)>;

/// Errors: kInput with file:line:column, unknown names among them; kInfeasible: no candidate does
/// all the work, with each one's reason; the limits hold no fleet with one job of each work, with
/// the smallest change that does.
[[nodiscard]] Result<Design> design_fleet(const FactsView& facts, const DesignSpec& spec,
                                          const DesignProgress& progress);

}  // namespace orrery
