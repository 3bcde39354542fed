// workload/slurm/sbatch_values.hpp - values of sbatch's options as sbatch(1) of Slurm 22.05 writes
// them.
//
// Pure functions of a text; errors have no position and state what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/quantity.hpp"

namespace orrery {

/// A whole number from 1 to 1,048,576.
[[nodiscard]] Result<std::uint32_t> sbatch_count(std::string_view text);

/// "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes",
/// "days-hours:minutes:seconds". None: 0, "infinite" or "unlimited", no limit.
[[nodiscard]] Result<std::optional<Seconds>> sbatch_time(std::string_view text);

/// "4000" (MiB), "512K", "64G", "1T", of 1024 each; 0: all there is.
[[nodiscard]] Result<Bytes> sbatch_memory(std::string_view text);

/// "2" or "2-4".
struct SbatchNodes {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
};
[[nodiscard]] Result<SbatchNodes> sbatch_nodes(std::string_view text);

/// "4", "a100:4", "a100" (one).
struct SbatchGpus {
  std::string type;  ///< empty: any
  std::uint32_t count = 1;
};
[[nodiscard]] Result<SbatchGpus> sbatch_gpus(std::string_view text);

/// "1,3-5,8-16:4%2".
struct SbatchArray {
  std::vector<std::uint32_t> numbers;  ///< in the order written, none twice, at most 100,000
  std::optional<std::uint32_t> parallel;
  std::uint32_t step = 1;  ///< of the last range
};
[[nodiscard]] Result<SbatchArray> sbatch_array(std::string_view text);

}  // namespace orrery
