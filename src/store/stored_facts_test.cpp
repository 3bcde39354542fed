#include "store/stored_facts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

constexpr const char* kFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: here
  halls:
  - name: hall
    pods:
    - racks: [{nodes: [{type: dgx-h100, count: 2}]}]
)";

constexpr const char* kFacts = R"(---
apiVersion: orrery/v1
kind: Catalog
name: prices
accelerator_prices:
- {accelerator: nvidia-h100-sxm5-80g, ondemand_typical_usd_per_hour: 36}
---
apiVersion: orrery/v1
kind: Calibration
name: measured
constants:
- {id: jitter, value: 0.125, prior: 0.125, spread: 0.1, low: 0, high: 1}
)";

const Facts& base() {
  static const Facts kBase = *Facts::load({});
  return kBase;
}

SetupTexts texts_of(const std::string& fleet) {
  return {.fleet = fleet,
          .tenants = "",
          .policy = "apiVersion: orrery/v1\nkind: Policy\nname: easy\n",
          .begin = {},
          .writer = "test"};
}

double hire_of(const StoredFacts& stored) {
  const DeviceCosts& costs = *stored.facts->costs().at(stored.facts->topology(), NodeId(0));
  return costs.hire->value() * 3600;
}

TEST(StoredFacts, AFleetBringsPricesAndConstants) {
  const Result<StoredFacts> plain = stored_facts(base(), texts_of(kFleet));
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(plain->own, nullptr);
  const Result<StoredFacts> priced = stored_facts(base(), texts_of(std::string(kFleet) + kFacts));
  ASSERT_TRUE(priced) << priced.error().text();
  EXPECT_LT(hire_of(*plain), 20);
  EXPECT_NEAR(hire_of(*priced), 36, 1e-9);
  EXPECT_EQ(priced->facts->facts().calibration.find("jitter"), 0.125);
  EXPECT_EQ(&priced->facts->facts().models, &base().models());
  EXPECT_EQ(priced->facts->topology().node_count(), plain->facts->topology().node_count());
}

TEST(StoredFacts, NamesTheLineOfWhatIsWrong) {
  const auto refusal = [](std::string facts, const std::string& from, const std::string& to) {
    facts.replace(facts.find(from), from.size(), to);
    const Result<StoredFacts> stored = stored_facts(base(), texts_of(std::string(kFleet) + facts));
    return stored ? std::string("accepted") : stored.error().text();
  };
  EXPECT_TRUE(refusal(kFacts, "h100-sxm5-80g", "h1000").starts_with("fleet.yaml:15:"))
      << refusal(kFacts, "h100-sxm5-80g", "h1000");
  EXPECT_TRUE(refusal(kFacts, "jitter", "jiter").starts_with("fleet.yaml:21:"))
      << refusal(kFacts, "jitter", "jiter");
  EXPECT_EQ(refusal(kFacts, "kind: Catalog", "kind: Policy"),
            "fleet.yaml:12:7: expected a document of kind Catalog or Calibration after the fleet, "
            "found \"Policy\"");
}

}  // namespace
}  // namespace orrery
