#include "workload/slurm/sbatch_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/text/utf8.hpp"
#include "workload/slurm/output_pattern.hpp"
#include "workload/slurm/sbatch_size.hpp"
#include "workload/slurm/sbatch_values.hpp"

namespace orrery {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// A name as jobs may have one, with '-' for what may not stand in it.
std::string name_from(std::string_view text) {
  constexpr std::size_t kNameMax = 64;
  std::string name(text.substr(0, kNameMax));
  for (char& c : name) {
    const bool fit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.';
    if (!fit) c = '-';
  }
  return name.empty() ? "script" : name;
}

bool is_handed_over(std::string_view name) {
  constexpr auto kOwn = std::to_array<std::string_view>({"_", "PWD", "OLDPWD", "SHLVL"});
  const auto in_name = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), in_name) && !name.starts_with("ORRERY_") &&
         !name.starts_with("SLURM_") && std::find(kOwn.begin(), kOwn.end(), name) == kOwn.end();
}

class ScriptReader {
 public:
  explicit ScriptReader(const SbatchSubmission& submission) : submission_(submission) {
    const std::string& file = submission.file;
    job_.spec.name = name_from(std::string_view(file).substr(file.rfind('/') + 1));
    // Slurm starts a script again when a node is lost, not when it fails.
    job_.spec.restart.max = 0;
    directory_ = submission.directory;
  }

  Result<SbatchJob> read(std::string_view text) {
    Result<SbatchOptions> options =
        read_sbatch_options(text, submission_.file, submission_.unknown);
    if (!options) return forward_error(options);
    job_.notes = std::move(options->notes);
    for (const SbatchOption& option : options->used) {
      Status taken = take(option);
      if (!taken) return at(option, taken.error());
      if (!line_) line_ = option.where;
    }
    Result<SbatchSize> size = sbatch_size(wishes_);
    if (!size) {
      return input_error(line_.value_or(SourcePosition{submission_.file, 0, 0}),
                         size.error().message);
    }
    write(text, *size);
    return std::move(job_);
  }

 private:
  using Take = Status (ScriptReader::*)(const std::string&);
  struct NamedTake {
    std::string_view name;
    Take take;
  };

  static tl::unexpected<Error> at(const SbatchOption& option, const Error& error) {
    return input_error(option.where, fmt::format("--{}: {}", option.name, error.message));
  }

  Status take(const SbatchOption& option) {
    static constexpr auto kTakes = std::to_array<NamedTake>(
        {{"account", &ScriptReader::take_account},
         {"array", &ScriptReader::take_array},
         {"chdir", &ScriptReader::take_directory},
         {"cpus-per-gpu", &ScriptReader::take_count<&SbatchWishes::gpu_cpus>},
         {"cpus-per-task", &ScriptReader::take_count<&SbatchWishes::task_cpus>},
         {"dependency", &ScriptReader::take_dependency},
         {"error", &ScriptReader::take_file<&LaunchSpec::error>},
         {"exclusive", &ScriptReader::take_exclusive},
         {"export", &ScriptReader::take_export},
         {"gpus", &ScriptReader::take_gpus<&SbatchWishes::gpus>},
         {"gpus-per-node", &ScriptReader::take_gpus<&SbatchWishes::node_gpus>},
         {"gpus-per-task", &ScriptReader::take_gpus<&SbatchWishes::task_gpus>},
         {"gres", &ScriptReader::take_gres},
         {"hold", &ScriptReader::take_hold},
         {"job-name", &ScriptReader::take_name},
         {"mem", &ScriptReader::take_memory<&SbatchWishes::node_memory>},
         {"mem-per-cpu", &ScriptReader::take_memory<&SbatchWishes::cpu_memory>},
         {"mem-per-gpu", &ScriptReader::take_memory<&SbatchWishes::gpu_memory>},
         {"no-requeue", &ScriptReader::take_no_requeue},
         {"nodes", &ScriptReader::take_nodes},
         {"ntasks", &ScriptReader::take_count<&SbatchWishes::tasks>},
         {"ntasks-per-gpu", &ScriptReader::take_count<&SbatchWishes::gpu_tasks>},
         {"ntasks-per-node", &ScriptReader::take_count<&SbatchWishes::node_tasks>},
         {"output", &ScriptReader::take_file<&LaunchSpec::output>},
         {"partition", &ScriptReader::take_partition},
         {"qos", &ScriptReader::take_qos},
         {"requeue", &ScriptReader::take_requeue},
         {"time", &ScriptReader::take_time}});
    for (const NamedTake& each : kTakes) {
      if (each.name == option.name) return (this->*each.take)(option.value);
    }
    return {};
  }

