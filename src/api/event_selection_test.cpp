// api/event_selection_test.cpp - events are found by what they are about, and shown with names.
#include "api/event_selection.hpp"

#include "api/serving_test.hpp"

namespace orrery {
namespace {

TEST(EventSelection, FindsByJobNodeKindAndTime) {
  const Instant at = Instant() + Duration::seconds(100);
  JobStarted start{.job = JobId(3), .attempt = 1};
  start.gangs.push_back({.allocation = {.ranks = {{NodeId(2), 3}}}});
  const TimedEvent started{at, start};
  const TimedEvent lost{at, NodeChanged{NodeId(2), NodeHealth::kLost, {}, false, {}}};
  const TimedEvent stopping{at, JobStopping{.job = JobId(4), .blame = {.node = NodeId(2)}}};
  EventSelection filter;
  for (const TimedEvent& each : {started, lost, stopping}) EXPECT_TRUE(filter.matches(each));
  filter.node = EventSelection::OfNode{"n2", NodeId(2), {}};
  for (const TimedEvent& each : {started, lost, stopping}) EXPECT_TRUE(filter.matches(each));
  filter.job = JobId(3);
  EXPECT_TRUE(filter.matches(started));
  EXPECT_FALSE(filter.matches(lost));
  EXPECT_FALSE(filter.matches(stopping));
  filter.node = EventSelection::OfNode{"n1", NodeId(1), {}};
  EXPECT_FALSE(filter.matches(started));
  filter = {.node = EventSelection::OfNode{"n2", NodeId(2), at}};
  EXPECT_TRUE(filter.matches(lost));
  filter.node->since = at + Duration::nanoseconds(1);
  EXPECT_FALSE(filter.matches(lost)) << "of another fleet";
  filter.node = EventSelection::OfNode{"n2", NodeId(), {}};
  EXPECT_FALSE(filter.matches(lost)) << "retired";
  filter = {.kind = lost.what.index()};
  EXPECT_TRUE(filter.matches(lost));
  EXPECT_FALSE(filter.matches(started));
  filter = {.since = at + Duration::seconds(1)};
  EXPECT_FALSE(filter.matches(lost));
}

using EventSelectionServer = ServerTest;

TEST_F(EventSelectionServer, HasHistoryNamesAndPages) {
  Client client = this->client("admin");
  v1::SubmitJobRequest job;
  job.set_spec(
      "apiVersion: orrery/v1\nkind: Batch\nname: one\nroles: [{accelerators: 8}]\n"
      "launch: {command: [\"true\"]}\n");
  for (int i = 0; i < 3; ++i) {
    const auto made = client.call<v1::SubmitJobResponse>("SubmitJob", job);
    ASSERT_TRUE(made) << made.error().text();
  }
  v1::ListEventsRequest asked;
  asked.set_kind("jobsubmitted");
  asked.set_page_size(2);
  std::vector<std::string> names;
  for (int page = 0; page < 5; ++page) {
    const auto events = client.call<v1::ListEventsResponse>("ListEvents", asked);
    ASSERT_TRUE(events) << events.error().text();
    for (const v1::EventRow& row : events->events()) {
      EXPECT_EQ(row.type(), "JobSubmitted");
      const auto fields = nlohmann::json::parse(row.fields());
      names.push_back(row.fields());
      EXPECT_TRUE(fields["submission"]["request"]["tenant"].is_string()) << row.fields();
    }
    if (events->next_page_token().empty()) break;
    asked.set_page_token(events->next_page_token());
  }
  EXPECT_EQ(names.size(), 3u);

  v1::ListEventsRequest newest;
  newest.set_job(2);
  newest.set_newest(true);
  newest.set_page_size(1);
  const auto last = client.call<v1::ListEventsResponse>("ListEvents", newest);
  ASSERT_TRUE(last) << last.error().text();
  ASSERT_EQ(last->events_size(), 1);
  EXPECT_EQ(nlohmann::json::parse(last->events(0).fields())["job"], 2);

  for (const char* kind : {"JobStart", "x"}) {
    newest.set_kind(kind);
    EXPECT_FALSE(client.call<v1::ListEventsResponse>("ListEvents", newest)) << kind;
  }
  newest = {};
  newest.set_node("nowhere");
  EXPECT_FALSE(client.call<v1::ListEventsResponse>("ListEvents", newest));
  newest = {};
  newest.set_page_token("1:zz:0");
  EXPECT_FALSE(client.call<v1::ListEventsResponse>("ListEvents", newest));
}

}  // namespace
}  // namespace orrery
