// node/keeper/keeper_link_test.cpp - how a link starts, finds and loses its keeper, and what it
// reports of it. The test plays the keeper's end of the socket.
#include "node/keeper/keeper_link.hpp"

#include <fstream>

#include "node/agent/agent_parts_test.hpp"
#include "node/keeper/keeper_guard.hpp"

namespace orrery {
namespace {

constexpr AttemptId kAttempt{JobId(5), 1};

/// Records the events of a link in order.
class RecordedEvents final : public KeeperEvents {
 public:
  void on_status(const AttemptId&, const KeeperStatus&) override { events.emplace_back("status"); }
  void on_paces(const AttemptId&, const RankPaces&) override { events.emplace_back("paces"); }
  void on_wrong(const AttemptId&, const WrongResults& wrong) override {
    events.push_back("wrong " + wrong.evidence);
  }
  void on_tail(const AttemptId&, const LogTail&) override { events.emplace_back("tail"); }
  void on_command_output(const ExecOutput& output) override {
    events.push_back("output " + output.output);
  }
  void on_command_end(const ExecEnd& end) override { events.push_back("end " + end.error); }
  void on_break(const AttemptId&) override { events.emplace_back("break"); }
  void on_over(const AttemptId&, const std::string& failure) override {
    events.push_back("over " + failure);
  }

  std::vector<std::string> events;
};

/// The keeper's end of the socket: holds what it receives by connection.
class PlayedSocket final : public ListenerEvents {
 public:
  void on_accept(const Accepted& accepted) override { connections.push_back(accepted.connection); }
  void on_frame(ConnectionId connection, std::string_view frame) override {
    const Result<KeeperInput> message = decode_keeper_input(frame);
    ASSERT_TRUE(message) << message.error().message;
    received[connection].push_back(*message);
  }
  void on_close(ConnectionId, const Closed&) override { ++closed; }

  std::vector<ConnectionId> connections;
  std::map<ConnectionId, std::vector<KeeperInput>> received;
  int closed = 0;
};

class KeeperLinkTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    make("/bin/false");
  }
  void TearDown() override {
    link_.reset();
    AgentPartTest::TearDown();
  }
  void make(const std::string& program) {
    link_ = std::make_unique<KeeperLink>(*real_, events_,
                                         KeeperPlace{program, kAttempt, KeeperFiles{directory_}});
  }
  /// Makes a program that the link starts as its keeper.
  [[nodiscard]] std::string program(const std::string& script) const {
    const std::string path = directory_ + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  /// Begins to live as the keeper of the directory.
  void live() {
    Result<FileDescriptor> lock = lock_keeper_directory(KeeperFiles{directory_});
    ASSERT_TRUE(lock);
    lock_ = *std::move(lock);
    const Result<Listening> listening =
        real_->env().transport.listen(KeeperFiles{directory_}.socket(), socket_);
    ASSERT_TRUE(listening) << listening.error().message;
    listener_ = listening->listener;
  }
  void end_living() {
    real_->env().transport.close(listener_);
    for (const ConnectionId each : socket_.connections) real_->env().transport.close(each);
    lock_.reset();
  }
  /// Adopts the played keeper, which can run commands.
  void adopt() {
    live();
    link_->adopt();
    await([&] { return received(0) == 1; });
    say(KeeperAbilities{.commands = true});
    await([&] { return link_->runs_commands(); });
  }
  void say(const KeeperOutput& message) {
    ASSERT_EQ(real_->env().transport.send(socket_.connections.back(), encode(message)),
              SendOutcome::kQueued);
  }
  /// Returns how many messages the link's connection with this number has brought.
  [[nodiscard]] std::size_t received(std::size_t connection) const {
    return connection < socket_.connections.size() ? messages(connection).size() : 0;
  }
  [[nodiscard]] std::vector<KeeperInput> messages(std::size_t connection) const {
    const auto found = socket_.received.find(socket_.connections.at(connection));
    return found == socket_.received.end() ? std::vector<KeeperInput>() : found->second;
  }
  [[nodiscard]] static bool is_adoption(const KeeperInput& message) {
    const auto* order = std::get_if<AgentOrder>(&message);
    return order != nullptr && std::holds_alternative<AdoptKeeper>(order->order.what);
  }

  RecordedEvents events_;
  PlayedSocket socket_;
  ListenerId listener_ = ListenerId::kNone;
  FileDescriptor lock_;
  std::unique_ptr<KeeperLink> link_;
};

// --- The beginning ------------------------------------------------------------------------------

TEST_F(KeeperLinkTest, AProgramThatIsNotThereIsAnErrorOfTheStart) {
  make("/nowhere/keeper");
  const Status started = link_->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "cannot run /nowhere/keeper: No such file or directory");
}

