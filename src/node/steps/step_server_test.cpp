// node/steps/step_server_test.cpp - the peers that may start tasks on a node, and the end of tasks;
// the nodes that srun trusts, and the loss of one.
#include "node/steps/step_server.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "node/steps/step_client.hpp"
#include "node/steps/step_secret.hpp"

namespace orrery {
namespace {

StepProof proof_of(std::string_view secret, const std::string& challenge) {
  return {step_proof(secret, {StepEnd::kCaller, 0, challenge}), "mine"};
}

/// The end of a connection that a test holds.
class Peer final : public ConnectionEvents {
 public:
  Peer(RealEnv& real, const std::string& address) : real_(real) {
    connection_ = real.env().transport.connect(address, *this).value();
  }
  void say(const StepRequest& request) {
    ASSERT_EQ(real_.env().transport.send(connection_, encode(request)), SendOutcome::kQueued);
  }
  void close() { real_.env().transport.close(connection_); }
  void on_frame(ConnectionId, std::string_view frame) override {
    const StepReply reply = decode_step_reply(frame).value();
    if (const auto* question = std::get_if<StepChallenge>(&reply)) {
      challenge = question->challenge;
      asked();
    }
    told_of_end = told_of_end || std::holds_alternative<StepJobEnd>(reply);
    if (const auto* welcome = std::get_if<StepWelcome>(&reply)) proof = welcome->proof;
    if (const auto* output = std::get_if<StepOutput>(&reply)) {
      (output->descriptor == 1 ? out : err) += output->bytes;
      if (takes) say(StepTaken{output->bytes.size()});
    }
    if (const auto* end = std::get_if<StepTaskEnd>(&reply)) ends[end->task] = end->status;
  }
  void on_close(ConnectionId, const Closed&) override { closed = true; }

  std::string challenge;
  Callback asked = [] {};
  std::string proof;
  bool told_of_end = false;
  std::string out;
  std::string err;
  std::map<std::uint32_t, std::uint32_t> ends;
  bool closed = false;
  bool takes = true;

 private:
  RealEnv& real_;
  ConnectionId connection_ = ConnectionId::kNone;
};

/// What is found at the port of a node.
class FoundNode final : public ListenerEvents {
 public:
  using Answer = std::function<void(FoundNode& node, const StepRequest& request)>;

  FoundNode(RealEnv& real, Answer answer, const std::string& address = "tcp:127.0.0.1:0")
      : real_(real), answer_(std::move(answer)) {
    const Listening listening = real.env().transport.listen(address, *this).value();
    listener_ = listening.listener;
    const std::string& at = listening.address;
    port = static_cast<std::uint32_t>(std::stoul(at.substr(at.rfind(':') + 1)));
  }
  ~FoundNode() override {
    real_.env().transport.close(listener_);
    close();
  }
  void say(const StepReply& reply) { (void)real_.env().transport.send(connection_, encode(reply)); }
  void close() { real_.env().transport.close(connection_); }
  void on_accept(const Accepted& accepted) override {
    ++calls;
    connection_ = accepted.connection;
    if (challenges) say(StepChallenge{"yours"});
  }
  void on_frame(ConnectionId, std::string_view frame) override {
    const StepRequest request = decode_step_request(frame).value();
    ++requests;
    orders += std::holds_alternative<StepOrder>(request) ? 1 : 0;
    answer_(*this, request);
  }
  void on_close(ConnectionId, const Closed&) override { gone(); }

  std::uint32_t port = 0;
  int calls = 0;
  int requests = 0;
  int orders = 0;
  bool challenges = true;
  Callback gone = [] {};

 private:
  RealEnv& real_;
  Answer answer_;
  ListenerId listener_ = ListenerId::kNone;
  ConnectionId connection_ = ConnectionId::kNone;
};

/// As a node of the job does.
void welcome(FoundNode& node, const StepRequest& request) {
  const auto* proof = std::get_if<StepProof>(&request);
  if (proof == nullptr) return;
  EXPECT_EQ(proof->proof, proof_of("secret", "yours").proof);
  node.say(StepWelcome{step_proof("secret", {StepEnd::kNode, 0, proof->challenge})});
}

/// Signals are waited for, as in main().
class StepTest : public testing::Test {
 protected:
  StepTest() {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    for (const int number : kForwarded) sigaddset(&wanted, number);
    ::sigprocmask(SIG_BLOCK, &wanted, &before_);
    (void)::signal(SIGPIPE, SIG_IGN);
    real_ = RealEnv::create().value();
  }
  ~StepTest() override { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  sigset_t before_{};
  std::unique_ptr<RealEnv> real_;
};

class StepServerTest : public StepTest {
 protected:
  StepServerTest() { open(settings()); }

