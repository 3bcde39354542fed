// perf/serving/serving_constants.hpp - the calibration's constants of one accelerator and one
// engine, looked up once.
//
// Ids are "serving.<what>.<who>"; of an accelerator's names the most specific one with a constant
// counts: its architecture with "-gddr" where the memory is GDDR, the architecture, its stem before
// '-' or '+', its vendor, its kind, "any". So an unmeasured part gets its relatives' figure. Cost
// of the look-up: O(constants of a device x names).
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "hardware/accelerator.hpp"
#include "perf/calibration.hpp"
#include "perf/machine/collective.hpp"

namespace orrery {

/// Fractions are of the catalog's peak figures.
struct DeviceConstants {
  double matmul16 = 1;           ///< of the 16-bit rate at large sizes
  double matmul8 = 1;            ///< of the 8-bit rate
  double matmul4 = 1;            ///< of the 4-bit rate
  double matmul_ramp = 0;        ///< rows at which a product reaches half of that
  double stream = 1;             ///< of the memory bandwidth, for weights
  double launch = 0;             ///< seconds to start and drain a matrix product
  double attention_prefill = 1;  ///< of the 16-bit rate
  double attention_ramp = 0;     ///< prompt tokens at which it reaches half of that
  double attention_narrow = 1;   ///< speed-up with an 8-bit cache
  double attention_decode = 1;   ///< of the memory bandwidth
  double attention_launch = 0;   ///< seconds
  double link_latency = 0;       ///< seconds of a small all-reduce of two devices
  double link_fraction = 1;      ///< of the link bandwidth
  double link_sharing = 0;       ///< exponent by which a shared bus slows with its devices
  double dequant = 1;            ///< factor on compute when weights are narrower than operands
  double expert_fraction = 1;    ///< of the matmul fraction, for grouped products
  double expert_pad = 0;         ///< rows wasted an expert
  double expert_stream = 1;      ///< of `stream`, for the experts' weights
  double expert_skew = 0;        ///< relative excess load of the fullest expert rank
};

struct EngineConstants {
  double compute = 1;        ///< factor on compute-bound time
  double memory = 1;         ///< factor on memory-bound time
  double step = 0;           ///< host seconds a step
  double sequence = 0;       ///< host seconds a step and running sequence
  double layer = 0;          ///< seconds a layer of small kernels
  double prompt = 0;         ///< host seconds a request
  double first = 0;          ///< seconds a request spends outside the model before its first token
  double together = 0;       ///< part of the running sequences whose successors arrive at once
  double chunk = 8192;       ///< most tokens of a step
  double sequences_max = 0;  ///< cap on running sequences
  double usable = 0.9;       ///< fraction of device memory for weights, cache and buffers
  double reserve = 1;        ///< part of the output a sequence reserves cache for
  double mixing = 1;         ///< 1: prompts ride with decode steps, 0: steps of their own
  double communication = 1;  ///< factor on collectives
  double answer = 1e9;       ///< tokens after which answers end by themselves
  double latency_bound = 1;  ///< throughput kept where latency limits bind
};

/// What joins the devices of an instance beyond its first scale-up domain.
struct ServingNetwork {
  double domain = INFINITY;  ///< devices of an instance in one domain, a power of two
  Network between;           ///< as trainings use it; unused where `domain` is infinite
};

struct ServingConstants {
  DeviceConstants device;
  EngineConstants engine;
  ServingNetwork network;
  double blend = 2;                    ///< exponent that joins compute and memory time
  std::vector<std::size_t> positions;  ///< in the calibration, of everything looked up
};

/// Names of an accelerator's class, the most special first; ends in "any".
[[nodiscard]] std::vector<std::string> class_names(const Accelerator& accelerator);

/// "nvlink", "pcie", "infinity-fabric"...: what joins the devices of a group of `devices`.
[[nodiscard]] std::string link_class(const Accelerator& accelerator, double devices);

struct ServingConstantsQuery {
  const Accelerator& accelerator;
  const std::vector<std::string>& engine;  ///< keys, the most special first
  double group = 1;                        ///< tensor-parallel devices
};

/// Precondition: the calibration has an "any" for each constant.
[[nodiscard]] ServingConstants serving_constants(const Calibration& calibration,
                                                 const ServingConstantsQuery& query);

}  // namespace orrery
