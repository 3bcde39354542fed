#include "executor/slurm/slurm_names.hpp"

#include <fmt/format.h>

namespace orrery {
namespace {

std::string name_prefix(std::uint64_t cluster) { return fmt::format("orr-{:016x}-", cluster); }

}  // namespace

std::string slurm_job_name(std::uint64_t cluster, const HoldKey& key) {
  return name_prefix(cluster) + text_of(key);
}

std::string slurm_job_comment(std::uint64_t cluster, const HoldKey& key) {
  return fmt::format("orrery:{:016x}:{}", cluster, text_of(key));
}

std::optional<HoldKey> slurm_hold_key(std::uint64_t cluster, const SlurmJobLabels& job) {
  const std::string prefix = name_prefix(cluster);
  if (!job.name.starts_with(prefix)) return std::nullopt;
  const std::optional<HoldKey> key = hold_key_of(job.name.substr(prefix.size()));
  if (!key || job.comment != slurm_job_comment(cluster, *key)) return std::nullopt;
  return key;
}

}  // namespace orrery
