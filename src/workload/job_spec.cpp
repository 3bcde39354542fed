#include "workload/job_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/format/field_writer.hpp"
#include "base/format/yaml_writer.hpp"
#include "base/text/name_check.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/utf8.hpp"
#include "workload/slurm/output_pattern.hpp"

namespace orrery {
namespace {

// What is wrong with one struct of a spec; the first complaint stays.
class SpecCheck {
 public:
  explicit SpecCheck(const SourcePosition& where) : where_(where) {}

  template <class... Args>
  void fail(fmt::format_string<Args...> text, Args&&... args) {
    if (status_) status_ = input_error(where_, fmt::format(text, std::forward<Args>(args)...));
  }

  void count(std::string_view key, std::optional<std::uint32_t> value) {
    constexpr std::uint32_t kCountMax = 1u << 20;
    if (!value || (*value >= 1 && *value <= kCountMax)) return;
    fail("{} is {}, expected 1 to {}", key, *value, kCountMax);
  }

  template <class T>
  void positive(std::string_view key, const std::optional<T>& value) {
    if (!value || *value > T{}) return;
    if constexpr (std::is_arithmetic_v<T>) {
      fail("{} is {}, expected more than zero", key, *value);
    } else {
      fail("{} is {}, expected more than zero", key, print(*value));
    }
  }

  void name(std::string_view key, std::string_view text) {
    if (Status named = check_name(text, where_); !named) fail("{}: {}", key, named.error().message);
  }

  /// Given for a purpose, and only once.
  void label(std::string_view key, const std::vector<std::string>& labels) {
    for (auto item = labels.begin(); item != labels.end(); ++item) {
      if (item->empty()) fail("{} holds an empty text, expected a label", key);
      if (std::find(labels.begin(), item, *item) == item) continue;
      fail("{} names \"{}\" twice, expected it once", key, printable(*item, 60));
    }
  }

  void also(Status nested) {
    if (status_ && !nested) status_ = std::move(nested);
  }

  [[nodiscard]] Status finish() { return std::move(status_); }

