// hardware/catalog_test.cpp - the built-in tables hold together, look-ups find what people type,
// and an overlay patches, copies, or is refused with a place.
#include "hardware/catalog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "hardware/builtin_catalog.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

const Catalog& builtin() {
  static const Catalog kCatalog = [] {
    Result<Catalog> loaded = Catalog::load(builtin_catalog(), {});
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text());
    return loaded ? *std::move(loaded) : Catalog();
  }();
  return kCatalog;
}

Result<Catalog> overlaid(const std::string& directory) {
  const Result<std::vector<FactOverlay>> overlays = read_fact_overlays(directory);
  if (!overlays) return tl::unexpected(overlays.error());
  return Catalog::load(builtin_catalog(), *overlays);
}

/// An overlay directory of the test's own, removed with it.
class Overlay {
 public:
  Overlay() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = fs::path(testing::TempDir()) / (std::string("orrery_overlay_") + test->name());
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;
  ~Overlay() { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& sections) const {
    std::ofstream(path_ / name) << "apiVersion: orrery/v1\nkind: Catalog\nname: mine\n" << sections;
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  Result<Catalog> load() const { return overlaid(path_.string()); }

 private:
  fs::path path_;
};

/// The built-in catalog under an overlay of one file, whose sections begin in line 4.
Catalog with(const std::string& sections) {
  const Overlay overlay;
  overlay.write("a.yaml", sections);
  Result<Catalog> loaded = overlay.load();
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text());
  return loaded ? *std::move(loaded) : Catalog();
}

/// "line:column: message" of an overlay file that must not load.
std::string refusal(const std::string& sections) {
  const Overlay overlay;
  overlay.write("a.yaml", sections);
  const Result<Catalog> loaded = overlay.load();
  EXPECT_FALSE(loaded) << "accepted: " << sections;
  if (loaded) return "";
  const std::string text = loaded.error().text();
  const std::string file = overlay.file("a.yaml") + ":";
  EXPECT_TRUE(text.starts_with(file)) << text;
  return text.substr(std::min(file.size(), text.size()));
}

