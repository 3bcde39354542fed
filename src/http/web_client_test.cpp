// http/web_client_test.cpp - calls to a scripted server on loopback: kept connections, answers in
// any pieces, failures, stale connections, cancelling and pausing.
#include "http/web_client.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "http/loop_test.hpp"

namespace orrery {
namespace {

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok";

/// Keeps what a call is told.
class CallRecord final : public WebCallEvents {
 public:
  void on_head(const WebResponseHead& head) override {
    ++heads;
    status = head.status;
    headers = head.headers;
  }
  void on_body(std::string_view bytes) override { body.append(bytes); }
  void on_end() override { ended = true; }
  void on_error(const WebCallFailure& failure) override { failures.push_back(failure); }

  [[nodiscard]] bool over() const { return ended || !failures.empty(); }

  int heads = 0;
  int status = 0;
  WebHeaders headers;
  std::string body;
  bool ended = false;
  std::vector<WebCallFailure> failures;
};

class WebClientTest : public ::testing::Test {
 protected:
  WebCall call(CallRecord& record, std::string_view body = "question") {
    const WebHeader header{"X-One", "1"};
    return client_->start(
        listener_.address(),
        {.method = "POST", .target = "/v1/x", .headers = {&header, 1}, .body = body}, record);
  }
  std::unique_ptr<RawPeer> accept() {
    std::unique_ptr<RawPeer> peer;
    EXPECT_TRUE(runner_.run_until([&] { return (peer = listener_.accept()) != nullptr; }));
    return peer;
  }
  bool receives(RawPeer& peer, std::string_view text) {
    return runner_.run_until([&] {
      peer.read();
      return peer.received().ends_with(text) || peer.ended();
    }) && peer.received().ends_with(text);
  }
  /// Makes a call and answers it; returns its connection, which the client keeps.
  std::unique_ptr<RawPeer> answered_call() {
    CallRecord record;
    const WebCall running = call(record);
    std::unique_ptr<RawPeer> peer = accept();
    EXPECT_TRUE(receives(*peer, "question"));
    peer->send(kAnswer);
    EXPECT_TRUE(ends(record));
    return peer;
  }
  bool ends(const CallRecord& record) {
    return runner_.run_until([&] { return record.over(); });
  }
  void use(const WebClientOptions& options) { client_ = WebClient::make(runner_.loop(), options); }

  LoopRunner runner_;
  RawListener listener_;
  std::unique_ptr<WebClient> client_ = WebClient::make(runner_.loop(), {});
};

TEST_F(WebClientTest, TheKernelAsksWhetherASilentServerIsThere) {
  CallRecord record;
  const WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  // A line has, in hexadecimal: both addresses, state (1: established), queues, timer (2: asks).
  const std::string& address = listener_.address();
  const std::string port =
      fmt::format(":{:04X}", std::stoi(address.substr(address.rfind(':') + 1)));
  bool asks = false;
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    std::string queues;
    std::string timer;
    fields >> number >> local >> remote >> state >> queues >> timer;
    asks = asks || (remote.ends_with(port) && state == "01" && timer.starts_with("02:"));
  }
  EXPECT_TRUE(asks);
}

TEST_F(WebClientTest, CallsAndKeepsTheConnection) {
  CallRecord first;
  WebCall running = call(first);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  EXPECT_EQ(peer->received(), "POST /v1/x HTTP/1.1\r\nHost: " + listener_.address() +
                                  "\r\nX-One: 1\r\nContent-Length: 8\r\n\r\nquestion");
  peer->send(kAnswer);
  ASSERT_TRUE(ends(first));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.headers.find("x-a"), "b");
  EXPECT_EQ(first.body, "ok");
  EXPECT_FALSE(running.running());

  CallRecord second;
  peer->received().clear();
  running = call(second);
  ASSERT_TRUE(receives(*peer, "question"));
  peer->send(kAnswer);
  ASSERT_TRUE(ends(second));
  EXPECT_TRUE(second.ended);
  EXPECT_EQ(listener_.accept(), nullptr);
}

TEST_F(WebClientTest, ReadsAnAnswerThatIsSplitAtAnyByte) {
  const std::string answer =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  std::unique_ptr<RawPeer> peer;
  for (std::size_t split = 1; split < answer.size(); ++split) {
    CallRecord record;
    const WebCall running = call(record);
    if (peer == nullptr) peer = accept();
    ASSERT_TRUE(receives(*peer, "question"));
    peer->received().clear();
    peer->send(std::string_view(answer).substr(0, split));
    runner_.loop().run_round();
    runner_.loop().run_round();
    peer->send(std::string_view(answer).substr(split));
    ASSERT_TRUE(ends(record)) << split;
    EXPECT_EQ(record.body, "hello world") << split;
    EXPECT_EQ(record.heads, 1) << split;
  }
  EXPECT_EQ(listener_.accept(), nullptr);
}

TEST_F(WebClientTest, ReadsABodyToTheEndOfTheConnection) {
  CallRecord record;
  const WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  peer->send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall ");
  ASSERT_TRUE(runner_.run_until([&] { return record.body == "all "; }));
  EXPECT_FALSE(record.ended);
  peer->send("of it");
  peer->close();
  ASSERT_TRUE(ends(record));
  EXPECT_TRUE(record.ended);
  EXPECT_EQ(record.body, "all of it");
}

