#include "twin/design/design.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/format/document.hpp"
#include "base/text/quantity_text.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/repository_facts_test.hpp"
#include "twin/design/design_html.hpp"
#include "twin/design/design_rehearsal.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

std::string text_with(const std::string& site, const std::string& work) {
  return "apiVersion: orrery/v1\nkind: Design\nname: lab\nsite:\n" + site + "workload:\n" + work +
         "candidates: [h100]\n";
}

constexpr const char* kTrain =
    "- name: train\n  kind: Train\n  model: gpt2-xl\n  accelerators: 8\n  sequence: 1024\n"
    "  global_batch: 64\n";

Result<DesignSpec> spec_of(const std::string& text) {
  return read_design_spec(*Document::parse(text, "lab.yaml"));
}

DesignSpec lab(const std::string& power) {
  return *spec_of(text_with("  power: " + power + "\n  budget: $3M\n", kTrain));
}

class DesignTest : public testing::Test {
 protected:
  static const FactsView& facts() {
    static const ModelCatalog models = *ModelCatalog::load(builtin_models(), {});
    static const FactsView all{builtin_facts(), builtin_constants(), models};
    return all;
  }
};

TEST(DesignSpecTest, WhatAUserCanGetWrongIsSaidWithItsLine) {
  const std::string site = "  power: 100 kW\n";
  const struct {
    std::string text;
    std::string says;
  } cases[] = {
      {text_with("  powr: 100 kW\n", kTrain), "lab.yaml:5:"},
      {text_with("  powr: 100 kW\n", kTrain), "power"},
      {text_with("  power: 100 kW\n  pue: 0.9\n", kTrain), "at least 1"},
      {text_with(site, "- {name: a, kind: Train, model: gpt2}\n"), "accelerators"},
      {text_with(site, "- {name: a, kind: Batch, model: gpt2}\n"), "Train, FineTune or Serve"},
      {text_with(site, "- {name: a, kind: Serve, model: gpt2}\n"), "input_tokens"},
      {text_with(site, std::string(kTrain) + kTrain), "a second work named \"train\""},
      {text_with(site, "  []\n"), "expected 1 to 8"},
  };
  for (const auto& each : cases) {
    const Result<DesignSpec> spec = spec_of(each.text);
    ASSERT_FALSE(spec) << each.text;
    EXPECT_NE(spec.error().text().find(each.says), std::string::npos) << spec.error().text();
  }
}

TEST(DesignGoodputTest, ASpareIsBoughtWhileItIsNeededMoreOftenThanItsJobIsLarge) {
  // Poisson of mean 1: more than 0, 1, 2, 3 in 63, 26, 8, 1.9 % of the time.
  const NodeFaults faults{.rate = 0.001, .detect = {}, .out = Seconds(10)};
  EXPECT_EQ(spares_for(faults, 100, 1).nodes, 0U);
  EXPECT_EQ(spares_for(faults, 100, 2).nodes, 1U);
  EXPECT_EQ(spares_for(faults, 100, 20).nodes, 3U);
  EXPECT_NEAR(spares_for(faults, 100, 1).missing, 1, 1e-12);
  EXPECT_NEAR(spares_for(faults, 100, 2).missing, std::exp(-1.0), 1e-12);
  EXPECT_EQ(spares_for({.rate = 0, .detect = {}, .out = Seconds(10)}, 100, 1000).nodes, 0U);
}

TEST_F(DesignTest, StorageHoldsTheStallOfCheckpointsAndNoUnitIsTooMany) {
  const TrainedJob job{.checkpoint = Bytes(1e13),
                       .accelerators = 4096,
                       .node = facts().catalog.find<NodeType>("dgx-h100"),
                       .step = Seconds(1),
                       .ingest = BytesPerSecond(1e6),
                       .time_between_faults = Seconds(12 * 3600.0)};
  const StorageNeed need{.jobs = {job},
                         .capacity = Bytes(0),
                         .wanted = facts().catalog.find<StorageSystem>("ddn-ai400x2-turbo")};
  const Result<StorageChoice> choice = storage_for({facts().catalog, facts().calibration}, need);
  ASSERT_TRUE(choice) << choice.error().text();
  const auto part = [&](double units) {
    const Seconds write = job.checkpoint / (*choice->system->write * units);
    return write / *young_interval(write, job.time_between_faults);
  };
  EXPECT_LE(part(choice->units), kStallShare * 1.0001);
  EXPECT_GT(part(choice->units - 1.0), kStallShare);
}

