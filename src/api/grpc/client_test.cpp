// Calls of a client against a server in the same process: errors, retries and streams.
#include "api/grpc/client.hpp"

#include <gtest/gtest.h>

#include <set>

#include "api/fake_controller_test.hpp"
#include "base/system/real_env.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override { controller_.start(); }

  [[nodiscard]] Client client(Duration retry = Duration()) {
    return Client({.addresses = {controller_.address()},
                   .authority = controller_.authority(),
                   .token = "secret",
                   .retry = retry,
                   .on_retry = [this] { ++retries_; }});
  }
  [[nodiscard]] Result<v1::SubmitJobResponse> submit(Client& client) const {
    v1::SubmitJobRequest request;
    request.set_request_id("one");
    request.set_spec("kind: Batch");
    return client.call<v1::SubmitJobResponse>("SubmitJob", request);
  }

  FakeController controller_;
  int retries_ = 0;
};

FakeAnswer accepted() {
  v1::SubmitJobResponse response;
  response.set_id(7);
  return answer_with(response);
}

TEST_F(ClientTest, ACallSendsItsRequestAndItsTokenAndReadsTheAnswer) {
  FakeController::Heard heard;
  controller_.on("SubmitJob", [&](const FakeController::Heard& call) {
    heard = call;
    return accepted();
  });
  Client client = this->client();
  const Result<v1::SubmitJobResponse> response = submit(client);
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->id(), 7u);
  EXPECT_EQ(heard.authorization, "Bearer secret");
  v1::SubmitJobRequest request;
  ASSERT_TRUE(request.ParseFromString(heard.request));
  EXPECT_EQ(request.spec(), "kind: Batch");
}

