#include "api/access/shared_files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/system/real_env.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class SharedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "orrery_shared_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    set_key(std::string(64, '7'));
  }
  void TearDown() override { fs::remove_all(directory_); }

  void set_key(const std::string& text) {
    std::ofstream(directory_ + "/cluster.key") << text;
    fs::permissions(directory_ + "/cluster.key", fs::perms::owner_read | fs::perms::owner_write);
  }
  std::unique_ptr<SharedFiles> controller(const std::string& name) {
    fs::create_directories(state(name));
    auto files = SharedFiles::open(real_->env(), directory_, state(name));
    EXPECT_TRUE(files) << files.error().text();
    return *std::move(files);
  }
  [[nodiscard]] std::string state(const std::string& name) const { return directory_ + "/" + name; }
  std::string text(const std::string& path) {
    return real_->env().storage.read_file(path, 1'000).value_or("none");
  }
  SharedFiles::Put log() {
    return [this](const StoreTexts& texts) -> StorageStatus {
      for (const auto& [name, text] : texts) log_[name] = text;
      return {};
    };
  }

  std::string directory_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  StoreTexts log_;
};

TEST_F(SharedFilesTest, FilesOfAnotherAuthorityAreKeptWhenTheLogReplacesThem) {
  const auto leader = controller("1");
  leader->lead(log());
  ASSERT_TRUE(leader->make_directories(state("1") + "/tls"));
  const auto standby = controller("2");
  Storage& machine = real_->env().storage;
  ASSERT_TRUE(machine.make_directories(state("2") + "/tls"));
  for (const auto& [file, before, in_log] :
       {std::tuple("/tls/ca.key", "old key", "key"), std::tuple("/tls/ca.pem", "same", "same"),
        std::tuple("/tokens", "old tokens", "tokens")}) {
    ASSERT_TRUE(machine.write_file(state("2") + file, before));
    ASSERT_TRUE(leader->write_file(state("1") + file, in_log));
  }
  const auto kept = standby->take(log_);
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_EQ(*kept, (std::vector<std::string>{state("2") + "/tls/ca.key.before",
                                             state("2") + "/tokens.before"}));
  EXPECT_EQ(text(state("2") + "/tls/ca.key"), "key");
  EXPECT_EQ(text(state("2") + "/tls/ca.key.before"), "old key");
  EXPECT_EQ(text(state("2") + "/tokens.before"), "old tokens");
  ASSERT_TRUE(leader->write_file(state("1") + "/tokens", "more tokens"));
  EXPECT_TRUE(standby->take(log_)->empty()) << "the authority is the same";
  EXPECT_EQ(text(state("2") + "/tokens"), "more tokens");
  ASSERT_TRUE(leader->write_file(state("1") + "/tls/ca.key", "third key"));
  EXPECT_EQ(standby->take(log_)->at(0), state("2") + "/tls/ca.key.before.1");
  EXPECT_EQ(text(state("2") + "/tls/ca.key.before.1"), "key");
  EXPECT_EQ(text(state("2") + "/tls/ca.key.before"), "old key");
}

TEST_F(SharedFilesTest, WhatTheLeaderWritesIsSealedInTheLogAndComesToEveryController) {
  const auto leader = controller("1");
  leader->lead(log());
  ASSERT_TRUE(leader->make_directories(state("1") + "/tls"));
  ASSERT_TRUE(leader->write_file(state("1") + "/tokens", "owner admin 1234"));
  ASSERT_TRUE(leader->write_file(state("1") + "/tls/ca.key", "secret"));
  ASSERT_TRUE(leader->write_file(state("1") + "/cluster.json", "{}")) << "of the machine alone";
  EXPECT_EQ(text(state("1") + "/tokens"), "owner admin 1234");
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_.at("secret.tls/ca.key").find("secret"), std::string::npos);
  EXPECT_FALSE(SharedFiles::has_authority(log_)) << "without its certificate";
  ASSERT_TRUE(leader->write_file(state("1") + "/tls/ca.pem", "certificate"));
  EXPECT_TRUE(SharedFiles::has_authority(log_));

  const auto standby = controller("2");
  ASSERT_TRUE(standby->take(log_));
  EXPECT_EQ(text(state("2") + "/tokens"), "owner admin 1234");
  EXPECT_EQ(text(state("2") + "/tls/ca.key"), "secret");
  ASSERT_TRUE(leader->write_file(state("1") + "/tokens", "none is left"));
  ASSERT_TRUE(standby->take(log_));
  EXPECT_EQ(text(state("2") + "/tokens"), "none is left");
}

