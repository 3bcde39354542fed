// Reads messages from protobuf: bytes from a network may have any content, so every number is
// checked before it becomes one of the project's values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "api/agents/agent_messages.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {
namespace {

/// Keeps the first error; values read after it are ignored.
class MessageReader {
 public:
  [[nodiscard]] AgentMessage read(const v1::AgentMessage& in);
  [[nodiscard]] ControllerMessage read(const v1::ControllerMessage& in);
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  // --- Numbers
  void complain(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  template <class Enum>
  Enum choice(std::uint32_t value, Enum last, std::string_view what) {
    if (value <= static_cast<std::uint32_t>(last)) return static_cast<Enum>(value);
    complain(fmt::format("{} {}, expected 0 to {}", what, value, static_cast<std::uint32_t>(last)));
    return Enum{};
  }
  template <std::unsigned_integral Number>
  Number natural(std::uint64_t value, Number max, std::string_view what) {
    if (value <= max) return static_cast<Number>(value);
    complain(fmt::format("{} {}, expected at most {}", what, value, max));
    return 0;
  }
  template <class Name>
  Name id(std::uint64_t value, std::string_view what) {
    // The highest number means none.
    return Name(natural(value, std::numeric_limits<std::uint32_t>::max() - 1, what));
  }
  Duration span(std::int64_t ns, std::string_view what) {
    if (ns < 0) complain(fmt::format("{} {} ns, expected none below 0", what, ns));
    return Duration::nanoseconds(ns);
  }
  double clock(double value) {
    if (!std::isfinite(value) || value <= 0) {
      complain(fmt::format("clock {}, expected a part of the full one", value));
    }
    return value;
  }

  // --- What both directions share
  static OrderStamp stamp(const v1::OrderStamp& in) { return {in.term(), in.sequence()}; }
  AgentIdentity identity(const v1::AgentIdentity& in) {
    return {id<NodeId>(in.node(), "node"), in.boot(), in.incarnation()};
  }
  AttemptId attempt_id(const v1::FenceToken& in) {
    return {id<JobId>(in.job(), "job"), in.attempt()};
  }
  FenceToken token(const v1::FenceToken& in) { return {attempt_id(in), in.epoch()}; }

  OrderKind order_kind(const v1::AgentOrder& in);
  LaunchRanks launch(const v1::LaunchRanks& in);
  RankShare share(const v1::RankShare& in);
  NodeProgram program(const v1::Program& in);
  GangLayout layout(const v1::GangLayout& in);
  void check(const LaunchRanks& launch, const NodeProgram& program);
  void check_whole(const GangLayout& layout);

  AttemptExecOpen exec_open(const v1::ExecOpen& in);
  ExecInput exec_input(const v1::ExecInput& in);
  TerminalSize terminal(const v1::ExecTerminal& in);

  Report report(const v1::AgentReport& in);
  ReportKind report_kind(const v1::AgentReport& in);
  AttemptReport attempt(const v1::AttemptReport& in);
  Progress progress(const v1::RankProgress& in);
  Blame blame(const v1::Blame& in);
  Signals signals(const v1::Signals& in);
  Hello hello(const v1::Hello& in);
  AttemptNotes notes(const v1::RankNotes& in);
  NodeReading reading(const v1::NodeReading& in);
  AcceleratorReading reading(const v1::AcceleratorReading& in);
  double part(double value, std::string_view what);
  static AgentOpening opening(const v1::AgentOpen& in);

  std::string wrong_;
};

template <class Repeated>
std::vector<std::uint32_t> numbers(const Repeated& in) {
  return {in.begin(), in.end()};
}

// --- From the controller ------------------------------------------------------------------------

ControllerMessage MessageReader::read(const v1::ControllerMessage& in) {
  if (in.has_welcome()) {
    const v1::Welcome& welcome = in.welcome();
    if (welcome.beat_ns() <= 0 || welcome.repeat_ns() <= 0) complain("a beat that is no time");
    return AgentWelcome{welcome.cluster(), id<NodeId>(welcome.node(), "node"),
                        Duration::nanoseconds(welcome.beat_ns()),
                        Duration::nanoseconds(welcome.repeat_ns())};
  }
  if (in.has_log()) {
    const v1::LogQuestion& log = in.log();
    AttemptLogQuestion question{
        log.id(), attempt_id(log.attempt()), {log.gang(), log.rank(), log.from()}, {}};
    if (log.has_since_ns()) question.since = Instant::from_ns(log.since_ns());
    return question;
  }
  if (in.has_burn_in()) return BurnIn{};
  if (in.has_exec_open()) return exec_open(in.exec_open());
  if (in.has_exec_input()) return exec_input(in.exec_input());
  NodeOrder ordered;
  if (!in.has_order()) {
    complain("a message that says nothing");
    return ordered;
  }
  const v1::AgentOrder& order = in.order();
  ordered.order = {order.cluster(), stamp(order.stamp()), identity(order.to()), order_kind(order)};
  if (const auto* ranks = std::get_if<LaunchRanks>(&ordered.order.what)) {
    ordered.program = program(order.launch().program());
    check(*ranks, ordered.program);
  }
  return ordered;
}

OrderKind MessageReader::order_kind(const v1::AgentOrder& in) {
  switch (in.what_case()) {
    case v1::AgentOrder::kLaunch:
      return launch(in.launch());
    case v1::AgentOrder::kEnd:
      return EndRanks{token(in.end().token()), span(in.end().grace_ns(), "grace")};
    case v1::AgentOrder::kKill:
      return KillRanks{token(in.kill().token())};
    case v1::AgentOrder::kRenew:
      return RenewLease{attempt_id(in.renew().attempt()), Instant::from_ns(in.renew().heard_ns())};
    case v1::AgentOrder::kMend:
      return MendNode{choice(in.mend().layer(), FaultLayer::kController, "layer")};
    case v1::AgentOrder::kReconcile:
      return Reconcile{};
    case v1::AgentOrder::kAcknowledge:
      return Acknowledge{in.acknowledge().number()};
    case v1::AgentOrder::WHAT_NOT_SET:
      break;
  }
  complain("an order that says nothing");
  return Reconcile{};
}

LaunchRanks MessageReader::launch(const v1::LaunchRanks& in) {
  LaunchRanks out;
  out.token = token(in.token());
  out.shares.reserve(static_cast<std::size_t>(in.shares_size()));
  for (const v1::RankShare& each : in.shares()) out.shares.push_back(share(each));
  out.delay = span(in.delay_ns(), "delay");
  out.grace = span(in.grace_ns(), "grace");
  out.lease = {choice(static_cast<std::uint32_t>(in.lease().kind()), Lease::Kind::kBinding,
                      "kind of a lease"),
               span(in.lease().length_ns(), "lease")};
  out.heard = Instant::from_ns(in.heard_ns());
  return out;
}

RankShare MessageReader::share(const v1::RankShare& in) {
  RankShare out{in.gang(), in.devices(), numbers(in.ranks()), clock(in.clock())};
  out.share = natural(in.share(), kWholeDevice, "share of a device");
  if (out.share == 0) complain("no share of a device");
  return out;
}

NodeProgram MessageReader::program(const v1::Program& in) {
  NodeProgram out{
      .job = in.job(), .tenant = in.tenant(), .plan = in.plan(), .framework = in.framework()};
  out.per = choice(static_cast<std::uint32_t>(in.per()), LaunchUnit::kNode, "process per");
  out.command = {in.command().begin(), in.command().end()};
  out.environment.reserve(static_cast<std::size_t>(in.environment_size()));
  for (const v1::Variable& variable : in.environment()) {
    out.environment.emplace_back(variable.name(), variable.value());
  }
  out.directory = in.directory();
  out.restarts_max = in.restarts_max();
  out.work_steps = in.work_steps();
  out.gangs.reserve(static_cast<std::size_t>(in.gangs_size()));
  for (const v1::GangLayout& each : in.gangs()) out.gangs.push_back(layout(each));
  out.user = in.user();
  out.needs.reserve(static_cast<std::size_t>(in.needs_size()));
  for (const v1::RankNeeds& each : in.needs()) {
    out.needs.push_back({each.gang(), each.cpu_thousandths(), each.memory_mib()});
  }
  out.copies = {in.output(), in.error()};
  return out;
}

GangLayout MessageReader::layout(const v1::GangLayout& in) {
  GangLayout out{.gang = in.gang(), .nodes = {}, .here = in.here()};
  out.nodes.reserve(static_cast<std::size_t>(in.nodes_size()));
  for (const v1::GangLayout::Node& node : in.nodes()) {
    out.nodes.push_back({node.address(), numbers(node.ranks())});
  }
  out.master_port =
      natural(in.master_port(), std::numeric_limits<std::uint16_t>::max(), "master port");
  out.restarts = in.restarts();
  check_whole(out);
  return out;
}

void MessageReader::check_whole(const GangLayout& layout) {
  std::vector<std::uint32_t> ranks;
  for (const GangNode& node : layout.nodes) {
    ranks.insert(ranks.end(), node.ranks.begin(), node.ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == i) continue;
    return complain(fmt::format("the ranks of gang {} do not count from 0 to {}", layout.gang,
                                ranks.size() - 1));
  }
}

void MessageReader::check(const LaunchRanks& launch, const NodeProgram& program) {
  if (program.command.empty() || program.command[0].empty()) complain("no program");
  if (std::string what = launch_complaint(launch, program.gangs); !what.empty()) {
    return complain(std::move(what));
  }
  for (const RankShare& share : launch.shares) {
    const GangLayout& layout = layout_of(share.gang, program.gangs);
    if (layout.nodes[layout.here].ranks == share.ranks) continue;
    complain(fmt::format("other ranks of gang {} here than its layout says", share.gang));
  }
}

TerminalSize MessageReader::terminal(const v1::ExecTerminal& in) {
  constexpr std::uint16_t kMost = std::numeric_limits<std::uint16_t>::max();
  return {natural(in.columns(), kMost, "columns of a terminal"),
          natural(in.rows(), kMost, "rows of a terminal")};
}

AttemptExecOpen MessageReader::exec_open(const v1::ExecOpen& in) {
  AttemptExecOpen out{attempt_id(in.attempt()),
                      {.id = in.id(), .gang = in.gang(), .rank = in.rank()}};
  out.open.command = {in.command().begin(), in.command().end()};
  if (in.has_terminal()) out.open.terminal = terminal(in.terminal());
  out.open.terminal_type = in.terminal_type();
  return out;
}

ExecInput MessageReader::exec_input(const v1::ExecInput& in) {
  ExecInput out{.id = in.id(), .bytes = in.bytes(), .end = in.end()};
  if (in.has_terminal()) out.terminal = terminal(in.terminal());
  out.taken = in.taken();
  out.close = in.close();
  return out;
}

// --- From an agent ------------------------------------------------------------------------------

AgentMessage MessageReader::read(const v1::AgentMessage& in) {
  switch (in.what_case()) {
    case v1::AgentMessage::kOpen:
      return opening(in.open());
    case v1::AgentMessage::kReport:
      return report(in.report());
    case v1::AgentMessage::kLog: {
      const v1::LogPart& log = in.log();
      AttemptLogPart part{log.id(), log.found(), log.size(), {log.from(), log.bytes()}, {}};
      if (log.has_since_from()) part.since_from = log.since_from();
      return part;
    }
    case v1::AgentMessage::kKeptLog: {
      const v1::KeptLog& kept = in.kept_log();
      return KeptLog{attempt_id(kept.attempt()),
                     kept.gang(),
                     kept.rank(),
                     {kept.part().from(), kept.part().bytes()}};
    }
    case v1::AgentMessage::kNotes:
      return notes(in.notes());
    case v1::AgentMessage::kReading:
      return reading(in.reading());
    case v1::AgentMessage::kExecOutput: {
      const v1::ExecOutput& output = in.exec_output();
      return ExecOutput{output.id(), output.output(), output.errors(), output.taken()};
    }
    case v1::AgentMessage::kExecEnd:
      return ExecEnd{in.exec_end().id(), in.exec_end().status(), in.exec_end().error()};
    case v1::AgentMessage::WHAT_NOT_SET:
      break;
  }
  complain("a message that says nothing");
  return AgentOpening{};
}

/// Values that only a newer agent could send are ignored.
JobUsers job_users_of(const v1::AgentOpen& in) {
  const auto told = static_cast<std::uint32_t>(in.job_users());
  const bool known = told <= static_cast<std::uint32_t>(JobUsers::kAny);
  return known ? static_cast<JobUsers>(told) : JobUsers::kUntold;
}

AgentOpening MessageReader::opening(const v1::AgentOpen& in) {
  const v1::Inventory& has = in.inventory();
  return {in.node(),
          in.address(),
          in.boot(),
          in.incarnation(),
          in.version(),
          {has.accelerator(), has.accelerators(), has.emulated(), has.cores(), has.memory_bytes(),
           has.kernel(), has.driver(), has.machine(), has.firmware(), has.processor(),
           has.packages(), has.numa_nodes()},
          in.process(),
          {},
          in.user(),
          job_users_of(in),
          in.runs_commands()};
}

Report MessageReader::report(const v1::AgentReport& in) {
  return {identity(in.from()), in.number(), report_kind(in)};
}

ReportKind MessageReader::report_kind(const v1::AgentReport& in) {
  switch (in.what_case()) {
    case v1::AgentReport::kHello:
      return hello(in.hello());
    case v1::AgentReport::kHeartbeat:
      return Heartbeat{in.heartbeat().sequence(), Instant::from_ns(in.heartbeat().at_ns()),
                       signals(in.heartbeat().signals())};
    case v1::AgentReport::kAttempt:
      return attempt(in.attempt());
    case v1::AgentReport::kRefused:
      return Refused{stamp(in.refused().stamp()),
                     choice(in.refused().why(), RefusalReason::kLeaseOver, "reason to refuse"),
                     in.refused().term()};
    case v1::AgentReport::kFault:
      return HealthFault{
          choice(in.fault().layer(), FaultLayer::kController, "layer"), in.fault().evidence(),
          in.fault().repair(), in.fault().stops_jobs(),
          in.fault().has_claimed_by() ? attempt_id(in.fault().claimed_by()) : AttemptId{}};
    case v1::AgentReport::kMended:
      return Mended{};
    case v1::AgentReport::WHAT_NOT_SET:
      break;
  }
  complain("a report that says nothing");
  return Mended{};
}

Hello MessageReader::hello(const v1::Hello& in) {
  Hello out{stamp(in.answers()), Instant::from_ns(in.at_ns()), {}};
  out.attempts.reserve(static_cast<std::size_t>(in.attempts_size()));
  for (const v1::NumberedReport& each : in.attempts()) {
    out.attempts.push_back({each.number(), attempt(each.report())});
  }
  return out;
}

AttemptReport MessageReader::attempt(const v1::AttemptReport& in) {
  AttemptReport out;
  out.token = token(in.token());
  out.stage = choice(in.stage(), RankStage::kGone, "stage");
  if (in.has_up_epoch()) out.up_epoch = in.up_epoch();
  out.shed_epoch = in.shed_epoch();
  out.clocks.reserve(static_cast<std::size_t>(in.clocks_size()));
  for (const double each : in.clocks()) out.clocks.push_back(clock(each));
  if (in.has_end()) {
    out.end = AttemptEnd{choice(in.end().kind(), ExitKind::kRefused, "kind of an end"),
                         blame(in.end().blame())};
    if (in.end().has_exit_status()) {
      out.end->exit = RankExit{in.end().exit_rank(), in.end().exit_status()};
    }
  }
  out.progress = progress(in.progress());
  out.applied = stamp(in.applied());
  return out;
}

Progress MessageReader::progress(const v1::RankProgress& in) {
  if (!(in.done() >= 0 && in.done() <= 1)) {
    complain(fmt::format("{} of the work done, expected 0 to 1", in.done()));
  }
  return {in.done(), span(in.lost_ns(), "time lost"), span(in.saving_ns(), "time of saving"),
          span(in.undetected_ns(), "time undetected")};
}

Blame MessageReader::blame(const v1::Blame& in) {
  Blame out{.layer = choice(in.layer(), FaultLayer::kController, "layer"),
            .evidence = in.evidence()};
  if (in.has_node()) out.node = id<NodeId>(in.node(), "node");
  return out;
}

Signals MessageReader::signals(const v1::Signals& in) {
  constexpr auto kMax = std::numeric_limits<std::uint16_t>::max();
  return {in.power_w(), natural(in.temperature_c(), kMax, "temperature"),
          natural(in.xid_count(), kMax, "number of driver errors"), in.ecc_count(),
          in.link_errors()};
}

AttemptNotes MessageReader::notes(const v1::RankNotes& in) {
  AttemptNotes out{
      attempt_id(in.attempt()),
      {in.step(), in.saved_step(), in.tokens(), in.loss(), in.checkpoint(), in.bad_lines()},
      {in.notes().begin(), in.notes().end()},
      {}};
  out.paces.reserve(static_cast<std::size_t>(in.paces_size()));
  for (const v1::RankPace& pace : in.paces()) {
    if (!(pace.seconds() >= 0 && std::isfinite(pace.seconds()))) {
      complain("seconds of a step that are no time");
    }
    out.paces.push_back({pace.rank(), pace.seconds()});
  }
  return out;
}

double MessageReader::part(double value, std::string_view what) {
  if (!(value >= 0 && value <= 1)) complain(fmt::format("{} {}, expected 0 to 1", what, value));
  return value;
}

AcceleratorReading MessageReader::reading(const v1::AcceleratorReading& in) {
  AcceleratorReading out;
  const bool finite = std::isfinite(in.power_w()) && std::isfinite(in.temperature_c());
  if (!finite) complain("a power or temperature that is no number");
  if (in.has_power_w()) out.power_w = in.power_w();
  if (in.has_temperature_c()) out.temperature_c = in.temperature_c();
  if (in.has_busy()) out.busy = part(in.busy(), "part of an accelerator");
  if (in.has_memory_bytes()) out.memory_bytes = in.memory_bytes();
  if (in.has_memory_used_bytes()) out.memory_used_bytes = in.memory_used_bytes();
  if (in.has_memory_errors()) out.memory_errors = in.memory_errors();
  if (in.has_link_errors()) out.link_errors = in.link_errors();
  if (in.has_clock()) out.clock = part(in.clock(), "clock");
  return out;
}

NodeReading MessageReader::reading(const v1::NodeReading& in) {
  NodeReading out{part(in.cpu_busy(), "part of the CPUs"),
                  in.memory_bytes(),
                  in.memory_used_bytes(),
                  in.received_bytes(),
                  in.sent_bytes(),
                  in.network_errors(),
                  in.link_errors(),
                  {},
                  in.unwell(),
                  in.clock_refusal(),
                  in.burn_in()};
  constexpr int kDevicesMax = std::numeric_limits<std::uint64_t>::digits;  // of a mask
  if (in.accelerators_size() > kDevicesMax) {
    complain(
        fmt::format("{} accelerators, expected at most {}", in.accelerators_size(), kDevicesMax));
    return out;
  }
  out.accelerators.reserve(static_cast<std::size_t>(in.accelerators_size()));
  for (const v1::AcceleratorReading& each : in.accelerators()) {
    out.accelerators.push_back(reading(each));
  }
  return out;
}

template <class Message, class Proto>
Result<Message> read_whole(const Proto& in) {
  MessageReader reader;
  Message out = reader.read(in);
  if (!reader.wrong().empty()) return environment_error(reader.wrong());
  return out;
}

}  // namespace

Result<AgentMessage> from_proto(const v1::AgentMessage& message) {
  return read_whole<AgentMessage>(message);
}

Result<ControllerMessage> from_proto(const v1::ControllerMessage& message) {
  return read_whole<ControllerMessage>(message);
}

}  // namespace orrery
