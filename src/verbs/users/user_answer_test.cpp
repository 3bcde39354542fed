#include "verbs/users/user_answer.hpp"

#include "verbs/cluster/live_cluster_test.hpp"
#include "verbs/users/tenant_answer.hpp"

namespace orrery {
namespace {

TEST(TokenLifetimeTest, ATimeIsWholeSecondsAndNeverIsZero) {
  EXPECT_EQ(token_lifetime("").value(), std::nullopt);
  EXPECT_EQ(token_lifetime("never").value(), std::optional<std::uint64_t>(0));
  EXPECT_EQ(token_lifetime("90d").value(), std::optional<std::uint64_t>(7'776'000));
  EXPECT_EQ(token_lifetime("1.9 s").value(), std::optional<std::uint64_t>(1));
  for (const char* wrong : {"90", "0 s", "-1 d", "0.5s", "soon", "nan s", "\x1b"}) {
    EXPECT_FALSE(token_lifetime(wrong)) << wrong;
  }
  EXPECT_EQ(token_lifetime("90").error().text(),
            "--expires \"90\": expected a time with its unit, 1 s or more, such as 12h or 90d");
}

TEST(UserRequestTest, EachOptionHasItsField) {
  const auto added = add_user_request(
      {.name = "ada", .role = "user", .tenant = "lab", .run_as = "ada1", .expires = "2 min"});
  ASSERT_TRUE(added);
  EXPECT_EQ(added->role() + "/" + added->tenant() + "/" + added->run_as(), "user/lab/ada1");
  EXPECT_EQ(added->lifetime_s(), 120u);
  EXPECT_FALSE(add_user_request({.name = "ada"})->has_lifetime_s());
  EXPECT_EQ(rotate_user_request({.name = "ada", .overlap = "1h"})->overlap_s(), 3600u);
  EXPECT_EQ(rotate_user_request({.name = "ada", .overlap = "1"}).error().text(),
            "--overlap \"1\": expected a time with its unit, 1 s or more, such as 12h or 90d");
}

TEST(NewTokenTest, WhenItEndsIsSaidBesideIt) {
  v1::AddUserResponse added;
  added.set_token("abc");
  const LiveAnswer endless = token_answer("a\x1b", new_token(added));
  EXPECT_EQ(endless.text, "abc\n");
  EXPECT_EQ(endless.before, "token of a\\x1b, shown only this once; it does not expire:\n");
  *added.mutable_expires() = seconds_from_noon(0);
  EXPECT_EQ(token_file_text("ada", "ada.token", new_token(added)),
            "the token of ada was written to ada.token; it expires on 2026-11-27T12:00:00Z\n");
  v1::RotateUserResponse rotated;
  *rotated.mutable_old_until() = seconds_from_noon(3600);
  EXPECT_EQ(new_token(rotated).until,
            "; it does not expire; the older token works until 2026-11-27T13:00:00Z");
}

using UserAnswerTest = LiveClusterTest;

TEST_F(UserAnswerTest, AWrongTimeIsRefusedBeforeAnythingIsAsked) {
  EXPECT_FALSE(add_user(call(), {.name = "ada", .expires = "1"}));
  EXPECT_FALSE(rotate_user(call(), {.name = "ada", .expires = "1"}));
  v1::AddUserResponse added;
  added.set_token("t");
  answers<v1::AddUserRequest>("AddUser", added);
  EXPECT_EQ(add_user(call(), {.name = "ada"})->token, "t");
  EXPECT_EQ(heard<v1::AddUserRequest>("AddUser").size(), 1u);
}

TEST_F(UserAnswerTest, ARemovalIsConfirmedAndARefusalKeepsItsWords) {
  answers<v1::RemoveUserRequest>("RemoveUser", v1::RemoveUserResponse());
  EXPECT_EQ(remove_user(call(), "ada")->text,
            "user ada was removed, and its open streams were closed\n");
  refuses<v1::RemoveUserRequest>("RemoveUser", grpc::StatusCode::NOT_FOUND, "there is no ada");
  EXPECT_EQ(remove_user(call(), "ada").error().text(), "there is no ada");
}

TEST_F(UserAnswerTest, AListTellsOlderAndExpiredTokens) {
  v1::ListUsersResponse users;
  v1::User& old = *users.add_users();
  old.set_name("ada");
  old.set_role("user");
  old.set_replaced(true);
  *old.mutable_expires() = seconds_from_noon(0);
  v1::User& fresh = *users.add_users();
  fresh.set_name("bob");
  fresh.set_role("admin");
  answers<v1::ListUsersRequest>("ListUsers", users);
  EXPECT_EQ(answer_users(call())->text,
            "NAME  ROLE   TENANT  RUN AS  TOKEN\n"
            "ada   user                   older token, expired 2026-11-27T12:00:00Z\n"
            "bob   admin                  does not expire\n");
}

TEST_F(UserAnswerTest, UsageIsByTenantOrByJob) {
  v1::ListTenantsResponse tenants;
  tenants.add_tenants()->set_path("lab");
  tenants.mutable_tenants(0)->set_running(2);
  answers<v1::ListTenantsRequest>("ListTenants", tenants);
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = job_named(7, "train", "finished");
  answers<v1::ListJobsRequest>("ListJobs", jobs);
  EXPECT_EQ(answer_tenants(call())->text,
            "TENANT  RUNNING  WAITING  ACCELERATORS\nlab           2        0             0\n");
  EXPECT_TRUE(answer_usage(call(), {})->text.starts_with("TENANT  ACCELERATOR-HOURS"));
  EXPECT_TRUE(answer_usage(call(), {.jobs = true})->text.starts_with("ID  NAME"));
  EXPECT_TRUE(answer_usage(call(), {.tenant = "lab"})->text.starts_with("ID  NAME"));
  const auto heard = this->heard<v1::ListJobsRequest>("ListJobs");
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_TRUE(heard[0].all());
  EXPECT_EQ(heard[1].tenant(), "lab");
}

}  // namespace
}  // namespace orrery