::testing::AssertionResult begins(const std::string& message, std::string_view expected) {
  if (message.starts_with(expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << message << "\" does not begin with " << expected;
}

const Accelerator& accelerator(const Catalog& catalog, std::string_view name) {
  const Accelerator* found = catalog.find<Accelerator>(name);
  EXPECT_NE(found, nullptr) << name;
  static const Accelerator kNone{};
  return found == nullptr ? kNone : *found;
}

Support support(const Catalog& catalog, std::string_view framework, std::string_view chip) {
  const Framework* found = catalog.find<Framework>(framework);
  EXPECT_NE(found, nullptr) << framework;
  return catalog.stack(*found, accelerator(catalog, chip)).support;
}

constexpr const char* kMyChip =
    "accelerators:\n"
    "- id: mychip\n"
    "  like: h100\n"
    "  name: My chip\n"
    "  aliases: [mc1]\n"
    "  hbm_bytes: 96 GiB\n"
    "nodes:\n"
    "- id: mychip-8\n"
    "  like: dgx-h100\n"
    "  accelerator: mychip\n";

TEST(Catalog, LoadsWhatIsCompiledIn) {
  EXPECT_GE(builtin().all<Accelerator>().size(), 56u);
  EXPECT_GE(builtin().all<NodeType>().size(), 50u);
  EXPECT_GE(builtin().all<SystemType>().size(), 16u);
  EXPECT_GE(builtin().all<ScaleOutFabric>().size(), 10u);
  EXPECT_FALSE(builtin().evidence().empty());
}

TEST(Catalog, HasRowsInEveryTable) {
  builtin().for_each_table(
      [](const auto& table) { EXPECT_FALSE(table.rows.empty()) << table.section; });
}

TEST(Catalog, HasANodeASupplyRowAndAPlatformForEveryAccelerator) {
  for (const Accelerator& each : builtin().all<Accelerator>()) {
    EXPECT_EQ(builtin().default_node(each).accelerator, each.id);
    const Supply* supply = builtin().supply(each);
    ASSERT_NE(supply, nullptr) << each.id;
    EXPECT_EQ(supply->accelerator, each.id);
    EXPECT_NE(builtin().find<Platform>(supply->platform), nullptr) << each.id;
    EXPECT_NE(builtin().find<ExportClass>(supply->export_class), nullptr) << each.id;
  }
}

TEST(Catalog, HasAShortNameForEveryAccelerator) {
  for (const Accelerator& each : builtin().all<Accelerator>()) {
    EXPECT_TRUE(std::any_of(each.aliases.begin(), each.aliases.end(), [](const std::string& alias) {
      return alias.size() <= 12;
    })) << each.id;
  }
}

TEST(Catalog, SaysWhereEveryFactIsFromUnlessItIsFromMemory) {
  builtin().for_each_table([](const auto& table) {
    for (const auto& row : table.rows) {
      const bool sourced = !row.provenance.source.empty() || !row.provenance.note.empty();
      EXPECT_TRUE(sourced || row.provenance.confidence == Confidence::kRecalled)
          << table.section << " " << name_of_row(row);
      EXPECT_GT(row.where.line, 0);
    }
  });
}

TEST(Catalog, FindsByIdAndAliasWithoutRegardToCase) {
  const Accelerator& h100 = accelerator(builtin(), "nvidia-h100-sxm5-80g");
  EXPECT_EQ(builtin().find<Accelerator>("h100"), &h100);
  EXPECT_EQ(builtin().find<Accelerator>("H100"), &h100);
  EXPECT_EQ(builtin().find<Accelerator>("NVIDIA-H100-SXM5-80G"), &h100);
  EXPECT_EQ(builtin().find<Accelerator>("h1000"), nullptr);
  EXPECT_EQ(builtin().find<Accelerator>(""), nullptr);
  EXPECT_EQ(builtin().index_of(h100),
            static_cast<std::size_t>(&h100 - builtin().all<Accelerator>().data()));
}

TEST(Catalog, AnswersToEveryNameItLists) {
  for (const Accelerator& each : builtin().all<Accelerator>()) {
    EXPECT_EQ(builtin().find<Accelerator>(each.id), &each);
    for (const std::string& alias : each.aliases) {
      EXPECT_EQ(builtin().find<Accelerator>(alias), &each) << alias;
    }
  }
}

TEST(Catalog, SuggestsNamesForAnUnknownOne) {
  const auto mistyped = builtin().require<Accelerator>("h10O", {"f.yaml", 2, 3});
  ASSERT_FALSE(mistyped);
  EXPECT_TRUE(begins(mistyped.error().text(),
                     "f.yaml:2:3: \"h10O\" is not in the catalog's accelerators, did you mean \""));
  const auto cut = builtin().require<Accelerator>("nvidia-h100");
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("it could be: nvidia-h100"), std::string::npos);
  const auto strange = builtin().require<NodeType>("typewriter-of-1920");
  ASSERT_FALSE(strange);
  EXPECT_NE(strange.error().message.find("`orrery catalog list nodes`"), std::string::npos);
}

TEST(Catalog, HasOneStackRowForEveryFrameworkAndPlatform) {
  for (const Framework& framework : builtin().all<Framework>()) {
    for (const Platform& platform : builtin().all<Platform>()) {
      const auto& rows = builtin().all<SoftwareStack>();
      EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                              [&](const SoftwareStack& row) {
                                return row.framework == framework.id && row.platform == platform.id;
                              }),
                1)
          << framework.id << " on " << platform.id;
    }
  }
}

TEST(Catalog, KnowsWhichFrameworkRunsWhere) {
  EXPECT_EQ(support(builtin(), "pytorch", "h100"), Support::kSupported);
  EXPECT_EQ(support(builtin(), "pytorch", "mi300x"), Support::kSupported);
  EXPECT_EQ(support(builtin(), "tensorflow", "aws-trainium2"), Support::kNo);
  EXPECT_EQ(support(builtin(), "tensorrt-llm", "mi300x"), Support::kNo);
  EXPECT_EQ(support(builtin(), "tensorrt-llm", "h100"), Support::kSupported);
  EXPECT_EQ(support(builtin(), "jax", "google-tpu-v5p"), Support::kSupported);
  EXPECT_EQ(support(builtin(), "vllm", "aws-trainium2"), Support::kExperimental);
}

TEST(Catalog, LetsAnExceptionOfOneAcceleratorOverrideItsPlatform) {
  const Framework& pytorch = *builtin().find<Framework>("torch");
  const auto answer = builtin().stack(pytorch, accelerator(builtin(), "k80"));
  EXPECT_EQ(answer.support, Support::kNo);
  ASSERT_NE(answer.exception, nullptr);
  EXPECT_EQ(answer.exception->accelerator, "nvidia-k80");
  ASSERT_NE(answer.stack, nullptr);
  EXPECT_EQ(answer.stack->support, Support::kSupported);
  ASSERT_NE(answer.platform, nullptr);
  EXPECT_EQ(answer.platform->id, "cuda");
}

