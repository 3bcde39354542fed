#include "perf/site/input.hpp"

#include <algorithm>

#include "perf/range_check.hpp"

namespace orrery {
namespace {

Status check_path(const InputPath& path) {
  Status checked = check_range("rate of the storage", path.storage.value(), kPositive);
  if (checked && path.wan) checked = check_range("rate of the WAN", path.wan->value(), kPositive);
  if (!checked || !path.cache) return checked;
  checked = check_range("rate of the caches", path.cache->value(), kPositive);
  if (checked) {
    checked = check_range("capacity of the caches", path.cache_capacity.value(), kNotNegative);
  }
  if (checked) checked = check_range("size of the data set", path.data_set.value(), kPositive);
  return checked;
}

double cached_part(const InputPath& path) {
  if (!path.cache || path.state == CacheState::kCold) return 0;
  return std::min(1.0, path.cache_capacity / path.data_set);
}

}  // namespace

Bytes input_bytes(const TrainingJob& job) {
  return Bytes(job.global_batch * job.sequence.value() * job.bytes_per_token);
}

Result<InputStall> input_stall(const InputPath& path, const InputDemand& demand) {
  Status checked = check_path(path);
  if (checked) checked = check_range("bytes of a step", demand.bytes.value(), kNotNegative);
  if (checked) {
    checked = check_range("time to read ahead in", demand.hidden.value(), kNotNegative);
  }
  if (!checked) return forward_error(checked);
  const bool behind_wan = path.wan && *path.wan < path.storage;
  InputStall result;
  result.cached = cached_part(path);
  result.limit = behind_wan ? InputLimit::kWan : InputLimit::kStorage;
  result.reading = demand.bytes * (1 - result.cached) / (behind_wan ? *path.wan : path.storage);
  if (result.cached > 0) {
    const Seconds from_cache = demand.bytes * result.cached / *path.cache;
    if (from_cache >= result.reading) result.limit = InputLimit::kCache;
    result.reading = std::max(result.reading, from_cache);
  }
  result.stall = std::max(Seconds(0), result.reading - demand.hidden);
  return result;
}

}  // namespace orrery
