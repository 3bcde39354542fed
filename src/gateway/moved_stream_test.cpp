// gateway/moved_stream_test.cpp - streams that break off and go on at another replica.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gateway/gateway_test.hpp"
#include "gateway/stream/stream_marks.hpp"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBody =
    R"({"model":"m","stream":true,"stream_options":{"include_usage":true}} )";

/// The events of the engine in these tests, the marks of each apart: an answer of three tokens, the
/// usage, and the end. A mark names how many events there were.
struct Event {
  std::string mark;
  std::string data;
};
const std::vector<Event>& events() {
  static const std::vector<Event> all = {
      {": continue id.7.\n: continue a\n", "data: {\"id\":\"s\",\"text\":\"h\xC3\xA9\"}\n\n"},
      {": continue a\n", "data: {\"id\":\"s\",\"text\":\"\xE2\x82\xAC\"}\n\n"},
      {": continue a\n", "data: {\"id\":\"s\",\"text\":\"\",\"finish_reason\":\"stop\"}\n\n"},
      {": continue $\n",
       "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":3}}\n\n"},
      {"", "data: [DONE]\n\n"}};
  return all;
}

/// What clients get.
std::string whole_stream() {
  std::string text;
  for (const Event& each : events()) text += each.data;
  return text;
}

/// What a replica sends from an event on.
std::string marked_stream(std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < events().size(); ++i) text += events()[i].mark + events()[i].data;
  return text;
}

/// How many events a request says to have got.
std::size_t events_before(const WebRequest& request) {
  const std::string marks = Json::parse(request.body).value("continue", "");
  EXPECT_TRUE(marks.empty() || marks.starts_with("id.7.")) << marks;
  return static_cast<std::size_t>(std::ranges::count_if(
      marks.substr(marks.rfind('.') + 1), [](char c) { return c == 'a' || c == '$'; }));
}

void begin_marked(WebExchange& exchange) {
  const std::vector<WebHeader> headers = {{"Content-Type", "text/event-stream"},
                                          {kContinueHeader, "marks"}};
  exchange.begin(200, headers);
}

class MovedStreamTest : public GatewayTest {
 protected:
  /// Has a replica send as many bytes of what it is asked for, all unless given, and break off.
  void script(ScriptedReplica& replica, std::optional<std::size_t> bytes = {}) {
    replica.react = [bytes](WebExchange& exchange) {
      EXPECT_EQ(exchange.request().headers.find(kContinueHeader), "marks");
      begin_marked(exchange);
      const std::string text = marked_stream(events_before(exchange.request()));
      exchange.send(text.substr(0, bytes.value_or(text.size())));
      if (!bytes || *bytes > text.size()) exchange.end();
    };
  }
  /// Gives the gateway replicas of whose failures nothing is known.
  void set_replicas(const std::vector<std::string>& endpoints) {
    table_ = table_of(endpoints);
    for (RoutedReplica& each : table_.services[0].replicas) {
      each.attempt = static_cast<std::uint32_t>(table_.epoch);
    }
    gateway_->set_table(table_);
  }
  void add_replica(const std::string& endpoint) {
    table_.services[0].replicas.push_back({.job = 99, .attempt = 1, .endpoint = endpoint});
    gateway_->set_table(table_);
  }
  /// Waits until a replica has a request, and breaks its connection off.
  void break_off(ScriptedReplica& replica) {
    ASSERT_TRUE(run_until([&] { return replica.kept.size() == 1; }));
    for (int round = 0; round < 3; ++round) env_->loop().run_round();  // the gateway reads
    replica.kept[0].abort();
    replica.kept.clear();
  }
  /// Asks for a stream; the answer comes later.
  std::unique_ptr<RawPeer> begin_request(std::string_view body = kBody) {
    auto peer = std::make_unique<RawPeer>(gateway_->address());
    peer->send(request(kChat, body, "x-request-id: r1\r\nx-orrery-continue: mine\r\n"));
    return peer;
  }
  std::string stream_of_client(RawPeer& peer) {
    EXPECT_TRUE(receives(peer, "\r\n0\r\n\r\n")) << peer.received();
    EXPECT_EQ(peer.received().find(kContinueHeader), std::string::npos);
    return body_of(peer.received());
  }
  double metric(const std::string& name) {
    const std::string text = ask(get("/metrics"));
    const std::size_t at = text.find(name + "{service=\"chat\",tenant=\"org/a\"} ");
    return at == std::string::npos ? -1 : std::stod(text.substr(text.find("} ", at) + 2));
  }
  double moved() { return metric("\norrery_gateway_streams_moved_total"); }
  double lost() { return metric("\norrery_gateway_streams_lost_total"); }