  template <auto kWish>
  Status take_count(const std::string& value) {
    Result<std::uint32_t> count = sbatch_count(value);
    if (!count) return forward_error(count);
    wishes_.*kWish = *count;
    return {};
  }

  template <auto kWish>
  Status take_gpus(const std::string& value) {
    Result<SbatchGpus> gpus = sbatch_gpus(value);
    if (!gpus) return forward_error(gpus);
    if (!gpus->type.empty()) wishes_.gpu_type = gpus->type;
    wishes_.*kWish = gpus->count;
    return {};
  }

  template <auto kWish>
  Status take_memory(const std::string& value) {
    Result<Bytes> memory = sbatch_memory(value);
    if (!memory) return forward_error(memory);
    wishes_.*kWish = *memory;
    return {};
  }

  /// A name for what the script writes.
  template <auto kFile>
  Status take_file(const std::string& value) {
    if (const std::string wrong = output_pattern_complaint(value); !wrong.empty()) {
      return input_error({}, fmt::format("\"{}\": {}", printable(value, 60), wrong));
    }
    files_.*kFile = value;
    return {};
  }

  Status take_account(const std::string& value) {
    job_.spec.tenant = value;
    return {};
  }
  Status take_name(const std::string& value) {
    job_.spec.name = name_from(value);
    return {};
  }
  Status take_partition(const std::string& value) { return take_label("PARTITION", value); }
  Status take_qos(const std::string& value) { return take_label("QOS", value); }
  Status take_label(std::string_view what, const std::string& value) {
    known_[fmt::format("SLURM_JOB_{}", what)] = value;
    job_.notes.push_back(fmt::format("{}: --{} {} has no effect but on the script's environment",
                                     submission_.file, what == "QOS" ? "qos" : "partition",
                                     printable(value, 60)));
    return {};
  }
  Status take_requeue(const std::string&) {
    job_.spec.restart.policy = RestartPolicy::kWhenSafe;
    job_.spec.preemptible.reset();
    return {};
  }
  Status take_no_requeue(const std::string&) {
    job_.spec.restart.policy = RestartPolicy::kNever;
    job_.spec.preemptible = false;
    return {};
  }
  Status take_hold(const std::string&) {
    job_.spec.hold = true;
    return {};
  }
  Status take_exclusive(const std::string&) {
    exclusive_ = TopologyLevel::kNode;
    return {};
  }
  Status take_directory(const std::string& value) {
    directory_ = value[0] == '/' ? value : submission_.directory + "/" + value;
    return {};
  }

  Status take_nodes(const std::string& value) {
    Result<SbatchNodes> nodes = sbatch_nodes(value);
    if (!nodes) return forward_error(nodes);
    wishes_.nodes = *nodes;
    return {};
  }

  Status take_time(const std::string& value) {
    Result<std::optional<Seconds>> time = sbatch_time(value);
    if (!time) return forward_error(time);
    job_.spec.time_limit = *time;
    return {};
  }

