// What lets people and nodes in, over time and starts: tokens of users and joins.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/access/token_book.hpp"
#include "api/agents/join_book.hpp"
#include "base/set_time_test.hpp"
#include "base/system/real_env.hpp"

namespace orrery {
namespace {

class AccessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_access_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] Env env() {
    const Env real = real_->env();
    return Env{clock_, real.timers, real.entropy, real.storage, real.transport, real.inbox};
  }
  [[nodiscard]] JoinBook joins() { return JoinBook::open(env(), directory_).value(); }
  [[nodiscard]] std::unique_ptr<TokenBook> tokens() {
    return TokenBook::open(env(), directory_).value();
  }

  SetTime clock_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  std::string directory_;
};

TEST_F(AccessTest, AJoinTokenIsGoodForAnHourAndOnceThroughStarts) {
  const std::string token = joins().make("node0").value();
  EXPECT_EQ(joins().node_of(token).value(), "node0");
  ASSERT_TRUE(joins().use(token));
  EXPECT_FALSE(joins().node_of(token));
  const std::string late = joins().make("node0").value();
  clock_.now = clock_.now + Duration::minutes(59);
  EXPECT_TRUE(joins().node_of(late));
  clock_.now = clock_.now + Duration::minutes(1);
  EXPECT_FALSE(joins().node_of(late));
  const std::string older = joins().make("node1").value();
  const std::string newer = joins().make("node1").value();
  EXPECT_FALSE(joins().node_of(older));
  EXPECT_TRUE(joins().node_of(newer));
}

TEST_F(AccessTest, UsersAreKeptAndTheirTokensAreNot) {
  ASSERT_EQ(tokens()->all().size(), 1U) << "the owner";
  const std::string token = tokens()->add({"ada", Role::kUser, "lab/vision"}).value();
  const Caller ada = tokens()->caller(token).value();
  EXPECT_EQ(ada.name, "ada");
  EXPECT_EQ(ada.role, Role::kUser);
  EXPECT_EQ(ada.tenant, "lab/vision");
  std::ifstream file(directory_ + "/tokens");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text.find(token), std::string::npos);
  for (const char* name : {"", "a b", "a\nroot", "#a", "ada", "a/b"}) {
    EXPECT_FALSE(tokens()->add({name, Role::kUser, ""})) << name;
  }
  EXPECT_NE(tokens()->remove("adda").error().text().find("ada"), std::string::npos);
  EXPECT_TRUE(tokens()->remove("ada"));
  EXPECT_FALSE(tokens()->caller(token));
  EXPECT_FALSE(tokens()->remove("owner"));
}

TEST_F(AccessTest, AClientHasLessThanAViewerAndMayHaveATenant) {
  EXPECT_LT(Role::kNobody, Role::kClient);
  EXPECT_LT(Role::kClient, Role::kViewer);
  EXPECT_EQ(role_named("client"), Role::kClient);
  const std::string key = tokens()->add({"chat-key-1", Role::kClient, "lab"}).value();
  EXPECT_EQ(tokens()->caller(key)->role, Role::kClient);
  EXPECT_EQ(tokens()->caller(key)->tenant, "lab");
}

TEST_F(AccessTest, ThePosixUserOfAUserIsKeptAndNeverRoot) {
  const Caller asked{
      .name = "ada", .role = Role::kUser, .tenant = "lab", .node = "", .run_as = "ada.l"};
  const std::string token = tokens()->add(asked).value();
  EXPECT_EQ(tokens()->caller(token)->run_as, "ada.l");
  EXPECT_EQ(tokens()->caller(token)->tenant, "lab");
  for (const char* user : {"root", "0", "1000", "-x", "a b", "a/b", "a=b", "ada\n"}) {
    Caller wrong = asked;
    wrong.name = "eve";
    wrong.run_as = user;
    const auto refused = tokens()->add(wrong);
    ASSERT_FALSE(refused) << user;
    EXPECT_NE(refused.error().text().find("POSIX user"), std::string::npos) << user;
  }
}

