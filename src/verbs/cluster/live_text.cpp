#include "verbs/cluster/live_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/views.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/count_text.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text_table.hpp"
#include "verbs/cluster/service_text.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

using Timestamp = google::protobuf::Timestamp;

constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kGrey = "90";

std::string_view colour_of(std::string_view state) {
  constexpr std::pair<std::string_view, std::string_view> kColours[] = {
      {"running", kGreen},   {"ready", kGreen},      {"starting", kYellow}, {"queued", kYellow},
      {"stopping", kYellow}, {"joining", kYellow},   {"suspect", kYellow},  {"draining", kYellow},
      {"drained", kYellow},  {"repairing", kYellow}, {"failed", kRed},      {"lost", kRed},
      {"quarantined", kRed}, {"finished", kGrey},    {"cancelled", kGrey},  {"held", kGrey},
      {"ok", kGreen},        {"warning", kYellow},   {"problem", kRed},     {"requested", kYellow},
      {"placed", kYellow},   {"pulling", kYellow},   {"loading", kYellow},  {"warming", kYellow},
      {"gone", kGrey}};
  for (const auto& [word, colour] : kColours) {
    if (word == state) return colour;
  }
  return "";
}

/// Returns "node-0, node-1, 6 more".
std::string places(const v1::Job& job) {
  constexpr int kShown = 3;
  std::vector<std::string> nodes;
  for (const v1::JobPart& part : job.parts()) {
    if (nodes.empty() || nodes.back() != part.node()) nodes.push_back(part.node());
  }
  const int left = static_cast<int>(nodes.size()) - kShown;
  if (left > 0) nodes.resize(kShown);
  return fmt::format("{}{}", fmt::join(nodes, ", "),
                     left > 0 ? fmt::format(", {} more", left) : "");
}

/// Returns "5 7, 2 of other tenants".
std::string jobs_text(const v1::Node& node) {
  std::string text = fmt::format("{}", fmt::join(node.jobs(), " "));
  if (node.other_jobs() == 0) return text;
  return fmt::format("{}{}{} of other tenants", text, text.empty() ? "" : ", ", node.other_jobs());
}

/// What a person would ask next about a job in a list.
std::string remark(const v1::Job& job) {
  if (job.phase() == "finished") return "";
  if (!job.waiting().empty()) return job.waiting();
  if (job.has_ended()) return job.blame();
  std::vector<std::string> remarks;
  if (!job.hold().empty()) remarks.emplace_back("will be held when it is next queued");
  if (job.attempt() > 1) remarks.push_back(fmt::format("attempt {}", job.attempt()));
  if (job.progress().done() > 0) {
    remarks.push_back(fmt::format("{:.0f} % done", job.progress().done() * 100));
  } else if (job.progress().step() > 0) {
    remarks.push_back(fmt::format("step {}", job.progress().step()));
  }
  return fmt::format("{}", fmt::join(remarks, ", "));
}

/// Rows of a name and what it is; those without anything are left out.
class FactLines {
 public:
  void add(const std::string& name, std::string value) {
    if (!value.empty()) table_.add({name, std::move(value)});
  }
  /// Colours the value that was added last. Precondition: it was not empty.
  void colour(std::string_view code) { table_.colour(1, code); }
  [[nodiscard]] std::string text() const { return table_.text(); }

 private:
  TextTable table_{{{""}, {""}}};
};

std::string if_any(std::uint64_t count) { return count > 0 ? fmt::format("{}", count) : ""; }

void add_progress(FactLines& facts, const v1::JobProgress& progress) {
  if (progress.done() > 0) facts.add("done", fmt::format("{:.1f} %", progress.done() * 100));
  if (progress.step() > 0) {
    facts.add("step", progress.saved_step() > 0 ? fmt::format("{}, saved up to {}", progress.step(),
                                                              progress.saved_step())
                                                : fmt::format("{}", progress.step()));
  }
  facts.add("tokens", if_any(progress.tokens()));
  if (progress.loss() > 0) facts.add("loss", fmt::format("{:.4g}", progress.loss()));
  facts.add("checkpoint", progress.checkpoint());
}

