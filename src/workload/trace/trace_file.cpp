#include "workload/trace/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format/yaml_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/utf8.hpp"
#include "workload/job_spec.hpp"
#include "workload/trace_input/trace_columns.hpp"
#include "workload/trace_input/trace_text.hpp"

namespace orrery {
namespace {

// One job of the file. Keys that a `spec` covers are not repeated next to it.
struct TraceEntry {
  std::string name;
  std::optional<Seconds> submit;  // since the file's epoch
  std::optional<Instant> at;
  std::optional<Seconds> run;
  std::string user;
  TraceStatus status = TraceStatus::kUnknown;
  std::optional<std::string> tenant;
  std::optional<JobKind> kind;
  std::optional<std::string> model;
  std::optional<std::string> types;
  std::optional<std::uint32_t> accelerators;
  std::optional<std::uint32_t> accelerators_min;
  std::optional<std::uint32_t> accelerators_max;
  std::optional<double> share;
  std::optional<double> cpu;
  std::optional<Bytes> memory;
  std::optional<std::int32_t> priority;
  std::optional<Seconds> time_limit;
  std::optional<Instant> deadline;
  std::uint64_t batch_size = 0;
  std::uint64_t steps = 0;
  std::optional<Seconds> step_time;
  std::vector<Seconds> stage_times;
  double weight = 1;
  double slo = 0;
  SourcePosition where;
};

template <class Visitor, SameStruct<TraceEntry> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.optional("name", e.name);
  visitor.optional("submit", e.submit);
  visitor.optional("at", e.at);
  visitor.optional("run", e.run);
  visitor.optional("user", e.user);
  visitor.optional("status", e.status);
  visitor.optional("tenant", e.tenant);
  visitor.optional("kind", e.kind);
  visitor.optional("model", e.model);
  visitor.optional("types", e.types);
  visitor.optional("accelerators", e.accelerators);
  visitor.optional("accelerators_min", e.accelerators_min);
  visitor.optional("accelerators_max", e.accelerators_max);
  visitor.optional("share", e.share);
  visitor.optional("cpu", e.cpu);
  visitor.optional("memory", e.memory);
  visitor.optional("priority", e.priority);
  visitor.optional("time_limit", e.time_limit);
  visitor.optional("deadline", e.deadline);
  visitor.optional("batch_size", e.batch_size);
  visitor.optional("steps", e.steps);
  visitor.optional("step_time", e.step_time);
  visitor.optional("stage_times", e.stage_times);
  visitor.optional("weight", e.weight);
  visitor.optional("slo", e.slo);
  visitor.elsewhere("spec");
}

struct TraceHead {
  std::string api_version = "orrery/v1";
  std::string kind = "Trace";
  std::string name;
  std::optional<Instant> epoch;
  SourcePosition where;
};

template <class Visitor, SameStruct<TraceHead> Self>
void describe(Visitor& visitor, Self& h) {
  visitor.required("apiVersion", h.api_version);
  visitor.required("kind", h.kind);
  visitor.required("name", h.name);
  visitor.optional("epoch", h.epoch);
  visitor.elsewhere("jobs");
}

Duration duration_of(Seconds time) { return Duration::from_seconds(time.value()); }
std::optional<Duration> duration_of(std::optional<Seconds> time) {
  return time ? std::optional(duration_of(*time)) : std::nullopt;
}

// The first key next to `spec` that repeats what the spec states.
std::string_view said_twice(const TraceEntry& e) {
  if (e.tenant) return "tenant";
  if (e.kind) return "kind";
  if (e.model) return "model";
  if (e.types) return "types";
  if (e.accelerators || e.accelerators_min || e.accelerators_max) return "accelerators";
  if (e.share) return "share";
  if (e.cpu) return "cpu";
  if (e.memory) return "memory";
  if (e.priority) return "priority";
  if (e.time_limit) return "time_limit";
  if (e.deadline) return "deadline";
  return "";
}

Status check_size(const TraceEntry& e) {
  constexpr std::uint32_t kMost = kTraceAcceleratorsMax;
  if (e.accelerators.value_or(0) > kMost || e.accelerators_max.value_or(0) > kMost) {
    return input_error(e.where,
                       fmt::format("more accelerators than {}, expected at most that", kMost));
  }
  if (e.accelerators_min.has_value() != e.accelerators_max.has_value()) {
    return input_error(e.where,
                       "one of accelerators_min and accelerators_max, expected both or neither");
  }
  const std::uint32_t size = e.accelerators.value_or(e.accelerators_min.value_or(1));
  if (e.accelerators_min &&
      !(*e.accelerators_min >= 1 && *e.accelerators_min <= size && size <= *e.accelerators_max)) {
    return input_error(e.where, fmt::format("accelerators {} of {} to {}, expected 1 or more, and "
                                            "the number inside the range",
                                            size, *e.accelerators_min, *e.accelerators_max));
  }
  if (!e.share) return {};
  if (size != 1 || e.accelerators_max.value_or(1) != 1) {
    return input_error(e.where, "share is of one accelerator, expected accelerators: 1");
  }
  if (!(*e.share >= 0.001 && *e.share <= 1)) {
    return input_error(e.where, fmt::format("share is {}, expected 0.001 to 1", *e.share));
  }
  return {};
}

Status check_entry(const TraceEntry& e) {
  constexpr double kCoresMax = 1e6;
  if (e.submit.has_value() == e.at.has_value()) {
    return input_error(e.where, "expected either submit (since the epoch) or at (a point in time)");
  }
  if (e.run && duration_of(*e.run) > kTraceRunMax) {
    return input_error(e.where,
                       fmt::format("run is {:.10g} s, expected at most {:.10g} s, 100 years",
                                   e.run->value(), kTraceRunMax.count_seconds()));
  }
  if (e.cpu && !(*e.cpu >= 0 && *e.cpu <= kCoresMax)) {
    return input_error(e.where,
                       fmt::format("cpu is {}, expected 0 to {} cores", *e.cpu, kCoresMax));
  }
  if (e.stage_times.size() > 3) {
    return input_error(e.where, fmt::format("stage_times has {} items, expected at most the 3 of "
                                            "storage, CPU and accelerator",
                                            e.stage_times.size()));
  }
  if (!(std::isfinite(e.weight) && e.weight >= 0)) {
    return input_error(e.where, fmt::format("weight is {}, expected 0 or more", e.weight));
  }
  if (!(std::isfinite(e.slo) && e.slo >= 0)) {
    return input_error(e.where, fmt::format("slo is {}, expected 0 or more", e.slo));
  }
  return check_size(e);
}

void fill_from_entry(TraceJob& job, const TraceEntry& e) {
  constexpr double kThousand = 1000;
  constexpr double kMebibyte = 1u << 20;
  job.name = e.name;
  job.user = e.user;
  job.run = duration_of(e.run.value_or(Seconds(0)));
  job.status = e.status;
  job.tenant = e.tenant.value_or("");
  job.kind = e.kind;
  job.model = e.model.value_or("");
  job.types = e.types.value_or("");
  job.accelerators = e.accelerators.value_or(e.accelerators_min.value_or(1));
  job.accelerators_min = e.accelerators_min.value_or(0);
  job.accelerators_max = e.accelerators_max.value_or(0);
  job.share = static_cast<std::uint16_t>(std::lround(e.share.value_or(1) * kThousand));
  job.cpu_millicores = static_cast<std::uint32_t>(std::lround(e.cpu.value_or(0) * kThousand));
  const double mebibytes = e.memory.value_or(Bytes(0)).value() / kMebibyte;
  job.memory_mib = static_cast<std::uint64_t>(std::llround(mebibytes));
  job.priority = e.priority.value_or(0);
  job.limit = duration_of(e.time_limit);
  job.deadline = e.deadline;
  job.batch_size = e.batch_size;
  job.steps = e.steps;
  job.step_time = duration_of(e.step_time.value_or(Seconds(0)));
  for (std::size_t i = 0; i < e.stage_times.size(); ++i) {
    job.stage_times[i] = duration_of(e.stage_times[i]);
  }
  job.weight = e.weight;
  job.slo = e.slo;
}

// What the summary of a job states of its spec: all gangs of all roles together.
void fill_from_spec(TraceJob& job, const JobSpec& spec) {
  std::uint64_t gangs = 0;
  for (const RoleSpec& role : spec.roles) {
    gangs += std::uint64_t{role.replicas} *
             role.accelerators.value_or(role.accelerators_min.value_or(0));
    if (role.work && job.model.empty()) job.model = role.work->model;
  }
  job.accelerators =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(gangs, kTraceAcceleratorsMax));
  const RoleSpec& first = spec.roles.front();
  if (spec.roles.size() == 1 && first.replicas == 1) {
    job.accelerators_min = first.accelerators_min.value_or(0);
    job.accelerators_max = first.accelerators_max.value_or(0);
    job.share = static_cast<std::uint16_t>(
        std::clamp(std::lround(first.share.value_or(1) * 1000), 1l, 1000l));
  }
  if (job.name.empty()) job.name = spec.name;
  job.tenant = spec.tenant;
  job.kind = spec.kind;
  job.priority = spec.priority;
  job.deadline = spec.deadline;
  job.limit = duration_of(spec.time_limit);
}

