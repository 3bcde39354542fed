#include "workload/slurm/sbatch_size.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

class Sizing {
 public:
  explicit Sizing(const SbatchWishes& wishes) : wishes_(wishes) {}

  Result<SbatchSize> run() {
    if (Status sized = size_nodes(); !sized) return forward_error(sized);
    if (Status sized = size_gpus(); !sized) return forward_error(sized);
    if (!tasks_) tasks_ = size_.nodes.value_or(1);
    size_.tasks = *tasks_;
    size_.role.accelerators = accelerators_;
    size_.role.node_accelerators = node_accelerators_;
    if (!wishes_.gpu_type.empty()) size_.role.types.push_back({.type = wishes_.gpu_type});
    size_host();
    return std::move(size_);
  }

 private:
  [[nodiscard]] bool has_gpus() const {
    return wishes_.gpus || wishes_.node_gpus || wishes_.task_gpus;
  }

  [[nodiscard]] static tl::unexpected<Error> wrong(std::string what) {
    return input_error({}, std::move(what));
  }

  Status size_nodes() {
    tasks_ = wishes_.tasks;
    if (wishes_.nodes) {
      size_.nodes = wishes_.nodes->min;
      if (wishes_.nodes->max != wishes_.nodes->min) {
        size_.notes.push_back(fmt::format("--nodes: {} are asked for, the fewest", *size_.nodes));
      }
    } else if (tasks_ && wishes_.node_tasks) {
      size_.nodes = (*tasks_ + *wishes_.node_tasks - 1) / *wishes_.node_tasks;
    } else if (wishes_.gpus && wishes_.node_gpus) {
      size_.nodes = std::max(1u, *wishes_.gpus / *wishes_.node_gpus);
    } else if (tasks_ && wishes_.task_gpus && wishes_.node_gpus) {
      const std::uint64_t gpus = std::uint64_t{*tasks_} * *wishes_.task_gpus;
      const std::uint64_t nodes = (gpus + *wishes_.node_gpus - 1) / *wishes_.node_gpus;
      if (gpus > kMost) return wrong(fmt::format("{} GPUs, expected at most {}", gpus, kMost));
      size_.nodes = static_cast<std::uint32_t>(nodes);
    } else if (wishes_.node_gpus || wishes_.node_tasks || !has_gpus()) {
      size_.nodes = 1;
    }
    if (!tasks_ && wishes_.node_tasks) {
      const std::uint64_t tasks = std::uint64_t{*size_.nodes} * *wishes_.node_tasks;
      if (tasks > kMost) return wrong(fmt::format("{} tasks, expected at most {}", tasks, kMost));
      tasks_ = static_cast<std::uint32_t>(tasks);
    }
    if (tasks_ && size_.nodes && *tasks_ < *size_.nodes) {
      size_.notes.push_back(
          fmt::format("--nodes: {} are asked for, as many as there are tasks", *tasks_));
      size_.nodes = tasks_;
    }
    return {};
  }

  Status size_gpus() {
    if (!has_gpus()) {
      accelerators_ = size_.nodes.value_or(1);
      node_accelerators_ = 1;
      size_.notes.emplace_back(
          "no GPUs are asked for: the job takes one accelerator of each node, or one processor of "
          "nodes without");
      return {};
    }
    std::optional<std::uint64_t> total = wishes_.gpus;
    if (!total && wishes_.node_gpus) total = std::uint64_t{*size_.nodes} * *wishes_.node_gpus;
    if (!total) {
      tasks_ = tasks_.value_or(size_.nodes.value_or(1));
      total = std::uint64_t{*tasks_} * *wishes_.task_gpus;
    }
    if (!tasks_ && wishes_.task_gpus) {
      const std::uint64_t fit = std::min(*total / *wishes_.task_gpus, kMost);
      tasks_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(fit, 1));
    }
    if (!tasks_ && wishes_.gpu_tasks) {
      tasks_ =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(*total * *wishes_.gpu_tasks, kMost));
    }
    return check_gpus(*total);
  }

  Status check_gpus(std::uint64_t total) {
    if (total > kMost) return wrong(fmt::format("{} GPUs, expected at most {}", total, kMost));
    if (size_.nodes && total % *size_.nodes != 0) {
      return wrong(
          fmt::format("{} GPUs on {} nodes, expected as many on each", total, *size_.nodes));
    }
    if (wishes_.node_gpus && size_.nodes &&
        total != std::uint64_t{*size_.nodes} * *wishes_.node_gpus) {
      return wrong(fmt::format("{} GPUs, {} on each of {} nodes: expected as many either way",
                               total, *wishes_.node_gpus, *size_.nodes));
    }
    if (wishes_.task_gpus && tasks_ && total < std::uint64_t{*tasks_} * *wishes_.task_gpus) {
      return wrong(fmt::format("{} GPUs for {} tasks of {} each, expected enough", total, *tasks_,
                               *wishes_.task_gpus));
    }
    accelerators_ = static_cast<std::uint32_t>(total);
    if (size_.nodes) node_accelerators_ = accelerators_ / *size_.nodes;
    return {};
  }

  /// Each accelerator carries an equal part of what its node's tasks ask for.
  void size_host() {
    HostSpec& host = size_.role.host;
    const double ranks = accelerators_;
    const double tasks = size_.tasks;
    double cpus = 0;
    if (wishes_.task_cpus) {
      cpus = tasks * *wishes_.task_cpus;
    } else if (wishes_.gpu_cpus && has_gpus()) {
      cpus = ranks * *wishes_.gpu_cpus;
    } else if (wishes_.tasks && !has_gpus()) {
      cpus = tasks;
    }
    host.cpu = cpus / ranks;
    if (wishes_.gpu_memory && has_gpus()) host.memory = *wishes_.gpu_memory;
    if (wishes_.cpu_memory) host.memory = *wishes_.cpu_memory * (std::max(cpus, tasks) / ranks);
    if (!wishes_.node_memory) return;
    if (wishes_.node_memory->value() <= 0) {
      size_.notes.emplace_back("--mem=0 has no effect: memory is not limited");
    } else if (node_accelerators_) {
      host.memory = *wishes_.node_memory / static_cast<double>(*node_accelerators_);
    } else {
      size_.notes.emplace_back(
          "--mem has no effect: it is a node's, and --nodes does not say how "
          "many there are");
    }
  }

  static constexpr std::uint64_t kMost = 1u << 20;
  const SbatchWishes& wishes_;
  SbatchSize size_;
  std::optional<std::uint32_t> tasks_;
  std::uint32_t accelerators_ = 1;
  std::optional<std::uint32_t> node_accelerators_;
};

}  // namespace

Result<SbatchSize> sbatch_size(const SbatchWishes& wishes) { return Sizing(wishes).run(); }

}  // namespace orrery