TEST(CatalogOverlay, AddsAChipInTenLinesWithItsModelsPriceSupplyAndStack) {
  const Catalog catalog = with(kMyChip);
  const Accelerator& mine = accelerator(catalog, "MC1");
  const Accelerator& h100 = accelerator(catalog, "h100");
  EXPECT_EQ(mine.id, "mychip");
  EXPECT_EQ(mine.like, h100.id);
  EXPECT_EQ(mine.memory, Bytes(96 * 0x1p30));
  EXPECT_EQ(mine.memory_bandwidth, h100.memory_bandwidth);
  EXPECT_EQ(catalog.default_node(mine).id, "mychip-8");
  EXPECT_NE(catalog.price(mine), nullptr);
  EXPECT_EQ(catalog.price(mine), catalog.price(h100));
  EXPECT_EQ(catalog.supply(mine), catalog.supply(h100));
  EXPECT_EQ(support(catalog, "tensorrt-llm", "mychip"), Support::kSupported);
  EXPECT_NE(accelerator(catalog, "h100").id, "mychip");
}

TEST(CatalogOverlay, FollowsACopyOfACopyToTheFirstModel) {
  const Catalog catalog = with(
      "accelerators:\n- {id: mine, like: k80}\n- {id: mine2, like: Mine}\n"
      "nodes:\n- {id: n1, like: dgx-h100, accelerator: mine, scaleup_domain_accelerators: 1}\n"
      "- {id: n2, like: n1, accelerator: mine2}\n");
  const Accelerator& copy = accelerator(catalog, "mine2");
  EXPECT_EQ(copy.like, "mine");
  EXPECT_NE(catalog.supply(copy), nullptr);
  EXPECT_EQ(catalog.supply(copy), catalog.supply(accelerator(catalog, "k80")));
  EXPECT_EQ(support(catalog, "pytorch", "mine2"), Support::kNo);
}

TEST(CatalogOverlay, PatchesOnlyTheKeysGiven) {
  const Catalog catalog = with("accelerators:\n- {id: NVIDIA-h100-sxm5-80g, tdp_watts: 650 W}\n");
  const Accelerator& patched = accelerator(catalog, "h100");
  const Accelerator& original = accelerator(builtin(), "h100");
  EXPECT_EQ(patched.tdp, Watts(650));
  EXPECT_EQ(patched.memory, original.memory);
  EXPECT_EQ(patched.aliases, original.aliases);
  EXPECT_EQ(catalog.all<Accelerator>().size(), builtin().all<Accelerator>().size());
  EXPECT_NE(catalog.price(patched), nullptr);
}

TEST(CatalogOverlay, PatchesAPriceByTheAliasOfItsAccelerator) {
  const Catalog catalog =
      with("accelerator_prices:\n- {accelerator: H100, ondemand_typical_usd_per_hour: $1.50/h}\n");
  const AcceleratorPrice* price = catalog.price(accelerator(catalog, "h100"));
  ASSERT_NE(price, nullptr);
  EXPECT_DOUBLE_EQ(price->on_demand->quantity.value() * 3600, 1.5);
  EXPECT_EQ(catalog.all<AcceleratorPrice>().size(), builtin().all<AcceleratorPrice>().size());
}

TEST(CatalogOverlay, CountsBareNumbersInTheUnitOfTheKey) {
  const Catalog catalog = with("accelerators:\n- {id: nvidia-h100-sxm5-80g, tdp_watts: 600}\n");
  EXPECT_EQ(accelerator(catalog, "h100").tdp, Watts(600));
}

TEST(CatalogOverlay, ReadsItsFilesInNameOrderAndIgnoresOthers) {
  const Overlay overlay;
  overlay.write("2.yaml", "accelerators:\n- {id: second, like: first}\n");
  overlay.write("1.yaml", "accelerators:\n- {id: first, like: h100}\n");
  overlay.write("3.yaml",
                "nodes:\n- {id: n1, like: dgx-h100, accelerator: first}\n"
                "- {id: n2, like: dgx-h100, accelerator: second}\n");
  overlay.write("0.yaml.bak", "nonsense: 1\n");
  const Result<Catalog> loaded = overlay.load();
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_NE(loaded->find<Accelerator>("second"), nullptr);
}

