// base/system/real_transport_test.cpp - real unix and TCP loopback connections, and every way they
// end.
#include "base/system/real_transport.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/system/real_env.hpp"

namespace orrery {
namespace {

constexpr TransportLimits kSmall{.frame_bytes_max = 1000, .queue_bytes_max = 4000};

/// Keeps what a connection or listener is told; `react` sees each frame first.
class Recorder final : public ListenerEvents {
 public:
  void on_accept(const Accepted& accepted) override { accepted_.push_back(accepted); }
  void on_frame(ConnectionId connection, std::string_view frame) override {
    frames_.emplace_back(frame);
    if (react_) react_(connection, frame);
  }
  void on_close(ConnectionId connection, const Closed& closed) override {
    closed_.push_back(closed);
    if (react_to_close_) react_to_close_(connection);
  }

  std::vector<Accepted> accepted_;
  std::vector<std::string> frames_;
  std::vector<Closed> closed_;
  std::function<void(ConnectionId, std::string_view)> react_;
  std::function<void(ConnectionId)> react_to_close_;
};

enum class Family { kUnix, kTcp, kTcp6 };

std::string name_of(Family family) {
  switch (family) {
    case Family::kUnix:
      return "Unix";
    case Family::kTcp:
      return "Tcp";
    case Family::kTcp6:
      return "Tcp6";
  }
  return "";
}

class TransportTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_net_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    start({});
  }
  void TearDown() override {
    real_.reset();
    std::filesystem::remove_all(directory_);
  }

  void start(const TransportLimits& limits) {
    Result<std::unique_ptr<RealEnv>> made = RealEnv::create(limits);
    ASSERT_TRUE(made) << made.error().text();
    real_ = *std::move(made);
  }
  [[nodiscard]] Transport& net() { return real_->env().transport; }
  [[nodiscard]] std::string free_address() const {
    switch (GetParam()) {
      case Family::kUnix:
        return "unix:" + directory_ + "/socket";
      case Family::kTcp:
        return "tcp:127.0.0.1:0";
      case Family::kTcp6:
        return "tcp:[::1]:0";
    }
    return "";
  }
  void listen() {
    const Result<Listening> listening = net().listen(free_address(), server_);
    ASSERT_TRUE(listening) << listening.error().text();
    listening_ = *listening;
  }
  [[nodiscard]] ConnectionId connect() {
    const Result<ConnectionId> connection = net().connect(listening_.address, client_);
    EXPECT_TRUE(connection);
    return connection.value_or(ConnectionId::kNone);
  }
  // A blocking socket for saying what no RealTransport would.
  [[nodiscard]] FileDescriptor raw_connection() {
    const SocketAddress address = SocketAddress::parse(listening_.address).value();
    FileDescriptor fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), address.get(), address.size()), 0);
    return fd;
  }
  static void write_raw(const FileDescriptor& fd, std::string_view bytes) {
    ASSERT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void run_until(const std::function<bool()>& condition) { real_->run_until(condition); }
  // Lets everything that is already on its way arrive.
  void settle() {
    int rounds = 0;
    std::function<void()> again = [&] {
      if (++rounds < 20) real_->env().post(again);
    };
    again();
    run_until([&] { return rounds == 20; });
  }

  std::string directory_;
  Recorder server_;
  Recorder client_;
  Listening listening_;
  std::unique_ptr<RealEnv> real_;
};

INSTANTIATE_TEST_SUITE_P(Families, TransportTest,
                         ::testing::Values(Family::kUnix, Family::kTcp, Family::kTcp6),
                         [](const auto& family) { return name_of(family.param); });