  /// "gpu:a100:4", or several with commas, of which only GPUs are supported.
  Status take_gres(const std::string& value) {
    if (value == "none") return {};
    const std::size_t mark = value.find(':');
    const std::string kind = value.substr(0, mark);
    if ((kind != "gpu" && kind != "gres/gpu") || value.find(',') != value.npos) {
      return input_error(
          {}, fmt::format("\"{}\": expected gpu, gpu:4 or gpu:a100:4", printable(value, 60)));
    }
    return take_gpus<&SbatchWishes::node_gpus>(mark == value.npos ? "1" : value.substr(mark + 1));
  }

  Status take_array(const std::string& value) {
    Result<SbatchArray> array = sbatch_array(value);
    if (!array) return forward_error(array);
    const std::vector<std::uint32_t>& numbers = array->numbers;
    const auto count = static_cast<std::uint32_t>(numbers.size());
    if (array->parallel) array->parallel = std::min(*array->parallel, count);
    job_.spec.array = ArraySpec{count, array->parallel, {}};
    known_["SLURM_ARRAY_TASK_ID"] = value.substr(0, value.find('%'));
    known_["SLURM_ARRAY_TASK_COUNT"] = fmt::format("{}", count);
    known_["SLURM_ARRAY_TASK_MIN"] = fmt::format("{}", *std::ranges::min_element(numbers));
    known_["SLURM_ARRAY_TASK_MAX"] = fmt::format("{}", *std::ranges::max_element(numbers));
    known_["SLURM_ARRAY_TASK_STEP"] = fmt::format("{}", array->step);
    return {};
  }

  /// Jobs that must have finished, by number or name; all other conditions are refused.
  /// Removes "afterok:" from the front; no value: it is no known condition.
  static std::optional<AfterCondition> take_condition(std::string_view& part) {
    constexpr std::pair<std::string_view, AfterCondition> kConditions[] = {
        {"afterok:", AfterCondition::kOk},
        {"afterany:", AfterCondition::kAny},
        {"afternotok:", AfterCondition::kNotOk}};
    for (const auto& [text, when] : kConditions) {
      if (!part.starts_with(text)) continue;
      part.remove_prefix(text.size());
      return when;
    }
    return std::nullopt;
  }