class TraceFileReader {
 public:
  TraceFileReader(const Document& document, const TraceOptions& options)
      : document_(document), options_(options) {}

  Result<Trace> read() {
    if (Status status = read_head(); !status) return forward_error(status);
    if (Status status = check_job_columns(options_, document_.file()); !status)
      return forward_error(status);
    const std::optional<DocumentNode> jobs = read_elsewhere<TraceHead>(document_.root(), "jobs");
    if (!jobs || jobs->kind() != NodeKind::kSequence) {
      return input_error((jobs ? *jobs : document_.root()).position(),
                         "jobs is missing, expected a list of jobs");
    }
    std::size_t number = 0;
    for (const DocumentNode& node : jobs->items()) {
      Result<TraceJob> job = read_job(node);
      if (!job) {
        if (options_.bad_rows == TraceOptions::BadRows::kError) return forward_error(job);
        trace_.skipped.push_back({job.error().where, job.error().message});
      }
      ++number;
      if (job) keep(std::move(*job), number);
    }
    return std::move(trace_);
  }

 private:
  Status read_head() {
    Status status = read_struct(document_.root(), head_, {});
    if (!status) return status;
    if (head_.api_version != "orrery/v1") {
      return input_error(head_.where, fmt::format("apiVersion is {}, expected orrery/v1",
                                                  printable(head_.api_version, 60)));
    }
    if (head_.kind != "Trace") {
      return input_error(head_.where,
                         fmt::format("kind is {}, expected Trace", printable(head_.kind, 60)));
    }
    trace_.name = head_.name;
    return {};
  }

