// TLS to etcd, with a certificate that each side shows the other.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/system/real_env.hpp"
#include "store/etcd/etcd_follower.hpp"
#include "store/etcd/etcd_server_test.hpp"
#include "store/etcd/store_url.hpp"

namespace orrery {
namespace {

/// One member of etcd that answers only clients with a certificate of the authority "ca".
class EtcdTlsTest : public testing::Test {
 protected:
  static constexpr const char* kOpenssl = "/usr/bin/openssl";

  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    if (::access(kOpenssl, X_OK) != 0) GTEST_SKIP() << "SKIPPED: no " << kOpenssl;
    make_authority("ca");
    make_authority("stranger");
    make_certificate("server", "ca");
    make_certificate("client", "ca");
    make_certificate("intruder", "stranger");
    const std::string at = "https://" + address();
    const std::string peer = fmt::format("http://127.0.0.1:{}", ports_.first() + 1);
    member_ = std::make_unique<EtcdMember>(
        std::vector<std::string>{
            kEtcdProgram, "--name=m0", "--data-dir=" + path("data"), "--listen-client-urls=" + at,
            "--advertise-client-urls=" + at, "--listen-peer-urls=" + peer,
            "--initial-advertise-peer-urls=" + peer, "--initial-cluster=m0=" + peer,
            "--heartbeat-interval=5", "--election-timeout=50", "--client-cert-auth",
            "--trusted-ca-file=" + path("ca.pem"), "--cert-file=" + path("server.pem"),
            "--key-file=" + path("server.key")},
        path("log"));
  }

  [[nodiscard]] std::string path(const std::string& name) const { return files_.path(name); }
  [[nodiscard]] std::string address() const { return fmt::format("127.0.0.1:{}", ports_.first()); }
  [[nodiscard]] std::string url(const std::string& authority, const std::string& client) const {
    const EtcdLocation location{.members = {address()},
                                .cluster = "test",
                                .authority_file = path(authority + ".pem"),
                                .certificate_file = client.empty() ? "" : path(client + ".pem"),
                                .key_file = client.empty() ? "" : path(client + ".key")};
    return location.url();
  }
  /// Opens the log as soon as etcd answers.
  [[nodiscard]] std::unique_ptr<Store> open() const {
    constexpr int kTriesMax = 600;
    constexpr int kPauseMs = 20;
    for (int tries = 0; tries < kTriesMax; ++tries) {
      auto store = open_store(url("ca", "client"), path("local"));
      if (store) return *std::move(store);
      ::poll(nullptr, 0, kPauseMs);
    }
    return nullptr;
  }

 private:
  void openssl(const std::string& arguments) const {
    const std::string command =
        fmt::format("{} {} >>{} 2>&1", kOpenssl, arguments, path("openssl.log"));
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  [[nodiscard]] std::string new_key(const std::string& name) const {
    return fmt::format("-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {} -subj /CN={}",
                       path(name + ".key"), name);
  }
  void make_authority(const std::string& name) const {
    openssl(fmt::format("req -x509 {} -days 2 -out {}", new_key(name), path(name + ".pem")));
  }
  void make_certificate(const std::string& name, const std::string& authority) const {
    const std::string names = path(name + ".ext");
    std::ofstream(names) << "subjectAltName=IP:127.0.0.1\n";
    openssl(fmt::format("req -new {} -out {}", new_key(name), path(name + ".csr")));
    openssl(
        fmt::format("x509 -req -in {} -CA {} -CAkey {} -set_serial 1 -days 2 -extfile {} -out {}",
                    path(name + ".csr"), path(authority + ".pem"), path(authority + ".key"), names,
                    path(name + ".pem")));
  }

  TestDirectory files_;
  PortBlock ports_;
  std::unique_ptr<EtcdMember> member_;
};

TEST_F(EtcdTlsTest, ALogIsWrittenReadAndFollowed) {
  const auto store = open();
  ASSERT_NE(store, nullptr);
  const StoreTerm term = *store->claim();
  ASSERT_TRUE(store->append(term, {1, "one"}));
  EXPECT_EQ((*open_store_to_read(url("ca", "client")))->extent()->newest, 1u);

  const auto env = *RealEnv::create();
  std::uint64_t heard = 0;
  const EtcdFollower follower(
      *parse_etcd_location(url("ca", "client")),
      {.inbox = env->env().inbox,
       .seen = [](const WriterSeen&) {},
       .batch = [&](const Batch& batch) { heard = batch.number; },
       .texts_put = [] {},
       .failed = [](const StorageError& error) { ADD_FAILURE() << error.text(); }});
  bool late = false;
  const TimerId timer =
      env->env().timers.call_after(Duration::minutes(1), [&late] { late = true; });
  env->run_until([&] { return late || heard == 1; });
  ASSERT_TRUE(store->append(term, {2, std::string(std::size_t{2} << 20, 'b')}));
  env->run_until([&] { return late || heard == 2; });
  env->env().timers.cancel(timer);
  EXPECT_FALSE(late);
}

TEST_F(EtcdTlsTest, WithoutTheRightCertificatesThereIsNoAnswer) {
  ASSERT_NE(open(), nullptr);
  const std::string plain = EtcdLocation{.members = {address()}, .cluster = "test"}.url();
  for (const std::string& wrong :
       {plain, url("ca", ""), url("ca", "intruder"), url("stranger", "client")}) {
    const auto refused = open_store_to_read(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().failure, StorageFailure::kUnavailable) << refused.error().text();
  }
  const auto no_file = open_store_to_read(url("ca", "nobody"));
  ASSERT_FALSE(no_file);
  EXPECT_NE(no_file.error().message.find(path("nobody.")), std::string::npos)
      << no_file.error().text();
}

}  // namespace
}  // namespace orrery
