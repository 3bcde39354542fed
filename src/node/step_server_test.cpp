// node/step_server_test.cpp - who may start tasks on a node, and what becomes of them.
#include "node/step_server.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "node/step_secret.hpp"

namespace orrery {
namespace {

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
    if (const auto* asked = std::get_if<StepChallenge>(&reply)) challenge = asked->challenge;
    if (const auto* output = std::get_if<StepOutput>(&reply)) {
      (output->descriptor == 1 ? out : err) += output->bytes;
      if (takes) say(StepTaken{output->bytes.size()});
    }
    if (const auto* end = std::get_if<StepTaskEnd>(&reply)) ends[end->task] = end->status;
  }
  void on_close(ConnectionId, const Closed&) override { closed = true; }

  std::string challenge;
  std::string out;
  std::string err;
  std::map<std::uint32_t, std::uint32_t> ends;
  bool closed = false;
  bool takes = true;

 private:
  RealEnv& real_;
  ConnectionId connection_ = ConnectionId::kNone;
};

class StepServerTest : public testing::Test {
 protected:
  StepServerTest() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&wanted, number);
    ::sigprocmask(SIG_BLOCK, &wanted, &before_);
    (void)::signal(SIGPIPE, SIG_IGN);
    real_ = RealEnv::create().value();
    StepServerSettings settings{
        .gang = {.job = "1", .addresses = {"localhost"}, .here = 0, .port = 1, .secret = "secret"},
        .environment = {{"CUDA_VISIBLE_DEVICES", "2,3"},
                        {"ORRERY_STEP_PORT", "1"},
                        {"PATH", "/usr/bin:/bin"}},
        .tools = "/nowhere",
        .script = {"/bin/true"},
        .directory = "/"};
    server_ = StepServer::open(*real_, std::move(settings)).value();
    address_ = "tcp:127.0.0.1:" + server_->port();
  }
  ~StepServerTest() override { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  std::unique_ptr<Peer> peer() {
    auto made = std::make_unique<Peer>(*real_, address_);
    real_->run_until([&] { return !made->challenge.empty(); });
    return made;
  }
  std::unique_ptr<Peer> proven() {
    auto made = peer();
    made->say(StepProof{step_proof("secret", made->challenge)});
    return made;
  }
  static StepOrder order(const std::string& shell) {
    return {.command = {"sh", "-c", shell},
            .environment = {{"PATH", "/usr/bin:/bin"}, {"CUDA_VISIBLE_DEVICES", ""}},
            .directory = "/",
            .first = 4,
            .tasks = 2};
  }

  sigset_t before_{};
  std::unique_ptr<RealEnv> real_;
  std::string address_;
  std::unique_ptr<StepServer> server_;
};

TEST_F(StepServerTest, StartsNothingForWhoDoesNotKnowTheSecret) {
  auto wrong = peer();
  auto other = peer();
  EXPECT_NE(wrong->challenge, other->challenge);
  wrong->say(StepProof{step_proof("secrets", wrong->challenge)});
  wrong->say(order("true"));
  other->say(order("true"));
  // An answer to somebody else's question is none.
  auto replayed = peer();
  replayed->say(StepProof{step_proof("secret", other->challenge)});
  real_->run_until([&] { return wrong->closed && other->closed && replayed->closed; });
  EXPECT_TRUE(wrong->ends.empty() && other->ends.empty());
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

}  // namespace
}  // namespace orrery
