// http/web_request_test.cpp - targets, queries and header fields.
#include "http/web_request.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(WebRequest, SplitsItsTarget) {
  WebRequest request;
  request.target = "/a/b?x=1&y=%2Fz+w&flag";
  EXPECT_EQ(request.path(), "/a/b");
  EXPECT_EQ(query_value(request.query(), "x"), "1");
  EXPECT_EQ(query_value(request.query(), "y"), "/z w");
  EXPECT_EQ(query_value(request.query(), "flag"), "");
  EXPECT_EQ(query_value(request.query(), "none"), std::nullopt);
  request.target = "/a";
  EXPECT_EQ(request.query(), "");
}

TEST(WebRequest, KeepsMalformedEscapes) {
  EXPECT_EQ(decode_query_text("%4"), "%4");
  EXPECT_EQ(decode_query_text("%zz%41"), "%zzA");
}

TEST(WebHeaders, FindsByNameWithoutCase) {
  WebHeaders headers;
  headers.add("Content-Type", "a");
  headers.add("content-type", "b");
  EXPECT_EQ(headers.find("CONTENT-TYPE"), "a");
  EXPECT_EQ(headers.at(1).value, "b");
  EXPECT_EQ(headers.find("other"), std::nullopt);
  headers.clear();
  EXPECT_EQ(headers.size(), 0u);
}

TEST(WebHeaders, FindsTokensInLists) {
  EXPECT_TRUE(lists_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_FALSE(lists_token("keep-alive", "keep"));
  EXPECT_FALSE(lists_token("", "close"));
}

}  // namespace
}  // namespace orrery
