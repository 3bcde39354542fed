#include "scheduler/plans/class_table.hpp"

#include <vector>

#include "scheduler/request/resolve_test.hpp"

namespace orrery {
namespace {

TEST(ClassTable, JobsThatAskForTheSameAreOfAClass) {
  ResolveLab lab;
  ClassTable classes;
  const std::string roles = "roles: [{accelerators: 8}]\n";
  JobRequest job = lab.request(batch(roles));
  const ClassId id = classes.of(job);
  job.name = "other";
  job.tenant = TenantId(7);
  job.priority = 500;
  job.deadline = Instant::max();
  EXPECT_EQ(classes.of(job), id);
  EXPECT_EQ(classes.size(), 1u);
}

TEST(ClassTable, JobsThatArePlacedAlikeAreOfAPlacementClassHoweverLongTheyRun) {
  ResolveLab lab;
  ClassTable placements;
  const auto placement_of = [&](const std::string& keys, const std::string& role) {
    return placements.of_placement(lab.request(batch(keys + "roles: [{" + role + "}]\n")));
  };
  const ClassId id = placement_of("estimate: 1 h\n", "accelerators: 8");
  EXPECT_EQ(placement_of("estimate: 2 h\nbudget: $5\n", "accelerators: 8"), id);
  EXPECT_NE(placement_of("preemptible: false\n", "accelerators: 8"),
            placement_of("preemptible: true\n", "accelerators: 8"));
  EXPECT_NE(placement_of("estimate: 1 h\n", "accelerators: 16"), id);
  EXPECT_NE(placement_of("estimate: 1 h\n", "accelerators: 8, topology: {required: rack}"), id);
}

TEST(ClassTable, WhatPlacementOrPriceRestsOnTellsClassesApart) {
  ResolveLab lab(example_fleet("two-regions"));
  ClassTable classes;
  std::vector<std::string> jobs;
  for (const char* role :
       {"accelerators: 8", "accelerators: 16", "accelerators: 8, node_accelerators: 4",
        "accelerators: 8, replicas: 2", "accelerators: 1, share: 0.5", "accelerators: 1",
        "accelerators: 8, host: {cpu: 1}", "accelerators: 8, host: {disk: 1 GiB}",
        "accelerators: 8, topology: {required: rack}",
        "accelerators: 8, topology: {preferred: rack}",
        "accelerators: 8, topology: {exclusive: node}",
        "accelerators: 8, topology: {rails_aligned: true}",
        "accelerators: 8, replicas: 2, topology: {spread: {level: rack}}",
        "accelerators: 8, replicas: 2, topology: {spread: {level: pod}}",
        "accelerators: 8, types: [{type: h100, speed: 2}]",
        "accelerators_min: 8, accelerators_max: 16",
        "accelerators: 8, work: {model: llama-3.1-8b, steps: 10}",
        "accelerators: 8, work: {model: llama-3.1-8b, steps: 20}"}) {
    jobs.push_back(batch("roles: [{" + std::string(role) + "}]\n"));
  }
  for (const char* key :
       {"preemptible: false", "goal: cost", "budget: $5", "time_limit: 1 h", "estimate: 1 h",
        "residency: [eu]", "data: [{site: ashburn, size: 1 TB}]", "checkpoint: {interval: 1 h}",
        "checkpoint: {cost: 1 min}", "checkpoint: {restart: 1 min}"}) {
    jobs.push_back(batch(std::string(key) + "\nroles: [{accelerators: 8}]\n"));
  }
  std::uint32_t expected = 0;
  for (const std::string& job : jobs) {
    EXPECT_EQ(classes.of(lab.request(job)), ClassId(expected++)) << job;
  }
}

}  // namespace
}  // namespace orrery
