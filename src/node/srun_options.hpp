// node/srun_options.hpp - the command line of srun, as srun(1) of Slurm 22.05 has it.
//
// A function of the arguments and of the environment, where the script's own sizes stand. Only
// steps of a job that runs are started, so what would ask for another allocation is refused, and
// what only fine-tunes one is passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/launch_environment.hpp"
#include "node/step_wire.hpp"

namespace orrery {

struct SrunOptions {
  std::optional<std::uint32_t> tasks;
  std::optional<std::uint32_t> nodes;
  std::uint32_t node_tasks = 0;        ///< at most so many on each; 0: as evenly as they go
  std::uint32_t task_devices = 0;      ///< 0: all of the node
  std::uint32_t first_node = 0;        ///< --relative
  std::string node_list;               ///< --nodelist; empty: from the first one on
  std::string cpus;                    ///< of each task, for its environment
  std::string directory;               ///< empty: the present one
  std::optional<std::string> exports;  ///< none: everything
  std::string output;                  ///< file pattern; empty: srun's own
  std::string errors;
  StepReaders readers = StepReaders::kAll;
  std::uint32_t reader = 0;
  enum class Label : std::uint8_t { kNo, kYes } label = Label::kNo;
  enum class Lines : std::uint8_t { kWhole, kAsTheyCome } lines = Lines::kWhole;
  enum class Files : std::uint8_t { kTruncate, kAppend } files = Files::kTruncate;
  enum class BadExit : std::uint8_t { kGoOn, kEndAll } bad_exit = BadExit::kGoOn;
  std::vector<std::string> command;
  std::vector<std::string> notes;  ///< what was passed over and might matter
};

/// Errors: an option that is not known (with the nearest name) or refused, a value that is none, no
/// command. `environment`: SLURM_NTASKS, SLURM_NTASKS_PER_NODE, SLURM_GPUS_PER_TASK and
/// SLURM_CPUS_PER_TASK hold where no option says otherwise.
[[nodiscard]] Result<SrunOptions> read_srun_options(const std::vector<std::string>& arguments,
                                                    const Variables& environment);

#ifdef ORRERY_TEST_HOOKS
/// The options that change something or are refused, for the key audit.
[[nodiscard]] std::vector<std::string> audited_srun_options();
#endif

/// What of srun's environment the tasks get, by --export: "ALL", "NONE", or "[ALL,]A,B=c". Never
/// what is told by Orrery: each node knows its own, and it is nobody's who reads the network.
[[nodiscard]] Variables exported(const Variables& environment, const std::string& exports);

/// The name of an --output or --error file: %j %J (job, job.step), %s (step), %t (task), %n (node),
/// %N (its name), %%; numbers between % and the letter pad with zeros.
struct SrunFileFacts {
  std::string job;
  std::string step;
  std::uint32_t task = 0;
  std::uint32_t node = 0;
  std::string host;
};
[[nodiscard]] std::string srun_file(const std::string& pattern, const SrunFileFacts& facts);

}  // namespace orrery
