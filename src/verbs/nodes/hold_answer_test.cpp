#include "verbs/nodes/hold_answer.hpp"

#include <gtest/gtest.h>

#include "api/views.hpp"

namespace orrery {
namespace {

const Instant kNow = Instant() + Duration::hours(1000);

v1::ListHoldsResponse some_holds() {
  v1::ListHoldsResponse holds;
  v1::Hold& granted = *holds.add_holds();
  granted.set_id("pilot-3-1");
  granted.set_manager("hpc");
  granted.set_manager_id("70");
  granted.set_state("granted");
  granted.add_nodes("n1");
  granted.add_nodes("n2");
  granted.set_agents(1);
  granted.set_idle_s(90);
  *granted.mutable_since() = timestamp_of(kNow - Duration::minutes(5));
  *granted.mutable_ends() = timestamp_of(kNow + Duration::hours(2));
  v1::Hold& waiting = *holds.add_holds();
  waiting.set_id("pilot-3-2");
  waiting.set_manager("hpc");
  waiting.set_manager_id("71");
  waiting.set_state("waiting");
  waiting.set_asked_nodes(2);
  waiting.set_reason("Priority");
  *waiting.mutable_since() = timestamp_of(kNow - Duration::seconds(30));
  v1::ResourceManager& hpc = *holds.add_managers();
  hpc.set_name("hpc");
  hpc.set_nodes(8);
  hpc.set_lent(2);
  hpc.set_most(6);
  hpc.set_wait_p50_s(4);
  hpc.set_wait_p90_s(70);
  return holds;
}

TEST(HoldAnswer, ShowsHoldsAndTheirManagers) {
  EXPECT_EQ(holds_text(some_holds(), {.now = kNow}),
            "HOLD       MANAGER  ID  STATE    NODES  SINCE    IDLE  LEFT\n"
            "pilot-3-1  hpc      70  granted  n1 n2  5m ago     1m    2h  1 of 2 agents\n"
            "pilot-3-2  hpc      71  waiting  (2)    30s ago     -     -  Priority\n"
            "hpc: lends 2 of 8 nodes, at most 6; a hold waits 4s (median), 1m (90 %)\n");
}

TEST(HoldAnswer, SaysWhatIsWrongWithAManager) {
  v1::ListHoldsResponse holds = some_holds();
  holds.clear_holds();
  v1::ResourceManager& hpc = *holds.mutable_managers(0);
  hpc.clear_wait_p50_s();
  hpc.add_out_of_service("n3 (disk)");
  hpc.add_out_of_service("n4 (DOWN)");
  hpc.add_unknown("n9");
  hpc.set_trouble("squeue: exit status 1");
  *hpc.mutable_trouble_since() = timestamp_of(kNow - Duration::minutes(3));
  hpc.set_refused("auth: Invalid account");
  *hpc.mutable_retry_at() = timestamp_of(Instant() + Duration::hours(1001));
  hpc.set_newer("pilot-9-1");
  EXPECT_EQ(holds_text(holds, {.now = kNow}),
            "no holds\n"
            "hpc: lends 2 of 8 nodes, at most 6\n"
            "  out of service there: n3 (disk), n4 (DOWN)\n"
            "  not in the fleet: n9 (`orrery fleet apply` adds nodes)\n"
            "  cannot be asked (3m ago): squeue: exit status 1\n"
            "  refused (auth: Invalid account); asked again at 1970-02-11T17:00:00Z\n"
            "  pilot-9-1 is of a later controller: this log is an older copy, and nothing is asked "
            "for\n");
}

TEST(HoldAnswer, TellsTheWorkOfOthersAndWhatLoansCost) {
  v1::ListHoldsResponse holds = some_holds();
  holds.clear_holds();
  v1::ResourceManager& hpc = *holds.mutable_managers(0);
  hpc.set_use("lent");
  hpc.clear_wait_p50_s();
  hpc.set_foreign(3);
  *hpc.mutable_foreign_until() = timestamp_of(Instant() + Duration::hours(1001));
  hpc.mutable_time()->set_node_s(3000);
  hpc.mutable_time()->set_used_node_s(2000);
  v1::ResourceManager& shared = *holds.add_managers();
  shared.set_name("idle");
  shared.set_use("shared");
  shared.set_nodes(4);
  EXPECT_EQ(holds_text(holds, {.now = kNow}),
            "no holds\n"
            "hpc: lends 2 of 8 nodes, at most 6; others use 3, the first until "
            "1970-02-11T17:00:00Z; each used hour of a node cost 1.50 hours of loan\n"
            "idle: its 4 nodes are shared\n");
}

TEST(HoldAnswer, NamesTheFileWhereNoManagerLends) {
  EXPECT_EQ(holds_text({}, {.now = kNow}),
            "no resource manager lends nodes to this cluster (DIR/managers.yaml names them)\n");
}

}  // namespace
}  // namespace orrery