  static StepServerSettings settings() {
    return {
        .gang = {.job = "1", .addresses = {"localhost"}, .here = 0, .port = 1, .secret = "secret"},
        .environment = {{"CUDA_VISIBLE_DEVICES", "2,3"},
                        {"ORRERY_STEP_PORT", "1"},
                        {"PATH", "/usr/bin:/bin"}},
        .tools = "/nowhere",
        .script = {"/bin/true"},
        .directory = "/"};
  }
  void open(StepServerSettings settings) {
    server_ = StepServer::open(*real_, std::move(settings)).value();
    address_ = "tcp:127.0.0.1:" + server_->port();
  }
  std::unique_ptr<Peer> peer() {
    auto made = std::make_unique<Peer>(*real_, address_);
    real_->run_until([&] { return !made->challenge.empty(); });
    return made;
  }
  std::unique_ptr<Peer> proven() {
    auto made = peer();
    made->say(proof_of("secret", made->challenge));
    return made;
  }
  static StepOrder order(const std::string& shell) {
    return {.command = {"sh", "-c", shell},
            .environment = {{"PATH", "/usr/bin:/bin"}, {"CUDA_VISIBLE_DEVICES", ""}},
            .directory = "/",
            .first = 4,
            .tasks = 2};
  }

  std::string address_;
  std::unique_ptr<StepServer> server_;
};

TEST_F(StepServerTest, StartsNothingForWhoDoesNotKnowTheSecret) {
  auto wrong = peer();
  auto other = peer();
  EXPECT_NE(wrong->challenge, other->challenge);
  wrong->say(proof_of("secrets", wrong->challenge));
  wrong->say(order("true"));
  other->say(order("true"));
  // An answer to the question of another connection is refused.
  auto replayed = peer();
  replayed->say(proof_of("secret", other->challenge));
  real_->run_until([&] { return wrong->closed && other->closed && replayed->closed; });
  EXPECT_TRUE(wrong->ends.empty() && other->ends.empty());
  EXPECT_TRUE(wrong->proof.empty() && other->proof.empty() && replayed->proof.empty());
}

TEST_F(StepServerTest, GivesEachTaskItsOwnDevicesAndSaysHowItEnded) {
  auto step = proven();
  StepOrder asked =
      order("echo $SLURM_PROCID:$CUDA_VISIBLE_DEVICES; echo e >&2; exit $SLURM_PROCID");
  asked.devices = 1;
  step->say(asked);
  real_->run_until([&] { return step->ends.size() == 2; });
  EXPECT_EQ(step->ends, (std::map<std::uint32_t, std::uint32_t>{{4, 4}, {5, 5}}));
  EXPECT_NE(step->out.find("4:2\n"), std::string::npos) << step->out;
  EXPECT_NE(step->out.find("5:3\n"), std::string::npos) << step->out;
  EXPECT_EQ(step->err, "e\ne\n");
  auto absent = proven();
  asked.command = {"no-such-program"};
  absent->say(asked);
  real_->run_until([&] { return absent->ends.size() == 2; });
  EXPECT_EQ(absent->ends[4], 127u);
  EXPECT_NE(absent->err.find("no-such-program"), std::string::npos);
}

TEST_F(StepServerTest, FeedsItsTasksAndSignalsThem) {
  auto step = proven();
  StepOrder asked = order("read line; echo $SLURM_LOCALID $line; exec sleep 600");
  asked.readers = StepReaders::kAll;
  step->say(asked);
  step->say(StepInput{"hello\n"});
  step->say(StepInput{});
  real_->run_until([&] { return step->out.size() == 16; });
  EXPECT_NE(step->out.find("1 hello\n"), std::string::npos) << step->out;
  step->say(StepSignal{SIGTERM});
  real_->run_until([&] { return step->ends.size() == 2; });
  EXPECT_EQ(step->ends[5], 128u + SIGTERM);
}

TEST_F(StepServerTest, HoldsTasksBackThatNobodyReads) {
  auto step = proven();
  step->takes = false;
  StepOrder asked = order("head -c 8000000 /dev/zero; echo done >&2");
  asked.tasks = 1;
  step->say(asked);
  real_->run_until([&] { return step->out.size() >= kStepBytesAhead; });
  for (int round = 0; round < 20; ++round) {
    (void)real_->env().timers.call_after(Duration::milliseconds(1), [] {});
    bool ran = false;
    real_->run_until([&] { return std::exchange(ran, true); });
  }
  EXPECT_LT(step->out.size(), kStepBytesAhead + (std::size_t{64} << 10));
  step->takes = true;
  step->say(StepTaken{step->out.size()});
  real_->run_until([&] { return step->ends.size() == 1; });
  EXPECT_EQ(step->out.size(), 8'000'000u);
  EXPECT_EQ(step->err, "done\n");
}

TEST_F(StepServerTest, ToldToEndLetsScriptAndTasksFinish) {
  const std::string place = testing::TempDir() + fmt::format("orrery_steps_{}", ::getpid());
  std::filesystem::create_directories(place);
  const std::string last_words =
      R"(trap "echo ends; sleep 0.1; echo $NAME > )" + place +
      R"(/$NAME; exit 5" TERM; echo ready; while :; do sleep 0.02; done)";
  // What the script waits for is told to end, too; a shell without a trap is gone at once.
  StepServerSettings with = settings();
  with.script = {"/bin/sh", "-c", "(NAME=script; " + last_words + ") > " + place + "/begun & wait"};
  open(std::move(with));
  auto step = proven();
  StepOrder asked = order("NAME=task; " + last_words);
  asked.tasks = 1;
  step->say(asked);
  bool begun = false;
  std::function<void()> look = [&] {
    std::error_code absent;
    const bool both = step->out == "ready\n" &&
                      std::filesystem::file_size(place + "/begun", absent) > 0 && !absent;
    if (both && !std::exchange(begun, true)) (void)::raise(SIGTERM);
    // An srun that has no patience does not cut the end short; it goes when it knows of the end.
    if (step->out == "ready\nends\n") step->say(StepSignal{SIGKILL});
    if (!step->ends.empty()) return step->close();
    (void)real_->env().timers.call_after(Duration::milliseconds(5), look);
  };
  look();
  EXPECT_EQ(server_->run(), 128 + SIGTERM);
  EXPECT_EQ(step->ends, (std::map<std::uint32_t, std::uint32_t>{{4, 5}}));
  EXPECT_TRUE(std::filesystem::exists(place + "/script"));
  EXPECT_TRUE(std::filesystem::exists(place + "/task"));
  std::filesystem::remove_all(place);
}

TEST_F(StepServerTest, TheFirstNodeWaitsForAllToHearOfTheEnd) {
  StepServerSettings with = settings();
  with.gang.addresses = {"localhost", "localhost"};
  with.patience = Duration::milliseconds(1);
  with.gang.port = FoundNode(*real_, welcome).port;
  address_ = fmt::format("tcp:127.0.0.1:{}", with.gang.port);
  server_ = StepServer::open(*real_, std::move(with)).value();
  std::unique_ptr<Peer> other;
  const auto attend = [&] {
    other->say(proof_of("secret", other->challenge));
    other->say(StepAttend{1});
  };
  (void)real_->env().timers.call_after(Duration::milliseconds(50), [&] {
    other = std::make_unique<Peer>(*real_, address_);
    other->asked = attend;
  });
  EXPECT_EQ(server_->run(), 0);
  ASSERT_TRUE(other) << "it ended without a word to the other node";
  real_->run_until([&] { return other->told_of_end; });
}

TEST_F(StepServerTest, AnotherNodeWaitsForTheFirstWhateverBecomesOfIt) {
  std::unique_ptr<FoundNode> first;
  const auto answer = [](FoundNode& node, const StepRequest& request) {
    welcome(node, request);
    if (!std::holds_alternative<StepAttend>(request)) return;
    if (node.calls == 1) return node.close();
    node.say(StepJobEnd{});
  };
  Result<std::unique_ptr<StepServer>> second = environment_error("no port is free");
  for (int tries = 0; tries < 20 && !second; ++tries) {  // it needs two ports side by side
    first = std::make_unique<FoundNode>(*real_, answer);
    StepServerSettings with = settings();
    with.gang.addresses = {"localhost", "localhost"};
    with.gang.here = 1;
    with.gang.port = first->port;
    second = StepServer::open(*real_, std::move(with));
  }
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->run(), 0);
  EXPECT_EQ(first->calls, 2);
}