  RouteTable table_;
};

TEST_F(MovedStreamTest, AStreamGoesOnWhereverItBreaksOff) {
  const std::string all = marked_stream(0);
  const std::size_t first = events()[0].mark.size() + events()[0].data.size();
  std::uint64_t moves = 0;
  for (std::size_t bytes = 0; bytes <= all.size(); ++bytes) {
    ScriptedReplica broken(env_->loop());
    ScriptedReplica next(env_->loop());
    script(broken, bytes);
    script(next);
    set_replicas({broken.address(), next.address()});
    const auto client = begin_request();
    break_off(broken);
    EXPECT_EQ(stream_of_client(*client), whole_stream()) << bytes;
    const bool asked_for_rest =
        !next.seen.empty() && next.seen[0].body.find("\"continue\"") != std::string::npos;
    // One line end short of the last event, nothing is missing.
    EXPECT_EQ(asked_for_rest, bytes >= first && bytes < all.size() - 1) << bytes;
    moves += asked_for_rest ? 1 : 0;
    ASSERT_TRUE(run_until([&] { return gateway_->calls() == 0; }));
  }
  EXPECT_EQ(counts().completed, all.size() + 1);
  EXPECT_EQ(counts().failed, 0u);
  EXPECT_EQ(counts().prompt_tokens, 4 * (all.size() + 1));
  EXPECT_EQ(counts().output_tokens, 3 * (all.size() + 1));
  EXPECT_EQ(moved(), static_cast<double>(moves));
  EXPECT_EQ(lost(), 0);
  for (const ReplicaLoad& load : gateway_->report().replicas) EXPECT_EQ(load.in_flight, 0u);
}

TEST_F(MovedStreamTest, AStreamThatBreaksOffAgainGoesOnAgain) {
  const std::size_t event = events()[0].mark.size() + events()[0].data.size();
  for (std::size_t more = 0; more < events()[1].mark.size() + events()[1].data.size() + 9; ++more) {
    ScriptedReplica first(env_->loop());
    ScriptedReplica second(env_->loop());
    ScriptedReplica third(env_->loop());
    script(first, event);
    script(second, more);
    script(third);
    set_replicas({first.address(), second.address(), third.address()});
    const auto client = begin_request();
    break_off(first);
    break_off(second);
    EXPECT_EQ(stream_of_client(*client), whole_stream()) << more;
    EXPECT_EQ(second.seen[0].body.find(kBody.substr(0, kBody.rfind('}'))), 0u);
    EXPECT_EQ(Json::parse(second.seen[0].body)["continue"], "id.7.a");
    EXPECT_EQ(third.seen.size(), 1u);
  }
  const std::string explained = ask(get("/explain/r1"));
  const auto json = Json::parse(explained.substr(explained.find("\r\n\r\n") + 4));
  EXPECT_EQ(json["decisions"][0]["continues"], false) << json.dump(1);
  EXPECT_EQ(json["decisions"][1]["continues"], true);
  EXPECT_EQ(json["decisions"][2]["continues"], true);
}

TEST_F(MovedStreamTest, AReplicaThatCannotGoOnIsPassedOver) {
  ScriptedReplica broken(env_->loop());
  ScriptedReplica draining(env_->loop());
  ScriptedReplica other_model(env_->loop());
  ScriptedReplica unmarked(env_->loop());
  ScriptedReplica good(env_->loop());
  script(broken, events()[0].mark.size() + events()[0].data.size());
  draining.react = [](WebExchange& exchange) { exchange.respond(503, "text/plain", "no"); };
  other_model.react = [](WebExchange& exchange) { exchange.respond(409, "text/plain", "no"); };
  unmarked.react = [](WebExchange& exchange) {
    begin_stream(exchange);
    exchange.send("data: {\"from the beginning\":1}\n\n");
  };
  script(good);
  set_replicas({broken.address(), draining.address(), other_model.address(), unmarked.address(),
                good.address()});
  auto client = begin_request();
  break_off(broken);
  EXPECT_EQ(stream_of_client(*client), whole_stream());
  EXPECT_EQ(draining.seen.size() + other_model.seen.size() + unmarked.seen.size(), 3u);

  set_replicas({broken.address(), other_model.address()});
  client = begin_request();
  break_off(broken);
  const std::string text = stream_of_client(*client);
  EXPECT_TRUE(text.starts_with(events()[0].data + "data: {\"error\":")) << text;
  EXPECT_NE(text.find("replica_lost"), std::string::npos) << text;
  EXPECT_EQ(moved(), 1);
  EXPECT_EQ(lost(), 1);
}