  [[nodiscard]] Result<TraceJob> read_job(const DocumentNode& node) const {
    TraceEntry entry;
    if (Status status = read_struct(node, entry, {}); !status) return forward_error(status);
    if (Status status = check_entry(entry); !status) return forward_error(status);
    TraceJob job;
    fill_from_entry(job, entry);
    const Instant epoch = head_.epoch.value_or(Instant());
    job.submit = entry.at ? *entry.at : epoch + duration_of(*entry.submit);
    job.line = entry.where.line;
    const std::optional<DocumentNode> spec_node = read_elsewhere<TraceEntry>(node, "spec");
    if (!spec_node || spec_node->kind() == NodeKind::kNull) {
      if (Status dated = check_deadline(job, node); !dated) return forward_error(dated);
      return job;
    }
    if (const std::string_view twice = said_twice(entry); !twice.empty()) {
      return input_error(entry.where,
                         fmt::format("{} beside spec, expected it in the spec alone", twice));
    }
    Result<JobSpec> spec = read_job_spec(*spec_node);
    if (!spec) return forward_error(spec);
    fill_from_spec(job, *spec);
    job.spec = std::make_shared<const JobSpec>(std::move(*spec));
    if (Status dated = check_deadline(job, *spec_node); !dated) return forward_error(dated);
    return job;
  }

