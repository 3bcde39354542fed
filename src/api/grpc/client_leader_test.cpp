// api/grpc/client_leader_test.cpp - how a client finds the one of several controllers that leads.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>

#include "api/fake_controller_test.hpp"
#include "api/grpc/client.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

/// Three controllers of one cluster, each of which counts its calls.
class ClientLeaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (FakeController& each : all_) each.start();
  }
  [[nodiscard]] std::string address(std::size_t controller) const {
    return all_[controller].address();
  }
  /// Sets what a controller answers to each call of a method.
  void answer(std::size_t controller, const std::string& method,
              const std::function<FakeAnswer()>& with) {
    all_[controller].on(method, [this, controller, with](const FakeController::Heard&) {
      ++calls_[controller];
      return with();
    });
  }
  void stand_by(std::size_t controller, const std::string& leader = "") {
    answer(controller, "SubmitJob", [leader] { return refuse_as_standby(leader); });
  }
  void lead(std::size_t controller) {
    answer(controller, "SubmitJob", [controller] {
      v1::SubmitJobResponse response;
      response.set_id(controller);
      return answer_with(response);
    });
  }
  [[nodiscard]] Client client(std::size_t controllers, Duration retry = Duration()) {
    ClientOptions options{.authority = all_[0].authority(), .retry = retry, .on_retry = [this] {
                            ++retries_;
                            if (on_retry_) on_retry_();
                          }};
    for (std::size_t i = 0; i < controllers; ++i) options.addresses.push_back(address(i));
    return Client(std::move(options));
  }
  /// Returns the number of the controller that took a job.
  [[nodiscard]] static Result<std::uint64_t> submit(Client& client) {
    const auto answer = client.call<v1::SubmitJobResponse>("SubmitJob", v1::SubmitJobRequest());
    if (!answer) return tl::unexpected(answer.error());
    return answer->id();
  }
  using Calls = std::array<int, 3>;
  [[nodiscard]] Calls calls() { return std::exchange(calls_, {}); }

  const TlsIdentity authority_ = make_authority(RealClock().now_wall()).value();
  std::array<FakeController, 3> all_{FakeController(authority_), FakeController(authority_),
                                     FakeController(authority_)};
  Calls calls_{};
  int retries_ = 0;
  std::function<void()> on_retry_;
};

TEST_F(ClientLeaderTest, ACallGoesToTheLeaderThatAStandbyNamesAndTheNextOneThereAtOnce) {
  stand_by(0, address(2));
  lead(1);
  lead(2);
  Client client = this->client(3);
  EXPECT_EQ(submit(client), 2u);
  EXPECT_EQ(calls(), (Calls{1, 0, 1}));
  EXPECT_EQ(submit(client), 2u);
  EXPECT_EQ(calls(), (Calls{0, 0, 1}));
  EXPECT_EQ(retries_, 0) << "one was in reach all the time";
}

TEST_F(ClientLeaderTest, ALeaderThatNoAddressNamesIsFoundThroughAStandby) {
  stand_by(0, address(1));
  lead(1);
  Client client = this->client(1);
  EXPECT_EQ(submit(client), 1u);
}

TEST_F(ClientLeaderTest, WhereNoLeaderIsNamedEachAddressIsTriedInOrder) {
  stand_by(0);
  stand_by(1);
  lead(2);
  Client client = this->client(3);
  EXPECT_EQ(submit(client), 2u);
  EXPECT_EQ(calls(), (Calls{1, 1, 1}));
}

TEST_F(ClientLeaderTest, AControllerThatIsDownIsPassedOver) {
  lead(1);
  all_[0].stop();
  Client client = this->client(2);
  EXPECT_EQ(submit(client), 1u);
  EXPECT_EQ(retries_, 0);
}

TEST_F(ClientLeaderTest, ALeaderThatIsLostIsFollowedByTheNext) {
  lead(0);
  stand_by(1, address(0));
  Client client = this->client(2, Duration::minutes(1));
  EXPECT_EQ(submit(client), 0u);
  all_[0].stop();
  on_retry_ = [this] { lead(1); };
  EXPECT_EQ(submit(client), 1u) << "the standby has named the former leader for a while";
  EXPECT_EQ(retries_, 1);
}

TEST_F(ClientLeaderTest, StandbysAreAskedAgainUntilOneLeads) {
  std::atomic<int> refused = 0;
  answer(0, "SubmitJob",
         [&] { return refused == 3 ? answer_with(v1::SubmitJobResponse()) : refuse_as_standby(); });
  answer(1, "SubmitJob", [&] {
    ++refused;
    return refuse_as_standby(address(0));
  });
  Client client = this->client(2, Duration::minutes(1));
  EXPECT_TRUE(submit(client));
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(retries_, 1);
}

