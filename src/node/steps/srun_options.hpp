// node/steps/srun_options.hpp - the command line of srun, as defined by srun(1) of Slurm 22.05.
//
// A function of the arguments and of the environment, which has the script's own sizes. Only steps
// of a running job are started, so options that would ask for another allocation are refused, and
// options that only fine-tune one are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/launch/launch_environment.hpp"
#include "node/steps/step_wire.hpp"

namespace orrery {

struct SrunOptions {
  std::optional<std::uint32_t> tasks;
  std::optional<std::uint32_t> nodes;
  std::uint32_t node_tasks = 0;        ///< maximum on each node; 0: spread evenly
  std::uint32_t task_devices = 0;      ///< 0: all of the node
  std::uint32_t first_node = 0;        ///< --relative
  std::string node_list;               ///< --nodelist; empty: from the first node on
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
  std::vector<std::string> notes;  ///< options that were ignored and might matter
};

/// Errors: an option that is not known (with the nearest name) or refused, an invalid value, no
/// command. `environment`: SLURM_NTASKS, SLURM_NTASKS_PER_NODE, SLURM_GPUS_PER_TASK and
/// SLURM_CPUS_PER_TASK apply where no option overrides them.
[[nodiscard]] Result<SrunOptions> read_srun_options(const std::vector<std::string>& arguments,
                                                    const Variables& environment);

#ifdef ORRERY_TEST_HOOKS
/// The options that change something or are refused, for the key audit.
[[nodiscard]] std::vector<std::string> audited_srun_options();
#endif

/// Returns the part of srun's environment that the tasks get, by --export: "ALL", "NONE", or
/// "[ALL,]A,B=c". Variables that Orrery sets are never included: each node has its own, and they
/// must not be readable on the network.
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