  // `node` has the position of the deadline. Without dates, jobs are submitted in 1970, and any
  // date would be met.
  static Status check_deadline(const TraceJob& job, const DocumentNode& node) {
    constexpr Instant kDates = Instant() + Duration::seconds(1'000'000'000);  // 2001
    if (!job.deadline || *job.deadline < kDates || job.submit >= kDates) return {};
    SourcePosition where = node.position();
    for (const DocumentNode::Entry& entry : node.entries()) {
      if (entry.key.text() == "deadline") where = entry.value.position();
    }
    return input_error(std::move(where),
                       fmt::format("deadline is a date, {}, and submit is none, so the trace needs "
                                   "epoch: expected the date from which submit counts",
                                   job.deadline->text()));
  }

  void keep(TraceJob job, std::size_t number) {
    if (!options_.within(job.submit)) return;
    if (job.name.empty()) job.name = std::to_string(number);
    if (is_wanted(job, options_)) trace_.jobs.push_back(std::move(job));
  }

  const Document& document_;
  const TraceOptions& options_;
  TraceHead head_;
  Trace trace_;
};

// Whether the span, written with its unit, is read back to the nanosecond.
bool is_exact(Duration span) {
  const QuantityKind& kind = kind_of<Seconds>();
  const Result<double> back = parse_quantity(print_exact(span.count_seconds(), kind), kind);
  return back && Duration::from_seconds(*back) == span;
}

Seconds seconds_of(Duration span) { return Seconds(span.count_seconds()); }

template <class T>
std::optional<T> unless(T value, const T& usual) {
  return value == usual ? std::nullopt : std::optional<T>(std::move(value));
}

TraceEntry entry_of(const TraceJob& job, Instant epoch) {
  TraceEntry e;
  e.name = job.name;
  const Duration offset = job.submit - epoch;
  if (offset >= Duration() && is_exact(offset)) {
    e.submit = seconds_of(offset);
  } else {
    e.at = job.submit;
  }
  if (job.run > Duration()) e.run = seconds_of(job.run);
  e.user = job.user;
  e.status = job.status;
  e.batch_size = job.batch_size;
  e.steps = job.steps;
  if (job.step_time > Duration()) e.step_time = seconds_of(job.step_time);
  if (job.stage_times != std::array<Duration, 3>{}) {
    e.stage_times.reserve(job.stage_times.size());
    for (const Duration stage : job.stage_times) e.stage_times.push_back(seconds_of(stage));
  }
  e.weight = job.weight;
  e.slo = job.slo;
  if (job.spec) return e;
  e.tenant = unless(job.tenant, std::string());
  e.kind = job.kind;
  e.model = unless(job.model, std::string());
  e.types = unless(job.types, std::string());
  e.accelerators = unless(job.accelerators, 1u);
  e.accelerators_min = unless(job.accelerators_min, 0u);
  e.accelerators_max = unless(job.accelerators_max, 0u);
  // The nearest doubles to decimal thousandths print as those.
  if (job.share != 1000) e.share = job.share / 1000.0;
  if (job.cpu_millicores != 0) e.cpu = job.cpu_millicores / 1000.0;
  if (job.memory_mib != 0) e.memory = Bytes(static_cast<double>(job.memory_mib) * (1u << 20));
  e.priority = unless(job.priority, 0);
  if (job.limit) e.time_limit = seconds_of(*job.limit);
  e.deadline = job.deadline;
  return e;
}

// A block of fields as an item of a list, `indent` columns in.
void put_item(std::string& out, std::string_view fields, std::size_t indent) {
  bool first = true;
  for (TraceLines lines(fields); lines.next(); first = false) {
    out.append(indent, ' ');
    out += first ? "- " : "  ";
    out += lines.line();
    out += '\n';
  }
}

void put_fields(std::string& out, std::string_view fields, std::size_t indent) {
  for (TraceLines lines(fields); lines.next();) {
    out.append(indent, ' ');
    out += lines.line();
    out += '\n';
  }
}

}  // namespace

Result<Trace> read_trace_file(std::string_view text, const std::string& file,
                              const TraceOptions& options) {
  const Result<Document> document = Document::parse(text, file);
  if (!document) return tl::unexpected<Error>(document.error());
  return TraceFileReader(*document, options).read();
}

std::string write_trace(const Trace& trace, const std::string& name) {
  TraceHead head;
  head.name = name;
  const Instant epoch = trace.first_submit();
  if (epoch != Instant()) head.epoch = epoch;
  std::string out = write_yaml(head);
  out += trace.jobs.empty() ? "jobs: []\n" : "jobs:\n";
  for (const TraceJob& job : trace.jobs) {
    put_item(out, write_yaml(entry_of(job, epoch)), 2);
    if (!job.spec) continue;
    out += "    spec:\n";
    put_fields(out, write_job_spec(*job.spec), 6);
  }
  return out;
}

}  // namespace orrery
