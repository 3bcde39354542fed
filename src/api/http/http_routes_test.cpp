// The OpenAPI document that is made from the routes.
#include "api/http/http_routes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

TEST(OpenApi, DescribesEachOperationAndItsErrors) {
  MethodTable methods;
  methods.add<v1::GetClusterRequest>("GetCluster", {}, [](const auto&, const auto&) {});
  const auto document = nlohmann::json::parse(open_api_json(methods));
  EXPECT_FALSE(document["servers"].empty());
  EXPECT_FALSE(document["security"].empty());
  std::set<std::string> ids;
  std::size_t operations = 0;
  for (const auto& [path, verbs] : document["paths"].items()) {
    for (const auto& [verb, operation] : verbs.items()) {
      ++operations;
      const std::string name = fmt::format("{} {}", verb, path);
      EXPECT_FALSE(operation.value("summary", "").empty()) << name << ": see method_summary.cpp";
      EXPECT_FALSE(operation["tags"].empty()) << name;
      EXPECT_TRUE(ids.insert(operation.value("operationId", "")).second) << name;
      for (const char* code : {"400", "401", "403", "404"}) {
        ASSERT_TRUE(operation["responses"].contains(code)) << name << " " << code;
        const std::string at = operation["responses"][code]["$ref"];
        const auto& error = document.at(nlohmann::json::json_pointer(at.substr(1)));
        EXPECT_EQ(error["content"]["application/json"]["schema"]["$ref"],
                  "#/components/schemas/Error");
      }
    }
  }
  EXPECT_EQ(operations, http_routes().size());
  EXPECT_TRUE(document["components"]["schemas"]["Error"]["properties"].contains("message"));
}

TEST(HttpMessage, ABodyThatIsNestedTooDeeplyIsRefused) {
  MethodTable methods;
  methods.add<v1::SubmitJobRequest>("SubmitJob", {}, [](const auto&, const auto&) {});
  const auto said = [&](std::size_t depth) {
    std::string body = "{\"a\":";
    body.append(depth, '[').append(depth, ']').append("}");
    const HttpRequest request{
        .verb = "POST", .path = "/v1/jobs", .query = {}, .body = std::move(body)};
    const HttpRoute* route = find_route(request);
    if (route == nullptr) return std::string("no route");
    const auto message = message_of(*route, request, *methods.find("SubmitJob"));
    return message ? std::string() : message.error().text();
  };
  EXPECT_EQ(said(2'000'000), "the body is nested more than 64 levels deep");
  EXPECT_NE(said(30), "the body is nested more than 64 levels deep");
  EXPECT_NE(said(30), "no route");
}

}  // namespace
}  // namespace orrery
