// Explanations over the API: they are computed beside the loop, a bounded number of them waits, and
// a job that leaves the queue meanwhile is described instead.
#include "api/jobs/job_explanation.hpp"

#include <latch>

#include "api/recorded_call_test.hpp"
#include "api/serving_test.hpp"

namespace orrery {
namespace {

class JobExplanationThreadsTest : public ServerTest {
 protected:
  void TearDown() override {
    go_on();
    ServerTest::TearDown();
  }

  /// Occupies the thread of explanations until go_on().
  void occupy() {
    serving_->run([&](Controller& controller) {
      EXPECT_TRUE(controller.reads().add([&]() -> SideReads::Read {
        return [&](const HeldSituation&) -> SideReads::Finish {
          free_.wait();
          return [] {};
        };
      }));
    });
    occupied_ = true;
  }
  void go_on() {
    if (std::exchange(occupied_, false)) free_.count_down();
  }
  std::shared_ptr<RecordedCall> explain(std::uint64_t job) {
    auto call = std::make_shared<RecordedCall>(
        Caller{.name = "admin", .role = Role::kAdmin, .credential = sha256_text("admin")});
    v1::ExplainJobRequest request;
    request.set_id(job);
    serving_->run(
        [&](Controller&) { serving_->methods.find("ExplainJob")->handle(request, call); });
    return call;
  }
  /// Whether the call has ended; asked on the loop.
  bool ended(const RecordedCall& call) {
    bool ended = false;
    serving_->run([&](Controller&) { ended = call.ended.has_value(); });
    return ended;
  }
  void await(const RecordedCall& call) {
    while (!ended(call)) serving_->turn(1);
  }

 private:
  std::latch free_{1};
  bool occupied_ = false;
};

TEST_F(JobExplanationThreadsTest, ASlowExplanationDelaysNoOtherCall) {
  const std::uint64_t job = submit();
  occupy();
  const auto slow = explain(job);
  v1::GetJobRequest asked;
  asked.set_id(job);
  const auto other = client().call<v1::Job>("GetJob", asked);
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_EQ(other->name(), "one");
  EXPECT_FALSE(ended(*slow));
  go_on();
  await(*slow);
  EXPECT_EQ(slow->ended->code, CallCode::kOk) << slow->ended->message;
  EXPECT_NE(slow->text.find("0 (one)"), std::string::npos) << slow->text;
  EXPECT_NE(slow->text.find("never joined"), std::string::npos) << slow->text;
}

TEST_F(JobExplanationThreadsTest, ABoundedNumberWaitsAndTheNextIsRefused) {
  const std::uint64_t job = submit();
  occupy();
  std::vector<std::shared_ptr<RecordedCall>> calls;
  calls.reserve(SideReads::kWaitingMax);
  for (std::size_t at = 0; at < SideReads::kWaitingMax; ++at) calls.push_back(explain(job));
  const auto refused = explain(job);
  ASSERT_TRUE(ended(*refused));
  EXPECT_EQ(refused->ended->code, CallCode::kUnavailable);
  EXPECT_EQ(refused->ended->message, "too many explanations wait");
  v1::ExplainJobRequest request;
  request.set_id(job);
  Client once({.addresses = {serving_->grpc},
               .authority = serving_->authority.certificate,
               .token = "admin",
               .retry = Duration()});
  const auto shown = once.call<v1::Explanation>("ExplainJob", request);
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().text(), "too many explanations wait") << "and not that it is away";
  go_on();
  for (const auto& call : calls) {
    await(*call);
    EXPECT_EQ(call->ended->code, CallCode::kOk) << call->ended->message;
  }
}

TEST_F(JobExplanationThreadsTest, AJobThatLeftTheQueueMeanwhileIsDescribed) {
  const std::uint64_t job = submit();
  occupy();
  const auto call = explain(job);
  v1::HoldJobRequest hold;
  hold.set_id(job);
  const auto held = client().call<v1::Job>("HoldJob", hold);
  ASSERT_TRUE(held) << held.error().text();
  go_on();
  await(*call);
  EXPECT_NE(call->text.find("it is held by"), std::string::npos) << call->text;
}

}  // namespace
}  // namespace orrery