TEST_F(DesignTest, AWorkNamesTheFormatItRunsIn) {
  DesignSpec spec = *spec_of(text_with(
      "  power: 200 kW\n",
      "- {name: chat, kind: Serve, model: llama-3.1-8b, input_tokens: 512, output_tokens: 128}\n"));
  const auto candidates = design_candidates(facts(), spec);
  ASSERT_TRUE(candidates) << candidates.error().text();
  double tokens = 0;
  for (const std::string format : {"bf16", "fp8"}) {
    spec.workload.front().work.precision = format;
    const auto rate = rate_of(facts(), candidates->front(), spec.workload.front());
    ASSERT_TRUE(rate) << rate.error().message;
    EXPECT_TRUE(rate->layout.starts_with(format + ", tp=")) << rate->layout;
    EXPECT_GT(rate->tokens, tokens);
    tokens = rate->tokens;
  }
}

TEST_F(DesignTest, AFleetIsValidAndInsideItsLimitsAndTheTwinAccountsForAllItsTime) {
  const DesignSpec spec = lab("120 kW");
  const Result<Design> design = design_fleet(facts(), spec, {});
  ASSERT_TRUE(design) << design.error().text();
  EXPECT_TRUE(build_topology(design->site.fleet, facts().catalog));
  EXPECT_LE(design->site.power_max, spec.site.power);
  ASSERT_TRUE(design->site.capex);
  EXPECT_LE(*design->site.capex, *spec.site.budget);
  Dollars bill;
  for (const BillRow& row : design->bill) bill += row.total.value_or(Dollars(0));
  EXPECT_NEAR(bill.value(), design->site.capex->value(), 1);
  const DesignUse& use = design->predicted;
  EXPECT_NEAR(use.useful + use.checkpoints + use.lost + use.undetected + use.starting + use.unused,
              1, 1e-9);
  EXPECT_GE(design->works.front().jobs, 5U);

  const Result<Rehearsal> played = rehearse(facts(), *design, {.span = Duration::hours(48)});
  ASSERT_TRUE(played) << played.error().text();
  const DesignUse& did = played->use;
  EXPECT_NEAR(did.useful + did.checkpoints + did.lost + did.undetected + did.starting + did.unused,
              1, 1e-9);
  EXPECT_NEAR(did.useful / use.useful, 1, 0.01);
  EXPECT_TRUE(confirmed(*design, *played));
  EXPECT_NE(design_html(*design, *played).find("Bill of materials"), std::string::npos);
}

// No operator has to vouch for a host that fell silent before its jobs restart elsewhere.
TEST_F(DesignTest, ARehearsedJobStartsAgainOnceItsLossIsNoticed) {
  const DesignSpec spec = lab("120 kW");
  Result<Design> design = design_fleet(facts(), spec, {});
  ASSERT_TRUE(design) << design.error().text();
  FailureSpec silent = *design->failures;
  silent.failures_per_1000_node_days = 4000;
  silent.mix = {{FaultKind::kHost, 1}};
  silent.network = silent.facility = 0;
  design->failures = &silent;
  const Duration span = Duration::hours(48);
  const Result<Rehearsal> played = rehearse(facts(), *design, {.span = span});
  ASSERT_TRUE(played) << played.error().text();
  ASSERT_GT(played->faults, 20U);
  const double hours = span.count_seconds() / 3600;
  const double starting = played->use.starting * design->accelerators() * hours * 3600;
  const DesignedWork& work = design->works.front();
  const double restarts = static_cast<double>(played->faults) * work.rate.accelerators *
                          (work.goodput.restart.value() + 30);
  EXPECT_LT(starting, restarts) << "device-seconds between a stop and the next running";
}

TEST_F(DesignTest, WhatDoesNotFitNamesTheSmallestChangeAndThatChangeIsEnough) {
  const DesignSpec spec = lab("10 kW");
  const Result<Design> design = design_fleet(facts(), spec, {});
  ASSERT_FALSE(design);
  EXPECT_EQ(design.error().kind, ErrorKind::kInfeasible);
  const std::string& why = design.error().message;
  const std::string mark = "the smallest change: power: ";
  const std::size_t at = why.find(mark);
  ASSERT_NE(at, std::string::npos) << why;
  const std::size_t begin = at + mark.size();
  const std::string power = why.substr(begin, why.find(" (", begin) - begin);
  EXPECT_GT(*parse<Watts>(power), Watts(10200)) << "a node's own rating is no site";
  EXPECT_TRUE(design_fleet(facts(), lab(power), {})) << power;
}

}  // namespace
}  // namespace orrery
