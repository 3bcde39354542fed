// api/renewal/certificate_call_test.cpp - which controller gives an agent its next certificate.
#include "api/renewal/certificate_call.hpp"

#include <gtest/gtest.h>

#include <array>

#include "api/fake_controller_test.hpp"
#include "base/system/real_env.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

/// Two controllers of one cluster.
class CertificateCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (FakeController& each : all_) each.start();
  }
  [[nodiscard]] std::string address(std::size_t controller) const {
    return all_[controller].address();
  }
  void answer(std::size_t controller, FakeAnswer with) {
    all_[controller].on("RenewCertificate", [this, controller, with = std::move(with)](
                                                const FakeController::Heard& call) {
      v1::RenewCertificateRequest request;
      EXPECT_TRUE(request.ParseFromString(call.request));
      EXPECT_EQ(request.certificate_request(), "request");
      ++calls_[controller];
      return with;
    });
  }
  void certify(std::size_t controller) {
    v1::RenewCertificateResponse response;
    response.set_certificate("next");
    answer(controller, answer_with(response));
  }
  /// Returns the answer to an agent that knows the first `controllers` of them.
  [[nodiscard]] Result<std::string> renew(std::size_t controllers) {
    const Instant now = RealClock().now_wall();
    const CertificateRequest own = request_certificate().value();
    CertificateCallSetup setup{
        .tls = {{certify_node(authority_, {"n0", own.request}, now).value(), own.key},
                authority_.certificate}};
    for (std::size_t i = 0; i < controllers; ++i) setup.controllers.push_back(address(i));
    const auto real = RealEnv::create().value();
    std::optional<Result<std::string>> heard;
    // The answer ends the call, as a holder that makes the next one may.
    std::unique_ptr<CertificateCall> call;
    call = std::make_unique<CertificateCall>(real->env().inbox, std::move(setup), "request",
                                             [&](const Result<std::string>& answer) {
                                               heard = answer;
                                               call.reset();
                                             });
    real->run_until([&] { return heard.has_value(); });
    return *heard;
  }

  const TlsIdentity authority_ = make_authority(RealClock().now_wall()).value();
  std::array<FakeController, 2> all_{FakeController(authority_), FakeController(authority_)};
  std::array<int, 2> calls_{};
};

TEST_F(CertificateCallTest, AStandbyThatIsFirstInTheListLeadsToTheLeader) {
  answer(0, refuse_as_standby(address(1)));
  certify(1);
  for (const std::size_t known : {1u, 2u}) {
    const Result<std::string> next = renew(known);
    ASSERT_TRUE(next) << next.error().text();
    EXPECT_EQ(*next, "next");
  }
}

TEST_F(CertificateCallTest, AControllerThatIsDownOrKnowsNoLeaderIsFollowedByTheNext) {
  answer(0, refuse_as_standby());
  certify(1);
  EXPECT_TRUE(renew(2));
  all_[0].stop();
  EXPECT_TRUE(renew(2));
  EXPECT_EQ(calls_[1], 2);
}

TEST_F(CertificateCallTest, WhereNoneLeadsTheErrorSaysWhatEachAnsweredOnce) {
  answer(0, refuse_as_standby(address(1)));
  answer(1, refuse_as_standby(address(0)));
  const Result<std::string> none = renew(2);
  ASSERT_FALSE(none);
  const std::string said = ": this controller is a standby; the leader is at ";
  EXPECT_EQ(none.error().text(),
            address(0) + said + address(1) + "; " + address(1) + said + address(0));
  EXPECT_EQ(calls_, (std::array<int, 2>{1, 1}));
}

TEST_F(CertificateCallTest, ARefusalByTheLeaderIsFinal) {
  answer(0, refuse(grpc::StatusCode::PERMISSION_DENIED, "another agent joined as \"n0\""));
  certify(1);
  const Result<std::string> refused = renew(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "another agent joined as \"n0\"");
  EXPECT_EQ(calls_[1], 0);
}

}  // namespace
}  // namespace orrery
