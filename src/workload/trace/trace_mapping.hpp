// workload/trace/trace_mapping.hpp - what trace files lack and a scheduler of different
// accelerators needs: a model, a kind, a range of sizes, and the speed of each type of accelerator
// for it.
//
// None of it was recorded, so none of it is a fact: it is one committed assumption, drawn by the
// seed and the name of a job alone, and fixed before any policy was tuned. Leaving out, adding or
// reordering jobs does not change what the others get; jobs of one name get the same.
// Cost: about 0.2 us a job.
#pragma once

#include <cstdint>
#include <string_view>

#include "hardware/accelerator.hpp"
#include "workload/trace/trace.hpp"

namespace orrery {

/// What bounds a model's step, which determines how fast a type of accelerator runs it.
enum class ModelClass : std::uint8_t { kLanguage, kVision, kRecommendation, kReinforcement };

struct TraceMapping {
  double elastic_share = 0.3;  ///< of jobs; these may run on half to twice their accelerators
  double fine_tune_share = 0.25;
  double batch_share = 0.15;  ///< the rest are training jobs; all jobs from 64 accelerators on
};

/// Fills in, for each job, what it does not say itself: the model (one of the built-in catalog that
/// is run on so many accelerators), the kind, the elastic range. Jobs of CPUs alone become Batch
/// and get no model.
void map_trace(Trace& trace, const TraceMapping& mapping, std::uint64_t seed);

/// The class of the models that map_trace assigns and that the public traces name; any other is
/// kLanguage.
[[nodiscard]] ModelClass model_class(std::string_view model);

/// Steps a second on `type` over those on `reference`: the harmonic mean of the ratios of the dense
/// bf16 peaks, of the memory bandwidths and of 1 (the host, which no accelerator makes faster),
/// weighted with the parts of a step on the reference that the class spends on each. A type without
/// bf16 counts with fp16, else with fp32; one with none of these has speed 0. 1 for the reference.
[[nodiscard]] double type_speed(ModelClass model, const Accelerator& type,
                                const Accelerator& reference);

}  // namespace orrery
