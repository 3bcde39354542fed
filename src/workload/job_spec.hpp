// workload/job_spec.hpp - a job as a user requests it (kind: Train, FineTune, Serve or Batch),
// before anything is known of the fleet it will run on.
//
// Read from YAML by read_job_spec, which checks whatever can be checked without a fleet;
// scheduler/request/request.hpp resolves it against one. Every struct stores its position.
// docs/formats.md describes the keys. Invariant of a spec that was read: every count is positive,
// ranges are ordered, a role requests accelerators or names a model, and no two constraints
// contradict each other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "workload/parallel_plan.hpp"
#include "workload/service_spec.hpp"

namespace orrery {

enum class JobKind : std::uint8_t { kTrain, kFineTune, kServe, kBatch };

inline std::array<EnumWord<JobKind>, 4> enum_words(JobKind) {
  return {{{"Train", JobKind::kTrain},
           {"FineTune", JobKind::kFineTune},
           {"Serve", JobKind::kServe},
           {"Batch", JobKind::kBatch}}};
}

/// Parts of a fleet that a gang can be confined to, or spread over; from narrow to wide.
enum class TopologyLevel : std::uint8_t {
  kNode,
  kScaleUp,  ///< NVLink-class domain, torus
  kLeaf,     ///< nodes under one leaf switch, or one leaf of each rail
  kRack,
  kGroup,  ///< nodes under one set of spines; a dragonfly group
  kPod,
  kHall,
  kSite,
  kFleet,
};

inline std::array<EnumWord<TopologyLevel>, 9> enum_words(TopologyLevel) {
  return {{{"node", TopologyLevel::kNode},
           {"scale-up", TopologyLevel::kScaleUp},
           {"leaf", TopologyLevel::kLeaf},
           {"rack", TopologyLevel::kRack},
           {"group", TopologyLevel::kGroup},
           {"pod", TopologyLevel::kPod},
           {"hall", TopologyLevel::kHall},
           {"site", TopologyLevel::kSite},
           {"fleet", TopologyLevel::kFleet}}};
}

/// At most `most` gangs of the role inside one `level`.
struct SpreadSpec {
  TopologyLevel level = TopologyLevel::kRack;
  std::uint32_t most = 1;
  SourcePosition where;
};

template <class Visitor, SameStruct<SpreadSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("level", s.level);
  visitor.optional("most", s.most);
}

struct TopologySpec {
  std::optional<TopologyLevel> required;   ///< a gang never leaves one of these
  std::optional<TopologyLevel> preferred;  ///< and stays inside one of these if possible
  /// Nodes of a gang come in runs of `segment` inside one scale-up domain: 16 of an NVL72's 18.
  std::optional<std::uint32_t> segment;
  std::optional<SpreadSpec> spread;  ///< of the role's gangs
  /// No other job on its nodes (node), in its scale-up domains (scale-up), racks (rack).
  std::optional<TopologyLevel> exclusive;
  bool rails_aligned = false;        ///< the same device positions on every node
  std::vector<std::uint32_t> slice;  ///< of a torus, in accelerators a side: [4, 4, 8]
  SourcePosition where;
};

template <class Visitor, SameStruct<TopologySpec> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.optional("required", t.required);
  visitor.optional("preferred", t.preferred);
  visitor.optional("segment", t.segment);
  visitor.optional("spread", t.spread);
  visitor.optional("exclusive", t.exclusive);
  visitor.optional("rails_aligned", t.rails_aligned);
  visitor.optional("slice", t.slice);
}

/// What a rank needs of its node in addition to its accelerator. Zero: nothing.
struct HostSpec {
  double cpu = 0;  ///< cores
  Bytes memory;
  Bytes cxl;
  Bytes disk;
};

template <class Visitor, SameStruct<HostSpec> Self>
void describe(Visitor& visitor, Self& h) {
  visitor.optional("cpu", h.cpu);
  visitor.optional("memory", h.memory);
  visitor.optional("cxl", h.cxl);
  visitor.optional("disk", h.disk);
}

/// The work, for which the planner chooses a plan: training if `tokens` or `steps` give its length,
/// serving if `rate` is given.
struct WorkSpec {
  std::string model;  ///< of the model catalog
  std::optional<std::uint64_t> sequence;
  std::optional<double> global_batch;  ///< sequences a step
  std::string precision = "bf16";
  std::optional<Tokens> tokens;  ///< of the whole run
  std::optional<std::uint64_t> steps;
  std::optional<double> rate;  ///< requests a second
  std::optional<double> input_tokens;
  std::optional<double> output_tokens;
  std::optional<Seconds> ttft;
  std::optional<Seconds> tpot;
  SourcePosition where;
};