TEST(CatalogOverlay, RefusesADirectoryThatIsNotThere) {
  const Result<Catalog> loaded = overlaid("no/such/directory");
  ASSERT_FALSE(loaded);
  EXPECT_TRUE(begins(loaded.error().text(), "no/such/directory: No such file"));
}

TEST(CatalogOverlay, RefusesANameThatStandsForTwoRows) {
  EXPECT_TRUE(begins(refusal("accelerators:\n- {id: x, like: h100, aliases: [MI300X]}\n"
                             "nodes:\n- {id: n, like: dgx-h100, accelerator: x}\n"),
                     "5:3: the name \"mi300x\" of \"x\" is also a name of \"amd-mi300x\" ("));
}

TEST(CatalogOverlay, RefusesARowThatStandsTwice) {
  EXPECT_TRUE(begins(refusal("nodes:\n- {id: n, like: dgx-h100}\n- {id: N, like: dgx-h100}\n"),
                     "6:3: \"n\" stands twice in nodes, first at "));
  EXPECT_TRUE(begins(refusal("supply:\n- {accelerator: h100, tpp: 1}\n"
                             "- {accelerator: nvidia-h100-sxm5-80g, tpp: 2}\n"),
                     "6:3: \"h100\" stands twice in supply, first at "));
}

TEST(CatalogOverlay, RefusesReferencesToWhatIsNotThere) {
  EXPECT_TRUE(begins(refusal("nodes:\n- {id: n, like: dgx-h100, accelerator: h101}\n"),
                     "5:3: \"h101\" is not in the catalog's accelerators, did you mean"));
  EXPECT_TRUE(
      begins(refusal("nodes:\n- {id: n, like: dgx-h1000}\n"),
             "5:17: \"dgx-h1000\" is not in the catalog's nodes, did you mean \"dgx-h100\"?"));
  EXPECT_TRUE(begins(refusal("supply:\n- {accelerator: h100, platform: cuda13}\n"),
                     "5:3: \"cuda13\" is not in the catalog's platforms"));
  EXPECT_TRUE(
      begins(refusal("accelerators:\n- {id: nvidia-h100-sxm5-80g, default_node: dgx-a100}\n"),
             "5:3: default_node \"dgx-a100-80g\" holds other accelerators"));
}

TEST(CatalogOverlay, RefusesUnknownSectionsAndKeys) {
  EXPECT_TRUE(
      begins(refusal("acelerators: []\n"),
             "4:1: unknown section \"acelerators\", did you mean \"accelerators\"?; known: "));
  EXPECT_TRUE(begins(refusal("accelerators:\n- {id: x, like: h100, tdp_wats: 5 W}\n"),
                     "5:23: unknown key \"tdp_wats\", did you mean \"tdp_watts\"?"));
}

TEST(CatalogOverlay, RefusesRowsThatAreNoRows) {
  EXPECT_EQ(refusal("accelerators: {id: x}\n"), "4:15: expected a list of rows, found a mapping");
  EXPECT_EQ(refusal("accelerators: [x]\n"), "4:16: expected a mapping, found \"x\"");
  EXPECT_EQ(refusal("evidence: [x]\n"), "4:11: expected a mapping, found a list");
}

TEST(CatalogOverlay, RefusesHalfARowOfItsOwn) {
  EXPECT_EQ(refusal("accelerators:\n- {id: x}\n"), "5:3: the key \"vendor\" is missing");
  EXPECT_EQ(refusal("accelerators:\n- {like: h100}\n"), "5:3: the key \"id\" is missing");
}

TEST(CatalogOverlay, RefusesLikeInARowThatIsKnown) {
  EXPECT_EQ(refusal("accelerators:\n- id: nvidia-h100-sxm5-80g\n  like: a100\n"),
            "6:3: \"nvidia-h100-sxm5-80g\" is known already; like is for new rows");
}

TEST(CatalogOverlay, RefusesWrongUnitsAndNegativeOrAbsurdNumbers) {
  const std::string row = "accelerators:\n- id: nvidia-h100-sxm5-80g\n  ";
  EXPECT_TRUE(begins(refusal(row + "tdp_watts: 700 GB\n"),
                     "6:14: \"700 GB\" has the unknown unit \"GB\"; expected a power such as"));
  EXPECT_TRUE(begins(refusal(row + "tdp_watts: '700'\n"), "6:14: \"700\" has no unit"));
  EXPECT_TRUE(begins(refusal(row + "tdp_watts: -700\n"), "6:14: -700 W is negative"));
  EXPECT_TRUE(begins(refusal(row + "hbm_bytes: 1e30\n"), "6:14: "));
  EXPECT_TRUE(begins(refusal(row + "hbm_bytes: 0\n"),
                     "5:3: \"nvidia-h100-sxm5-80g\" has no memory or no bandwidth"));
  EXPECT_TRUE(begins(refusal(row + "year: -5\n"), "5:3: year is -5, expected 0 to 16777216"));
  EXPECT_TRUE(begins(refusal(row + "year: 99999999999\n"), "6:9: 99999999999 is out of range"));
}