// --- srun ---------------------------------------------------------------------------------------

class StepClientTest : public StepTest {
 protected:
  static StepClientSettings settings(std::uint32_t port) {
    SrunOptions options;
    options.readers = StepReaders::kNone;
    options.command = {"true"};
    return {.options = options,
            .gang = {.job = "1", .addresses = {"localhost"}, .port = port, .secret = "secret"},
            .layout = {.parts = {{.tasks = 1}}, .tasks = 1},
            .environment = {},
            .directory = "/",
            .step = "0"};
  }
};

TEST_F(StepClientTest, ShowsItsOrderOnlyToWhoKnowsTheSecret) {
  FoundNode reflects(*real_, [](FoundNode& node, const StepRequest& request) {
    if (const auto* proof = std::get_if<StepProof>(&request)) node.say(StepWelcome{proof->proof});
  });
  FoundNode hurries(*real_, [](FoundNode& node, const StepRequest&) {
    node.say(StepOutput{0, 1, "who are you?"});
  });
  FoundNode knows(*real_, [](FoundNode& node, const StepRequest& request) {
    welcome(node, request);
    if (std::holds_alternative<StepOrder>(request)) node.say(StepTaskEnd{0, 7});
  });
  EXPECT_EQ(StepClient(*real_, settings(reflects.port)).run(), 1);
  EXPECT_EQ(StepClient(*real_, settings(hurries.port)).run(), 1);
  EXPECT_EQ(reflects.orders + hurries.orders, 0);
  EXPECT_EQ(StepClient(*real_, settings(knows.port)).run(), 7);
}

