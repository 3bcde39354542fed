// perf/site/input.hpp - how long a training step waits for its data (formula 13 of the model).
//
// Each step needs its bytes by the time the device is ready for them; a prefetch hides the reading
// behind the step before, and what does not hide is the stall. Part of the data set may lie in the
// nodes' own caches, which deliver beside the rest. Values, pure.
#pragma once

#include <array>
#include <optional>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "perf/training/training_job.hpp"

namespace orrery {

/// Whether the caches of the nodes already hold what they can of the data set.
enum class CacheState {
  kCold,  ///< first pass: everything comes from where the data set lies
  kWarm,  ///< later passes
};

inline std::array<EnumWord<CacheState>, 2> enum_words(CacheState) {
  return {{{"cold", CacheState::kCold}, {"warm", CacheState::kWarm}}};
}

/// Rates are of the whole job, see perf/site/storage_path.hpp.
struct InputPath {
  BytesPerSecond storage;               ///< of the site's storage system
  std::optional<BytesPerSecond> wan;    ///< the data set lies at another site, behind this link
  std::optional<BytesPerSecond> cache;  ///< of the nodes' own drives or memory
  Bytes cache_capacity;                 ///< all nodes together
  Bytes data_set;
  CacheState state = CacheState::kWarm;
};

struct InputDemand {
  Bytes bytes;     ///< of one step, all ranks together
  Seconds hidden;  ///< the rest of the step, behind which data can be read ahead
};

/// What a step of the job reads: sequences x tokens x bytes of a token.
[[nodiscard]] Bytes input_bytes(const TrainingJob& job);

enum class InputLimit { kStorage, kWan, kCache };

struct InputStall {
  Seconds reading;                          ///< of one step's bytes
  Seconds stall;                            ///< what exceeds `hidden`: the term of the step
  double cached = 0;                        ///< part of the bytes that the caches deliver
  InputLimit limit = InputLimit::kStorage;  ///< the slowest of the sources used
};

/// reading = max(cached bytes / cache rate, other bytes / min(storage, WAN)), as both deliver at
/// once; cached = capacity / data set when warm, at most 1, for data drawn uniformly at random.
/// Errors: a negative or non-finite figure, a rate of 0 of a source in use, a cache for a data set
/// of no size.
[[nodiscard]] Result<InputStall> input_stall(const InputPath& path, const InputDemand& demand);

}  // namespace orrery