 private:
  const SourcePosition& where_;
  Status status_;
};

/// "sweep" of "sweep[3]", the name of one job of an array; any other name as it is.
std::string_view without_index(std::string_view name) {
  if (!name.ends_with(']')) return name;
  const std::size_t begin = name.rfind('[');
  if (begin == std::string_view::npos || begin == 0) return name;
  const std::string_view index = name.substr(begin + 1, name.size() - begin - 2);
  const bool digits = !index.empty() && std::all_of(index.begin(), index.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; });
  return digits ? name.substr(0, begin) : name;
}

// A gang has a number of accelerators or a range of them.
bool elastic(const RoleSpec& role) { return role.accelerators_min || role.accelerators_max; }

std::optional<std::uint32_t> fewest(const RoleSpec& role) {
  return role.accelerators ? role.accelerators : role.accelerators_min;
}

std::optional<std::uint32_t> most(const RoleSpec& role) {
  return role.accelerators ? role.accelerators : role.accelerators_max;
}

Status check_size(const RoleSpec& role) {
  SpecCheck check(role.where);
  check.count("replicas", role.replicas);
  check.count("accelerators", role.accelerators);
  check.count("accelerators_min", role.accelerators_min);
  check.count("accelerators_max", role.accelerators_max);
  check.count("node_accelerators", role.node_accelerators);
  if (role.accelerators && elastic(role)) {
    check.fail(
        "accelerators beside accelerators_min and accelerators_max: expected a number or a "
        "range, not both");
  }
  if (role.accelerators_min.has_value() != role.accelerators_max.has_value()) {
    check.fail("one of accelerators_min and accelerators_max, expected both");
  }
  if (elastic(role) && role.accelerators_min > role.accelerators_max) {
    check.fail("accelerators_min is {}, expected at most accelerators_max, {}",
               *role.accelerators_min, *role.accelerators_max);
  }
  if (!role.accelerators && !elastic(role) && !role.work) {
    check.fail(
        "the role asks for nothing, expected accelerators, accelerators_min and "
        "accelerators_max, or work");
  }
  if (role.node_accelerators && fewest(role) && *role.node_accelerators > *fewest(role)) {
    check.fail("node_accelerators is {}, expected at most the {} of the gang",
               *role.node_accelerators, *fewest(role));
  }
  return check.finish();
}

Status check_share(const RoleSpec& role) {
  SpecCheck check(role.where);
  if (!role.share) return check.finish();
  if (!(*role.share > 0 && *role.share < 1)) {
    check.fail("share is {}, expected more than 0 and less than 1, or none for whole accelerators",
               *role.share);
  }
  if (role.accelerators != 1u) {
    check.fail("share is of one accelerator, expected accelerators: 1 (and replicas for more)");
  }
  if (role.topology.segment || !role.topology.slice.empty()) {
    check.fail("share is of one accelerator, expected no segment and no slice");
  }
  return check.finish();
}

Status check_types(const RoleSpec& role) {
  for (auto type = role.types.begin(); type != role.types.end(); ++type) {
    SpecCheck check(type->where);
    if (type->type.empty()) check.fail("type is empty, expected the name of an accelerator");
    check.positive("speed", std::optional(type->speed));
    if (role.work && type->speed != 1) {
      check.fail("speed of a role with work, expected none: the model says how fast a type is");
    }
    const bool twice = std::any_of(role.types.begin(), type, [&](const TypeSpeed& before) {
      return before.type == type->type;
    });
    if (twice) check.fail("types names \"{}\" twice, expected it once", printable(type->type, 60));
    if (Status status = check.finish(); !status) return status;
  }
  return {};
}

// Levels of the network and of the building are comparable only where every fleet agrees: a leaf
// switch may serve part of a rack or several racks.
bool surely_wider(TopologyLevel wide, TopologyLevel narrow) {
  const auto of_network = [](TopologyLevel level) {
    return level == TopologyLevel::kScaleUp || level == TopologyLevel::kLeaf ||
           level == TopologyLevel::kGroup;
  };
  if (wide <= narrow) return false;
  if (!of_network(wide) && !of_network(narrow)) return true;
  return narrow == TopologyLevel::kNode || wide >= TopologyLevel::kSite;
}

// Segments need several nodes, whole ones of the gang.
void check_segment(SpecCheck& check, const RoleSpec& role) {
  const TopologySpec& topology = role.topology;
  check.count("segment", topology.segment);
  if (topology.required == TopologyLevel::kNode) {
    check.fail("segment is a run of nodes, expected no required: node");
  }
  if (!topology.slice.empty()) check.fail("segment and slice, expected one of them");
  if (!role.accelerators || role.node_accelerators.value_or(0) == 0 || *topology.segment == 0) {
    return;
  }
  const std::uint32_t nodes =
      (*role.accelerators + *role.node_accelerators - 1) / *role.node_accelerators;
  if (nodes % *topology.segment != 0) {
    check.fail("segment is {}, expected a divisor of the gang's {} nodes", *topology.segment,
               nodes);
  }
}

void check_slice(SpecCheck& check, const RoleSpec& role) {
  const std::vector<std::uint32_t>& slice = role.topology.slice;
  if (slice.size() > 3) check.fail("slice has {} sides, expected 1 to 3", slice.size());
  std::uint64_t product = 1;
  for (const std::uint32_t side : slice) {
    check.count("a side of slice", side);
    product *= side;
  }
  if (elastic(role)) {
    check.fail(
        "slice beside accelerators_min and accelerators_max, expected accelerators: a slice "
        "has one size");
  }
  if (role.accelerators && *role.accelerators != product) {
    check.fail("slice has {} accelerators, expected the {} of the gang", product,
               *role.accelerators);
  }
}

// Gangs that are spread may each be kept together: the two are independent, except that all gangs
// are in the one fleet.
Status check_spread(const SpreadSpec& spread) {
  SpecCheck check(spread.where);
  check.count("most", spread.most);
  if (spread.level == TopologyLevel::kFleet) {
    check.fail("spread over fleets, expected level: node to site");
  }
  return check.finish();
}

Status check_topology(const RoleSpec& role) {
  const TopologySpec& topology = role.topology;
  SpecCheck check(topology.where);
  const std::optional<TopologyLevel> required = topology.required;
  const std::optional<TopologyLevel> preferred = topology.preferred;
  if (required && preferred && surely_wider(*preferred, *required)) {
    check.fail("preferred is {}, expected nothing wider than required, {}", word_of(*preferred),
               word_of(*required));
  }
  if (required == TopologyLevel::kNode && role.node_accelerators && most(role) &&
      *most(role) > *role.node_accelerators) {
    check.fail("required is node, expected node_accelerators to be the {} of the gang, it is {}",
               *most(role), *role.node_accelerators);
  }
  const std::optional<TopologyLevel> exclusive = topology.exclusive;
  if (exclusive && exclusive != TopologyLevel::kNode && exclusive != TopologyLevel::kScaleUp &&
      exclusive != TopologyLevel::kRack) {
    check.fail("exclusive is {}, expected node, scale-up or rack", word_of(*exclusive));
  }
  if (topology.segment) check_segment(check, role);
  if (!topology.slice.empty()) check_slice(check, role);
  if (topology.spread) check.also(check_spread(*topology.spread));
  return check.finish();
}

// The keys of a struct, and which of them are present.
struct Given {
  std::string_view key;
  bool there;
};

std::string_view first_given(std::initializer_list<Given> keys) {
  for (const Given& each : keys) {
    if (each.there) return each.key;
  }
  return "";
}

// Training has an end, a service a rate; a batch job is one or the other.
void check_purpose(SpecCheck& check, const WorkSpec& work, JobKind kind) {
  const std::string_view training = first_given({{"tokens", work.tokens.has_value()},
                                                 {"steps", work.steps.has_value()},
                                                 {"global_batch", work.global_batch.has_value()}});
  const std::string_view serving = first_given({{"rate", work.rate.has_value()},
                                                {"input_tokens", work.input_tokens.has_value()},
                                                {"output_tokens", work.output_tokens.has_value()},
                                                {"ttft", work.ttft.has_value()},
                                                {"tpot", work.tpot.has_value()}});
  switch (kind) {
    case JobKind::kTrain:
    case JobKind::kFineTune:
      if (serving.empty()) return;
      return check.fail("{} is for services, expected tokens or steps for kind {}", serving,
                        word_of(kind));
    case JobKind::kServe:
      if (!training.empty()) check.fail("{} is for training, expected rate for Serve", training);
      if (!work.rate) check.fail("rate is missing, expected requests a second for Serve");
      return;
    case JobKind::kBatch:
      if (work.rate.has_value() == (work.tokens || work.steps)) {
        check.fail("expected either tokens or steps (training) or rate (serving)");
      }
  }
}

Status check_work(const WorkSpec& work, JobKind kind) {
  SpecCheck check(work.where);
  if (work.model.empty()) check.fail("model is empty, expected the name of a model");
  check.positive("sequence", work.sequence);
  check.positive("global_batch", work.global_batch);
  check.positive("tokens", work.tokens);
  check.positive("steps", work.steps);
  check.positive("rate", work.rate);
  check.positive("input_tokens", work.input_tokens);
  check.positive("output_tokens", work.output_tokens);
  check.positive("ttft", work.ttft);
  check.positive("tpot", work.tpot);
  if (work.tokens && work.steps) {
    check.fail("tokens and steps, expected one of them: both say how much");
  }
  check_purpose(check, work, kind);
  return check.finish();
}

Status check_layout(const RoleSpec& role) {
  SpecCheck check(role.layout->where);
  const ParallelPlan& plan = role.layout->plan;
  check.count("tp", plan.tp);
  check.count("pp", plan.pp);
  check.count("vpp", plan.vpp);
  check.count("cp", plan.cp);
  check.count("ep", plan.ep);
  check.count("micro_batch", plan.micro_batch);
  if (role.work) check.fail("layout beside work, expected one of them: work is planned here");
  if (role.share) check.fail("layout beside share, expected whole accelerators");
  for (const auto& size : {role.accelerators, role.accelerators_min, role.accelerators_max}) {
    if (!size || plan.ranks() == 0 || *size % plan.ranks() == 0) continue;
    check.fail("a replica takes {} ranks, of which {} accelerators are no whole number",
               plan.ranks(), *size);
  }
  return check.finish();
}

Status check_role(const RoleSpec& role, JobKind kind) {
  SpecCheck check(role.where);
  check.also(check_size(role));
  check.also(check_share(role));
  check.also(check_types(role));
  check.also(check_topology(role));
  if (role.work) check.also(check_work(*role.work, kind));
  if (role.layout) check.also(check_layout(role));
  if (role.host.cpu < 0) check.fail("host.cpu is {}, expected 0 or more cores", role.host.cpu);
  return check.finish();
}

void check_tenant(SpecCheck& check, std::string_view path) {
  for (std::size_t begin = 0, end = 0; end != path.npos; begin = end + 1) {
    end = path.find('/', begin);
    check.name("tenant", path.substr(begin, end == path.npos ? end : end - begin));
  }
}

void check_money_and_time(SpecCheck& check, const JobSpec& job) {
  check.positive("budget", job.budget);
  check.positive("time_limit", job.time_limit);
  check.positive("estimate", job.estimate);
  if (job.time_limit && job.estimate && *job.time_limit < *job.estimate) {
    check.fail("time_limit is {}, expected at least the estimate, {}", print(*job.time_limit),
               print(*job.estimate));
  }
  if (job.compile) {
    SpecCheck compile(job.compile->where);
    compile.positive("time", std::optional(job.compile->time));
    check.also(compile.finish());
  }
  SpecCheck checkpoint(job.checkpoint.where);
  checkpoint.positive("interval", job.checkpoint.interval);
  check.also(checkpoint.finish());
}

void check_lists(SpecCheck& check, const JobSpec& job) {
  for (const DataSpec& data : job.data) {
    SpecCheck inner(data.where);
    inner.name("site", data.site);
    inner.positive("size", std::optional(data.size));
    check.also(inner.finish());
  }
  check.label("residency", job.permitted.residency);
  check.label("export_classes", job.permitted.export_classes);
  for (auto after = job.after.begin(); after != job.after.end(); ++after) {
    SpecCheck each(after->where);
    each.name("after", without_index(after->job));
    if (without_index(after->job) == job.name) {
      each.fail("after names the job itself, expected others");
    }
    const bool twice = std::any_of(job.after.begin(), after, [&](const AfterSpec& before) {
      return before.job == after->job;
    });
    if (twice) each.fail("after names \"{}\" twice, expected it once", printable(after->job, 60));
    check.also(each.finish());
  }
  if (!job.array) return;
  SpecCheck array(job.array->where);
  array.count("count", job.array->count);
  array.count("parallel", job.array->parallel);
  if (job.array->parallel > job.array->count) {
    array.fail("parallel is {}, expected at most count, {}", *job.array->parallel,
               job.array->count);
  }
  const bool replicas = job.roles.size() > 1 || (!job.roles.empty() && job.roles[0].replicas > 1);
  if (job.kind == JobKind::kServe && replicas) {
    array.fail("a service with replicas is an array of them, expected one role with replicas: 1");
  }
  check.also(array.finish());
}

// A name that every shell accepts; ORRERY_ is reserved for what a process is given about its job.
bool is_variable(std::string_view name) {
  const auto in_name = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), in_name);
}