TEST_F(ClientLeaderTest, StandbysThatNameEachOtherAreAskedOnceEach) {
  stand_by(0, address(1));
  stand_by(1, address(0));
  Client client = this->client(2);
  EXPECT_FALSE(submit(client));
  EXPECT_EQ(calls(), (Calls{1, 1, 0}));
}

TEST_F(ClientLeaderTest, TheErrorNamesEachControllerAndWhatItSaid) {
  const std::string gone = address(0);
  all_[0].stop();
  stand_by(1);
  Client client = this->client(2);
  const Result<std::uint64_t> none = submit(client);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(none.error().text(),
            "no controller serves (is one running? start it with `orrery up`): " + gone +
                " (it cannot be reached), " + address(1) +
                " (this controller is a standby; no leader is known)");
  Client one({.addresses = {address(1)}, .authority = all_[0].authority(), .retry = Duration()});
  EXPECT_EQ(submit(one).error().text(), "the controller at " + address(1) +
                                            " does not serve: this controller is a standby; no "
                                            "leader is known");
}

TEST_F(ClientLeaderTest, ARefusalByTheLeaderIsFinal) {
  stand_by(0, address(1));
  answer(1, "SubmitJob",
         [] { return refuse(grpc::StatusCode::INVALID_ARGUMENT, "job.yaml:3:1: unknown key"); });
  lead(2);
  Client client = this->client(3);
  EXPECT_EQ(submit(client).error().text(), "job.yaml:3:1: unknown key");
  EXPECT_EQ(calls(), (Calls{1, 1, 0}));
}

TEST_F(ClientLeaderTest, AStreamGoesOnAtTheNextLeaderFromWhereTheReaderSays) {
  v1::LogChunk part;
  part.set_bytes("ab");
  const std::string bytes = part.SerializeAsString();
  answer(0, "ReadLog",
         [&] { return FakeAnswer{{bytes}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost")}; });
  answer(1, "ReadLog", [&] { return refuse_as_standby(address(2)); });
  std::uint64_t from = 0;
  all_[2].on("ReadLog", [&](const FakeController::Heard& call) {
    v1::ReadLogRequest request;
    EXPECT_TRUE(request.ParseFromString(call.request));
    from = request.from();
    return FakeAnswer{{bytes}, grpc::Status::OK};
  });
  Client client = this->client(3);
  v1::ReadLogRequest request;
  std::string read_bytes;
  const Status done = client.read(
      "ReadLog", [&]() -> const v1::ReadLogRequest& { return request; }, part,
      [&] {
        read_bytes += part.bytes();
        request.set_from(read_bytes.size());
        return true;
      });
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_EQ(read_bytes, "abab");
  EXPECT_EQ(from, 2u);
  EXPECT_EQ(calls(), (Calls{1, 1, 0}));
}

/// Sends one message, and returns how the call ended.
Status exec(ClientStream& stream) {
  v1::ExecResponse response;
  stream.write(v1::ExecRequest());
  while (true) {
    stream.note_seen();
    while (stream.take(response)) continue;
    if (const auto end = stream.end()) return *end;
    pollfd happened{stream.descriptor(), POLLIN, 0};
    (void)::poll(&happened, 1, -1);
  }
}

TEST_F(ClientLeaderTest, AnOpenStreamGoesToTheLeaderThatACallHasFound) {
  stand_by(0, address(1));
  lead(1);
  answer(0, "Exec", [&] { return refuse_as_standby(address(1)); });
  answer(1, "Exec", [] { return answer_with(v1::ExecResponse()); });
  Client client = this->client(2);
  const Status refused = exec(*client.open_stream("Exec"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "the controller at " + address(0) +
                                        " does not serve: this controller is a standby; the "
                                        "leader is at " +
                                        address(1));
  EXPECT_EQ(submit(client), 1u);
  EXPECT_TRUE(exec(*client.open_stream("Exec")));
}

TEST_F(ClientLeaderTest, AnAgentJoinsWithAStandbyFirstInItsList) {
  answer(0, "Join", [&] { return refuse_as_standby(address(1)); });
  answer(1, "Join", [] {
    v1::JoinResponse response;
    response.set_node("node1");
    return answer_with(response);
  });
  Client client = this->client(2);
  const auto joined = client.call<v1::JoinResponse>("Join", v1::JoinRequest());
  ASSERT_TRUE(joined) << joined.error().text();
  EXPECT_EQ(joined->node(), "node1");
}

}  // namespace
}  // namespace orrery
