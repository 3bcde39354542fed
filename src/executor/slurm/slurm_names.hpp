// executor/slurm/slurm_names.hpp - the job name and the comment by which Slurm knows a hold.
//
// Pure. Slurm keeps both as texts for as long as it knows the job. Its job ids are no names: it
// gives them out again after a crash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "executor/holds/hold.hpp"

namespace orrery {

/// In an account or a QOS: stands for the last part of the tenant of a hold's job.
inline constexpr std::string_view kTenantMark = "%t";

/// Returns "orr-CLUSTER-KEY"; `cluster` in 16 hexadecimal digits.
[[nodiscard]] std::string slurm_job_name(std::uint64_t cluster, const HoldKey& key);

/// Returns "orrery:CLUSTER:KEY".
[[nodiscard]] std::string slurm_job_comment(std::uint64_t cluster, const HoldKey& key);

/// How Slurm calls a job.
struct SlurmJobLabels {
  std::string_view name;
  std::string_view comment;
};

/// Returns the key of the hold that a job is; none unless its name and its comment are exactly
/// those of one hold of the cluster.
[[nodiscard]] std::optional<HoldKey> slurm_hold_key(std::uint64_t cluster,
                                                    const SlurmJobLabels& job);

}  // namespace orrery