Status check_launch(const LaunchSpec& launch, const SoftwareSpec& software) {
  SpecCheck check(launch.where);
  if (software.framework == "slurm" &&
      (launch.command.empty() || !launch.command[0].starts_with("#!"))) {
    check.fail(
        "command with framework: slurm, expected a script's text, from #! on, and its arguments");
  }
  const auto text = [&](std::string_view key, const std::string& value) {
    if (value.find('\0') != value.npos) check.fail("{} holds a zero byte, expected text", key);
  };
  if (launch.command.empty() || launch.command[0].empty()) {
    check.fail("command is empty, expected a program and its arguments");
  } else if (launch.per == LaunchUnit::kAccelerator && is_torchrun(launch.command[0])) {
    check.fail("torchrun starts a process an accelerator itself, expected per: node");
  }
  for (const std::string& part : launch.command) text("command", part);
  for (const auto& [name, value] : launch.environment) {
    if (!is_variable(name)) {
      check.fail("environment names \"{}\", expected letters, digits and _, no digit first",
                 printable(name, 60));
    }
    if (name.starts_with("ORRERY_")) {
      check.fail("environment sets {}, expected no ORRERY_ variable: they tell of the job",
                 printable(name, 60));
    }
    text(name, value);
  }
  text("directory", launch.directory);
  if (!launch.directory.empty() && launch.directory[0] != '/') {
    check.fail("directory is \"{}\", expected an absolute path", printable(launch.directory, 60));
  }
  for (const auto& [key, pattern] :
       {std::pair("output", &launch.output), std::pair("error", &launch.error)}) {
    if (pattern->empty()) continue;
    text(key, *pattern);
    if (const std::string wrong = output_pattern_complaint(*pattern); !wrong.empty()) {
      check.fail("{} is \"{}\": {}", key, printable(*pattern, 60), wrong);
    }
  }
  return check.finish();
}

