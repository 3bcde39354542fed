#include "scheduler/tenants/tenants_spec.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

const std::string kHead = "apiVersion: orrery/v1\nkind: Tenants\nname: lab\ntenants:\n";

Result<TenantsSpec> read(const std::string& yaml) {
  Result<Document> document = Document::parse(yaml, "tenants.yaml");
  if (!document) return forward_error(document);
  return read_tenants_spec(*document);
}

std::string refusal(const std::string& tenants) {
  Result<TenantsSpec> spec = read(kHead + tenants);
  EXPECT_FALSE(spec) << "the file was accepted";
  return spec ? "" : spec.error().text();
}

std::vector<std::string> paths_of(const std::string& tenants) {
  std::vector<std::string> paths;
  Result<TenantsSpec> spec = read(kHead + tenants);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  if (!spec) return paths;
  const Result<std::vector<TenantPlace>> places = place_tenants(*spec);
  EXPECT_TRUE(places);
  for (const TenantPlace& place : *places) paths.push_back(place.path);
  return paths;
}

TEST(TenantsSpec, KeepsWhatIsWrittenAndWhereItStands) {
  const Result<TenantsSpec> spec = read(
      "apiVersion: orrery/v1\nkind: Tenants\nname: lab\nhalf_life: 2 days\ntenants:\n"
      "- name: research\n  weight: 2.5\n  guarantee: {h100: 64, '*': 128}\n"
      "  limit: {h100: 96}\n  borrow_limit: {'*': 16}\n"
      "- {name: vision, parent: research, borrow: false}\n");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->half_life, Seconds(2 * 86400.0));
  const TenantSpec& research = spec->tenants[0];
  EXPECT_EQ(research.weight, 2.5);
  ASSERT_EQ(research.guarantee.size(), 2u);
  EXPECT_EQ(research.guarantee[1].first, "*");
  EXPECT_EQ(research.guarantee[1].second.devices, 128);
  EXPECT_EQ(research.guarantee[1].second.where.text(), "tenants.yaml:8:30");
  EXPECT_EQ(research.limit[0].second.devices, 96);
  EXPECT_EQ(research.borrow_limit[0].second.devices, 16);
  EXPECT_TRUE(research.borrow);
  EXPECT_FALSE(spec->tenants[1].borrow);
  EXPECT_EQ(spec->tenants[1].weight, 1);
}

TEST(TenantsSpec, HalvesUsageEverySevenDaysUnlessToldOtherwise) {
  const Result<TenantsSpec> spec = read(kHead + "- name: a\n");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->half_life, Seconds(7 * 86400.0));
}

TEST(TenantsSpec, NamesParentsByPathOrByKey) {
  EXPECT_EQ(paths_of("- name: lab/vision/eu\n"
                     "- {name: nlp, parent: lab}\n"
                     "- name: ops\n"
                     "- name: lab\n"
                     "- {name: vision/us, parent: lab}\n"
                     "- name: lab/vision\n"),
            (std::vector<std::string>{"", "ops", "lab", "lab/nlp", "lab/vision", "lab/vision/eu",
                                      "lab/vision/us"}));
}

TEST(TenantsSpec, PutsParentsBeforeTheirChildrenAndSiblingsSideBySide) {
  const Result<TenantsSpec> spec =
      read(kHead + "- name: b/x\n- name: a/x\n- name: b/y\n- name: a\n- name: b\n- name: a/x/z\n");
  ASSERT_TRUE(spec);
  const Result<std::vector<TenantPlace>> places = place_tenants(*spec);
  ASSERT_TRUE(places);
  ASSERT_EQ(places->size(), 7u);
  std::size_t last_parent = 0;
  for (std::size_t i = 1; i < places->size(); ++i) {
    const TenantPlace& place = (*places)[i];
    EXPECT_LT(place.parent, i) << place.path;
    EXPECT_GE(place.parent, last_parent) << place.path;
    last_parent = place.parent;
    EXPECT_EQ(spec->tenants[place.entry].name, place.path);
  }
}

