#include "verbs/watch/event_stream.hpp"

#include "base/numbers/rng.hpp"
#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

using Stream = EventOrder::Stream;

v1::EventRow event_at(std::int64_t second, const std::string& type,
                      const std::string& fields = "{}") {
  v1::EventRow row;
  *row.mutable_at() = seconds_from_noon(second);
  row.set_type(type);
  row.set_fields(fields);
  return row;
}

TEST(EventTextTest, TimesHaveMillisecondsAndFactsStandInALine) {
  v1::EventRow row = event_at(
      0, "JobStopped",
      R"({"at": 1, "event": "JobStopped", "job": 3, "why": "no\u001b", "list": [1], "none": null,
          "empty": "", "lines": "a\nb", "blame": {"evidence": "exit 1", "rank": 0}})");
  row.mutable_at()->set_nanos(250'999'999);
  EXPECT_EQ(event_text(row),
            "2026-11-27T12:00:00.250Z  JobStopped  job=3  why=no\\x1b  none=-  blame=exit 1\n");
  row.mutable_at()->set_nanos(0);
  row.set_fields("no JSON");
  EXPECT_EQ(event_text(row), "2026-11-27T12:00:00.000Z  JobStopped\n");
}

TEST(EventJsonTest, FieldsAreAnObjectOrTheTextThatIsNone) {
  EXPECT_EQ(event_json(event_at(0, "JobStarted", R"({"job": 3})"))["fields"]["job"], 3);
  EXPECT_EQ(event_json(event_at(0, "JobStarted", "{"))["fields"], "{");
}

TEST(ReadSinceTest, AnAgeIsBeforeNowAndAnInstantIsItself) {
  const Instant now = Instant::parse("2026-11-27T12:00:00Z").value();
  EXPECT_EQ(read_since("2h", now)->text(), "2026-11-27T10:00:00Z");
  EXPECT_EQ(read_since("2026-12-01T06:00:00Z", now)->text(), "2026-12-01T06:00:00Z");
  EXPECT_EQ(read_since("lately", now).error().text(),
            "--since: \"lately\": expected an age, such as 2h, or an instant, such as "
            "2026-12-01T06:00:00Z");
}

TEST(EventRequestTest, WithoutATimeTheNewestAreAskedFor) {
  const Instant now = Instant::parse("2026-11-27T12:00:00Z").value();
  const auto newest = history_request({.node = "n1", .kind = "JobStarted"}, now);
  ASSERT_TRUE(newest);
  EXPECT_TRUE(newest->newest());
  EXPECT_FALSE(newest->has_since() || newest->has_job());
  EXPECT_EQ(newest->kind(), "JobStarted");
  const auto since = history_request({.job = "0", .since = "1 h"}, now);
  EXPECT_FALSE(since->newest());
  EXPECT_TRUE(since->has_job());
  EXPECT_EQ(since->since().seconds(), seconds_from_noon(-3600).seconds());
  EXPECT_FALSE(history_request({.job = "x"}, now));
  EXPECT_FALSE(watch_request({.job = "x"}));
  EXPECT_TRUE(watch_request({.tenant = "lab"})->mark_begin());
}

class Shown {
 public:
  [[nodiscard]] EventOrder::Show show() {
    return [this](const v1::EventRow& row) { types.push_back(row.type()); };
  }
  std::vector<std::string> types;
};

TEST(EventLineTest, AControlCharacterOfANameIsEscapedAsInJson) {
  v1::EventRow row;
  row.set_type("JobSubmitted");
  row.set_fields("{\"name\": \"a\x7f\\u001b\"}");
  const std::string line = event_json_line(row);
  EXPECT_NE(line.find("a\\u007f\\u001b"), std::string::npos) << line;
  const Json read = Json::parse(line, nullptr, false);
  ASSERT_FALSE(read.is_discarded()) << line;
  EXPECT_EQ(read["fields"]["name"], "a\x7f\x1b");
}

TEST(EventOrderTest, WhatTheStreamRepeatsOfTheLogIsShownOnce) {
  Shown shown;
  EventOrder order(Stream::kFollows, shown.show());
  order.begin_history();
  order.add_history(event_at(1, "a"));
  order.add_history(event_at(2, "b"));
  order.add_live(event_at(2, "b"));
  order.add_live(event_at(3, "c"));
  // The stream is lost; the log is read again since the newest that was shown.
  order.begin_history();
  order.add_history(event_at(3, "c"));
  order.add_history(event_at(4, "d"));
  order.add_live(event_at(4, "d"));
  EXPECT_EQ(shown.types, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(order.newest()->text(), "2026-11-27T12:00:04Z");
}

TEST(EventOrderTest, EqualEventsThatHappenTwiceAreShownTwice) {
  Shown shown;
  EventOrder order(Stream::kFollows, shown.show());
  order.begin_history();
  order.add_history(event_at(1, "a"));
  order.add_live(event_at(1, "a"));
  order.add_live(event_at(1, "a"));
  EXPECT_EQ(shown.types.size(), 2u);
}

TEST(EventOrderTest, WhereverAStreamIsLostEachEventIsShownOnce) {
  constexpr std::uint64_t kSeed = 17;
  Rng rng(kSeed);
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t kEvents = 20;
    std::vector<v1::EventRow> log;
    log.reserve(kEvents);
    std::int64_t second = 0;
    for (std::size_t i = 0; i < kEvents; ++i) {
      second += static_cast<std::int64_t>(rng.below(2));
      log.push_back(event_at(second, "e" + std::to_string(i)));
    }
    Shown shown;
    EventOrder order(Stream::kFollows, shown.show());
    for (std::size_t happened = 0; happened < log.size();) {
      const std::size_t begin = happened;
      happened = std::min(log.size(), happened + rng.below(6));
      order.begin_history();
      for (std::size_t i = 0; i < happened; ++i) {
        const bool asked = !order.newest() || instant_of(log[i].at()) >= *order.newest();
        if (asked) order.add_history(log[i]);
      }
      // The stream began before the log was read.
      for (std::size_t i = begin; i < happened; ++i) order.add_live(log[i]);
      const std::size_t more = std::min(log.size(), happened + 1 + rng.below(4));
      for (; happened < more; ++happened) order.add_live(log[happened]);
    }
    std::vector<std::string> expected;
    expected.reserve(log.size());
    for (const v1::EventRow& row : log) expected.push_back(row.type());
    ASSERT_EQ(shown.types, expected) << "seed " << kSeed << ", round " << round;
  }
}

using EventLogReaderTest = LiveClusterTest;

TEST_F(EventLogReaderTest, AllPagesAreReadAndASecondTimeThoseSinceTheNewest) {
  on<v1::ListEventsRequest>("ListEvents", [](const v1::ListEventsRequest& request) {
    v1::ListEventsResponse response;
    if (request.page_token().empty()) {
      *response.add_events() = event_at(1, "a");
      response.set_next_page_token("2");
    } else {
      *response.add_events() = event_at(2, "b");
    }
    return answer_with(response);
  });
  Shown shown;
  EventOrder order(Stream::kNone, shown.show());
  EventLogReader reader(session(), {}, order);
  ASSERT_TRUE(reader.read(now_));
  EXPECT_EQ(shown.types, (std::vector<std::string>{"a", "b"}));
  ASSERT_TRUE(reader.read(now_));
  const auto heard = this->heard<v1::ListEventsRequest>("ListEvents");
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_TRUE(heard[0].newest());
  EXPECT_FALSE(heard[2].newest());
  EXPECT_EQ(heard[2].since().seconds(), seconds_from_noon(2).seconds());
}

}  // namespace
}  // namespace orrery