TEST_F(KeeperLinkTest, AKeeperThatEndsBeforeItIsReadyIsOverWithItsOwnWords) {
  make(program("echo no memory >&2; exit 3"));
  ASSERT_TRUE(link_->start());
  await([&] { return !events_.events.empty(); });
  EXPECT_EQ(events_.events, std::vector<std::string>{"over no memory"});
}

TEST_F(KeeperLinkTest, AKeeperThatEndsWithoutAWordIsOverWithItsStatus) {
  make(program("exit 3"));
  ASSERT_TRUE(link_->start());
  await([&] { return !events_.events.empty(); });
  EXPECT_EQ(events_.events, std::vector<std::string>{"over exit status 3"});
}

TEST_F(KeeperLinkTest, MessagesOfBeforeTheConnectionFollowTheAdoptionInOrder) {
  live();
  link_->tell(LogQuestion{0, 1, 0});
  link_->tell(LogQuestion{0, 2, 0});
  link_->adopt();
  await([&] { return received(0) == 3; });
  const std::vector<KeeperInput> sent = messages(0);
  EXPECT_TRUE(is_adoption(sent[0]));
  EXPECT_EQ(std::get<LogQuestion>(sent[1]).rank, 1u);
  EXPECT_EQ(std::get<LogQuestion>(sent[2]).rank, 2u);
}

// --- While it lives -----------------------------------------------------------------------------

TEST_F(KeeperLinkTest, MessagesOfTheKeeperAreReported) {
  live();
  link_->adopt();
  await([&] { return received(0) == 1; });
  EXPECT_FALSE(link_->runs_commands()) << "it has not said so";
  say(KeeperAbilities{.commands = true});
  say(KeeperStatus{});
  say(RankPaces{});
  say(WrongResults{"rank 3"});
  say(LogTail{});
  say(ExecOutput{.id = 1, .output = "file"});
  say(ExecEnd{.id = 1, .error = "gone"});
  await([&] { return events_.events.size() == 6; });
  EXPECT_EQ(events_.events, (std::vector<std::string>{"status", "paces", "wrong rank 3", "tail",
                                                      "output file", "end gone"}));
  EXPECT_TRUE(link_->runs_commands());
}

TEST_F(KeeperLinkTest, ALostConnectionIsReportedAndMadeAgain) {
  adopt();
  real_->env().transport.close(socket_.connections[0]);
  await([&] { return received(1) == 1; });
  EXPECT_EQ(events_.events, std::vector<std::string>{"break"});
  EXPECT_TRUE(is_adoption(messages(1)[0]));
  EXPECT_FALSE(link_->runs_commands()) << "the new connection has not said so";
}

TEST_F(KeeperLinkTest, AKeeperThatDoesNotReadIsLostAfterTheCallThatFindsOut) {
  adopt();
  // The loop does not run meanwhile, so the keeper reads nothing and the queue fills.
  const ExecInput input{.id = 7, .bytes = std::string(std::size_t{1} << 19, 'x')};
  int told = 0;
  while (link_->runs_commands() && told < 100) {
    link_->tell(input);
    ++told;
  }
  EXPECT_LT(told, 100) << "the queue is bounded";
  EXPECT_TRUE(events_.events.empty()) << "not inside the call";
  link_->tell(LogQuestion{0, 1, 0});
  link_->tell(ExecInput{.id = 7, .close = true});
  link_->tell(LogQuestion{0, 2, 0});
  await([&] { return received(1) == 3; });
  EXPECT_EQ(events_.events, std::vector<std::string>{"break"});
  const std::vector<KeeperInput> sent = messages(1);
  EXPECT_TRUE(is_adoption(sent[0])) << "commands have ended with their connection";
  EXPECT_EQ(std::get<LogQuestion>(sent[1]).rank, 1u);
  EXPECT_EQ(std::get<LogQuestion>(sent[2]).rank, 2u);
  EXPECT_FALSE(link_->runs_commands()) << "the new connection has not said so";
  link_->tell(LogQuestion{0, 3, 0});
  await([&] { return received(1) == 4; });
}

// --- The end ------------------------------------------------------------------------------------

TEST_F(KeeperLinkTest, AKeeperIsOverOnceItsLockIsFree) {
  adopt();
  end_living();
  await([&] { return events_.events.size() == 2; });
  EXPECT_EQ(events_.events, (std::vector<std::string>{"break", "over "}));
}

TEST_F(KeeperLinkTest, AnAdoptedKeeperThatHasEndedIsOverWithoutAFailure) {
  link_->adopt();
  await([&] { return events_.events.size() == 2; });
  EXPECT_EQ(events_.events, (std::vector<std::string>{"break", "over "}));
}

}  // namespace
}  // namespace orrery
