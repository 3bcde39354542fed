#include "workload/trace/trace_statistics.hpp"

namespace orrery {
namespace {

// Philly: sizes, quantiles and hours of 12 of the 15 virtual clusters of Jeon et al., "Analysis of
// Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019
// (msr-fiddle/philly-traces, CC-BY-4.0), as the authors of Sia derived them: 64,223 jobs that ran;
// run time p10 97 s, p50 1,580, p90 10,917, p99 255,553, mean 13,408, max 4,628,226; 613,167
// accelerator-hours. The mixture is within 0.015 of every one of these probabilities, 7 % above the
// mean and 1 % above the hours.
constexpr std::array<SizeShare, 8> kPhillySizes = {{{1, 0.9554},
                                                    {2, 0.0045},
                                                    {4, 0.0242},
                                                    {8, 0.0143},
                                                    {12, 0.0001},
                                                    {16, 0.0013},
                                                    {24, 0.0001},
                                                    {32, 0.0001}}};
constexpr std::array<RunPart, 2> kPhillyRuns = {{{0.5134, 1689.8, 0.797}, {0.4866, 797.4, 2.706}}};

// Helios: Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
// Datacenters", SC 2021 (S-Lab-System-Group/HeliosArtifact, MIT), the totals of its four clusters:
// 1,580,464 GPU jobs; run time mean 6,651.681 s, median 206, max 4,320,009; accelerators
// mean 3.716, median 1, max 2,048; 77,997,766,436 accelerator-seconds. Of the sizes no more is
// stated: they are powers of two, 60 % of them one, the rest falling by a constant factor that
// meets the mean. The lognormal and the exponent meet the median, the mean and the
// accelerator-seconds.
constexpr std::array<SizeShare, 12> kHeliosSizes = {{{1, 0.6},
                                                     {2, 0.21826},
                                                     {4, 0.09919},
                                                     {8, 0.04508},
                                                     {16, 0.02048},
                                                     {32, 0.00931},
                                                     {64, 0.00423},
                                                     {128, 0.00192},
                                                     {256, 0.00087},
                                                     {512, 0.0004},
                                                     {1024, 0.00018},
                                                     {2048, 0.00008}}};
constexpr std::array<RunPart, 1> kHeliosRuns = {{{1.0, 179.78, 2.69244}}};

// Acme: the Seren cluster of Hu et al., "Characterization of Large Language Model Development in
// the Datacenter", NSDI 2024 (InternLM/AcmeTrace, CC-BY-4.0): 663,813 GPU jobs; run time mean
// 1,414.335 s, median 122, max 1,209,604; accelerators mean 5.68, median 1, max 1,024;
// 21,510,624,577 accelerator-seconds. Sizes as for Helios, 55 % of them one.
constexpr std::array<SizeShare, 11> kAcmeSizes = {{{1, 0.55},
                                                   {2, 0.21708},
                                                   {4, 0.11251},
                                                   {8, 0.05831},
                                                   {16, 0.03022},
                                                   {32, 0.01566},
                                                   {64, 0.00812},
                                                   {128, 0.00421},
                                                   {256, 0.00218},
                                                   {512, 0.00113},
                                                   {1024, 0.00059}}};
constexpr std::array<RunPart, 1> kAcmeRuns = {{{1.0, 93.914, 2.17527}}};

// The ends are those of cluster_summary.csv of AcmeTrace, which has all three clusters: Philly with
// its 112,956 GPU jobs, Helios, Seren.
constexpr TraceStatistics kPhilly = {.sizes = kPhillySizes,
                                     .runs = kPhillyRuns,
                                     .size_exponent = 1.4235,
                                     .run_max_s = 4'628'226,
                                     .ends = {0.604, 0.090, 0.305},
                                     .ends_by_time = {0.321, 0.294, 0.386}};
constexpr TraceStatistics kHelios = {.sizes = kHeliosSizes,
                                     .runs = kHeliosRuns,
                                     .size_exponent = 0.27002,
                                     .run_max_s = 4'320'009,
                                     .ends = {0.624, 0.221, 0.155},
                                     .ends_by_time = {0.513, 0.394, 0.093}};
constexpr TraceStatistics kAcme = {.sizes = kAcmeSizes,
                                   .runs = kAcmeRuns,
                                   .size_exponent = 0.41409,
                                   .run_max_s = 1'209'604,
                                   .ends = {0.497, 0.075, 0.429},
                                   .ends_by_time = {0.212, 0.664, 0.124}};

// Thousandths of Philly's submits by hour of the day and by day of the week, the only ones of the
// three with times of single submits.
constexpr std::array<double, 24> kHours = {56, 42, 49, 48, 26, 50, 76, 98, 46, 43, 43, 34,
                                           29, 26, 24, 25, 36, 24, 31, 27, 43, 37, 44, 42};
constexpr std::array<double, 7> kDays = {117, 147, 167, 190, 222, 79, 78};

}  // namespace

const TraceStatistics& trace_statistics(TraceStyle style) {
  switch (style) {
    case TraceStyle::kPhilly:
      return kPhilly;
    case TraceStyle::kHelios:
      return kHelios;
    case TraceStyle::kAcme:
      break;
  }
  return kAcme;
}

double submit_rate(std::uint64_t hour_of_week) {
  return kHours[hour_of_week % 24] * kDays[hour_of_week / 24 % 7];
}

}  // namespace orrery