TEST_F(MovedStreamTest, AStreamWaitsForAReplicaAndIsLostWithoutOne) {
  ScriptedReplica only(env_->loop());
  ScriptedReplica late(env_->loop());
  script(only, marked_stream(0).size() - 10);
  script(late);
  set_replicas({only.address()});
  auto client = begin_request();
  ASSERT_TRUE(receives(*client, "usage"));
  set_replicas({});
  break_off(only);
  run_for(Duration::milliseconds(10));
  EXPECT_EQ(gateway_->calls(), 1u);
  set_replicas({late.address()});
  EXPECT_EQ(stream_of_client(*client), whole_stream());

  set_replicas({only.address()});
  client = begin_request();
  ASSERT_TRUE(receives(*client, "usage"));
  set_replicas({});
  break_off(only);
  const std::string text = stream_of_client(*client);
  EXPECT_NE(text.find("replica_lost"), std::string::npos) << text;
  EXPECT_EQ(text.find("[DONE]"), std::string::npos) << text;
  EXPECT_EQ(counts().failed, 1u);
  EXPECT_EQ(gateway_->calls(), 0u);
}

TEST_F(MovedStreamTest, AClientThatLeavesEndsItsStreamWhereverItIs) {
  ScriptedReplica broken(env_->loop());
  ScriptedReplica next(env_->loop());
  script(broken, marked_stream(0).size() - 10);
  next.react = [](WebExchange&) {};
  for (const bool waits : {false, true}) {
    set_replicas({broken.address()});
    const auto client = begin_request();
    ASSERT_TRUE(receives(*client, "usage"));
    if (waits) {
      set_replicas({});
    } else {
      add_replica(next.address());
    }
    break_off(broken);
    const std::size_t asked = waits ? 0 : 1;
    ASSERT_TRUE(run_until([&] { return next.kept.size() == asked; }));
    client->close();
    ASSERT_TRUE(run_until([&] { return gateway_->calls() == 0; }));
    ASSERT_TRUE(run_until([&] { return next.gone == 1; }));
    next.kept.clear();
  }
  EXPECT_EQ(counts().cancelled, 2u);
  EXPECT_EQ(counts().failed, 0u);
  EXPECT_EQ(lost(), 0);
}

TEST_F(MovedStreamTest, AStreamThatItsReplicaEndsEarlyGoesOn) {
  ScriptedReplica early(env_->loop());
  ScriptedReplica next(env_->loop());
  early.react = [](WebExchange& exchange) {
    begin_marked(exchange);
    exchange.send(marked_stream(0).substr(0, 100));
    exchange.end();
  };
  script(next);
  set_replicas({early.address(), next.address()});
  EXPECT_EQ(stream_of_client(*begin_request()), whole_stream());
  EXPECT_EQ(counts().failed, 0u);
}

TEST_F(MovedStreamTest, MovesAndMemoryHaveLimits) {
  std::vector<std::unique_ptr<ScriptedReplica>> replicas;
  std::vector<std::string> addresses;
  int answers = 0;
  for (int i = 0; i < 12; ++i) {
    replicas.push_back(std::make_unique<ScriptedReplica>(env_->loop()));
    addresses.push_back(replicas.back()->address());
    replicas.back()->react = [&](WebExchange& exchange) {
      ++answers;
      begin_marked(exchange);
      exchange.send(": continue a\ndata: {\"n\":1}\n\n");
      exchange.end();
    };
  }
  set_replicas(addresses);
  EXPECT_NE(stream_of_client(*begin_request()).find("replica_lost"), std::string::npos);
  EXPECT_EQ(answers, 9) << "eight moves";

  StreamMarks marks;
  const std::string line = ": continue " + std::string(1000, 'a') + "\n";
  for (std::size_t bytes = 1000; bytes <= StreamMarks::kMarksMax; bytes += 1000) {
    EXPECT_EQ(marks.take(line + "data: 1\n\n"), "data: 1\n\n");
    EXPECT_TRUE(marks.possible());
  }
  EXPECT_EQ(marks.take(line), "");
  EXPECT_FALSE(marks.possible());
  EXPECT_EQ(marks.take(": continue a\n"), "");
  EXPECT_FALSE(marks.possible());
  StreamMarks odd;
  EXPECT_EQ(odd.take(": continue a\n: continue a\"b\n:other\n"), ":other\n");
  EXPECT_FALSE(odd.possible());
}

}  // namespace
}  // namespace orrery
