#include "store/etcd_api/etcd_location.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orrery {
namespace {

TEST(EtcdLocation, NamesMembersClusterAndFiles) {
  const auto plain = parse_etcd_location("etcd://10.0.0.1:2379,b.example:2379,[::1]:1/prod-1");
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(*plain, (EtcdLocation{.members = {"10.0.0.1:2379", "b.example:2379", "[::1]:1"},
                                  .cluster = "prod-1"}));
  EXPECT_EQ(plain->prefix(), "/orrery/prod-1/");
  EXPECT_EQ(plain->text(), "etcd://10.0.0.1:2379,b.example:2379,[::1]:1/prod-1");
  const auto secure = parse_etcd_location("etcd://a:1/c?ca=/ca.pem&cert=/c.pem&key=/k.pem");
  ASSERT_TRUE(secure) << secure.error().text();
  EXPECT_EQ(*secure, (EtcdLocation{.members = {"a:1"},
                                   .cluster = "c",
                                   .authority_file = "/ca.pem",
                                   .certificate_file = "/c.pem",
                                   .key_file = "/k.pem"}));
  EXPECT_EQ(secure->text(), "etcd://a:1/c");
  EXPECT_EQ(secure->url(), "etcd://a:1/c?ca=/ca.pem&cert=/c.pem&key=/k.pem");
  EXPECT_EQ(plain->url(), plain->text());
}

TEST(EtcdLocation, AnErrorSaysWhatWasExpected) {
  struct Case {
    const char* url;
    const char* says;
  };
  constexpr std::array kCases{
      Case{"http://a:1/c", "is no URL of etcd"},
      Case{"etcd://", "\"\" is no HOST:PORT"},
      Case{"etcd://a/c", "\"a\" is no HOST:PORT"},
      Case{"etcd://a:0/c", "\"a:0\" is no HOST:PORT"},
      Case{"etcd://a:65536/c", "\"a:65536\" is no HOST:PORT"},
      Case{"etcd://a:1x/c", "\"a:1x\" is no HOST:PORT"},
      Case{"etcd://::1:1/c", "\"::1:1\" is no HOST:PORT"},
      Case{"etcd://a:1,,b:2/c", "\"\" is no HOST:PORT"},
      Case{"etcd://a:1,/c", "a ',' ends the list of members"},
      Case{"etcd://a:1", "the cluster's name \"\""},
      Case{"etcd://a:1/", "the cluster's name \"\""},
      Case{"etcd://a:1/Prod", "the cluster's name \"Prod\""},
      Case{"etcd://a:1/a/b", "the cluster's name \"a/b\""},
      Case{"etcd://a:1/c?tls=1", "unknown setting \"tls\", expected ca, cert or key"},
      Case{"etcd://a:1/c?ca", "the setting \"ca\" names no file"},
      Case{"etcd://a:1/c?ca=/a&cert=/b", "cert and key are given together"},
      Case{"etcd://a:1/c?cert=/a&key=/b", "cert and key need ca"},
  };
  for (const Case& each : kCases) {
    const auto location = parse_etcd_location(each.url);
    ASSERT_FALSE(location) << each.url;
    EXPECT_NE(location.error().message.find(each.says), std::string::npos)
        << location.error().message;
    EXPECT_NE(location.error().message.find("expected"), std::string::npos);
  }
  EXPECT_FALSE(parse_etcd_location("etcd://a:1/" + std::string(64, 'c')));
  EXPECT_TRUE(parse_etcd_location("etcd://a:1/" + std::string(63, 'c')));
}

}  // namespace
}  // namespace orrery