TEST(TenantsSpec, RefusesAnUnknownParentAndNamesTheNearest) {
  EXPECT_EQ(refusal("- name: research\n- {name: vision, parent: reserach}\n"),
            "tenants.yaml:6:3: parent: there is no tenant \"reserach\", did you mean "
            "\"research\"?");
  EXPECT_EQ(refusal("- name: a/b\n"), "tenants.yaml:5:3: parent: there is no tenant \"a\"");
}

TEST(TenantsSpec, RefusesParentsInACircle) {
  EXPECT_EQ(refusal("- name: top\n- {name: a, parent: c}\n- {name: b, parent: a}\n"
                    "- {name: c, parent: b}\n"),
            "tenants.yaml:6:3: parent: a -> c -> b -> a is a cycle");
  EXPECT_EQ(refusal("- {name: a, parent: a}\n"), "tenants.yaml:5:3: parent: a -> a is a cycle");
}

TEST(TenantsSpec, NamesTheCircleThatATenantHangsBelow) {
  EXPECT_EQ(refusal("- {name: x, parent: a}\n- {name: a, parent: b}\n- {name: b, parent: a}\n"),
            "tenants.yaml:6:3: parent: a -> b -> a is a cycle");
}

TEST(TenantsSpec, NamesTheMissingTenantAtTheTopOfALooseBranch) {
  EXPECT_EQ(refusal("- {name: x, parent: gone/y}\n- {name: y, parent: gone}\n"),
            "tenants.yaml:6:3: parent: there is no tenant \"gone\"");
}

TEST(TenantsSpec, RefusesAPathTwice) {
  EXPECT_EQ(refusal("- name: a\n- name: a/b\n- {name: b, parent: a}\n"),
            "tenants.yaml:7:3: name: a second tenant \"a/b\", the first is at tenants.yaml:6:3");
}

TEST(TenantsSpec, RefusesNamesThatAreNone) {
  for (const std::string name : {"''", "a//b", "/a", "a/", "'a b'", "'*'"}) {
    EXPECT_NE(refusal("- name: " + name + "\n").find("is not a name"), std::string::npos) << name;
  }
}

TEST(TenantsSpec, RefusesATreeTooDeep) {
  std::string tenants;
  std::string path = "t";
  for (int depth = 1; depth <= 17; ++depth) {
    tenants += "- name: " + path + "\n";
    path += "/t";
  }
  EXPECT_NE(refusal(tenants).find("nested deeper than 16"), std::string::npos);
}

TEST(TenantsSpec, RefusesWeightsThatGiveNothing) {
  for (const std::string weight : {"0", "-1", "1e9"}) {
    EXPECT_NE(refusal("- {name: a, weight: " + weight + "}\n").find("5:3: weight is "),
              std::string::npos)
        << weight;
  }
}

TEST(TenantsSpec, RefusesCountsThatAreNone) {
  EXPECT_NE(refusal("- {name: a, guarantee: {h100: -1}}\n").find("5:31: -1 is out of range"),
            std::string::npos);
  EXPECT_NE(refusal("- {name: a, limit: {h100: 1.5}}\n").find("expected a whole number"),
            std::string::npos);
}

TEST(TenantsSpec, RefusesKeysThatContradictEachOther) {
  EXPECT_EQ(refusal("- {name: a, borrow: false, borrow_limit: {'*': 1}}\n"),
            "tenants.yaml:5:3: borrow_limit has no meaning with borrow: false");
}

TEST(TenantsSpec, RefusesAFileOfAnotherKindOrWithoutTenants) {
  EXPECT_FALSE(read("apiVersion: orrery/v1\nkind: Fleet\nname: x\ntenants: [{name: a}]\n"));
  EXPECT_FALSE(read("apiVersion: orrery/v1\nkind: Tenants\nname: x\ntenants: []\n"));
  EXPECT_FALSE(read(
      "apiVersion: orrery/v1\nkind: Tenants\nname: x\nhalf_life: 0 s\ntenants: [{name: a}]\n"));
}

}  // namespace
}  // namespace orrery