/// Returns "12.00 nvidia-h100-sxm5-80g, 3.50 nvidia-a100-sxm4-80g".
std::string hours_by_type(const v1::JobBill& bill) {
  std::vector<std::string> types;
  for (const v1::TypeHours& type : bill.accelerator_hours_by_type()) {
    types.push_back(fmt::format("{:.2f} {}", type.hours(), type.accelerator()));
  }
  return fmt::format("{}", fmt::join(types, ", "));
}

void add_bill(FactLines& facts, const v1::JobBill& bill) {
  if (bill.accelerator_hours() <= 0) return;
  facts.add("used", fmt::format("{:.3g} accelerator-hours (lost: {:.3g}, idle: {:.3g})",
                                bill.accelerator_hours(), bill.lost_accelerator_hours(),
                                bill.idle_accelerator_hours()));
  facts.add("hours by type", hours_by_type(bill));
  facts.add("cost", fmt::format("${:.2f}, {:.3g} kWh, {:.3g} kg CO2", bill.cost_usd(),
                                bill.energy_kwh(), bill.co2_kg()));
  if (bill.preemptions() + bill.faults() + bill.program_faults() > 0) {
    facts.add("ended early", fmt::format("{} by preemption, {} by faults, {} by the program",
                                         bill.preemptions(), bill.faults(), bill.program_faults()));
  }
}

std::vector<std::string> bill_cells(const v1::JobBill& bill) {
  return {fmt::format("{:.2f}", bill.accelerator_hours()),
          fmt::format("{:.2f}", bill.lost_accelerator_hours()),
          fmt::format("{:.2f}", bill.energy_kwh()),
          fmt::format("{:.2f}", bill.cost_usd()),
          fmt::format("{:.2f}", bill.co2_kg()),
          hours_by_type(bill)};
}

std::vector<TextTable::Column> bill_columns(std::vector<TextTable::Column> columns) {
  for (const char* title : {"ACCELERATOR-HOURS", "LOST", "KWH", "USD", "KG CO2"}) {
    columns.push_back({title, Align::kRight});
  }
  columns.push_back({"HOURS BY TYPE"});
  return columns;
}

std::string accelerators_text(const v1::Node& node) {
  return fmt::format("{} x {}{}", node.accelerators(), node.accelerator(),
                     node.emulated() ? " (emulated)" : "");
}

std::string job_users_text(const v1::Node& node) {
  if (node.job_users() == "own") return fmt::format("only {}", node.agent_user());
  if (node.job_users() == "mapped") return "tenants and users with run_as";
  if (node.job_users() == "any") return "all; as root if no run_as is set";
  return "";
}

std::string size_text(std::uint64_t bytes) { return print(Bytes(static_cast<double>(bytes))); }

/// Lists the readings of each device; values that its driver does not report are left open.
std::string device_table(const v1::NodeReading& reading) {
  constexpr Align kRight = Align::kRight;
  TextTable table({{"DEVICE", kRight},
                   {"POWER", kRight},
                   {"CLOCK", kRight},
                   {"TEMPERATURE", kRight},
                   {"BUSY", kRight},
                   {"MEMORY USED", kRight},
                   {"MEMORY ERRORS", kRight},
                   {"LINK ERRORS", kRight}});
  int device = 0;
  for (const v1::AcceleratorReading& each : reading.accelerators()) {
    table.add({fmt::format("{}", device++),
               each.has_power_w() ? fmt::format("{:.0f} W", each.power_w()) : "",
               each.has_clock() ? fmt::format("{:.0f} %", each.clock() * 100) : "",
               each.has_temperature_c() ? fmt::format("{:.0f} C", each.temperature_c()) : "",
               each.has_busy() ? fmt::format("{:.0f} %", each.busy() * 100) : "",
               each.has_memory_used_bytes() ? size_text(each.memory_used_bytes()) : "",
               each.has_memory_errors() ? fmt::format("{}", each.memory_errors()) : "",
               each.has_link_errors() ? fmt::format("{}", each.link_errors()) : ""});
  }
  return table.text();
}

