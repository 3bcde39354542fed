#include "scheduler/tenants/tenant_tree.hpp"

#include <gtest/gtest.h>

#include "scheduler/tenants/tenants_test.hpp"

namespace orrery {
namespace {

std::string refusal(const std::string& tenants) {
  Result<TenantTree> tree = tree_of_yaml(tenants);
  EXPECT_FALSE(tree) << "the tree was accepted";
  return tree ? "" : tree.error().text();
}

TEST(TenantTree, OfAFleetWithoutAFileIsTheRootAndDefault) {
  const TenantTree tree = default_tenant_tree(two_types());
  EXPECT_EQ(tree.size(), 2u);
  const Result<TenantId> id = tree.job_tenant("default", {});
  ASSERT_TRUE(id);
  EXPECT_EQ(tree.parent(*id), TenantTree::root());
  EXPECT_EQ(tree.guarantee(*id, kH100), std::nullopt);
  EXPECT_EQ(tree.limit(*id, kAllTypes), kUnlimited);
  EXPECT_TRUE(tree.may_borrow(*id));
}

TEST(TenantTree, HasNeitherGuaranteeNorLimitAtItsRoot) {
  const TenantTree tree = tree_of("- {name: a, guarantee: {h100: 8}, limit: {h100: 9}}\n");
  EXPECT_EQ(tree.guarantee(TenantTree::root(), kH100), std::nullopt);
  EXPECT_EQ(tree.limit(TenantTree::root(), kH100), kUnlimited);
  EXPECT_FALSE(tree.parent(TenantTree::root()).valid());
  EXPECT_EQ(tree.find(""), std::nullopt);
}

TEST(TenantTree, KeepsWhatATenantStates) {
  const TenantTree tree = tree_of(
      "- {name: a, weight: 3, guarantee: {h100: 8, '*': 24}, limit: {h100: 16}, borrow: false}\n");
  const TenantId a = tenant(tree, "a");
  EXPECT_EQ(tree.weight(a), 3);
  EXPECT_EQ(tree.guarantee(a, kH100), 8);
  EXPECT_EQ(tree.guarantee(a, kA100), std::nullopt);
  EXPECT_EQ(tree.guarantee(a, kAllTypes), 24);
  EXPECT_EQ(tree.limit(a, kH100), 16);
  EXPECT_EQ(tree.limit(a, kAllTypes), kUnlimited);
  EXPECT_FALSE(tree.may_borrow(a));
  EXPECT_EQ(tree.half_life(), Duration::hours(1));
}

TEST(TenantTree, GivesATenantWithoutGuaranteesTheSumOfItsChildren) {
  const TenantTree tree = tree_of(
      "- name: a\n- {name: a/x, guarantee: {h100: 8}}\n- {name: a/y, guarantee: {'*': 5}}\n"
      "- name: a/z\n");
  const TenantId a = tenant(tree, "a");
  EXPECT_EQ(tree.guarantee(a, kH100), 8);
  EXPECT_EQ(tree.guarantee(a, kA100), std::nullopt);
  EXPECT_EQ(tree.guarantee(a, kAllTypes), 13);
}

TEST(TenantTree, TakesTheLowerOfTheLimitAndWhatMayBeBorrowed) {
  const TenantTree tree = tree_of(
      "- {name: a, guarantee: {h100: 8}, limit: {h100: 20, '*': 30},"
      " borrow_limit: {h100: 4, '*': 40, a100: 2}}\n");
  const TenantId a = tenant(tree, "a");
  EXPECT_EQ(tree.limit(a, kH100), 12);
  EXPECT_EQ(tree.limit(a, kA100), 2);
  EXPECT_EQ(tree.limit(a, kAllTypes), 30);
}

TEST(TenantTree, FindsTheLowestTenantAboveTwo) {
  const TenantTree tree =
      tree_of("- name: a\n- name: b\n- name: a/x\n- name: a/y\n- name: a/x/z\n");
  const auto common = [&](const std::string& one, const std::string& other) {
    return tree.path(tree.common_ancestor(tenant(tree, one), tenant(tree, other)));
  };
  EXPECT_EQ(common("a/x/z", "a/y"), "a");
  EXPECT_EQ(common("a/y", "a/x/z"), "a");
  EXPECT_EQ(common("a/x/z", "a/x"), "a/x");
  EXPECT_EQ(common("a/x", "b"), "");
  EXPECT_EQ(common("b", "b"), "b");
}

TEST(TenantTree, KeepsParentsBeforeChildrenAndSiblingsTogether) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const TenantTree tree = random_tree(rng, 30);
    std::uint32_t next = 1;
    for (std::uint32_t i = 0; i < tree.size(); ++i) {
      const TenantId id(i);
      if (tree.is_leaf(id)) continue;
      EXPECT_EQ(tree.first_child(id), TenantId(next));
      for (std::uint32_t k = 0; k < tree.children(id); ++k) {
        EXPECT_EQ(tree.parent(TenantId(next + k)), id);
        EXPECT_EQ(tree.find(tree.path(TenantId(next + k))), TenantId(next + k));
      }
      next += tree.children(id);
    }
    EXPECT_EQ(next, tree.size());
  }
}