template <class Visitor, SameStruct<WorkSpec> Self>
void describe(Visitor& visitor, Self& w) {
  visitor.required("model", w.model);
  visitor.optional("sequence", w.sequence);
  visitor.optional("global_batch", w.global_batch);
  visitor.optional("precision", w.precision);
  visitor.optional("tokens", w.tokens);
  visitor.optional("steps", w.steps);
  visitor.optional("rate", w.rate);
  visitor.optional("input_tokens", w.input_tokens);
  visitor.optional("output_tokens", w.output_tokens);
  visitor.optional("ttft", w.ttft);
  visitor.optional("tpot", w.tpot);
}

/// How the ranks of a gang share a model, as planned in advance; the ranks receive it
/// (ORRERY_PLAN). The number of replicas follows from that of ranks.
struct LayoutSpec {
  ParallelPlan plan;  ///< its dp is 1
  SourcePosition where;
};

template <class Visitor, SameStruct<LayoutSpec> Self>
void describe(Visitor& visitor, Self& l) {
  visitor.optional("tp", l.plan.tp);
  visitor.optional("pp", l.plan.pp);
  visitor.optional("vpp", l.plan.vpp);
  visitor.optional("cp", l.plan.cp);
  visitor.optional("ep", l.plan.ep);
  visitor.optional("zero", l.plan.zero);
  visitor.optional("micro_batch", l.plan.micro_batch);
  visitor.optional("sequence_parallel", l.plan.sequence_parallel);
  visitor.optional("recompute", l.plan.recompute);
}

/// Speed of the role's own work on a type, relative to the estimate's type; for work without a
/// model.
struct TypeSpeed {
  std::string type;
  double speed = 1;
  SourcePosition where;
};

template <class Visitor, SameStruct<TypeSpeed> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.sole("type", s.type);
  visitor.optional("speed", s.speed);
}

struct RoleSpec {
  std::string name = "main";
  std::uint32_t replicas = 1;                     ///< gangs
  std::optional<std::uint32_t> accelerators;      ///< of a gang; its ranks
  std::optional<std::uint32_t> accelerators_min;  ///< elastic between these
  std::optional<std::uint32_t> accelerators_max;
  /// Ranks that share a node; none: whole nodes, or one node where the gang is smaller.
  std::optional<std::uint32_t> node_accelerators;
  std::vector<TypeSpeed> types;  ///< allowed; empty: every type that runs its software
  std::optional<double> share;   ///< of one accelerator, in (0, 1); none: whole ones
  std::optional<WorkSpec> work;
  std::optional<LayoutSpec> layout;  ///< for work that is planned elsewhere
  TopologySpec topology;
  HostSpec host;
  SourcePosition where;
};

template <class Visitor, SameStruct<RoleSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.optional("name", r.name);
  visitor.optional("replicas", r.replicas);
  visitor.optional("accelerators", r.accelerators);
  visitor.optional("accelerators_min", r.accelerators_min);
  visitor.optional("accelerators_max", r.accelerators_max);
  visitor.optional("node_accelerators", r.node_accelerators);
  visitor.optional("types", r.types);
  visitor.optional("share", r.share);
  visitor.optional("work", r.work);
  visitor.optional("layout", r.layout);
  visitor.optional("topology", r.topology);
  visitor.optional("host", r.host);
}

/// What to minimise where there is a choice.
enum class JobGoal : std::uint8_t { kTime, kCost, kEnergy };

inline std::array<EnumWord<JobGoal>, 3> enum_words(JobGoal) {
  return {{{"time", JobGoal::kTime}, {"cost", JobGoal::kCost}, {"energy", JobGoal::kEnergy}}};
}

/// The site of the job's data, from which they are copied to any other.
struct DataSpec {
  std::string site;
  Bytes size;
  SourcePosition where;
};

template <class Visitor, SameStruct<DataSpec> Self>
void describe(Visitor& visitor, Self& d) {
  visitor.required("site", d.site);
  visitor.required("size", d.size);
}

struct SoftwareSpec {
  std::string framework;  ///< of the catalog's software stacks; empty: any
  std::string image;
  SourcePosition where;
};

template <class Visitor, SameStruct<SoftwareSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("framework", s.framework);
  visitor.optional("image", s.image);
}

/// The resource that one process of the job uses.
enum class LaunchUnit : std::uint8_t { kAccelerator, kNode };