/// A number of ranks that the launcher of the framework cannot change.
Status check_size(const RoleSpec& role, const SoftwareSpec& software) {
  SpecCheck check(role.where);
  const bool fixed = software.framework == "mpi" || software.framework == "slurm";
  if (fixed && elastic(role)) {
    check.fail(
        "accelerators_min and accelerators_max with framework: {}, expected accelerators: {} keeps "
        "the ranks it started with",
        software.framework, software.framework == "mpi" ? "mpirun" : "a script");
  }
  return check.finish();
}

/// Checks that keys of services are in no other job.
void check_kind_of_service(SpecCheck& check, const JobSpec& job) {
  if (job.kind == JobKind::kServe) return;
  const ServiceSpec& service = job.service;
  const auto place = [](const auto& given) { return given ? given->where : SourcePosition(); };
  const std::pair<std::string_view, SourcePosition> keys[]{
      {"slo", service.slo.where},
      {"tenants", service.tenants.empty() ? SourcePosition() : service.tenants.front().where},
      {"scaling", place(service.scaling)},
      {"rollout", service.rollout.where},
      {"quality", service.quality.where},
      {"transfer", place(service.transfer)}};
  for (const auto& [key, where] : keys) {
    if (where.line == 0) continue;
    SpecCheck own(where);
    own.fail("{} with kind {}, expected kind Serve", key, word_of(job.kind));
    check.also(own.finish());
  }
}