TEST(TenantTree, NamesTheNearestOfAnUnknownTenant) {
  const TenantTree tree = tree_of("- name: research\n- name: research/vision\n- name: ops\n");
  const SourcePosition where{"job.yaml", 4, 9};
  Result<TenantId> id = tree.job_tenant("research/vison", where);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().text(),
            "job.yaml:4:9: tenant: there is no tenant \"research/vison\", did you mean "
            "\"research/vision\"?");
  EXPECT_FALSE(tree.job_tenant("", where));
  EXPECT_TRUE(tree.job_tenant("ops", where));
}

TEST(TenantTree, SendsJobsToTenantsWithoutChildren) {
  const TenantTree tree = tree_of("- name: a\n- name: a/x\n- name: a/y\n");
  Result<TenantId> id = tree.job_tenant("a", {});
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().text(), "tenant: \"a\" is shared by a/x, a/y; name one of them");
}

TEST(TenantTree, RefusesATypeTheFleetHasNot) {
  EXPECT_EQ(refusal("- {name: a, guarantee: {h10: 8}}\n"),
            "tenants.yaml:6:30: guarantee: the fleet has no accelerators \"h10\", did you mean "
            "\"H100\"?; it has: nvidia-h100-sxm5-80g, nvidia-a100-sxm4-80g");
  EXPECT_NE(refusal("- {name: a, limit: {mi300x: 8}}\n").find("limit: the fleet has no"),
            std::string::npos);
}

TEST(TenantTree, RefusesOneTypeByTwoNames) {
  EXPECT_EQ(refusal("- {name: a, guarantee: {h100: 8, nvidia-h100-sxm5-80g: 8}}\n"),
            "tenants.yaml:6:56: guarantee: \"nvidia-h100-sxm5-80g\" is a second name of what "
            "stands at tenants.yaml:6:31");
}

TEST(TenantTree, RefusesAGuaranteeAboveALimit) {
  EXPECT_EQ(refusal("- {name: a, guarantee: {h100: 8}, limit: {h100: 7}}\n"),
            "tenants.yaml:6:49: limit: 7 nvidia-h100-sxm5-80g, below the 8 guaranteed");
  EXPECT_EQ(refusal("- {name: a, guarantee: {h100: 8, a100: 8}, limit: {'*': 15}}\n"),
            "tenants.yaml:6:57: limit: 15 accelerators, below the 16 guaranteed");
}

TEST(TenantTree, RefusesALimitBelowWhatChildrenAreGuaranteed) {
  EXPECT_EQ(refusal("- {name: a, limit: {h100: 7}}\n- name: a/b\n"
                    "- {name: a/b/c, guarantee: {h100: 8}}\n"),
            "tenants.yaml:6:27: limit: 7 nvidia-h100-sxm5-80g, below the 8 guaranteed");
}

TEST(TenantTree, RefusesChildrenGuaranteedMoreThanTheirParent) {
  EXPECT_EQ(refusal("- {name: a, guarantee: {h100: 16}}\n- {name: a/x, guarantee: {h100: 10}}\n"
                    "- {name: a/y, guarantee: {h100: 7}}\n"),
            "tenants.yaml:8:33: guarantee: with the 7 of \"a/y\", the nvidia-h100-sxm5-80g "
            "guaranteed here come to 17, above the 16 of \"a\"");
  EXPECT_NE(refusal("- {name: a, guarantee: {h100: 16}}\n- {name: a/x, guarantee: {a100: 1}}\n")
                .find("come to 1, above the 0 of \"a\""),
            std::string::npos);
  EXPECT_NE(refusal("- {name: a, guarantee: {'*': 16}}\n- {name: a/x, guarantee: {a100: 9}}\n"
                    "- {name: a/y, guarantee: {h100: 8}}\n")
                .find("the accelerators guaranteed here come to 17, above the 16 of \"a\""),
            std::string::npos);
}