TEST_F(WebClientTest, SendsAgainWhereAKeptConnectionWasClosed) {
  for (const bool reset : {false, true}) {
    const auto peer = answered_call();
    CallRecord second;
    const WebCall running = call(second, "again");
    reset ? peer->reset() : peer->close();
    const auto next = accept();
    ASSERT_TRUE(receives(*next, "again"));
    next->send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    ASSERT_TRUE(ends(second));
    EXPECT_TRUE(second.ended);
  }
}

TEST_F(WebClientTest, SendsAgainOnlyOnce) {
  auto peer = answered_call();
  CallRecord second;
  const WebCall running = call(second);
  peer->close();
  peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  peer->close();
  ASSERT_TRUE(ends(second));
  ASSERT_EQ(second.failures.size(), 1u);
  EXPECT_EQ(second.failures[0].kind, WebCallFailure::Kind::kBroken);
  EXPECT_TRUE(second.failures[0].sent);
  EXPECT_FALSE(second.failures[0].received);
}

TEST_F(WebClientTest, DropsAKeptConnectionThatTheServerCloses) {
  answered_call()->close();
  runner_.run_for(Duration::milliseconds(10));
  CallRecord second;
  const WebCall running = call(second);
  const auto next = accept();
  ASSERT_TRUE(receives(*next, "question"));
}

TEST_F(WebClientTest, TellsOfAnAnswerThatBreaksOff) {
  CallRecord record;
  const WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  peer->send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  ASSERT_TRUE(runner_.run_until([&] { return record.body == "half"; }));
  peer->close();
  ASSERT_TRUE(ends(record));
  ASSERT_EQ(record.failures.size(), 1u);
  EXPECT_EQ(record.failures[0].kind, WebCallFailure::Kind::kBroken);
  EXPECT_TRUE(record.failures[0].received);
}

TEST_F(WebClientTest, TellsOfWhatIsNoAnswer) {
  CallRecord record;
  const WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  peer->send("SSH-2.0-x\r\n\r\n");
  ASSERT_TRUE(ends(record));
  ASSERT_EQ(record.failures.size(), 1u);
  EXPECT_EQ(record.failures[0].kind, WebCallFailure::Kind::kMalformed);
}

TEST_F(WebClientTest, TellsOfAServerThatIsNotThere) {
  listener_.close();
  CallRecord record;
  const WebCall running = call(record);
  EXPECT_TRUE(record.failures.empty());
  ASSERT_TRUE(ends(record));
  EXPECT_EQ(record.failures[0].kind, WebCallFailure::Kind::kConnect);
  EXPECT_FALSE(record.failures[0].sent);

  CallRecord nowhere;
  const WebCall other = client_->start("no port", {}, nowhere);
  ASSERT_TRUE(ends(nowhere));
  EXPECT_EQ(nowhere.failures[0].kind, WebCallFailure::Kind::kAddress);
}

TEST_F(WebClientTest, LooksNamesUp) {
  const std::string port = listener_.address().substr(listener_.address().rfind(':'));
  CallRecord record;
  const WebCall running = client_->start("localhost" + port, {}, record);
  // The name may stand for an address at which nothing listens.
  std::unique_ptr<RawPeer> peer;
  ASSERT_TRUE(
      runner_.run_until([&] { return record.over() || (peer = listener_.accept()) != nullptr; }));
  if (peer == nullptr) return;
  ASSERT_TRUE(receives(*peer, "\r\n\r\n"));
  EXPECT_NE(peer->received().find("Host: localhost:"), std::string::npos);
}

TEST_F(WebClientTest, EndsACallToASilentServer) {
  use({.silence_max = Duration::milliseconds(30)});
  CallRecord record;
  const WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(ends(record));
  ASSERT_EQ(record.failures.size(), 1u);
  EXPECT_EQ(record.failures[0].kind, WebCallFailure::Kind::kTimeout);
}

TEST_F(WebClientTest, ClosesTheConnectionOfACancelledCall) {
  CallRecord record;
  WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  running.cancel();
  EXPECT_TRUE(runner_.run_until([&] {
    peer->read();
    return peer->ended();
  }));
  EXPECT_FALSE(record.over());
}

TEST_F(WebClientTest, PausesReading) {
  CallRecord record;
  WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  peer->send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
  ASSERT_TRUE(runner_.run_until([&] { return record.body == "ab"; }));
  running.pause();
  peer->send("cd");
  runner_.run_for(Duration::milliseconds(10));
  EXPECT_EQ(record.body, "ab");
  running.resume();
  ASSERT_TRUE(ends(record));
  EXPECT_EQ(record.body, "abcd");
}

TEST_F(WebClientTest, SendsALargeRequestToASlowServer) {
  const std::string large(8'000'000, 'q');
  CallRecord record;
  const WebCall running = call(record, large);
  const auto peer = accept();
  runner_.run_for(Duration::milliseconds(5));
  ASSERT_TRUE(runner_.run_until([&] {
    peer->read();
    return peer->received().size() > large.size();
  }));
  EXPECT_TRUE(peer->received().ends_with("qqq"));
  peer->send(kAnswer);
  EXPECT_TRUE(ends(record));
}

TEST_F(WebClientTest, ForgetsAnEndpoint) {
  CallRecord record;
  const WebCall running = call(record);
  const auto peer = accept();
  ASSERT_TRUE(receives(*peer, "question"));
  peer->send(kAnswer);
  ASSERT_TRUE(ends(record));
  client_->forget(listener_.address());
  EXPECT_TRUE(runner_.run_until([&] {
    peer->read();
    return peer->ended();
  }));
}

}  // namespace
}  // namespace orrery