/// A service has one revision; `orrery submit --update` gives it another.
void check_revisions(SpecCheck& check, const JobSpec& job) {
  if (job.service.revisions.empty()) return;
  SpecCheck first(job.service.revisions.front().where);
  if (job.kind != JobKind::kServe) {
    first.fail("revisions with kind {}, expected kind Serve", word_of(job.kind));
  }
  if (job.launch) {
    first.fail("revisions beside launch, expected one of them: the engine follows from a revision");
  }
  if (job.service.revisions.size() > 1) {
    first.fail("there are {} revisions, expected one", job.service.revisions.size());
  }
  const Status known = check_revision(job.service.revisions.front());
  first.also(known);
  if (known && !job.launch) {
    LaunchSpec launch = *launch_of(job);
    launch.where = job.service.revisions.front().engine.where;
    first.also(check_launch(launch, job.software));
  }
  check.also(first.finish());
}

Status check_job(const JobSpec& job) {
  constexpr std::int32_t kPriorityMax = 1000;
  SpecCheck check(job.where);
  if (job.api_version != "orrery/v1") {
    check.fail("apiVersion is {}, expected orrery/v1", printable(job.api_version, 60));
  }
  check.name("name", job.name);
  check_tenant(check, job.tenant);
  if (job.priority < -kPriorityMax || job.priority > kPriorityMax) {
    check.fail("priority is {}, expected {} to {}", job.priority, -kPriorityMax, kPriorityMax);
  }
  if (job.roles.empty()) check.fail("roles is empty, expected at least one");
  const auto name = [](const RoleSpec& role) -> const std::string& { return role.name; };
  check.also(check_unique(job.roles, name, "role"));
  for (const RoleSpec& role : job.roles) {
    check.also(check_role(role, job.kind));
    check.also(check_size(role, job.software));
  }
  check_money_and_time(check, job);
  check_lists(check, job);
  if (job.launch) check.also(check_launch(*job.launch, job.software));
  check_revisions(check, job);
  check_kind_of_service(check, job);
  check.also(check_service(job.service, job.name));
  std::vector<ServiceRole> roles;
  roles.reserve(job.roles.size());
  for (const RoleSpec& role : job.roles) roles.push_back({role.name, role.replicas});
  check.also(check_roles(job.service, roles));
  return check.finish();
}

}  // namespace