TEST_P(TransportTest, FramesOfEverySizeArriveWholeInOrderAndBothWays) {
  listen();
  const ConnectionId connection = connect();
  server_.react_ = [&](ConnectionId from, std::string_view frame) {
    EXPECT_EQ(net().send(from, frame), SendOutcome::kQueued);
  };
  std::vector<std::string> sent;
  for (const std::size_t size : {0u, 1u, 3u, 4u, 65'531u, 65'532u, 65'536u, 0u, 1u << 20, 7u}) {
    sent.emplace_back(size, static_cast<char>('a' + sent.size()));
    ASSERT_EQ(net().send(connection, sent.back()), SendOutcome::kQueued);  // before the connect
  }
  run_until([&] { return client_.frames_.size() == sent.size(); });
  EXPECT_TRUE(server_.frames_ == sent);
  EXPECT_TRUE(client_.frames_ == sent);
  ASSERT_EQ(server_.accepted_.size(), 1u);
  EXPECT_EQ(server_.accepted_[0].listener, listening_.listener);
  EXPECT_TRUE(SocketAddress::parse(server_.accepted_[0].peer)) << server_.accepted_[0].peer;
}

TEST_P(TransportTest, FramesThatTrickleInByteByByteAreJoined) {
  listen();
  const FileDescriptor raw = raw_connection();
  for (const char byte : std::string("\x02\0\0\0hi\0\0\0\0\x01\0\0\0!", 15)) {
    write_raw(raw, {&byte, 1});
    settle();
  }
  EXPECT_EQ(server_.frames_, (std::vector<std::string>{"hi", "", "!"}));
  EXPECT_TRUE(server_.closed_.empty());
}

TEST_P(TransportTest, APeerThatClosesIsReportedOnceAfterItsLastFrame) {
  listen();
  const ConnectionId connection = connect();
  ASSERT_EQ(net().send(connection, "last words"), SendOutcome::kQueued);
  run_until([&] { return server_.frames_.size() == 1; });
  net().close(connection);
  run_until([&] { return !server_.closed_.empty(); });
  settle();
  ASSERT_EQ(server_.closed_.size(), 1u);
  EXPECT_EQ(server_.closed_[0].reason, CloseReason::kPeerClosed);
  EXPECT_EQ(net().send(server_.accepted_[0].connection, "x"), SendOutcome::kClosed);
  EXPECT_EQ(net().send(connection, "x"), SendOutcome::kClosed);
  EXPECT_TRUE(client_.closed_.empty());  // the side that closes gets no event
}

TEST_P(TransportTest, APeerThatClosesInsideAFrameIsSaidToHaveBroken) {
  listen();
  {
    const FileDescriptor raw = raw_connection();
    write_raw(raw, std::string("\x05\0\0\0whole\x64\0\0\0part", 17));
  }
  run_until([&] { return !server_.closed_.empty(); });
  settle();
  EXPECT_EQ(server_.frames_, std::vector<std::string>{"whole"});
  ASSERT_EQ(server_.closed_.size(), 1u);
  EXPECT_EQ(server_.closed_[0].reason, CloseReason::kBroken);
  EXPECT_NE(server_.closed_[0].error.message.find("8 bytes into a frame"), std::string::npos)
      << server_.closed_[0].error.message;
}

TEST_P(TransportTest, APeerThatClosesInsideALengthIsSaidToHaveBroken) {
  listen();
  {
    write_raw(raw_connection(), "\x05");
  }
  run_until([&] { return !server_.closed_.empty(); });
  EXPECT_EQ(server_.closed_[0].reason, CloseReason::kBroken);
  EXPECT_TRUE(server_.frames_.empty());
}

TEST_P(TransportTest, AnAnnouncedFrameAboveTheLimitEndsTheConnectionBeforeItsBytesAreRead) {
  start(kSmall);
  listen();
  const FileDescriptor raw = raw_connection();
  write_raw(raw, std::string("\xe9\x03\0\0", 4));  // 1001
  run_until([&] { return !server_.closed_.empty(); });
  EXPECT_EQ(server_.closed_[0].reason, CloseReason::kFrameTooLarge);
  EXPECT_NE(server_.closed_[0].error.message.find("1001 bytes; the limit is 1000"),
            std::string::npos);
  char byte = 0;
  EXPECT_LE(::recv(raw.get(), &byte, 1, 0), 0);  // it hung up
}

TEST_P(TransportTest, AFrameAboveTheLimitIsNotSentAndTheConnectionGoesOn) {
  start(kSmall);
  listen();
  const ConnectionId connection = connect();
  EXPECT_EQ(net().send(connection, std::string(1001, 'x')), SendOutcome::kTooLarge);
  EXPECT_EQ(net().send(connection, std::string(1000, 'y')), SendOutcome::kQueued);
  run_until([&] { return server_.frames_.size() == 1; });
  EXPECT_EQ(server_.frames_[0], std::string(1000, 'y'));
}

TEST_P(TransportTest, AFullQueueSaysSoAndWhatWasQueuedArrivesWholeWhenThePeerReadsAgain) {
  start(kSmall);
  listen();
  const FileDescriptor raw = raw_connection();
  run_until([&] { return server_.accepted_.size() == 1; });
  const ConnectionId to_raw = server_.accepted_[0].connection;
  const std::string frame(1000, 'x');
  std::size_t queued = 0;
  SendOutcome outcome = SendOutcome::kQueued;
  // The kernel's buffers fill first; this peer never reads.
  while ((outcome = net().send(to_raw, frame)) == SendOutcome::kQueued) ++queued;
  EXPECT_EQ(outcome, SendOutcome::kOverflow);
  EXPECT_GT(queued, 3u);
  settle();
  EXPECT_EQ(net().send(to_raw, frame), SendOutcome::kOverflow);
  EXPECT_TRUE(server_.closed_.empty());

  ASSERT_EQ(::fcntl(raw.get(), F_SETFL, O_NONBLOCK), 0);
  std::string received;
  run_until([&] {
    std::string chunk(1 << 16, '\0');
    const ssize_t got = ::recv(raw.get(), chunk.data(), chunk.size(), 0);
    if (got > 0) received.append(chunk, 0, static_cast<std::size_t>(got));
    real_->env().post([] {});  // another round, whatever the sockets do
    return received.size() >= queued * 1004;
  });
  std::string expected;
  for (std::size_t i = 0; i < queued; ++i) expected += std::string("\xe8\x03\0\0", 4) + frame;
  EXPECT_TRUE(received == expected);
  EXPECT_EQ(net().send(to_raw, frame), SendOutcome::kQueued);
}

TEST_P(TransportTest, SendingToAPeerThatIsGoneIsNoSignalAndReportedOnce) {
  listen();
  {
    const FileDescriptor raw = raw_connection();
  }
  settle();  // accepted, and perhaps already seen to be gone
  run_until([&] { return server_.accepted_.size() == 1; });
  for (int i = 0; i < 10; ++i) {
    const SendOutcome outcome = net().send(server_.accepted_[0].connection, "into the void");
    EXPECT_TRUE(outcome == SendOutcome::kQueued || outcome == SendOutcome::kClosed);
  }
  run_until([&] { return !server_.closed_.empty(); });
  settle();
  EXPECT_EQ(server_.closed_.size(), 1u);
  EXPECT_EQ(net().send(server_.accepted_[0].connection, "x"), SendOutcome::kClosed);
}

TEST_P(TransportTest, WhatAPeerSaidBeforeItWentIsHeardEvenWhenSendingToItFailed) {
  listen();
  std::vector<SendOutcome> outcomes;
  server_.react_ = [&](ConnectionId from, std::string_view) {
    outcomes.push_back(net().send(from, "answer"));
  };
  {
    write_raw(raw_connection(), std::string("\x01\0\0\0a\x01\0\0\0b\x01\0\0\0c", 15));
  }
  run_until([&] { return !server_.closed_.empty(); });
  EXPECT_EQ(server_.frames_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(server_.closed_.size(), 1u);
}

TEST_P(TransportTest, AConnectionClosedInsideItsOwnFrameCallbackHearsNoMore) {
  listen();
  server_.react_ = [&](ConnectionId from, std::string_view) { net().close(from); };
  const ConnectionId connection = connect();
  for (const char* frame : {"one", "two", "three"}) {
    ASSERT_EQ(net().send(connection, frame), SendOutcome::kQueued);
  }
  run_until([&] { return !client_.closed_.empty(); });
  settle();
  EXPECT_EQ(server_.frames_, std::vector<std::string>{"one"});
  EXPECT_TRUE(server_.closed_.empty());
}

TEST_P(TransportTest, AClientMayConnectAgainInsideOnClose) {
  listen();
  ConnectionId second = ConnectionId::kNone;
  client_.react_to_close_ = [&](ConnectionId) {
    second = connect();
    ASSERT_EQ(net().send(second, "again"), SendOutcome::kQueued);
  };
  const ConnectionId first = connect();
  run_until([&] { return server_.accepted_.size() == 1; });
  net().close(server_.accepted_[0].connection);
  run_until([&] { return server_.frames_.size() == 1; });
  EXPECT_EQ(client_.closed_.size(), 1u);
  EXPECT_NE(first, second);
  EXPECT_EQ(server_.frames_[0], "again");
}

TEST_P(TransportTest, ClosingAListenerRefusesNewcomersAndKeepsTheRest) {
  listen();
  const ConnectionId kept = connect();
  run_until([&] { return server_.accepted_.size() == 1; });
  net().close(listening_.listener);
  static_cast<void>(connect());
  run_until([&] { return client_.closed_.size() == 1; });
  EXPECT_EQ(client_.closed_[0].reason, CloseReason::kConnectFailed);
  ASSERT_EQ(net().send(kept, "still here"), SendOutcome::kQueued);
  run_until([&] { return server_.frames_.size() == 1; });
  EXPECT_EQ(server_.accepted_.size(), 1u);
}

TEST_P(TransportTest, ConnectingToNobodyIsReportedOnceFromTheLoop) {
  // Bound, but not listening: no other program can answer there meanwhile.
  const SocketAddress address = SocketAddress::parse(free_address()).value();
  const FileDescriptor bound(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(bound.get(), address.get(), address.size()), 0);
  listening_.address =
      GetParam() == Family::kUnix ? address.text() : SocketAddress::local_of(bound.get()).text();
  const ConnectionId connection = connect();
  EXPECT_TRUE(client_.closed_.empty());
  run_until([&] { return !client_.closed_.empty(); });
  settle();
  ASSERT_EQ(client_.closed_.size(), 1u);
  EXPECT_EQ(client_.closed_[0].reason, CloseReason::kConnectFailed);
  EXPECT_NE(client_.closed_[0].error.message.find("Connection refused"), std::string::npos);
  EXPECT_EQ(net().send(connection, "x"), SendOutcome::kClosed);
}

TEST_P(TransportTest, AFailedConnectionThatIsClosedFirstReportsNothing) {
  listening_.address = "unix:" + directory_ + "/nobody";
  net().close(connect());
  settle();
  EXPECT_TRUE(client_.closed_.empty());
}

TEST_P(TransportTest, AnAddressInUseIsRefused) {
  listen();
  EXPECT_FALSE(net().listen(listening_.address, server_));
  const ConnectionId connection = connect();
  ASSERT_EQ(net().send(connection, "unharmed"), SendOutcome::kQueued);
  run_until([&] { return server_.frames_.size() == 1; });
  EXPECT_EQ(server_.frames_[0], "unharmed");
}

// While it lives, the process can open no descriptor more than it has.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const FileDescriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit limit{static_cast<rlim_t>(next.get()), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;
  ~NoDescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_P(TransportTest, ANewcomerIsTurnedAwayWhenDescriptorsRunOutAndTheOthersGoOn) {
  listen();
  const ConnectionId held = connect();
  run_until([&] { return server_.accepted_.size() == 1; });
  static_cast<void>(connect());
  {
    const NoDescriptorsLeft none;
    static_cast<void>(connect());  // not even a socket for this one
    run_until([&] { return client_.closed_.size() == 2; });
  }
  EXPECT_EQ(client_.closed_[0].reason, CloseReason::kConnectFailed);
  EXPECT_EQ(client_.closed_[1].reason, CloseReason::kPeerClosed);
  EXPECT_EQ(server_.accepted_.size(), 1u);
  ASSERT_EQ(net().send(held, "unharmed"), SendOutcome::kQueued);
  static_cast<void>(connect());
  run_until([&] { return server_.frames_.size() == 1 && server_.accepted_.size() == 2; });
}

TEST_P(TransportTest, ManyConnectionsAreServedAtOnce) {
  listen();
  constexpr std::size_t kConnections = 200;
  server_.react_ = [&](ConnectionId from, std::string_view frame) {
    EXPECT_EQ(net().send(from, frame), SendOutcome::kQueued);
  };
  std::vector<ConnectionId> connections;
  for (std::size_t i = 0; i < kConnections; ++i) {
    connections.push_back(connect());
    // A unix connect fails when more wait to be accepted than the backlog holds.
    if (i % 50 == 49) run_until([&] { return server_.accepted_.size() == i + 1; });
  }
  for (std::size_t i = 0; i < kConnections; ++i) {
    ASSERT_EQ(net().send(connections[i], std::to_string(i)), SendOutcome::kQueued);
  }
  run_until([&] { return client_.frames_.size() == kConnections; });
  EXPECT_EQ(server_.accepted_.size(), kConnections);
  EXPECT_TRUE(client_.closed_.empty());
}

class UnixSocketTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(Unix, UnixSocketTest, ::testing::Values(Family::kUnix));

TEST_P(UnixSocketTest, TheSocketIsForItsOwnerAloneAndGoesWithItsListener) {
  listen();
  struct stat found{};
  ASSERT_EQ(::stat((directory_ + "/socket").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777u, 0600u);
  net().close(listening_.listener);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/socket"));
}

TEST_P(UnixSocketTest, ASocketLeftBehindByACrashIsReplaced) {
  const SocketAddress address = SocketAddress::parse(free_address()).value();
  {
    const FileDescriptor crashed(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(crashed.get(), address.get(), address.size()), 0);
  }
  listen();
  ASSERT_EQ(net().send(connect(), "x"), SendOutcome::kQueued);
  run_until([&] { return server_.frames_.size() == 1; });
}

TEST_P(UnixSocketTest, AFileThatIsNoSocketIsNotReplaced) {
  ASSERT_TRUE(real_->env().storage.write_file(directory_ + "/socket", "precious"));
  const Result<Listening> refused = net().listen(free_address(), server_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no socket"), std::string::npos);
  EXPECT_EQ(real_->env().storage.read_file(directory_ + "/socket", 100).value(), "precious");
}

TEST(SocketAddress, ReadsAndPrintsTheThreeForms) {
  for (const char* text : {"unix:/run/orrery/agent.sock", "tcp:127.0.0.1:7000", "tcp:[::1]:0",
                           "tcp:[2001:db8::1]:65535"}) {
    const Result<SocketAddress> address = SocketAddress::parse(text);
    ASSERT_TRUE(address) << address.error().text();
    EXPECT_EQ(address->text(), text);
  }
}

TEST(SocketAddress, RefusesEverythingElseWithTheTextAndWhatWasExpected) {
  for (const std::string& text :
       {std::string(), std::string("127.0.0.1:7000"), std::string("tcp:127.0.0.1"),
        std::string("tcp:127.0.0.1:"), std::string("tcp:127.0.0.1:65536"),
        std::string("tcp:127.0.0.1:7000x"), std::string("tcp:127.0.0.1:-1"),
        std::string("tcp:localhost:7000"), std::string("tcp::1:7000"), std::string("tcp:[::1]"),
        std::string("tcp:[]:1"), std::string("tcp:[127.0.0.1]:1"), std::string("unix:relative"),
        std::string("unix:"), "unix:/" + std::string(107, 'x'), std::string("unix:/a\0b", 9),
        std::string("tcp:127.0.0.1\0:1", 16), std::string("tcp:7000"), std::string("tcp:")}) {
    const Result<SocketAddress> address = SocketAddress::parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().kind, ErrorKind::kInput);
    EXPECT_NE(address.error().message.find("expected"), std::string::npos);
  }
  EXPECT_TRUE(SocketAddress::parse("unix:/" + std::string(106, 'x')));
}

}  // namespace
}  // namespace orrery
