#include "executor/log/live_store.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/system/real_env.hpp"
#include "executor/lab_test.hpp"

namespace orrery {
namespace {

class ClaimedStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_claim_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string refusal() const {
    const auto store = ClaimedStore::open(real_->env(), Log(sink_), directory_);
    return store ? "" : store.error().text();
  }

  std::string directory_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  mutable SilentLog sink_;
};

TEST_F(ClaimedStoreTest, AStateOfASharedLogIsNotStartedAlone) {
  ASSERT_TRUE(SqliteStore::open(directory_ + "/store/archive"));
  EXPECT_TRUE(refusal().starts_with(directory_ + "/store: this state belongs to a shared log: "
                                                 "start with --store URL"))
      << refusal();
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/store/store.db"));
  ASSERT_TRUE(SqliteStore::open(directory_ + "/store")) << "as `orrery store copy` makes it";
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace orrery