TEST(CatalogOverlay, RefusesCountsThatNoMachineHas) {
  const std::string node = "nodes:\n- id: dgx-h100\n  ";
  EXPECT_TRUE(begins(refusal(node + "accelerators_per_node: 0\n"),
                     "5:3: accelerators_per_node is 0, expected 1 to 64"));
  EXPECT_TRUE(begins(refusal(node + "accelerators_per_node: 65\n"),
                     "5:3: accelerators_per_node is 65, expected 1 to 64"));
  EXPECT_TRUE(begins(refusal(node + "cpu_cores: 0\n"), "5:3: cpu_cores is 0, expected 1 to 65536"));
  EXPECT_TRUE(begins(refusal(node + "compute_nics: -8\n"), "5:3: compute_nics is -8, expected 0"));
  EXPECT_TRUE(begins(refusal(node + "scaleup_domain_accelerators: 4096\n"),
                     "5:3: scaleup_domain_accelerators is 4096, expected 1 to "));
  EXPECT_TRUE(
      begins(refusal(node + "cooling: steam\n"), "5:3: cooling is \"steam\", expected air"));
  EXPECT_TRUE(
      begins(refusal("failure_profiles:\n- {id: x, name: y, failures_per_1000_node_days: -1,"
                     " confidence: assumed}\n"),
             "5:3: failures_per_1000_node_days is -1, expected 0"));
}

TEST(CatalogOverlay, RefusesSystemsThatCannotBeBuilt) {
  const auto system = [](const std::string& keys) {
    return refusal("systems:\n- {id: s, node: dgx-h100, confidence: assumed, " + keys + "}\n");
  };
  EXPECT_TRUE(begins(system("topology: fat-trees"),
                     "5:3: unknown topology \"fat-trees\", did you mean \"fat-tree\"?; known: "));
  EXPECT_EQ(system("topology: fat-tree, accelerators: 12"),
            "5:3: 12 accelerators are no whole number of dgx-h100 with 8");
  EXPECT_EQ(system("topology: fat-tree, nodes: 0"), "5:3: nodes is 0, expected 1 to 1048576");
  EXPECT_EQ(system("topology: fat-tree, switch_radix: 0"),
            "5:3: switch_radix is 0, expected 1 to 1048576");
  EXPECT_TRUE(begins(system("topology: fat-tree, fabric: ib-ndrr"),
                     "5:3: \"ib-ndrr\" is not in the catalog's scaleout_fabrics"));
}

TEST(CatalogOverlay, RefusesShapesThatNoTorusHas) {
  const auto shape = [](const std::string& key) {
    return refusal(
        "systems:\n- {id: s, node: dgx-h100, confidence: assumed, topology: "
        "torus3d-ocs, " +
        key + "}\n");
  };
  const std::string torus =
      "5:3: torus_shape: expected 2 to 3 sides of at least 1, at most 1048576 accelerators in all";
  EXPECT_EQ(shape("torus_shape: [4]"), torus);
  EXPECT_EQ(shape("torus_shape: [4, 0]"), torus);
  EXPECT_EQ(shape("torus_shape: [2, 2, 2, 2]"), torus);
  EXPECT_EQ(shape("torus_shape: [1024, 1025]"), torus);
  EXPECT_TRUE(begins(shape("cube_shape: [4, 4]"), "5:3: cube_shape: expected 3 to 3 sides"));
  const Catalog catalog = with(
      "systems:\n- {id: s, node: dgx-h100, confidence: assumed, topology: torus3d-ocs, "
      "torus_shape: [1024, 1024], cube_shape: [1, 1, 1]}\n");
  EXPECT_NE(catalog.find<SystemType>("s"), nullptr);
}

