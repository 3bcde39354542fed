#include "executor/live/event_feed.hpp"

#include <gtest/gtest.h>

#include "base/system/real_env.hpp"
#include "control/scripted_cluster_test.hpp"
#include "executor/lab_test.hpp"

namespace orrery {
namespace {

class EventFeedTest : public ::testing::Test {
 protected:
  void decide(std::uint64_t input, std::uint32_t node) {
    const std::vector<Event> events{SpareSet{NodeId(node), true}};
    feed_.decided(input, Instant(), events);
  }
  EventFeed::WatchNumber watch() {
    return feed_.watch([this](const TimedEvent& event) {
      heard_.push_back(std::get<SpareSet>(event.what).node.value());
    });
  }

  ScriptedCluster cluster_;
  SilentLog sink_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  EventFeed feed_{real_->env(), Log(sink_), cluster_.state(), {}};
  std::vector<std::uint32_t> heard_;
};

TEST_F(EventFeedTest, AWatchHearsOfEventsOnceTheyAreDurable) {
  decide(1, 0);
  watch();
  decide(2, 1);
  decide(3, 2);
  decide(4, 3);
  feed_.durable(1);
  EXPECT_TRUE(heard_.empty());
  feed_.durable(3);
  EXPECT_EQ(heard_, (std::vector<std::uint32_t>{1, 2})) << "the first was decided before the watch";
  feed_.durable(4);
  EXPECT_EQ(heard_, (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST_F(EventFeedTest, AWatchThatIsRemovedHearsNothing) {
  const EventFeed::WatchNumber first = watch();
  decide(1, 0);
  EXPECT_TRUE(feed_.watched());
  feed_.unwatch(first);
  EXPECT_FALSE(feed_.watched());
  feed_.durable(1);
  EXPECT_TRUE(heard_.empty());
}

TEST_F(EventFeedTest, AWatchMayRemoveItselfAndAddAnother) {
  EventFeed::WatchNumber number = 0;
  number = feed_.watch([&](const TimedEvent&) {
    feed_.unwatch(number);
    watch();
  });
  decide(1, 0);
  decide(1, 1);
  feed_.durable(1);
  EXPECT_EQ(heard_, std::vector<std::uint32_t>{1});
}

TEST_F(EventFeedTest, AWatchThatAnotherOneRemovesHearsNothingMore) {
  EventFeed::WatchNumber second = 0;
  feed_.watch([&](const TimedEvent&) { feed_.unwatch(second); });
  second = watch();
  decide(1, 0);
  feed_.durable(1);
  EXPECT_TRUE(heard_.empty());
}

}  // namespace
}  // namespace orrery