TEST_F(ClientTest, ACertificateThatIsRefusedIsToldWithTheReason) {
  const Instant now = RealClock().now_wall();
  const Duration years = Duration::seconds(std::int64_t{20} * 366 * 86'400);
  for (const auto& [certified, why] :
       {std::pair{now - years, "has expired"}, std::pair{now + years, "is not valid yet"}}) {
    controller_.stop();
    controller_.start(certified);
    Client client = this->client();
    const std::string text = submit(client).error().text();
    EXPECT_NE(text.find(why), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  controller_.stop();
  controller_.start();
  Client stranger({.addresses = {controller_.address()},
                   .authority = make_authority(now).value().certificate,
                   .token = {},
                   .retry = Duration()});
  const std::string text = submit(stranger).error().text();
  EXPECT_NE(text.find("made by another authority"), std::string::npos) << text;
}

TEST_F(ClientTest, AnErrorHasTheControllersTextAndTheKindOfItsCode) {
  const std::map<grpc::StatusCode, ErrorKind> kinds{
      {grpc::StatusCode::INVALID_ARGUMENT, ErrorKind::kInput},
      {grpc::StatusCode::NOT_FOUND, ErrorKind::kInput},
      {grpc::StatusCode::FAILED_PRECONDITION, ErrorKind::kInfeasible},
      {grpc::StatusCode::RESOURCE_EXHAUSTED, ErrorKind::kInfeasible},
      {grpc::StatusCode::PERMISSION_DENIED, ErrorKind::kEnvironment}};
  Client client = this->client();
  for (const auto& [code, kind] : kinds) {
    controller_.on("SubmitJob", [refusal = code](const FakeController::Heard&) {
      return refuse(refusal, "job.yaml:3:1: unknown key \"rols\"");
    });
    const Result<v1::SubmitJobResponse> response = submit(client);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, kind) << code;
    EXPECT_EQ(response.error().text(), "job.yaml:3:1: unknown key \"rols\"");
  }
}

TEST_F(ClientTest, AnAnswerThatIsNoneAndACallNobodyKnowsAreErrorsOfTheController) {
  Client client = this->client();
  EXPECT_NE(submit(client).error().text().find("does not know this call"), std::string::npos);
  controller_.on("SubmitJob", [](const FakeController::Heard&) {
    return FakeAnswer{{"\xff\xff\xff"}, grpc::Status::OK};
  });
  EXPECT_EQ(submit(client).error().kind, ErrorKind::kEnvironment);
}

TEST_F(ClientTest, ACallThatMayNotHaveBeenHeardIsMadeAgainUnderTheSameName) {
  std::vector<std::string> heard;
  controller_.on("SubmitJob", [&](const FakeController::Heard& call) {
    v1::SubmitJobRequest request;
    EXPECT_TRUE(request.ParseFromString(call.request));
    heard.push_back(request.request_id());
    return heard.size() < 3 ? refuse(grpc::StatusCode::UNAVAILABLE, "restarting") : accepted();
  });
  Client client = this->client(Duration::minutes(1));
  const Result<v1::SubmitJobResponse> response = submit(client);
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(heard, (std::vector<std::string>{"one", "one", "one"}));
  EXPECT_EQ(retries_, 1);
}

TEST_F(ClientTest, AControllerThatIsRestartedMeanwhileIsNotNoticed) {
  controller_.on("SubmitJob", [](const FakeController::Heard&) { return accepted(); });
  bool restarted = false;
  Client client({.addresses = {controller_.address()},
                 .authority = controller_.authority(),
                 .retry = Duration::minutes(1),
                 .on_retry = [&] {
                   controller_.start();
                   restarted = true;
                 }});
  ASSERT_TRUE(submit(client));
  controller_.stop();
  EXPECT_TRUE(submit(client));
  EXPECT_TRUE(restarted);
}

TEST_F(ClientTest, WhereNobodyListensTheErrorSaysWhatToDo) {
  controller_.stop();
  Client client = this->client();
  const Result<v1::SubmitJobResponse> response = submit(client);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(response.error().text(), "cannot reach the controller at " + controller_.address() +
                                         " (is it running? start it with `orrery up`)");
}

TEST_F(ClientTest, AServerOfAnotherAuthorityHearsNothing) {
  bool heard = false;
  controller_.on("SubmitJob", [&](const FakeController::Heard&) {
    heard = true;
    return accepted();
  });
  const FakeController other;
  Client client({.addresses = {controller_.address()},
                 .authority = other.authority(),
                 .token = "secret",
                 .retry = Duration()});
  const Result<v1::SubmitJobResponse> response = submit(client);
  ASSERT_FALSE(response);
  const std::string why = response.error().text();
  EXPECT_NE(why.find("made by another authority than this cluster's"), std::string::npos) << why;
  EXPECT_FALSE(heard);
}

std::string chunk(const std::string& bytes) {
  v1::LogChunk chunk;
  chunk.set_bytes(bytes);
  return chunk.SerializeAsString();
}

class ClientStreamTest : public ClientTest {
 protected:
  [[nodiscard]] Status read(Client& client, const std::function<bool()>& visit) {
    return client.read(
        "ReadLog", [&]() -> const v1::ReadLogRequest& { return request_; }, chunk_, visit);
  }
  v1::ReadLogRequest request_;
  v1::LogChunk chunk_;
};

TEST_F(ClientStreamTest, AStreamThatIsLostGoesOnFromWhereTheReaderSays) {
  const std::string whole = "abcdef";
  int streams = 0;
  controller_.on("ReadLog", [&](const FakeController::Heard& call) {
    v1::ReadLogRequest request;
    EXPECT_TRUE(request.ParseFromString(call.request));
    const std::string rest = whole.substr(request.from());
    ++streams;
    if (rest.size() <= 2) return FakeAnswer{{chunk(rest)}, grpc::Status::OK};
    return FakeAnswer{{chunk(rest.substr(0, 2))},
                      grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost")};
  });
  Client client = this->client(Duration::minutes(1));
  std::string read_bytes;
  const Status done = read(client, [&] {
    read_bytes += chunk_.bytes();
    request_.set_from(read_bytes.size());
    return true;
  });
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_EQ(read_bytes, whole);
  EXPECT_EQ(streams, 3);
}

TEST_F(ClientStreamTest, AReaderThatWantsNoMoreEndsTheStreamAndAnErrorEndsItToo) {
  controller_.on("ReadLog", [](const FakeController::Heard&) {
    return FakeAnswer{{chunk("a"), chunk("b"), chunk("c")},
                      grpc::Status(grpc::StatusCode::NOT_FOUND, "no job 9")};
  });
  Client client = this->client();
  std::string read_bytes;
  EXPECT_TRUE(read(client, [&] {
    read_bytes += chunk_.bytes();
    return read_bytes.size() < 2;
  }));
  EXPECT_EQ(read_bytes, "ab");
  const Status failed = read(client, [] { return true; });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "no job 9");
}

TEST(RequestId, IsNeverTheSameTwice) {
  RealEntropy entropy;
  std::set<std::string> ids;
  for (int i = 0; i < 1'000; ++i) {
    const std::string id = make_request_id(entropy);
    EXPECT_EQ(id.size(), 32u);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1'000u);
}

}  // namespace
}  // namespace orrery