inline std::array<EnumWord<LaunchUnit>, 2> enum_words(LaunchUnit) {
  return {{{"accelerator", LaunchUnit::kAccelerator}, {"node", LaunchUnit::kNode}}};
}

/// Whether the program itself starts a process for each accelerator of its node.
[[nodiscard]] bool is_torchrun(std::string_view program);

/// The program to start, without a shell. The framework decides which variables contain a process's
/// rank.
struct LaunchSpec {
  std::vector<std::string> command;  ///< program (searched in PATH) and arguments
  std::vector<std::pair<std::string, std::string>> environment;  ///< in the order written
  std::string directory;  ///< absolute; empty: a directory that the node creates for the attempt
  LaunchUnit per = LaunchUnit::kAccelerator;
  /// Files that get a copy of what ranks write to standard output and error, as
  /// workload/slurm/output_pattern.hpp reads them, relative to `directory`; empty: none. Without
  /// `error` both go to `output`.
  std::string output;
  std::string error;
  SourcePosition where;
};

template <class Visitor, SameStruct<LaunchSpec> Self>
void describe(Visitor& visitor, Self& l) {
  visitor.required("command", l.command);
  visitor.optional("environment", l.environment);
  visitor.optional("directory", l.directory);
  visitor.optional("per", l.per);
  visitor.optional("output", l.output);
  visitor.optional("error", l.error);
}

struct CheckpointSpec {
  std::optional<Seconds> interval;  ///< none: the interval with the most goodput
  std::optional<Seconds> cost;      ///< of one checkpoint, during which training pauses
  std::optional<Seconds> restart;   ///< from a checkpoint, apart from the lost work
  bool peer_copy = false;           ///< each checkpoint is also kept in the memory of another node
  SourcePosition where;
};

template <class Visitor, SameStruct<CheckpointSpec> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.optional("interval", c.interval);
  visitor.optional("cost", c.cost);
  visitor.optional("restart", c.restart);
  visitor.optional("peer_copy", c.peer_copy);
}

/// When a gang whose node is lost may start elsewhere.
enum class RestartPolicy : std::uint8_t {
  kWhenSafe,    ///< once the old ranks are known to be gone
  kAtOnce,      ///< its effects are fenced
  kAfterLease,  ///< the keeper ends it when its lease runs out
  kNever,
};

inline std::array<EnumWord<RestartPolicy>, 4> enum_words(RestartPolicy) {
  return {{{"when-safe", RestartPolicy::kWhenSafe},
           {"at-once", RestartPolicy::kAtOnce},
           {"after-lease", RestartPolicy::kAfterLease},
           {"never", RestartPolicy::kNever}}};
}

struct RestartSpec {
  RestartPolicy policy = RestartPolicy::kWhenSafe;
  std::uint32_t max = 0;  ///< number of restarts after faults of the program
  SourcePosition where;
};

template <class Visitor, SameStruct<RestartSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.optional("policy", r.policy);
  visitor.optional("max", r.max);
}

/// How a job that another one depends on must have ended.
enum class AfterCondition : std::uint8_t {
  kOk,     ///< finished
  kAny,    ///< in whatever way
  kNotOk,  ///< failed or been cancelled
};

inline std::array<EnumWord<AfterCondition>, 3> enum_words(AfterCondition) {
  return {{{"ok", AfterCondition::kOk},
           {"any", AfterCondition::kAny},
           {"notok", AfterCondition::kNotOk}}};
}

/// A job that must have ended before this one starts.
struct AfterSpec {
  std::string
      job;  ///< number, name, name of an array (all of it) or of one of its jobs: "sweep[3]"
  AfterCondition when = AfterCondition::kOk;
  SourcePosition where;
};

template <class Visitor, SameStruct<AfterSpec> Self>
void describe(Visitor& visitor, Self& a) {
  visitor.sole("job", a.job);
  visitor.optional("when", a.when);
}

/// A dependency as one word: "prep", "any:prep", "notok:sweep[3]", "ok:12". Errors: an unknown
/// condition, with those that there are.
[[nodiscard]] Result<AfterSpec> parse_after(std::string_view text);

/// `count` similar jobs, of which at most `parallel` run at a time.
struct ArraySpec {
  std::uint32_t count = 1;
  std::optional<std::uint32_t> parallel;
  SourcePosition where;
};

template <class Visitor, SameStruct<ArraySpec> Self>
void describe(Visitor& visitor, Self& a) {
  visitor.required("count", a.count);
  visitor.optional("parallel", a.parallel);
}