std::string drain_text(const v1::Node& node) {
  if (!node.drain() && node.drain_why().empty()) return {};
  return "no new job starts on this node" +
         (node.drain_why().empty() ? "" : ": " + node.drain_why());
}

/// Returns the deadline, and by how much a finished job was late.
std::string deadline_text(const v1::Job& job, Instant deadline) {
  if (job.phase() != "finished" || !job.has_ended()) return deadline.text();
  const Instant end = instant_of(job.ended());
  if (end <= deadline) return deadline.text() + ", met";
  return fmt::format("{}, {} late", deadline.text(), (end - deadline).text());
}

/// What a job asks for beside its accelerators, as far as its spec can be read.
void add_spec(FactLines& facts, const v1::Job& job) {
  if (job.time_limit_s() > 0) {
    facts.add("time limit", Duration::from_seconds(job.time_limit_s()).text());
  }
  if (job.estimate_s() > 0) {
    facts.add("estimate", Duration::from_seconds(job.estimate_s()).text());
  }
  const Result<Document> document = Document::parse(job.spec(), "spec");
  if (job.spec().empty() || !document) return;
  const Result<JobSpec> spec = read_job_spec(*document);
  if (!spec) return;
  if (spec->deadline) facts.add("deadline", deadline_text(job, *spec->deadline));
  for (const RoleSpec& role : spec->roles) {
    if (role.share) facts.add("share", fmt::format("{:g} of an accelerator", *role.share));
  }
  const std::optional<LaunchSpec> launch = launch_of(*spec);
  if (!launch) return;
  facts.add("command", fmt::format("{}", fmt::join(launch->command, " ")));
  facts.add("directory", launch->directory);
}

/// Returns "exit status 139 of rank 3".
std::string exit_text(const v1::JobAttempt& attempt) {
  if (!attempt.has_exit_status()) return attempt.has_stopped() ? "stopped by Orrery" : "";
  if (attempt.exit_status() == 0) return "0";
  return fmt::format("{}, rank {}", attempt.exit_status(), attempt.exit_rank());
}

/// Each attempt that is known, with where it ran and how it ended.
std::string attempts_text(const v1::Job& job, Instant now) {
  TextTable table({{"ATTEMPT", Align::kRight},
                   {"STARTED"},
                   {"RAN", Align::kRight},
                   {"ENDED BY"},
                   {"EXIT"},
                   {"NODES"},
                   {""}});
  for (const v1::JobAttempt& attempt : job.attempts()) {
    const Instant end = attempt.has_stopped() ? instant_of(attempt.stopped()) : now;
    std::string remark = attempt.blame();
    if (attempt.has_in_favour_of())
      remark = fmt::format("in favour of job {}", attempt.in_favour_of());
    table.add({fmt::format("{}", attempt.number()), second_text(instant_of(attempt.started())),
               attempt.has_running() ? short_duration(end - instant_of(attempt.running())) : "",
               attempt.reason(), exit_text(attempt),
               fmt::format("{}", fmt::join(attempt.nodes(), " ")), remark});
  }
  return table.text();
}

}  // namespace