TEST_F(StepClientTest, EndsWhenItsOrderCannotBeSentOrTheNodeGoes) {
  FoundNode node(*real_, welcome);
  StepClientSettings large = settings(node.port);
  large.environment = {{"A", std::string(std::size_t{2} << 20, 'a')}};
  EXPECT_EQ(StepClient(*real_, std::move(large)).run(), 1);
  EXPECT_EQ(node.orders, 0);
  FoundNode goes(*real_, [](FoundNode& gone, const StepRequest& request) {
    welcome(gone, request);
    if (std::holds_alternative<StepOrder>(request)) gone.close();
  });
  EXPECT_EQ(StepClient(*real_, settings(goes.port)).run(), 1);
  EXPECT_EQ(goes.calls, 1);
}

TEST_F(StepClientTest, ToldToEndBeforeAllHaveBegunLetsNoMoreBegin) {
  FoundNode* late = nullptr;
  FoundNode first(*real_, [&](FoundNode& node, const StepRequest& request) {
    welcome(node, request);
    if (std::holds_alternative<StepOrder>(request)) (void)::raise(SIGTERM);
    if (std::holds_alternative<StepSignal>(request)) late->say(StepChallenge{"yours"});
  });
  FoundNode second(
      *real_, [&](FoundNode&, const StepRequest&) { first.say(StepTaskEnd{0, 0}); },
      fmt::format("tcp:127.0.0.2:{}", first.port));
  late = &second;
  second.challenges = false;
  second.gone = [&] { first.say(StepTaskEnd{0, 128 + SIGTERM}); };
  StepClientSettings both = settings(first.port);
  both.gang.addresses = {"127.0.0.1", "127.0.0.2"};
  both.layout = {.parts = {{.tasks = 1}, {.node = 1, .first = 1, .tasks = 1}}, .tasks = 2};
  EXPECT_EQ(StepClient(*real_, std::move(both)).run(), 128 + SIGTERM);
  EXPECT_EQ(first.orders, 1);
  EXPECT_EQ(second.requests, 0) << "not even an answer to its challenge";
}

}  // namespace
}  // namespace orrery