/// What has to be compiled for each type of accelerator before the ranks can work; the result is
/// kept.
struct CompileSpec {
  Seconds time;         ///< on a type for which it was not compiled yet
  std::string program;  ///< what jobs of the same program share; empty: the job's name
  SourcePosition where;
};

template <class Visitor, SameStruct<CompileSpec> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.required("time", c.time);
  visitor.optional("program", c.program);
}

/// Where the law or a contract lets a job run.
struct PermittedPlaces {
  std::vector<std::string> residency;       ///< labels of sites; empty: all
  std::vector<std::string> export_classes;  ///< classes of accelerators; empty: all
};

struct JobSpec {
  std::string api_version = "orrery/v1";
  JobKind kind = JobKind::kBatch;
  std::string name;
  std::string tenant = "default";   ///< path in the tree of tenants: "research/vision"
  std::int32_t priority = 0;        ///< -1000 to 1000
  std::optional<bool> preemptible;  ///< none: Batch and FineTune are
  std::vector<RoleSpec> roles;
  JobGoal goal = JobGoal::kTime;
  std::optional<Instant> deadline;
  std::optional<Dollars> budget;
  std::optional<Seconds> time_limit;  ///< after which it is ended
  std::optional<Seconds> estimate;    ///< of its run time, with the requested resources
  std::vector<DataSpec> data;
  SoftwareSpec software;
  std::optional<CompileSpec> compile;  ///< none: nothing
  std::optional<LaunchSpec> launch;    ///< none: nothing to start, for rehearsals only
  ServiceSpec service;                 ///< of kind Serve
  PermittedPlaces permitted;
  CheckpointSpec checkpoint;
  RestartSpec restart;
  std::vector<AfterSpec> after;  ///< jobs that must have ended before
  bool hold = false;             ///< the job does not start before it is released
  std::optional<ArraySpec> array;
  SourcePosition where;
};

template <class Visitor, SameStruct<JobSpec> Self>
void describe(Visitor& visitor, Self& j) {
  visitor.required("apiVersion", j.api_version);
  visitor.required("kind", j.kind);
  visitor.required("name", j.name);
  visitor.optional("tenant", j.tenant);
  visitor.optional("priority", j.priority);
  visitor.optional("preemptible", j.preemptible);
  visitor.required("roles", j.roles);
  visitor.optional("goal", j.goal);
  visitor.optional("deadline", j.deadline);
  visitor.optional("budget", j.budget);
  visitor.optional("time_limit", j.time_limit);
  visitor.optional("estimate", j.estimate);
  visitor.optional("data", j.data);
  visitor.optional("software", j.software);
  visitor.optional("compile", j.compile);
  visitor.optional("launch", j.launch);
  visitor.optional("revisions", j.service.revisions);
  visitor.optional("slo", j.service.slo);
  visitor.optional("tenants", j.service.tenants);
  visitor.optional("scaling", j.service.scaling);
  visitor.optional("rollout", j.service.rollout);
  visitor.optional("quality", j.service.quality);
  visitor.optional("transfer", j.service.transfer);
  visitor.optional("residency", j.permitted.residency);
  visitor.optional("export_classes", j.permitted.export_classes);
  visitor.optional("checkpoint", j.checkpoint);
  visitor.optional("restart", j.restart);
  visitor.optional("after", j.after);
  visitor.optional("hold", j.hold);
  visitor.optional("array", j.array);
}

/// Reads one job from a document; its `kind` is a JobKind. Errors with file:line:column and the
/// field: what a user can get wrong without a fleet (see the invariant above). Names of types,
/// models and sites are checked by the code that knows them.
[[nodiscard]] Result<JobSpec> read_job_spec(const Document& document);
[[nodiscard]] Result<JobSpec> load_job_spec(const std::string& path);

/// Reads a job that is part of another file.
[[nodiscard]] Result<JobSpec> read_job_spec(const DocumentNode& node);

/// Returns what the ranks of a job run: its `launch`, or the engine of its revision; none: nothing.
/// `role`: the name of theirs, on which the duty of a service's replica depends.
[[nodiscard]] std::optional<LaunchSpec> launch_of(const JobSpec& spec, std::string_view role = {});

/// Checks what becomes invalid as time passes: a deadline that is not after `now`.
[[nodiscard]] Status check_at(const JobSpec& spec, Instant now);

/// YAML that read_job_spec reads back to the same spec; defaults are left out.
[[nodiscard]] std::string write_job_spec(const JobSpec& spec);

}  // namespace orrery
