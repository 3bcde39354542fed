#include "verbs/nodes/power_answer.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

v1::PowerDomain domain_named(const std::string& name, const std::string& kind) {
  v1::PowerDomain domain;
  domain.set_name(name);
  domain.set_kind(kind);
  domain.set_planned_w(123'449);
  domain.set_most_w(400'000);
  return domain;
}

TEST(PowerTextTest, RacksWithoutACapAreCountedAndOthersShownInKilowatts) {
  v1::ListPowerDomainsResponse domains;
  EXPECT_EQ(power_text(domains, Racks::kAll), "the fleet has no power limits\n");
  *domains.add_domains() = domain_named("site/feeds", "feeds");
  domains.mutable_domains(0)->set_limit_w(500'050);
  domains.mutable_domains(0)->set_supply("2 x 500 kW, N+1");
  *domains.add_domains() = domain_named("r1", "rack");
  *domains.add_domains() = domain_named("r2", "rack");
  domains.mutable_domains(2)->set_cap_w(0);
  EXPECT_EQ(power_text(domains, Racks::kCapped),
            "NAME        KIND    PLANNED     LIMIT     CAP  ALL BUSY  SUPPLY\n"
            "site/feeds  feeds  123.4 kW  500.1 kW       -  400.0 kW  2 x 500 kW, N+1\n"
            "r2          rack   123.4 kW         -  0.0 kW  400.0 kW\n"
            "(racks not shown: 1; `orrery power --all` includes them)\n");
  const std::string all = power_text(domains, Racks::kAll);
  EXPECT_NE(all.find("\nr1 "), std::string::npos);
  EXPECT_EQ(all.find("not shown"), std::string::npos);
}

TEST(CapRequestTest, APowerIsInWattsAndNoneIsAbsent) {
  EXPECT_DOUBLE_EQ(cap_request({"site", "1.5 MW"})->cap_w(), 1.5e6);
  EXPECT_FALSE(cap_request({"site", "none"})->has_cap_w());
  for (const char* wrong : {"", "400", "0 W", "-3 kW", "4 kg", "None"}) {
    const auto request = cap_request({"site", wrong});
    ASSERT_FALSE(request) << wrong;
    EXPECT_TRUE(request.error().text().starts_with("--power: ")) << request.error().text();
  }
}

TEST(CapAnswerTest, AnExceededLimitAndOneBelowIdleAreTold) {
  v1::PowerDomain domain = domain_named("ha\nll", "row");
  EXPECT_EQ(cap_answer(domain).text, "ha\\nll: 123.4 kW planned, limit none\n");
  EXPECT_EQ(cap_answer(domain).after, "");
  domain.set_limit_w(100'000);
  domain.set_idle_w(120'000);
  const LiveAnswer answer = cap_answer(domain);
  EXPECT_EQ(answer.text,
            "ha\\nll: 123.4 kW planned, limit 100.0 kW; jobs are slowed or stopped until the "
            "planned power is below the limit\n");
  EXPECT_EQ(answer.after,
            "orrery: warning: ha\\nll cannot stay below 100.0 kW: its idle nodes draw 120.0 kW. No "
            "job starts there until the cap is raised or removed (`orrery power cap ha\\nll "
            "none`)\n");
  domain.set_idle_w(100'000);
  EXPECT_EQ(cap_answer(domain).after, "");
}

using PowerAnswerTest = LiveClusterTest;

TEST_F(PowerAnswerTest, ACapIsSetUnderARequestOfItsOwn) {
  answers<v1::SetPowerCapRequest>("SetPowerCap", domain_named("site", "cap"));
  ASSERT_TRUE(set_power_cap(call(), {"site", "400 kW"}));
  const auto request = heard<v1::SetPowerCapRequest>("SetPowerCap").at(0);
  EXPECT_EQ(request.name(), "site");
  EXPECT_FALSE(request.request_id().empty());
  EXPECT_FALSE(set_power_cap(call(), {"site", "much"}));
  EXPECT_EQ(heard<v1::SetPowerCapRequest>("SetPowerCap").size(), 1u);
}

}  // namespace
}  // namespace orrery