std::string short_duration(Duration duration) {
  constexpr std::pair<std::int64_t, char> kUnits[] = {{86'400, 'd'}, {3'600, 'h'}, {60, 'm'}};
  const std::int64_t seconds = std::max<std::int64_t>(0, duration.count_ns() / 1'000'000'000);
  for (const auto& [unit, letter] : kUnits) {
    if (seconds >= unit) return fmt::format("{}{}", seconds / unit, letter);
  }
  return fmt::format("{}s", seconds);
}

std::string outcome(const v1::Job& job) {
  std::string text = job.phase();
  if (job.has_started() && job.has_ended()) {
    text += " after " + (instant_of(job.ended()) - instant_of(job.started())).text();
  }
  if (job.phase() != "finished" && !job.blame().empty()) text += ": " + job.blame();
  return terminal_text(text, Newlines::kEscaped);
}

LiveText LiveText::of(const CommandOptions& options) {
  return {.colour = options.colour, .now = RealClock().now_wall()};
}

std::string LiveText::ago(const Timestamp& at) const {
  if (at.seconds() == 0 && at.nanos() == 0) return "";
  return short_duration(now - instant_of(at)) + " ago";
}

std::string_view LiveText::colour_code(std::string_view word) const {
  return colour == Colour::kOff ? std::string_view() : colour_of(word);
}

std::string LiveText::run_time(const v1::Job& job) const {
  if (!job.has_started()) return "";
  return short_duration((job.has_ended() ? instant_of(job.ended()) : now) -
                        instant_of(job.started()));
}

std::string LiveText::jobs(const std::vector<v1::Job>& jobs) const {
  if (jobs.empty()) return "no jobs\n";
  const bool prioritized =
      std::ranges::any_of(jobs, [](const v1::Job& job) { return job.priority() != 0; });
  std::vector<TextTable::Column> columns{
      {"ID", Align::kRight},  {"NAME"}, {"USER"}, {"TENANT"}, {"STATE"}, {"SINCE"},
      {"TIME", Align::kRight}};
  if (prioritized) columns.push_back({"PRIORITY", Align::kRight});
  for (const auto& column : {TextTable::Column{"ACCELERATORS", Align::kRight},
                             TextTable::Column{"WHERE"}, TextTable::Column{""}}) {
    columns.push_back(column);
  }
  TextTable table(std::move(columns));
  for (const v1::Job& job : jobs) {
    std::vector<std::string> row{fmt::format("{}", job.id()),
                                 job.name(),
                                 job.submitter(),
                                 job.tenant(),
                                 job.phase(),
                                 ago(job.since()),
                                 run_time(job)};
    if (prioritized) row.push_back(fmt::format("{}", job.priority()));
    row.push_back(fmt::format("{}", job.accelerators()));
    row.push_back(places(job));
    row.push_back(remark(job));
    table.add(std::move(row));
    table.colour(4, colour_code(job.phase()));
  }
  return table.text();
}

std::string LiveText::job(const v1::Job& job) const {
  FactLines facts;
  facts.add("job", fmt::format("{} ({})", job.id(), job.name()));
  facts.add("kind", job.kind());
  facts.add("submitted by", job.submitter());
  facts.add("runs as", job.run_as());
  facts.add("tenant", job.tenant());
  if (job.priority() != 0) facts.add("priority", fmt::format("{}", job.priority()));
  facts.add("state",
            job.phase() + (job.has_since() ? fmt::format(", since {}", ago(job.since())) : ""));
  facts.colour(colour_code(job.phase()));
  facts.add("waiting", job.waiting());
  if (!job.hold().empty() && job.phase() != "held") {
    facts.add("held by", fmt::format("{}, once it is next queued", job.hold()));
  }
  facts.add(job.has_ended() ? "blame" : "last fault", job.blame());
  if (job.reason() != job.phase()) facts.add("last stop", job.reason());
  facts.add("accelerators", if_any(job.accelerators()));
  add_spec(facts, job);
  facts.add("submitted", ago(job.submitted()));
  facts.add("started", ago(job.started()));
  facts.add("ended", ago(job.ended()));
  if (job.attempt() > 0) {
    facts.add("attempt", job.epoch() > 1 ? fmt::format("{}, epoch {}", job.attempt(), job.epoch())
                                         : fmt::format("{}", job.attempt()));
  }
  add_progress(facts, job.progress());
  add_bill(facts, job.bill());
  for (const std::string& note : job.notes()) facts.add("note", note);
  std::string text = facts.text();
  if (job.has_service()) text += "\n" + service_text(*this, job.service());
  if (job.attempts_size() > 0) text += "\n" + attempts_text(job, now);
  if (job.parts_size() == 0) return text;
  TextTable parts({{"NODE"}, {"ACCELERATORS"}, {"ROLE"}, {"GANG", Align::kRight}, {"RANKS"}, {""}});
  for (const v1::JobPart& part : job.parts()) {
    const std::string clock =
        part.clock() < 1 ? fmt::format("at {:.0f} % of the clock", part.clock() * 100) : "";
    parts.add({part.node(), fmt::format("{} x {}", part.accelerators(), part.accelerator()),
               part.role(), fmt::format("{}", part.gang()),
               fmt::format("{}", fmt::join(part.ranks(), " ")), clock});
  }
  return text + "\n" + parts.text();
}

namespace {

std::string foreign_text(const v1::Node& node) {
  if (node.foreign().empty() || !node.has_foreign_until()) return node.foreign();
  return fmt::format("{} until {}", node.foreign(), second_text(instant_of(node.foreign_until())));
}

std::string hold_text(const v1::Node& node) {
  if (node.hold().empty() || !node.has_lent_until()) return node.hold();
  return fmt::format("{} until {}", node.hold(), second_text(instant_of(node.lent_until())));
}

}  // namespace

std::string LiveText::nodes(const std::vector<v1::Node>& nodes) const {
  if (nodes.empty()) return "no nodes\n";
  TextTable table(
      {{"NODE"}, {"STATE"}, {"FREE", Align::kRight}, {"ACCELERATORS"}, {"JOBS"}, {"PLACE"}, {""}});
  for (const v1::Node& node : nodes) {
    std::vector<std::string> remarks;
    const bool absent = node.health() == "absent";
    if (!node.connected() && !absent) remarks.emplace_back("not connected");
    if (!node.hold().empty()) remarks.push_back(node.hold());
    if (!node.foreign().empty()) remarks.push_back("used by " + node.foreign());
    if (node.spare()) remarks.emplace_back("spare");
    if (node.lemon()) remarks.emplace_back("fails often");
    if (absent && node.drain()) remarks.emplace_back("drained when lent");
    if (!node.drain_why().empty()) remarks.push_back(node.drain_why());
    if (!node.out_why().empty()) remarks.push_back(node.out_why());
    if (!node.refused_agent().empty()) {
      remarks.emplace_back("refused a second agent, see `orrery node " + node.name() + "`");
    }
    table.add({node.name(), node.health(), fmt::format("{}/{}", node.free(), node.accelerators()),
               accelerators_text(node), jobs_text(node), node.place(),
               fmt::format("{}", fmt::join(remarks, ", "))});
    table.colour(1, colour_code(node.health()));
  }
  return table.text();
}

std::string LiveText::node(const v1::Node& node) const {
  FactLines facts;
  facts.add("node", node.name());
  facts.add("state", node.health() + (node.connected() ? "" : ", not connected"));
  facts.colour(colour_code(node.health()));
  facts.add("hold", hold_text(node));
  facts.add("used by others", foreign_text(node));
  facts.add("place", node.place());
  facts.add("accelerators", accelerators_text(node));
  facts.add("free", fmt::format("{}", node.free()));
  facts.add("jobs", jobs_text(node));
  facts.add("drain", drain_text(node));
  facts.add("out of service", node.out_why());
  facts.add("another agent", node.refused_agent());
  for (const v1::NodeClock& clock : node.clocks()) {
    facts.add("clock", fmt::format("{:.0f} % on {} of job {}", clock.clock() * 100,
                                   clock.accelerators(), clock.job()));
  }
  for (const v1::MaintenanceWindow& window : node.maintenance()) {
    facts.add("maintenance", fmt::format("{} to {}{}{}", instant_of(window.from()).text(),
                                         instant_of(window.to()).text(),
                                         window.why().empty() ? "" : ": ", window.why()));
  }
  facts.add("spare", node.spare() ? "kept free as a replacement for failed nodes" : "");
  facts.add("faults", if_any(node.faults()));
  facts.add("address", node.address());
  facts.add("machine", node.machine());
  facts.add("processor", node.processor());
  facts.add("cores", if_any(node.cores()));
  facts.add("NUMA nodes", if_any(node.numa_nodes()));
  if (node.memory_bytes() > 0) {
    facts.add("memory", size_text(node.memory_bytes()));
  }
  facts.add("kernel", node.kernel());
  facts.add("driver", node.driver());
  facts.add("firmware", node.firmware());
  facts.add("agent", node.version());
  facts.add("agent's user", node.agent_user());
  facts.add("runs jobs of", job_users_text(node));
  if (node.power_w() > 0) facts.add("power", fmt::format("{} W", node.power_w()));
  if (node.temperature_c() > 0) facts.add("temperature", fmt::format("{} C", node.temperature_c()));
  if (!node.has_reading()) return facts.text();
  const v1::NodeReading& reading = node.reading();
  facts.add("last reading", ago(node.reading_at()));
  facts.add("health problem", reading.unwell());
  facts.add("burn-in", reading.burn_in());
  facts.add("clocks",
            reading.clock_refusal().empty() ? "" : "not as requested: " + reading.clock_refusal());
  facts.add("CPUs", fmt::format("{:.0f} % busy", reading.cpu_busy() * 100));
  facts.add("memory used", size_text(reading.memory_used_bytes()));
  facts.add("network", fmt::format("{} received, {} sent, {} errors since boot",
                                   size_text(reading.received_bytes()),
                                   size_text(reading.sent_bytes()), reading.network_errors()));
  facts.add("link errors", if_any(reading.link_errors()));
  if (reading.accelerators().empty()) return facts.text();
  return facts.text() + "\n" + device_table(reading);
}

std::string LiveText::tenants(const v1::ListTenantsResponse& tenants) const {
  TextTable table({{"TENANT"},
                   {"RUNNING", Align::kRight},
                   {"WAITING", Align::kRight},
                   {"ACCELERATORS", Align::kRight}});
  for (const v1::Tenant& tenant : tenants.tenants()) {
    table.add({tenant.path(), fmt::format("{}", tenant.running()),
               fmt::format("{}", tenant.waiting()), fmt::format("{}", tenant.accelerators())});
  }
  return table.text();
}

std::string LiveText::users(const v1::ListUsersResponse& users) const {
  TextTable table({{"NAME"}, {"ROLE"}, {"TENANT"}, {"RUN AS"}, {"TOKEN"}});
  for (const v1::User& user : users.users()) {
    const std::string end = user.has_expires() ? instant_of(user.expires()).text() : "";
    const bool over = user.has_expires() && instant_of(user.expires()) <= now;
    std::string token = end.empty() ? "does not expire" : (over ? "expired " : "until ") + end;
    if (user.replaced()) token.insert(0, "older token, ");
    table.add({user.name(), user.role(), user.tenant(), user.run_as(), std::move(token)});
  }
  return table.text();
}

namespace {

/// Returns the time of the nodes that a manager lends, as a line.
std::string lent_text(const v1::LentTime& lent) {
  constexpr double kHour = 3600;
  std::string text = fmt::format("{} lent {:.3f} node-hours in {}",
                                 terminal_text(lent.manager(), Newlines::kEscaped),
                                 lent.node_s() / kHour, counted(lent.holds(), "hold"));
  if (lent.node_s() > 0) {
    text += fmt::format("; jobs used {:.1f} % of them", 100 * lent.used_node_s() / lent.node_s());
  }
  if (lent.running() > 0) {
    text += fmt::format("; {:.3f} more so far in {}", lent.running_node_s() / kHour,
                        counted(lent.running(), "hold"));
  }
  return text + "\n";
}

}  // namespace

std::string LiveText::tenant_bills(const v1::ListTenantsResponse& tenants) const {
  TextTable table(bill_columns({{"TENANT"}}));
  for (const v1::Tenant& tenant : tenants.tenants()) {
    std::vector<std::string> row = bill_cells(tenant.bill());
    row.insert(row.begin(), tenant.path());
    table.add(std::move(row));
  }
  std::string text = table.text();
  for (const v1::LentTime& lent : tenants.lent()) text += lent_text(lent);
  return text;
}

std::string LiveText::job_bills(const std::vector<v1::Job>& jobs) const {
  TextTable table(bill_columns({{"ID", Align::kRight}, {"NAME"}, {"TENANT"}, {"STATE"}}));
  for (const v1::Job& job : jobs) {
    std::vector<std::string> row{fmt::format("{}", job.id()), job.name(), job.tenant(),
                                 job.phase()};
    for (std::string& cell : bill_cells(job.bill())) row.push_back(std::move(cell));
    table.add(std::move(row));
    table.colour(3, colour_code(job.phase()));
  }
  return table.text();
}

}  // namespace orrery
