#include "api/cluster_directory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/system/real_storage.hpp"

namespace orrery {
namespace {

class ClusterDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_dir_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(here());
    std::filesystem::create_directories(home());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] std::string here() const { return root_ + "/here"; }
  [[nodiscard]] std::string home() const { return root_ + "/home"; }
  [[nodiscard]] std::string found(const std::string& asked = "") const {
    return cluster_directory({asked, here(), home()});
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + "/" + name) << text;
  }
  [[nodiscard]] Result<ClusterAddress> read() { return read_cluster_address(storage_, root_); }

  RealStorage storage_;
  std::string root_;
};

TEST_F(ClusterDirectory, IsTheOneAskedForElseTheNearestThatExists) {
  EXPECT_EQ(found("elsewhere"), "elsewhere");
  EXPECT_EQ(found(), here() + "/.orrery");
  std::filesystem::create_directories(home() + "/.orrery");
  EXPECT_EQ(found(), home() + "/.orrery");
  std::filesystem::create_directories(here() + "/.orrery");
  EXPECT_EQ(found(), here() + "/.orrery");
}

TEST_F(ClusterDirectory, SaysWhereItsControllerIsAndWithWhichToken) {
  write("cluster.json", R"({"address": "127.0.0.1:7", "name": "lab"})");
  Result<ClusterAddress> cluster = read();
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->address, "127.0.0.1:7");
  EXPECT_EQ(cluster->name, "lab");
  EXPECT_EQ(cluster->token, "");
  write("token", "abc\n");
  cluster = read();
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->token, "abc");
}

TEST_F(ClusterDirectory, SaysWhichControllerItIsAndByWhomItsCertificateIs) {
  write("ca.pem", "PEM");
  write("cluster.json",
        R"({"address": "h:7", "name": "lab", "version": "1.2", "ca": "ca.pem", "token": "t"})");
  const Result<ClusterAddress> cluster = read();
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->text(), "the controller of lab (release 1.2) at h:7");
  EXPECT_EQ(cluster->authority, "PEM");
  EXPECT_EQ(cluster->token, "t");
  write("cluster.json", R"({"address": "h:7", "key of a later release": 1})");
  const Result<ClusterAddress> later = read();
  ASSERT_TRUE(later) << later.error().text();
  EXPECT_EQ(later->text(), "the controller at h:7");
}

TEST_F(ClusterDirectory, NamesEachControllerOfTheClusterAndItsOwnFirst) {
  write("cluster.json", R"({"address": "b:7", "name": "lab", "controllers": ["a:7", "b:7"]})");
  const Result<ClusterAddress> several = read();
  ASSERT_TRUE(several) << several.error().text();
  EXPECT_EQ(several->controllers, (std::vector<std::string>{"b:7", "a:7"}));
  EXPECT_EQ(several->text(), "the controllers of lab at b:7, a:7");
  EXPECT_EQ(client_options(*several).addresses, several->controllers);
  write("cluster.json", R"({"address": "b:7"})");
  const Result<ClusterAddress> one = read();
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_EQ(one->controllers, std::vector<std::string>{"b:7"});
}

TEST_F(ClusterDirectory, WithoutAClusterIsTheUsersErrorAndADamagedFileIsNot) {
  const Result<ClusterAddress> none = read();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kInput);
  EXPECT_NE(none.error().text().find("no cluster at " + root_), std::string::npos);
  for (const char* text : {"", "{", "[]", R"({"address": [7]})"}) {
    write("cluster.json", text);
    const Result<ClusterAddress> damaged = read();
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().kind, ErrorKind::kEnvironment);
  }
}

}  // namespace
}  // namespace orrery