TEST_F(SharedFilesTest, WhatTheLogLacksTheLeaderPutsFromItsFiles) {
  const auto leader = controller("1");
  std::ofstream(state("1") + "/tokens") << "owner admin 1234";
  std::ofstream(state("1") + "/joins") << "older than the log's";
  leader->lead(log());
  log_["secret.joins"] = "of the log";
  ASSERT_TRUE(leader->put_missing(log_));
  EXPECT_EQ(log_.size(), 2u) << "only files that exist";
  EXPECT_EQ(log_.at("secret.joins"), "of the log");
  log_.erase("secret.joins");
  const auto standby = controller("2");
  ASSERT_TRUE(standby->take(log_));
  EXPECT_EQ(text(state("2") + "/tokens"), "owner admin 1234");
  EXPECT_TRUE(SharedFiles::is_secret("secret.tokens"));
  EXPECT_FALSE(SharedFiles::is_secret("fleet.yaml"));
}

TEST_F(SharedFilesTest, AStandbyChangesNoFileOfTheCluster) {
  const auto standby = controller("2");
  const StorageStatus written = standby->write_file(state("2") + "/joins", "x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("only the leading controller"), std::string::npos)
      << written.error().message;
  EXPECT_EQ(text(state("2") + "/joins"), "none");
}

TEST_F(SharedFilesTest, WhatTheLogDoesNotTakeIsNotWritten) {
  const auto leader = controller("1");
  leader->lead([](const StoreTexts&) -> StorageStatus {
    return store_error(StorageFailure::kUnavailable, "no answer");
  });
  EXPECT_FALSE(leader->write_file(state("1") + "/tokens", "x"));
  EXPECT_EQ(text(state("1") + "/tokens"), "none");
}

TEST_F(SharedFilesTest, AnotherKeyOrADamagedTextIsNamed) {
  const auto leader = controller("1");
  leader->lead(log());
  ASSERT_TRUE(leader->write_file(state("1") + "/tokens", "owner admin 1234"));
  StoreTexts moved = log_;
  moved["secret.joins"] = log_.at("secret.tokens");
  EXPECT_FALSE(controller("2")->take(moved)) << "a text is sealed for its name";
  StoreTexts damaged = log_;
  damaged["secret.tokens"][3] = damaged["secret.tokens"][3] == '0' ? '1' : '0';
  EXPECT_FALSE(controller("2")->take(damaged));
  damaged["secret.tokens"] = "no text of ours";
  EXPECT_FALSE(controller("2")->take(damaged));
  set_key(std::string(64, '8'));
  const auto other = controller("2")->take(log_);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("secret.tokens: cluster.key does not open"),
            std::string::npos)
      << other.error().message;
  EXPECT_EQ(text(state("2") + "/tokens"), "none");
}

TEST_F(SharedFilesTest, AKeyThatOthersCanReadIsRefused) {
  const std::string path = directory_ + "/cluster.key";
  for (const fs::perms more : {fs::perms::group_read, fs::perms::others_write}) {
    set_key(std::string(64, '7'));
    fs::permissions(path, more, fs::perm_options::add);
    const auto files = SharedFiles::open(real_->env(), directory_, directory_);
    ASSERT_FALSE(files);
    EXPECT_EQ(files.error().kind, ErrorKind::kInput);
    EXPECT_NE(files.error().text().find("`chmod 600 " + path + "`"), std::string::npos)
        << files.error().text();
  }
}

TEST_F(SharedFilesTest, AKeyThatAnotherUserOwnsIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root can give a file away";
  const std::string path = directory_ + "/cluster.key";
  ASSERT_EQ(::chown(path.c_str(), 54'321, ::getegid()), 0);
  const auto files = SharedFiles::open(real_->env(), directory_, directory_);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, ErrorKind::kInput);
  EXPECT_NE(files.error().text().find("its owner is the user 54321"), std::string::npos)
      << files.error().text();
}

TEST_F(SharedFilesTest, WithoutAKeyOrWithABadOneNothingStarts) {
  set_key("77");
  const auto bad = SharedFiles::open(real_->env(), directory_, directory_);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().text().find("cluster.key:1:1: expected 64 hexadecimal digits, found 2"),
            std::string::npos)
      << bad.error().text();
  fs::remove(directory_ + "/cluster.key");
  const auto none = SharedFiles::open(real_->env(), directory_, directory_);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("openssl rand -hex 32"), std::string::npos)
      << none.error().text();
}

}  // namespace
}  // namespace orrery
