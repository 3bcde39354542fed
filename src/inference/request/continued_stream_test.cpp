// inference/request/continued_stream_test.cpp - streams that broke off, and their rest.
#include "inference/request/continued_stream.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inference/server/serving_replica_test.hpp"

namespace orrery {
namespace {

/// The events of a marked stream, the marks of each apart.
struct MarkedEvent {
  std::string marks;
  std::string event;
};

std::vector<MarkedEvent> marked_events(std::string_view body) {
  constexpr std::string_view kMark = ": continue ";
  std::vector<MarkedEvent> events(1);
  while (!body.empty()) {
    const std::string_view line = body.substr(0, body.find('\n'));
    body.remove_prefix(line.size() + 1);
    if (line.starts_with(kMark)) {
      events.back().marks += line.substr(kMark.size());
    } else if (line.empty()) {
      events.emplace_back();
    } else {
      events.back().event += line;
    }
  }
  events.pop_back();
  return events;
}

/// An event as it is whichever replica sends it: which of them had cached a prompt may differ.
Json same_anywhere(const std::string& event) {
  if (event == "data: [DONE]") return event;
  Json json = Json::parse(event.substr(6));
  if (json.contains("usage") && json["usage"].is_object()) {
    json["usage"].erase("prompt_tokens_details");
  }
  return json;
}

class ContinuedStreamTest : public ServingReplicaTest {
 protected:
  /// Has a stream of `body` broken off after each of its events, and expects of the same replica
  /// the rest as it would have come.
  void expect_the_rest(const std::string& path, const Json& body) {
    // An event for each token, and none where its text is held.
    for (const bool ids : {true, false}) {
      Json asked = body;
      asked.update({{"model", "tiny"}, {"stream", true}, {"return_token_ids", ids}});
      expect_the_rest_of(path, std::move(asked));
    }
  }

 private:
  void expect_the_rest_of(const std::string& path, Json body) {
    const auto stream = [&] {
      std::string text = request_text("POST", path, body.dump());
      RawPeer peer(replica_->endpoint());
      peer.send(text.insert(text.find("\r\n") + 2, "x-orrery-continue: marks\r\n"));
      const Answer answer = finish(peer);
      EXPECT_EQ(answer.status, 200) << answer.body;
      EXPECT_NE(answer.head.find("x-orrery-continue: marks"), std::string::npos) << answer.head;
      return marked_events(answer.body);
    };
    const std::vector<MarkedEvent> whole = stream();
    ASSERT_GE(whole.size(), 4U);
    std::string marks;
    for (std::size_t got = 1; got < whole.size(); ++got) {
      marks += whole[got - 1].marks;
      body["continue"] = marks;
      const std::vector<MarkedEvent> rest = stream();
      ASSERT_EQ(rest.size(), whole.size() - got) << got;
      for (std::size_t i = 0; i < rest.size(); ++i) {
        EXPECT_EQ(rest[i].marks, whole[got + i].marks) << got;
        EXPECT_EQ(same_anywhere(rest[i].event), same_anywhere(whole[got + i].event)) << got;
      }
    }
  }
};

TEST_F(ContinuedStreamTest, AStreamThatBrokeOffGoesOnWithTheSameEvents) {
  start_ready();
  const Json usage = {{"include_usage", true}};
  const std::string path = "/v1/completions";
  const Json plain{{"prompt", "hello"}, {"max_tokens", 24}, {"temperature", 0}};
  expect_the_rest(path, plain);
  Json drawn = plain;
  drawn.update({{"temperature", 1}, {"top_k", 9}, {"stream_options", usage}});
  expect_the_rest(path, drawn);
  // A character from the middle of the text ends it; an earlier one may begin another stop string.
  const std::string text = expected_text("hello", 24);
  std::string earlier;
  Json stopped = plain;
  stopped["stream_options"] = usage;
  for (std::size_t at = 0; at < text.size() && !stopped.contains("stop"); ++at) {
    if (text[at] <= ' ' || text[at] > '~') continue;
    const bool is_new = earlier.find(text[at]) == earlier.npos;
    if (at >= 6 && is_new && !earlier.empty()) {
      stopped["stop"] = {std::string(1, text[at]), earlier.substr(0, 1) + "never"};
    }
    earlier += text[at];
  }
  ASSERT_TRUE(stopped.contains("stop")) << "the model writes too few characters";
  expect_the_rest(path, stopped);
}

TEST_F(ContinuedStreamTest, AChatThatBrokeOffGoesOn) {
  start_chatting();
  const Json messages = {{{"role", "user"}, {"content", "hi"}}};
  expect_the_rest(
      "/v1/chat/completions",
      {{"messages", messages}, {"max_tokens", 9}, {"stream_options", {{"include_usage", true}}}});
}

TEST_F(ContinuedStreamTest, MarksThatDoNotFitAreRefused) {
  start_ready();
  const std::string mine = mark_of(ByteTokenizer());
  const std::string head = "1.cmpl-7.1700000000.ff.";
  const auto refused = [&](const std::string& marks, bool stream = true) {
    const Answer answer = complete({{"model", "tiny"},
                                    {"prompt", "hello"},
                                    {"max_tokens", 2},
                                    {"stream", stream},
                                    {"continue", marks}});
    EXPECT_EQ(answer.error("param"), "continue") << answer.body;
    return answer.status;
  };
  EXPECT_EQ(refused(head + "0123456789abcdef.AAB"), 409);
  EXPECT_EQ(refused(head + mine + ".___"), 400) << "no such token";
  EXPECT_EQ(refused(head + mine + ".AABAABAAB"), 400) << "more than max_tokens";
  EXPECT_EQ(refused(head + mine + ".AAB", false), 400) << "no stream";
  for (const char* each :
       {"", "1.cmpl-7", "2.a.1.1.b.AAB", "1.a b.1.1.b.AAB", "1.a.x.1.b.AAB", "1.a.1.z.b.AAB",
        "1.a.1.1.b.", "1.a.1.1.b.AA", "1.a.1.1.b.A?B", "1.a.1.1.b.$AAB"}) {
    EXPECT_FALSE(read_marks(each)) << each;
  }
}

}  // namespace
}  // namespace orrery
