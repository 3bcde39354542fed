// When an agent asks for its next certificate, and what comes of each answer, in virtual time.
#include "api/renewal/certificate_renewal.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/set_time_test.hpp"
#include "base/system/real_env.hpp"
#include "executor/lab_test.hpp"

namespace orrery {
namespace {

constexpr Duration kDay = Duration::hours(24);

class CertificateRenewalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_renewal_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    authority_ = make_authority(time_.now).value();
    const CertificateRequest request = request_certificate().value();
    tls_ = {{certify_node(authority_, {"n0", request.request}, time_.now).value(), request.key},
            authority_.certificate};
    issued_ = time_.now;
    begin();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void begin() {
    const Env real = real_->env();
    const Env env{time_, time_, entropy_, real.storage, real.transport, real.inbox};
    renewal_ =
        CertificateRenewal::begin(env, Log(sink_),
                                  {.directory = directory_,
                                   .tls = tls_,
                                   .ask =
                                       [this](const AgentTls& shown, const std::string& request,
                                              const RenewalSetup::Answer& answer) {
                                         asked_.push_back({time_.now, shown, request});
                                         answer_ = answer;
                                       },
                                   .renewed = [this](const AgentTls& shown) { renewed_ = shown; }})
            .value();
  }
  [[nodiscard]] std::string certify(const std::string& request) const {
    return certify_node(authority_, {"n0", request}, time_.now).value();
  }
  [[nodiscard]] double days(Instant at) const { return (at - issued_).count_seconds() / 86'400; }

  struct Asked {
    Instant at;
    AgentTls shown;
    std::string request;
  };
  const std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  SetTime time_;
  SetEntropy entropy_;
  SilentLog sink_;
  std::string directory_;
  TlsIdentity authority_;
  AgentTls tls_;
  Instant issued_;
  std::vector<Asked> asked_;
  RenewalSetup::Answer answer_;
  std::optional<AgentTls> renewed_;
  std::unique_ptr<CertificateRenewal> renewal_;
};

TEST_F(CertificateRenewalTest, AsksAfterTwoThirdsOfTheLifeEachNodeAtATimeOfItsOwn) {
  std::set<std::int64_t> times;
  for (int node = 0; node < 20; ++node) {
    asked_.clear();
    time_.now = issued_;
    begin();
    time_.run_until(issued_ + kDay * 365);
    ASSERT_EQ(asked_.size(), 1u) << "the answer is waited for";
    EXPECT_GE(days(asked_[0].at), 365 * 2 / 3.0 - 0.1);
    EXPECT_LE(days(asked_[0].at), 365 * 2 / 3.0 + 365 / 30.0);
    times.insert(asked_[0].at.ns());
  }
  EXPECT_EQ(times.size(), 20u);
}

TEST_F(CertificateRenewalTest, ANewCertificateIsKeptShownAndRenewedInItsTurn) {
  time_.run_until(issued_ + kDay * 300);
  ASSERT_EQ(asked_.size(), 1u);
  answer_(certify(asked_[0].request));
  ASSERT_TRUE(renewed_);
  EXPECT_EQ(renewed_->identity.key, tls_.identity.key);
  EXPECT_NE(renewed_->identity.certificate, tls_.identity.certificate);
  const AgentTls kept = read_agent_tls(real_->env().storage, directory_).value();
  EXPECT_EQ(kept.identity.certificate, renewed_->identity.certificate);
  EXPECT_EQ(kept.identity.key, tls_.identity.key);
  struct stat facts{};
  ASSERT_EQ(::stat((directory_ + "/tls/agent.pem").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  // It is good for a year from the 300th day on.
  time_.run_until(issued_ + kDay * (300 + 365));
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_GE(days(asked_[1].at), 300 + 365 * 2 / 3.0 - 0.1);
  EXPECT_EQ(asked_[1].shown.identity.certificate, renewed_->identity.certificate);
}

TEST_F(CertificateRenewalTest, WhatCannotBeUsedChangesNothingAndIsAskedForAgain) {
  const CertificateRequest foreign = request_certificate().value();
  const Result<std::string> answers[] = {
      environment_error("no controller"), "no certificate", tls_.identity.certificate,
      certify_node(authority_, {"n0", foreign.request}, time_.now + kDay * 9).value()};
  time_.run_until(issued_ + kDay * 300);
  for (std::size_t at = 0; at < std::size(answers); ++at) {
    ASSERT_EQ(asked_.size(), at + 1);
    const Instant answered = time_.now;
    answer_(answers[at]);
    EXPECT_FALSE(renewed_);
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/tls"));
    time_.run_until(answered + kDay * 2);
    ASSERT_EQ(asked_.size(), at + 2) << "answer " << at;
    EXPECT_GE(asked_.back().at - answered, Duration::hours(14)) << "no flood of questions";
  }
  answer_(certify(asked_.back().request));
  EXPECT_TRUE(renewed_);
}

TEST_F(CertificateRenewalTest, AMachineThatSleptAsksWithinADayByTheTimeOfDay) {
  time_.run_until(issued_ + kDay);
  ASSERT_TRUE(asked_.empty());
  // Timers do not run meanwhile.
  time_.now = time_.now + kDay * 290;
  time_.run_until(time_.now + kDay);
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(CertificateRenewalTest, AnEndedOneLeavesNoTimer) {
  EXPECT_EQ(time_.waiting(), 1u);
  renewal_.reset();
  EXPECT_EQ(time_.waiting(), 0u);
}

TEST_F(CertificateRenewalTest, ACertificateOfAnotherKeyIsNamedAtTheStart) {
  tls_.identity.key = request_certificate().value().key;
  const auto begun =
      CertificateRenewal::begin(real_->env(), Log(sink_), {.directory = directory_, .tls = tls_});
  ASSERT_FALSE(begun);
  EXPECT_NE(begun.error().text().find("not of one another"), std::string::npos);
  EXPECT_NE(begun.error().text().find("--join TOKEN"), std::string::npos) << "what to do";
}

TEST_F(CertificateRenewalTest, BetweenTwoPairsThereIsNone) {
  Storage& storage = real_->env().storage;
  ASSERT_TRUE(write_agent_tls(storage, directory_, tls_));
  const CertificateRequest request = request_certificate().value();
  const AgentTls next{
      {certify_node(authority_, {"n0", request.request}, time_.now).value(), request.key},
      authority_.certificate};
  // As if the machine died before the next key was there.
  std::filesystem::create_directories(directory_ + "/tls/agent.key.tmp/in_the_way");
  EXPECT_FALSE(write_agent_tls(storage, directory_, next));
  const Result<AgentTls> between = read_agent_tls(storage, directory_);
  ASSERT_FALSE(between);
  EXPECT_NE(between.error().text().find("has not joined"), std::string::npos);
  std::filesystem::remove_all(directory_ + "/tls/agent.key.tmp");
  EXPECT_TRUE(write_agent_tls(storage, directory_, next));
  EXPECT_TRUE(term_of(read_agent_tls(storage, directory_).value().identity));
}

}  // namespace
}  // namespace orrery