TEST_F(AccessTest, LinesOfOlderTokensFilesAreReadAndUnknownKeysAreNot) {
  const auto write = [this](const std::string& line) {
    std::ofstream(directory_ + "/tokens") << "boss admin " << sha256_text("boss") << "\n"
                                          << line << "\n";
  };
  write("ada user " + sha256_text("t") + " lab/vision");
  EXPECT_EQ(tokens()->caller("t")->tenant, "lab/vision");
  EXPECT_EQ(tokens()->caller("t")->run_as, "");
  write("ada user " + sha256_text("t") + " run_as=ada");
  EXPECT_EQ(tokens()->caller("t")->tenant, "");
  EXPECT_EQ(tokens()->caller("t")->run_as, "ada");
  for (const char* wrong :
       {"expires=tomorrow", "lab run-as=ada", "lab run_as=root", "lab vision", "limit=3"}) {
    write("ada user " + sha256_text("t") + " " + wrong);
    const auto read = TokenBook::open(env(), directory_);
    ASSERT_FALSE(read) << wrong;
    EXPECT_NE(read.error().text().find("tokens:2"), std::string::npos) << read.error().text();
  }
}

TEST_F(AccessTest, ATokenExpiresAndItsHolderIsTold) {
  const Instant end = clock_.now + Duration::hours(24);
  const std::string token = tokens()->add({"ada", Role::kUser, "lab"}, end).value();
  const auto book = tokens();
  EXPECT_EQ(book->next_expiry(), end);
  const std::string credential = book->caller(token)->credential;
  clock_.now = end - Duration::nanoseconds(1);
  EXPECT_TRUE(book->caller(token));
  clock_.now = end;
  for (const auto& late : {book->caller(token), book->holder(credential)}) {
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, CallCode::kUnauthenticated);
    EXPECT_NE(late.error().message.find("the token of ada expired on " + end.text()),
              std::string::npos)
        << late.error().message;
  }
  EXPECT_EQ(book->next_expiry(), Instant::max());
}

TEST_F(AccessTest, ARotationLeavesTheOlderTokenItsOverlapThroughStarts) {
  const std::string old = tokens()->add({"ada", Role::kUser, "lab"}).value();
  const std::string fresh =
      tokens()->rotate({.name = "ada", .overlap = Duration::hours(1)}).value();
  EXPECT_EQ(tokens()->caller(old)->tenant, "lab");
  EXPECT_EQ(tokens()->caller(fresh)->tenant, "lab");
  clock_.now = clock_.now + Duration::hours(1);
  EXPECT_FALSE(tokens()->caller(old));
  EXPECT_TRUE(tokens()->caller(fresh));
  EXPECT_FALSE(tokens()->rotate({.name = "adda", .overlap = {}}));
  ASSERT_EQ(tokens()->all().size(), 3U) << "owner, and ada's two";
  EXPECT_FALSE(tokens()->all().at(0).replaced) << "the current one first";
  EXPECT_TRUE(tokens()->remove("ada"));
  EXPECT_FALSE(tokens()->caller(fresh));
}

TEST_F(AccessTest, AnAdminWhoseTokenHasExpiredIsNotTheOneThatMustStay) {
  ASSERT_TRUE(tokens()->add({"eve", Role::kAdmin, ""}, clock_.now + Duration::hours(1)));
  clock_.now = clock_.now + Duration::hours(2);
  EXPECT_FALSE(tokens()->remove("owner"));
}

TEST_F(AccessTest, ATenantOfAnOperatorOrAdminIsRefusedAlsoInTheFile) {
  for (const char* role : {"operator", "admin"}) {
    EXPECT_FALSE(tokens()->add({"ted", role_named(role), "lab"})) << role;
    std::ofstream(directory_ + "/tokens") << "boss admin " << sha256_text("boss") << "\n"
                                          << "ted " << role << " " << sha256_text("t") << " lab\n";
    const auto read = TokenBook::open(env(), directory_);
    ASSERT_FALSE(read) << role;
    EXPECT_NE(read.error().text().find("tokens:2"), std::string::npos) << read.error().text();
    EXPECT_NE(read.error().text().find("expected no tenant"), std::string::npos);
    std::filesystem::remove(directory_ + "/tokens");
  }
}

}  // namespace
}  // namespace orrery
