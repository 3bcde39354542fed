// http/web_server_test.cpp - real connections on loopback: requests in any pieces, answers whole
// and streamed, limits, clients that leave or read slowly, and the graceful end.
#include "http/web_server.hpp"

#include <functional>
#include <map>
#include <vector>

#include "http/loop_test.hpp"

namespace orrery {
namespace {

constexpr std::string_view kGet = "GET /x?a=1 HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kHello =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

class WebServerTest : public ::testing::Test, public WebHandler {
 protected:
  void SetUp() override { serve({}); }

  void serve(const WebServerOptions& options) {
    server_.reset();
    Result<std::unique_ptr<WebServer>> server = WebServer::listen(runner_.loop(), options, *this);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }

  void on_request(WebExchange exchange) override {
    ++requests_;
    seen_.push_back(exchange.request());
    if (react_) {
      react_(exchange);
    } else {
      exchange.respond(200, "text/plain", "hello");
    }
    if (exchange.open()) kept_.push_back(std::move(exchange));
  }

  /// Runs until the peer has received `text` somewhere behind what is passed.
  bool receives(RawPeer& peer, std::string_view text) {
    return runner_.run_until([&] {
      peer.read();
      return peer.received().find(text) != std::string::npos || peer.ended();
    }) && peer.received().find(text) != std::string::npos;
  }
  bool sees_end(RawPeer& peer) {
    return runner_.run_until([&] {
      peer.read();
      return peer.ended();
    });
  }

  LoopRunner runner_;
  std::vector<WebExchange> kept_;
  std::unique_ptr<WebServer> server_;
  std::function<void(WebExchange&)> react_;
  std::vector<WebRequest> seen_;
  int requests_ = 0;
};

TEST_F(WebServerTest, AnswersAWholeRequest) {
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(receives(peer, "hello"));
  EXPECT_EQ(peer.received(), kHello);
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].method, "GET");
  EXPECT_EQ(seen_[0].path(), "/x");
  EXPECT_EQ(seen_[0].query(), "a=1");
  EXPECT_EQ(seen_[0].headers.find("hOST"), "h");
}

