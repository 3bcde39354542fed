#include "perf/runs/run_accelerator.hpp"

#include <gtest/gtest.h>

#include "perf/runs/run_file_test.hpp"

namespace orrery {
namespace {

Result<AcceleratorText> read(std::string_view text) {
  return read_accelerator_text(text, built_in().hardware, {"runs.json", 3, 7});
}

std::string id_of(std::string_view text) {
  const Result<AcceleratorText> found = read(text);
  return found ? found->accelerator->id : found.error().text();
}

std::size_t warnings_of(std::string_view text) {
  const Result<AcceleratorText> found = read(text);
  return found ? found->warnings.size() : 99;
}

TEST(RunAccelerator, TakesIdsAndAliasesWhateverTheirCaseAndPunctuation) {
  EXPECT_EQ(id_of("nvidia-h100-sxm5-80g"), "nvidia-h100-sxm5-80g");
  EXPECT_EQ(id_of("h100 nvl"), "nvidia-h100-nvl-94g");
  EXPECT_EQ(id_of("NVIDIA H100 NVL"), "nvidia-h100-nvl-94g");
  EXPECT_EQ(id_of("tpu V5 Lite"), "google-tpu-v5e");
  EXPECT_EQ(id_of("Intel Gaudi 3"), "intel-gaudi3");
  EXPECT_EQ(id_of("B200_180GB_SXM"), "nvidia-b200-sxm-180g");
  EXPECT_EQ(warnings_of("B200-180GB-SXM (preview)"), 0U);
}

TEST(RunAccelerator, TakesTheUsualFormOfABareFamily) {
  EXPECT_EQ(id_of("H100"), "nvidia-h100-sxm5-80g");
  EXPECT_EQ(id_of("A100"), "nvidia-a100-sxm4-80g");
}

TEST(RunAccelerator, TellsMembersOfAFamilyApartByMemoryFormAndKind) {
  EXPECT_EQ(id_of("A100 80GB PCIe"), "nvidia-a100-pcie-80g");
  EXPECT_EQ(id_of("A100 PCIe, 40 GB"), "nvidia-a100-pcie-40g");
  EXPECT_EQ(id_of("H100 94GB"), "nvidia-h100-nvl-94g");
  EXPECT_EQ(id_of("H100 96 GB"), "nvidia-h100-sxm5-96g-hbm2e");
  EXPECT_EQ(id_of("H100 SXM HBM2e"), "nvidia-h100-sxm5-96g-hbm2e");
  EXPECT_EQ(id_of("H200 PCIe NVL"), "nvidia-h200-nvl-141g");
  EXPECT_EQ(id_of("MI300X-192GB-OAM"), "amd-mi300x");
  EXPECT_EQ(id_of("B200 192GB"), "nvidia-b200-sxm-180g");
}

TEST(RunAccelerator, CarriesAWattLimitAndTheSizeOfTheDomain) {
  const Result<AcceleratorText> limited = read("H100-96GB-SXM HBM2e 500W");
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->accelerator->id, "nvidia-h100-sxm5-96g-hbm2e");
  EXPECT_EQ(limited->power_limit, Watts(500));
  const Result<AcceleratorText> rack = read("GB200 NVL72");
  ASSERT_TRUE(rack);
  EXPECT_EQ(rack->accelerator->id, "nvidia-gb200-186g");
  EXPECT_EQ(rack->scale_up_domain, 72U);
  EXPECT_EQ(read("H200 650 W")->power_limit, Watts(650));
}

TEST(RunAccelerator, WarnsOfWhatItDoesNotKnowAndGoesOn) {
  EXPECT_EQ(id_of("H100-80GB-SXM rev B"), "nvidia-h100-sxm5-80g");
  EXPECT_EQ(warnings_of("H100-80GB-SXM rev B"), 2U);
  EXPECT_EQ(id_of("H100 64GB"), "nvidia-h100-sxm5-80g");
  EXPECT_EQ(warnings_of("H100 64GB"), 1U);
  EXPECT_EQ(warnings_of("MI300X PCIe"), 1U);
}

TEST(RunAccelerator, RefusesAnUnknownFamilyWithPlaceAndNearestName) {
  EXPECT_EQ(id_of("H10O").substr(0, 14), "runs.json:3:7:");
  EXPECT_NE(id_of("H10O").find("\"accel\""), std::string::npos);
  EXPECT_NE(id_of("H10O").find("h100"), std::string::npos);
  EXPECT_NE(id_of("Ascend 910B").find("not in the catalog"), std::string::npos);
  EXPECT_NE(id_of("").find("not in the catalog"), std::string::npos);
}

}  // namespace
}  // namespace orrery