  Status take_dependency(const std::string& value) {
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      std::string_view part = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const std::optional<AfterCondition> when = take_condition(part);
      if (!when || part.empty()) {
        return input_error({}, fmt::format("\"{}\": expected afterok:, afterany: or "
                                           "afternotok:JOB[:JOB..], no other condition is known",
                                           printable(value, 60)));
      }
      while (!part.empty()) {
        const std::size_t next = std::min(part.find(':'), part.size());
        job_.spec.after.push_back({.job = std::string(part.substr(0, next)), .when = *when});
        part.remove_prefix(std::min(next + 1, part.size()));
      }
    }
    return {};
  }

  /// [ALL,]NAME,NAME=VALUE or NONE.
  Status take_export(const std::string& value) {
    exported_.emplace();
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const std::string part = value.substr(begin, end - begin);
      begin = end + 1;
      const std::size_t mark = part.find('=');
      if (part == "NONE" || part == "NIL") continue;
      if (part == "ALL") {
        hand_over([](std::string_view) { return true; }, *exported_);
      } else if (mark != part.npos) {
        exported_->insert_or_assign(part.substr(0, mark), part.substr(mark + 1));
      } else {
        hand_over([&](std::string_view name) { return name == part; }, *exported_);
      }
    }
    return {};
  }

  using Environment = std::map<std::string, std::string>;

  void hand_over(const std::function<bool(std::string_view)>& wanted, Environment& into) const {
    for (const auto& [name, value] : submission_.environment) {
      if (wanted(name) && is_handed_over(name)) into.insert_or_assign(name, value);
    }
  }

  /// Without --export: the submitter's name and place, and nothing that may be a secret.
  [[nodiscard]] Environment usual() const {
    constexpr auto kUsual =
        std::to_array<std::string_view>({"HOME", "USER", "LOGNAME", "SHELL", "LANG", "PATH"});
    Environment all;
    hand_over([&](std::string_view name) { return std::ranges::count(kUsual, name) > 0; }, all);
    return all;
  }

  void set_count(const std::string& name, const std::optional<std::uint32_t>& value) {
    if (value) known_[name] = fmt::format("{}", *value);
  }
  void set_memory(const std::string& name, const std::optional<Bytes>& value) {
    constexpr double kMebibyte = 1 << 20;
    if (value) known_[name] = fmt::format("{:.0f}", value->value() / kMebibyte);
  }

  void write(std::string_view text, SbatchSize& size) {
    for (std::string& note : size.notes) {
      job_.notes.push_back(fmt::format("{}: {}", submission_.file, note));
    }
    size.role.topology.exclusive = exclusive_;
    job_.spec.roles.push_back(std::move(size.role));
    job_.spec.software.framework = "slurm";
    if (wishes_.tasks || wishes_.node_tasks || wishes_.task_gpus || wishes_.gpu_tasks) {
      set_count("SLURM_NTASKS", size.tasks);
      set_count("SLURM_NPROCS", size.tasks);
    }
    set_count("SLURM_NTASKS_PER_NODE", wishes_.node_tasks);
    set_count("SLURM_CPUS_PER_TASK", wishes_.task_cpus);
    set_count("SLURM_CPUS_PER_GPU", wishes_.gpu_cpus);
    set_count("SLURM_GPUS", wishes_.gpus);
    set_count("SLURM_GPUS_PER_NODE", wishes_.node_gpus);
    set_count("SLURM_GPUS_PER_TASK", wishes_.task_gpus);
    set_memory("SLURM_MEM_PER_NODE", wishes_.node_memory);
    set_memory("SLURM_MEM_PER_CPU", wishes_.cpu_memory);
    set_memory("SLURM_MEM_PER_GPU", wishes_.gpu_memory);
    known_["SLURM_SUBMIT_DIR"] = submission_.directory;
    LaunchSpec launch = files_;
    launch.command.reserve(1 + submission_.arguments.size());
    launch.command.emplace_back(text);
    launch.command.insert(launch.command.end(), submission_.arguments.begin(),
                          submission_.arguments.end());
    Environment environment = exported_ ? *exported_ : usual();
    for (const auto& [name, value] : known_) environment.insert_or_assign(name, value);
    launch.environment.assign(environment.begin(), environment.end());
    launch.directory = directory_;
    launch.per = LaunchUnit::kNode;
    job_.spec.launch = std::move(launch);
  }

  const SbatchSubmission& submission_;
  SbatchJob job_;
  SbatchWishes wishes_;
  std::optional<SourcePosition> line_;  ///< of the first option
  std::optional<TopologyLevel> exclusive_;
  std::string directory_;
  LaunchSpec files_;                     ///< with the names of --output and --error alone
  std::optional<Environment> exported_;  ///< none: there was no --export
  Environment known_;                    ///< SLURM_* that do not depend on the place
};

}  // namespace

bool is_sbatch_script(std::string_view text) {
  return text.starts_with("#!") && text.find("\n#SBATCH") != text.npos;
}

Result<SbatchJob> read_sbatch_script(std::string_view text, const SbatchSubmission& submission) {
  constexpr std::size_t kBytesMax = std::size_t{1} << 20;
  const SourcePosition begin{submission.file, 1, 1};
  if (!text.starts_with("#!")) {
    return input_error(begin, "expected a script that begins with #! and its interpreter");
  }
  if (text.size() > kBytesMax) {
    return input_error(
        begin, fmt::format("the script has {} bytes, expected at most {}", text.size(), kBytesMax));
  }
  if (text.find('\0') != text.npos) return input_error(begin, "a zero byte, expected text");
  return ScriptReader(submission).read(text);
}

}  // namespace orrery
