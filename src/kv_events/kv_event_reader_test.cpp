#include "kv_events/kv_event_reader.hpp"

#include <gtest/gtest.h>
#include <zmq.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/system/real_loop.hpp"
#include "kv_events/kv_event_publisher.hpp"

namespace orrery {
namespace {

/// What a reader has heard: "ENGINE NUMBER EVENTS", or "ENGINE error".
class KvEventReaderTest : public testing::Test {
 protected:
  KvEventReaderTest()
      : loop_(*RealLoop::create()),
        reader_(*loop_, [this](std::uint64_t engine, const Result<KvEventMessage>& message) {
          if (message) {
            heard_.push_back(
                fmt::format("{} {} {}", engine, message->number, message->batch.events.size()));
          } else {
            heard_.push_back(fmt::format("{} {}", engine, message.error().message));
          }
        }) {}

  /// Sends one more message of each publisher from time to time until `count` have been heard.
  void publish_until(std::size_t count, const std::vector<KvEventPublisher*>& publishers) {
    for (int round = 0; round < 1000 && heard_.size() < count; ++round) {
      for (KvEventPublisher* each : publishers) each->publish({1, {KvCacheCleared()}});
      run(Duration::milliseconds(10));
    }
  }
  void run(Duration time) {
    bool over = false;
    loop_->call_after(time, [&over] { over = true; });
    while (!over) loop_->run_round();
  }
  static std::unique_ptr<KvEventPublisher> publisher() {
    return *KvEventPublisher::open("127.0.0.1:0");
  }

  std::unique_ptr<RealLoop> loop_;
  std::vector<std::string> heard_;
  KvEventReader reader_;
};

TEST_F(KvEventReaderTest, HearsTheMessagesOfEachEngineInOrderUntilItIsLeft) {
  const auto one = publisher();
  const auto other = publisher();
  reader_.follow({{1, one->address()}, {2, other->address()}});
  publish_until(40, {one.get(), other.get()});
  ASSERT_GE(heard_.size(), 40u);
  std::vector<std::size_t> last(3, 0);
  for (const std::string& each : heard_) {
    const std::size_t engine = each.starts_with("1 ") ? 1 : 2;
    const std::size_t number = std::stoul(each.substr(2));
    EXPECT_TRUE(last[engine] == 0 || number == last[engine] + 1) << each;
    last[engine] = number;
    EXPECT_TRUE(each.ends_with(" 1")) << each;
  }
  EXPECT_GT(last[1], 0u);
  EXPECT_GT(last[2], 0u);
  reader_.follow({{2, other->address()}});
  heard_.clear();
  publish_until(20, {one.get(), other.get()});
  for (const std::string& each : heard_) EXPECT_TRUE(each.starts_with("2 ")) << each;
}

TEST_F(KvEventReaderTest, WaitsForAnEngineThatComesLater) {
  const std::string address = publisher()->address();
  reader_.follow({{7, address}});
  run(Duration::milliseconds(50));
  EXPECT_TRUE(heard_.empty());
  const auto late = *KvEventPublisher::open(address);
  publish_until(1, {late.get()});
  ASSERT_FALSE(heard_.empty());
  EXPECT_TRUE(heard_[0].starts_with("7 "));
}

TEST_F(KvEventReaderTest, SaysWhatItCannotRead) {
  reader_.follow({{3, "no address"}});
  for (int round = 0; round < 100 && heard_.empty(); ++round) run(Duration::milliseconds(10));
  ASSERT_FALSE(heard_.empty());
  EXPECT_EQ(heard_[0].substr(0, 38), "3 cannot connect to \"no address\": Inva");
  heard_.clear();
  const ZmqContext context = make_zmq_context();
  const Result<ZmqSocket> socket = make_zmq_socket(context, ZMQ_PUB, 10);
  ASSERT_TRUE(socket);
  ASSERT_EQ(zmq_bind(socket->get(), "tcp://127.0.0.1:*"), 0);
  std::string bound(100, '\0');
  std::size_t size = bound.size();
  zmq_getsockopt(socket->get(), ZMQ_LAST_ENDPOINT, bound.data(), &size);
  reader_.follow({{4, std::string(bound.c_str()).substr(6)}});
  for (int round = 0; round < 1000 && heard_.empty(); ++round) {
    zmq_send(socket->get(), "only a topic", 12, 0);
    run(Duration::milliseconds(10));
  }
  ASSERT_FALSE(heard_.empty());
  EXPECT_EQ(heard_[0], "4 a message of 1 frames, expected a topic, a number of 8 bytes and events");
}

TEST(KvEventPublisher, RefusesAnAddressThatIsNone) {
  const auto opened = KvEventPublisher::open("nowhere");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "KV events: cannot listen at \"nowhere\", expected HOST:PORT: Invalid argument");
}

}  // namespace
}  // namespace orrery