TEST_F(WebServerTest, ReadsARequestThatIsSplitAtAnyByte) {
  const std::string request =
      "POST /v1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
  RawPeer peer(server_->address());
  for (std::size_t split = 1; split < request.size(); ++split) {
    peer.received().clear();
    peer.send(std::string_view(request).substr(0, split));
    runner_.run_for(Duration::milliseconds(1));
    peer.send(std::string_view(request).substr(split));
    ASSERT_TRUE(receives(peer, "hello")) << split;
    ASSERT_EQ(seen_.back().body, "hello world") << split;
  }
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(WebServerTest, ReadsARequestByteByByte) {
  RawPeer peer(server_->address());
  const std::string request =
      "POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nX-Long: abc def\r\n\r\nabc";
  for (const char c : request) {
    peer.send(std::string_view(&c, 1));
    runner_.loop().run_round();
  }
  ASSERT_TRUE(receives(peer, "hello"));
  EXPECT_EQ(seen_[0].body, "abc");
  EXPECT_EQ(seen_[0].headers.find("x-long"), "abc def");
}

TEST_F(WebServerTest, ReadsAnEmptyChunkedBodyByteByByte) {
  RawPeer peer(server_->address());
  for (const char c :
       std::string("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) {
    peer.send(std::string_view(&c, 1));
    runner_.run_for(Duration::milliseconds(1));
  }
  EXPECT_TRUE(receives(peer, "hello"));
}

TEST_F(WebServerTest, AnswersPipelinedRequestsInTheirOrder) {
  react_ = [this](WebExchange& exchange) {
    if (requests_ == 1) return;  // answered later
    exchange.respond(200, "text/plain", exchange.request().target);
  };
  RawPeer peer(server_->address());
  peer.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
  peer.send("GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(runner_.run_until([&] { return requests_ == 1; }));
  runner_.run_for(Duration::milliseconds(10));
  EXPECT_EQ(requests_, 1);
  kept_[0].respond(200, "text/plain", "first");
  ASSERT_TRUE(receives(peer, "/3"));
  EXPECT_LT(peer.received().find("first"), peer.received().find("/2"));
  EXPECT_LT(peer.received().find("/2"), peer.received().find("/3"));
}

TEST_F(WebServerTest, BoundsWhatAPipeliningClientSends) {
  react_ = [](WebExchange&) {};
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(runner_.run_until([&] { return requests_ == 1; }));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += kGet;
  std::size_t sent = 0;
  std::size_t before = 1;
  while (sent != before && sent < std::size_t{64} << 20) {
    before = sent;
    for (int i = 0; i < 100; ++i) sent += peer.send_some(many);
    runner_.run_for(Duration::milliseconds(5));
  }
  EXPECT_LT(sent, std::size_t{64} << 20);
  EXPECT_EQ(requests_, 1);
}

TEST_F(WebServerTest, StreamsInChunks) {
  react_ = [](WebExchange& exchange) {
    const WebHeader type{"Content-Type", "text/event-stream"};
    exchange.begin(200, {&type, 1});
    exchange.send("data: 1\n\n");
    exchange.send("");
  };
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(receives(peer, "data: 1"));
  kept_[0].send("data: 2\n\n");
  kept_[0].end();
  EXPECT_FALSE(kept_[0].open());
  ASSERT_TRUE(receives(peer, "0\r\n\r\n"));
  EXPECT_EQ(peer.received(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
            "\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  react_ = nullptr;
  peer.send(kGet);
  EXPECT_TRUE(receives(peer, "hello"));
}

TEST_F(WebServerTest, SendsTheHeadOfAStreamByFlush) {
  react_ = [](WebExchange& exchange) {
    exchange.begin(200, {});
    exchange.flush();
  };
  RawPeer peer(server_->address());
  peer.send(kGet);
  EXPECT_TRUE(receives(peer, "chunked\r\n\r\n"));
}

TEST_F(WebServerTest, EndsAStreamToAnOldClientWithTheConnection) {
  react_ = [](WebExchange& exchange) {
    exchange.begin(200, {});
    exchange.send("abc");
    exchange.end();
  };
  RawPeer peer(server_->address());
  peer.send("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(sees_end(peer));
  EXPECT_EQ(peer.received(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc");
}

TEST_F(WebServerTest, AnswersHeadWithoutABody) {
  RawPeer peer(server_->address());
  peer.send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(sees_end(peer));
  EXPECT_TRUE(peer.received().ends_with("Content-Length: 5\r\n\r\n")) << peer.received();
}

TEST_F(WebServerTest, InvitesABodyThatIsExpected) {
  RawPeer peer(server_->address());
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(receives(peer, "100 Continue\r\n\r\n"));
  EXPECT_EQ(requests_, 0);
  peer.send("ab");
  ASSERT_TRUE(receives(peer, "hello"));
  EXPECT_EQ(seen_[0].body, "ab");
}

TEST_F(WebServerTest, RefusesWhatIsNoRequest) {
  const std::map<std::string, std::string> cases = {
      {"nonsense\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/3.0\r\n\r\n", "400 Bad Request"},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400 Bad Request"},
      {"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400 Bad Request"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400 Bad Request"},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", "413 Content Too Large"},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999998\r\n\r\n", "larger than 16777216 bytes"},
      {"GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n", "431 "},
  };
  for (const auto& [request, expected] : cases) {
    RawPeer peer(server_->address());
    peer.send_some(request);
    ASSERT_TRUE(sees_end(peer)) << expected;
    EXPECT_NE(peer.received().find(expected), std::string::npos) << request.substr(0, 80);
    EXPECT_NE(peer.received().find("Connection: close"), std::string::npos);
  }
  EXPECT_EQ(requests_, 0);
}

TEST_F(WebServerTest, RefusesABodyThatGrowsTooLarge) {
  serve({.body_bytes_max = 100});
  RawPeer peer(server_->address());
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) peer.send("a\r\n0123456789\r\n");
  ASSERT_TRUE(receives(peer, "413 Content Too Large"));
}

TEST_F(WebServerTest, TellsOfAClientThatLeaves) {
  int gone = 0;
  react_ = [&](WebExchange& exchange) { exchange.on_gone([&] { ++gone; }); };
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(runner_.run_until([&] { return requests_ == 1; }));
  EXPECT_TRUE(kept_[0].open());
  peer.close();
  ASSERT_TRUE(runner_.run_until([&] { return gone == 1; }));
  EXPECT_FALSE(kept_[0].open());
  kept_[0].respond(200, "text/plain", "too late");
  EXPECT_TRUE(runner_.run_until([&] { return server_->connections() == 0; }));
  EXPECT_EQ(gone, 1);
}

TEST_F(WebServerTest, TellsOfAClientThatResetsAStream) {
  int gone = 0;
  react_ = [&](WebExchange& exchange) {
    exchange.on_gone([&] {
      ++gone;
      kept_.clear();
    });
    exchange.begin(200, {});
    exchange.send("x");
  };
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(receives(peer, "x"));
  peer.reset();
  while (!kept_.empty()) {
    kept_[0].send("more");
    runner_.loop().run_round();
  }
  EXPECT_EQ(gone, 1);
}

TEST_F(WebServerTest, CutsOffAReaderThatIsTooSlow) {
  serve({.output_bytes_max = 200'000});
  int gone = 0;
  react_ = [&](WebExchange& exchange) {
    exchange.on_gone([&] { ++gone; });
    exchange.begin(200, {});
  };
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(runner_.run_until([&] { return kept_.size() == 1; }));
  const std::string much(100'000, 'y');
  std::size_t most = 0;
  while (gone == 0) {
    kept_[0].send(much);
    most = std::max(most, kept_[0].buffered());
    runner_.loop().run_round();
  }
  EXPECT_LE(most, 400'000u);
  EXPECT_FALSE(kept_[0].open());
}

TEST_F(WebServerTest, EndsAStreamThatStalls) {
  serve({.stall_max = Duration::milliseconds(50)});
  int gone = 0;
  react_ = [&](WebExchange& exchange) {
    exchange.on_gone([&] { ++gone; });
    exchange.begin(200, {});
    while (exchange.buffered() < 1'000'000) exchange.send(std::string(100'000, 'y'));
  };
  RawPeer peer(server_->address());
  peer.send(kGet);
  EXPECT_TRUE(runner_.run_until([&] { return gone == 1; }));
}

TEST_F(WebServerTest, TellsWhenTheOutputHasDrained) {
  int drained = 0;
  react_ = [&](WebExchange& exchange) {
    exchange.begin(200, {});
    while (exchange.buffered() < 500'000) exchange.send(std::string(100'000, 'y'));
    exchange.on_drained(1000, [&] { ++drained; });
  };
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(runner_.run_until([&] { return kept_.size() == 1; }));
  runner_.run_for(Duration::milliseconds(10));
  EXPECT_EQ(drained, 0);
  ASSERT_TRUE(runner_.run_until([&] {
    peer.read();
    return drained == 1;
  }));
  EXPECT_LE(kept_[0].buffered(), 1000u);
  kept_[0].on_drained(1000, [&] { ++drained; });
  EXPECT_EQ(drained, 1);
  EXPECT_TRUE(runner_.run_until([&] { return drained == 2; }));
}

TEST_F(WebServerTest, SendsALargeAnswerWhole) {
  const std::string large(20'000'000, 'z');
  react_ = [&](WebExchange& exchange) { exchange.respond(200, "text/plain", large); };
  RawPeer peer(server_->address());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(sees_end(peer));
  EXPECT_TRUE(peer.received().ends_with(large));
}

TEST_F(WebServerTest, AnswersForAHandlerThatDoesNot) {
  react_ = [](WebExchange& exchange) { const WebExchange dropped = std::move(exchange); };
  RawPeer peer(server_->address());
  peer.send(kGet);
  EXPECT_TRUE(receives(peer, "500 Internal Server Error"));
}

TEST_F(WebServerTest, BreaksAStreamThatItsHandlerDrops) {
  react_ = [](WebExchange& exchange) {
    WebExchange dropped = std::move(exchange);
    dropped.begin(200, {});
    dropped.send("abc");
  };
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(sees_end(peer));
  EXPECT_EQ(peer.received().find("0\r\n\r\n"), std::string::npos);
}

TEST_F(WebServerTest, ClosesIdleAndUnfinishedConnections) {
  serve({.idle_max = Duration::milliseconds(40), .receive_max = Duration::milliseconds(40)});
  RawPeer idle(server_->address());
  RawPeer unfinished(server_->address());
  unfinished.send("GET / HTT");
  EXPECT_TRUE(sees_end(idle));
  EXPECT_EQ(idle.received(), "");
  EXPECT_TRUE(sees_end(unfinished));
  EXPECT_NE(unfinished.received().find("408"), std::string::npos);
}

TEST_F(WebServerTest, ClosesConnectionsBeyondItsLimit) {
  serve({.connections_max = 1});
  RawPeer first(server_->address());
  first.send(kGet);
  ASSERT_TRUE(receives(first, "hello"));
  RawPeer second(server_->address());
  EXPECT_TRUE(sees_end(second));
}

TEST_F(WebServerTest, StopsGracefully) {
  react_ = [](WebExchange&) {};
  RawPeer idle(server_->address());
  RawPeer busy(server_->address());
  busy.send(kGet);
  ASSERT_TRUE(runner_.run_until([&] { return requests_ == 1 && server_->connections() == 2; }));
  bool stopped = false;
  server_->stop([&] { stopped = true; });
  EXPECT_TRUE(sees_end(idle));
  EXPECT_FALSE(stopped);
  kept_[0].respond(200, "text/plain", "last");
  ASSERT_TRUE(sees_end(busy));
  EXPECT_NE(busy.received().find("Connection: close"), std::string::npos);
  EXPECT_TRUE(busy.received().ends_with("last"));
  EXPECT_TRUE(runner_.run_until([&] { return stopped; }));
}

TEST_F(WebServerTest, SharesAPort) {
  serve({.sharing = PortSharing::kShared});
  const Result<std::unique_ptr<WebServer>> second = WebServer::listen(
      runner_.loop(), {.address = server_->address(), .sharing = PortSharing::kShared}, *this);
  EXPECT_TRUE(second);
  EXPECT_FALSE(WebServer::listen(runner_.loop(), {.address = server_->address()}, *this));
  EXPECT_FALSE(WebServer::listen(runner_.loop(), {.address = "nowhere"}, *this));
}

TEST_F(WebServerTest, OutlivedExchangesDoNothing) {
  react_ = [](WebExchange&) {};
  RawPeer peer(server_->address());
  peer.send(kGet);
  ASSERT_TRUE(runner_.run_until([&] { return kept_.size() == 1; }));
  server_.reset();
  EXPECT_FALSE(kept_[0].open());
  kept_[0].respond(200, "text/plain", "nobody");
  EXPECT_EQ(kept_[0].request().target, "/x?a=1");
}

}  // namespace
}  // namespace orrery