TEST(CatalogOverlay, RefusesCoolingThatNoSiteHas) {
  const auto cooling = [](const std::string& pue, const std::string& captured) {
    return refusal("cooling:\n- {id: c, confidence: assumed, max_rack_watts: 1 kW, pue: " + pue +
                   ", liquid_capture_fraction: " + captured + "}\n");
  };
  const std::string bounds = "5:3: pue: expected [low, high] between 1 and 3";
  EXPECT_EQ(cooling("[1.2]", "0"), bounds);
  EXPECT_EQ(cooling("[0.9, 1.2]", "0"), bounds);
  EXPECT_EQ(cooling("[1.3, 1.2]", "0"), bounds);
  EXPECT_EQ(cooling("[1.2, 3.1]", "0"), bounds);
  EXPECT_EQ(cooling("[1.1, 1.2]", "1.5"), "5:3: liquid_capture_fraction: expected 0 to 1");
}

TEST(CatalogOverlay, RefusesPowerWithItsEndsExchanged) {
  EXPECT_EQ(refusal("nodes:\n- id: dgx-h100\n  assumed_watts: {low: 9 kW, high: 8 kW}\n"),
            "5:3: assumed_watts: high is below low");
}

TEST(CatalogOverlay, RefusesSoftwareAndPricesOfWhatIsNotThere) {
  EXPECT_TRUE(begins(refusal("stacks:\n- {framework: pytorch, platform: cuda13, support: no, "
                             "confidence: assumed}\n"),
                     "5:3: \"cuda13\" is not in the catalog's platforms"));
  EXPECT_TRUE(begins(refusal("accelerator_stacks:\n- {framework: pytorch, accelerator: h101, "
                             "support: no, confidence: assumed}\n"),
                     "5:3: \"h101\" is not in the catalog's accelerators"));
  EXPECT_TRUE(begins(refusal("server_capex:\n- {node: dgx-h101, low: 1 USD, typical: 2 USD, "
                             "high: 3 USD, confidence: assumed}\n"),
                     "5:3: \"dgx-h101\" is not in the catalog's nodes"));
}

TEST(Catalog, KnowsWhatAServerAndAWholeSystemCost) {
  for (const ServerCapex& capex : builtin().all<ServerCapex>()) {
    EXPECT_EQ(builtin().server_capex(capex.node), &capex);
    const bool known = builtin().find<NodeType>(capex.node) != nullptr ||
                       builtin().find<SystemType>(capex.node) != nullptr;
    EXPECT_TRUE(known) << capex.node;
  }
  EXPECT_EQ(builtin().server_capex("dgx-h101"), nullptr);
}

TEST(Catalog, HasTheFabricOfTheFirstSystemOfANode) {
  const ScaleOutFabric* fabric =
      builtin().default_fabric(*builtin().find<NodeType>("dgx-a100-80g"));
  ASSERT_NE(fabric, nullptr);
  EXPECT_EQ(fabric->id, "ib-hdr");
  NodeType alone = *builtin().find<NodeType>("dgx-h100");
  alone.id = "in-no-system";
  EXPECT_EQ(builtin().default_fabric(alone), nullptr);
}

TEST(Catalog, SaysNoForAUseThatAStackDoesNotHave) {
  SoftwareStack stack;
  Catalog::StackAnswer answer{.support = Support::kSupported, .stack = &stack};
  EXPECT_EQ(answer.support_for(FrameworkUse::kTraining), Support::kSupported);
  stack.use = FrameworkUse::kInference;
  EXPECT_EQ(answer.support_for(FrameworkUse::kTraining), Support::kNo);
  EXPECT_EQ(answer.support_for(FrameworkUse::kInference), Support::kSupported);
  StackException exception;
  answer.exception = &exception;
  EXPECT_EQ(answer.use(), FrameworkUse::kInference) << "the exception says nothing of its use";
  exception.use = FrameworkUse::kBoth;
  EXPECT_EQ(answer.support_for(FrameworkUse::kTraining), Support::kSupported);
}

TEST(CatalogOverlay, RefusesAChipThatBelongsToNoNode) {
  EXPECT_TRUE(begins(refusal("accelerators:\n- {id: x, like: h100}\n"),
                     "5:3: \"x\" belongs to no node type; add one, such as nodes: [{id: x-8, like: "
                     "dgx-h100, accelerator: x}]"));
}

TEST(CatalogOverlay, RefusesAFileThatIsNoCatalog) {
  const Overlay overlay;
  std::ofstream(overlay.file("f.yaml")) << "apiVersion: orrery/v1\nkind: Fleet\nname: x\n";
  const Result<Catalog> loaded = overlay.load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().text(), overlay.file("f.yaml") +
                                       ":1:1: expected apiVersion orrery/v1 and kind Catalog, "
                                       "found orrery/v1 and Fleet");
}

}  // namespace
}  // namespace orrery
