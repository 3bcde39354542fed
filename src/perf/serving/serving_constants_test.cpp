// perf/serving/serving_constants_test.cpp - which constant an accelerator and an engine get.
#include "perf/serving/serving_constants.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "perf/serving/serving_test.hpp"

namespace orrery {
namespace {

TEST(ServingConstants, AClassIsNamedFromTheSpecialToTheGeneral) {
  EXPECT_EQ(class_names(part("L40S")),
            (std::vector<std::string>{"ada-gddr", "ada", "nvidia", "gpu", "any"}));
  const std::vector<std::string> ultra = class_names(part("B300"));
  EXPECT_EQ(ultra.front(), "blackwell-ultra");
  EXPECT_EQ(ultra[1], "blackwell");
}

TEST(ServingConstants, WhatJoinsDevicesDependsOnHowManyThereAre) {
  EXPECT_EQ(link_class(part("H100"), 8), "nvlink");
  EXPECT_EQ(link_class(part("L40S"), 2), "pcie");
  EXPECT_EQ(link_class(part("H100-NVL"), 2), "nvlink");
  EXPECT_EQ(link_class(part("H100-NVL"), 4), "pcie");
  EXPECT_EQ(link_class(part("MI300X"), 8), "infinity");
}

TEST(ServingConstants, EveryAcceleratorAndEngineOfTheCatalogHasAllConstants) {
  for (const Accelerator& accelerator : builtin_facts().all<Accelerator>()) {
    for (const char* name : {"vLLM", "SGLang", "TensorRT-LLM", "Deepspeed", "unheard of"}) {
      const EngineProfile profile = engine_profile({.name = name, .vendor = accelerator.vendor});
      const ServingConstants constants = serving_constants(
          builtin_constants(), {.accelerator = accelerator, .engine = profile.keys, .group = 8});
      EXPECT_GT(constants.device.stream, 0) << accelerator.id;
      EXPECT_GE(constants.positions.size(), 30U);
    }
  }
}

TEST(ServingConstants, NoConstantMayBeatTheRoofline) {
  for (const CalibrationConstant& c : builtin_constants().constants()) {
    if (!c.id.starts_with("serving.")) continue;
    const std::string what = c.id.substr(8, c.id.find('.', 8) - 8);
    const bool fraction = what == "stream" || what == "matmul16" || what == "matmul8" ||
                          what == "matmul4" || what == "link_fraction" ||
                          what == "attention_decode" || what == "expert_fraction" ||
                          what == "expert_stream";
    if (fraction) {
      EXPECT_LE(c.high, 1) << c.id;
    }
    if (what == "compute" || what == "memory" || what == "dequant") {
      EXPECT_GE(c.low, 1) << c.id;
    }
  }
}

}  // namespace
}  // namespace orrery