bool is_torchrun(std::string_view program) {
  return program.substr(program.rfind('/') + 1) == "torchrun";
}

Result<JobSpec> read_job_spec(const Document& document) { return read_job_spec(document.root()); }

Result<JobSpec> read_job_spec(const DocumentNode& node) {
  JobSpec spec;
  Status status = read_struct(node, spec, {});
  if (status) status = check_job(spec);
  if (!status) return forward_error(status);
  return spec;
}

Result<JobSpec> load_job_spec(const std::string& path) {
  Result<Document> document = Document::load(path);
  if (!document) return forward_error(document);
  return read_job_spec(*document);
}

std::optional<LaunchSpec> launch_of(const JobSpec& spec, std::string_view role) {
  if (spec.launch || spec.service.revisions.empty()) return spec.launch;
  const RevisionSpec& revision = spec.service.revisions.front();
  LaunchSpec launch;
  launch.command = engine_command(revision, duty_in(spec.service, role));
  launch.environment = revision.engine.environment;
  launch.per = LaunchUnit::kNode;  // an engine uses all accelerators of its replica
  launch.where = revision.where;
  return launch;
}

Status check_at(const JobSpec& spec, Instant now) {
  if (!spec.deadline || *spec.deadline > now) return {};
  return input_error(spec.where, fmt::format("deadline {} is in the past (now {})",
                                             spec.deadline->text(), now.text()));
}

std::string write_job_spec(const JobSpec& spec) { return write_yaml(spec); }

Result<AfterSpec> parse_after(std::string_view text) {
  AfterSpec after;
  const std::size_t mark = text.find(':');
  after.job = text.substr(mark == std::string_view::npos ? 0 : mark + 1);
  if (mark == std::string_view::npos) return after;
  const std::string_view condition = text.substr(0, mark);
  std::vector<std::string_view> words;
  for (const auto& [word, value] : enum_words(AfterCondition())) {
    if (word != condition) {
      words.push_back(word);
      continue;
    }
    after.when = value;
    return after;
  }
  return input_error({}, fmt::format("\"{}\" is not a condition{}: expected JOB, or ok:JOB, "
                                     "any:JOB or notok:JOB",
                                     printable(condition, 60), did_you_mean(condition, words)));
}

}  // namespace orrery