TEST(TenantTree, RefusesAnyTypeToAChildWhoseParentHasOneType) {
  EXPECT_EQ(refusal("- {name: a, guarantee: {h100: 16}}\n- {name: a/x, guarantee: {'*': 2}}\n"),
            "tenants.yaml:7:32: guarantee: '*', of which \"a\" has none");
}

TEST(TenantTree, RefusesAllTypesBelowTheSumOfTypes) {
  EXPECT_EQ(refusal("- {name: a, guarantee: {h100: 16, a100: 8, '*': 20}}\n"),
            "tenants.yaml:6:49: guarantee: '*' is 20, less than the 24 of its types");
}

TEST(TenantTree, RefusesToGuaranteeMoreThanTheFleetHas) {
  EXPECT_EQ(refusal("- {name: a, guarantee: {h100: 100}}\n- name: b\n"
                    "- {name: b/x, guarantee: {h100: 29}}\n"),
            "tenants.yaml:7:3: guarantee: with the 29 of \"b\", the nvidia-h100-sxm5-80g "
            "guaranteed here come to 129, above what the fleet has, 128");
  EXPECT_NE(
      refusal("- {name: a, guarantee: {'*': 128}}\n- {name: b, guarantee: {h100: 65}}\n")
          .find("the accelerators guaranteed here come to 193, above what the fleet has, 192"),
      std::string::npos);
}

TEST(TenantTree, AllowsAllOfTheFleetToBeGuaranteed) {
  const TenantTree tree =
      tree_of("- {name: a, guarantee: {h100: 128}}\n- {name: b, guarantee: {'*': 64}}\n");
  EXPECT_EQ(tree.guarantee(tenant(tree, "b"), kAllTypes), 64);
}

TEST(TenantTree, OfTheExampleFitsTheFleetItIsFor) {
  const std::string examples = std::string(ORRERY_SOURCE_DIR) + "/examples";
  Result<FleetSpec> fleet = load_fleet_spec(examples + "/fleets/scarce-mixed.yaml");
  ASSERT_TRUE(fleet) << fleet.error().text();
  const Result<Topology> topology = build_topology(*fleet, test_catalog());
  ASSERT_TRUE(topology) << topology.error().text();
  Result<Document> document = Document::load(examples + "/tenants/lab.yaml");
  ASSERT_TRUE(document) << document.error().text();
  Result<TenantsSpec> spec = read_tenants_spec(*document);
  ASSERT_TRUE(spec) << spec.error().text();
  const Result<TenantTree> tree = build_tenant_tree(*spec, *topology);
  ASSERT_TRUE(tree) << tree.error().text();
  std::int64_t promised = 0;
  for (std::uint32_t i = 0; i < tree->children(TenantTree::root()); ++i) {
    const TenantId id(tree->first_child(TenantTree::root()).value() + i);
    const std::optional<std::int64_t> in_all = tree->guarantee(id, kAllTypes);
    if (in_all) promised += *in_all;
    for (std::uint32_t t = 0; !in_all && t < tree->type_count(); ++t) {
      promised += tree->guarantee(id, FleetTypeId(t)).value_or(0);
    }
  }
  EXPECT_EQ(topology->device_count(), 152u);
  EXPECT_EQ(promised, 136);
  EXPECT_EQ(tree->limit(tenant(*tree, "serving"), kAllTypes), 48);
}

TEST(TenantTree, RunsJobsAsTheNearestUserThatIsNamed) {
  const TenantTree tree =
      tree_of("- {name: a, run_as: svc-a}\n- {name: a/x, run_as: svc-x}\n- name: a/y\n- name: b\n");
  EXPECT_EQ(tree.run_as(tenant(tree, "a/x")), "svc-x");
  EXPECT_EQ(tree.run_as(tenant(tree, "a/y")), "svc-a");
  EXPECT_EQ(tree.run_as(tenant(tree, "b")), "");
  EXPECT_EQ(refusal("- {name: a, run_as: root}\n"),
            "tenants.yaml:6:3: run_as: \"root\": expected a POSIX user other than root");
  EXPECT_NE(refusal("- {name: a, run_as: '0'}\n").find("POSIX user"), std::string::npos);
}

}  // namespace
}  // namespace orrery
