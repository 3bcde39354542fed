#include "fleet/import/host_list.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

using Names = std::vector<std::string>;

TEST(HostList, ExpandsRangesListsAndProducts) {
  EXPECT_EQ(*expand_host_list("node[001-003,7],login"),
            (Names{"node001", "node002", "node003", "node7", "login"}));
  EXPECT_EQ(*expand_host_list("r[1-2]n[8-9]"), (Names{"r1n8", "r1n9", "r2n8", "r2n9"}));
  EXPECT_EQ(*expand_host_list("a[9-11]-x"), (Names{"a9-x", "a10-x", "a11-x"}));
}

TEST(HostList, RefusesWhatIsNoHostList) {
  for (const char* bad : {"", "a,", "node[1-", "node[3-1]", "node[x]", "node[1,]", "a b", ",a"}) {
    EXPECT_FALSE(expand_host_list(bad)) << bad;
  }
}

TEST(HostList, RefusesNumbersAndNamesWithoutEnd) {
  EXPECT_FALSE(expand_host_list("n[18446744073709551615]"));
  EXPECT_FALSE(expand_host_list("n[" + std::string(100'000, '0') + "-1000000]"));
  EXPECT_FALSE(expand_host_list(std::string(100'000, 'n') + "[0-1000000]"));
}

TEST(HostList, RefusesStrayBracketsAndCharactersNoHostHas) {
  for (const char* bad : {"a],b", "a]", "a[1]]", "a[[1]]", "a/b", "a\tb", "ü1", "a\"b"}) {
    EXPECT_FALSE(expand_host_list(bad)) << bad;
  }
}

TEST(HostList, RefusesNamesThatAreADirectoryOrLookLikeAnOption) {
  for (const char* bad : {".", "..", "-x", "a,..", "_a", "-[1-2]"}) {
    EXPECT_FALSE(expand_host_list(bad)) << bad;
  }
  EXPECT_EQ(expand_host_list("a,..").error().message,
            "\"..\" is not a host name: it must begin with a letter or a digit");
  EXPECT_EQ(*expand_host_list("[1-2]-x"), (Names{"1-x", "2-x"}));
}

TEST(HostList, RefusesMoreNamesThanAFleetMayHave) {
  EXPECT_FALSE(expand_host_list("n[0-99999999999]"));
  EXPECT_FALSE(expand_host_list("n[0-9999][0-9999]"));
  EXPECT_EQ(expand_host_list("n[0-1023]")->size(), 1024u);
}

}  // namespace
}  // namespace orrery
