#include "api/agents/agent_messages.hpp"

#include <utility>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

std::string text(std::string_view words) {
  std::string good(words);
  std::size_t from = 0;
  while (true) {
    const std::size_t bad = first_invalid_utf8(std::string_view(good).substr(from));
    if (bad == good.npos) return good;
    good[from + bad] = '?';
    from += bad + 1;
  }
}

template <class Enum>
std::uint32_t number(Enum value) {
  return static_cast<std::uint32_t>(value);
}

// --- What both directions share -----------------------------------------------------------------

void write(const OrderStamp& stamp, v1::OrderStamp* out) {
  out->set_term(stamp.term);
  out->set_sequence(stamp.sequence);
}

void write(const AgentIdentity& identity, v1::AgentIdentity* out) {
  out->set_node(identity.node.value());
  out->set_boot(identity.boot);
  out->set_incarnation(identity.incarnation);
}

void write(const FenceToken& token, v1::FenceToken* out) {
  out->set_job(token.id.job.value());
  out->set_attempt(token.id.attempt);
  out->set_epoch(token.epoch);
}

void write(const AttemptId& id, v1::FenceToken* out) { write(FenceToken{id, 0}, out); }

// --- Orders -------------------------------------------------------------------------------------

void write(const RankShare& share, v1::RankShare* out) {
  out->set_gang(share.gang);
  out->set_devices(share.devices);
  out->mutable_ranks()->Assign(share.ranks.begin(), share.ranks.end());
  out->set_clock(share.clock);
  out->set_share(share.share);
}

void write(const LaunchRanks& launch, v1::AgentOrder* order) {
  v1::LaunchRanks* out = order->mutable_launch();
  write(launch.token, out->mutable_token());
  for (const RankShare& share : launch.shares) write(share, out->add_shares());
  out->set_delay_ns(launch.delay.count_ns());
  out->set_grace_ns(launch.grace.count_ns());
  out->mutable_lease()->set_kind(launch.lease.kind == Lease::Kind::kBinding ? v1::Lease::BINDING
                                                                            : v1::Lease::ORPHAN);
  out->mutable_lease()->set_length_ns(launch.lease.length.count_ns());
  out->set_heard_ns(launch.heard.ns());
}

void write(const EndRanks& end, v1::AgentOrder* order) {
  write(end.token, order->mutable_end()->mutable_token());
  order->mutable_end()->set_grace_ns(end.grace.count_ns());
}

void write(const KillRanks& kill, v1::AgentOrder* order) {
  write(kill.token, order->mutable_kill()->mutable_token());
}

void write(const RenewLease& renewal, v1::AgentOrder* order) {
  write(renewal.id, order->mutable_renew()->mutable_attempt());
  order->mutable_renew()->set_heard_ns(renewal.heard.ns());
}

void write(const MendNode& mend, v1::AgentOrder* order) {
  order->mutable_mend()->set_layer(number(mend.layer));
}

void write(const Reconcile&, v1::AgentOrder* order) { (void)order->mutable_reconcile(); }

void write(const Acknowledge& ack, v1::AgentOrder* order) {
  order->mutable_acknowledge()->set_number(ack.number);
}

void write(const GangLayout& layout, v1::GangLayout* out) {
  out->set_gang(layout.gang);
  for (const GangNode& node : layout.nodes) {
    v1::GangLayout::Node* each = out->add_nodes();
    each->set_address(text(node.address));
    each->mutable_ranks()->Assign(node.ranks.begin(), node.ranks.end());
  }
  out->set_here(layout.here);
  out->set_master_port(layout.master_port);
  out->set_restarts(layout.restarts);
}

void write(const NodeProgram& program, v1::Program* out) {
  out->set_job(text(program.job));
  out->set_tenant(text(program.tenant));
  out->set_plan(text(program.plan));
  out->set_framework(text(program.framework));
  out->set_per(program.per == LaunchUnit::kNode ? v1::Program::NODE : v1::Program::ACCELERATOR);
  for (const std::string& word : program.command) out->add_command(text(word));
  for (const auto& [name, value] : program.environment) {
    v1::Variable* variable = out->add_environment();
    variable->set_name(text(name));
    variable->set_value(text(value));
  }
  out->set_directory(text(program.directory));
  out->set_restarts_max(program.restarts_max);
  out->set_work_steps(program.work_steps);
  for (const GangLayout& layout : program.gangs) write(layout, out->add_gangs());
  out->set_user(text(program.user));
  for (const RankNeeds& needs : program.needs) {
    v1::RankNeeds* each = out->add_needs();
    each->set_gang(needs.gang);
    each->set_cpu_thousandths(needs.cpu);
    each->set_memory_mib(needs.memory);
  }
  out->set_output(text(program.copies.output));
  out->set_error(text(program.copies.errors));
}

void write(const AgentWelcome& welcome, v1::ControllerMessage* message) {
  v1::Welcome* out = message->mutable_welcome();
  out->set_cluster(welcome.cluster);
  out->set_node(welcome.node.value());
  out->set_beat_ns(welcome.beat.count_ns());
  out->set_repeat_ns(welcome.repeat.count_ns());
}

void write(const NodeOrder& ordered, v1::ControllerMessage* message) {
  v1::AgentOrder* out = message->mutable_order();
  out->set_cluster(ordered.order.cluster);
  write(ordered.order.stamp, out->mutable_stamp());
  write(ordered.order.to, out->mutable_to());
  std::visit([&](const auto& what) { write(what, out); }, ordered.order.what);
  if (out->has_launch()) write(ordered.program, out->mutable_launch()->mutable_program());
}

void write(const BurnIn&, v1::ControllerMessage* message) { (void)message->mutable_burn_in(); }

void write(const AttemptLogQuestion& question, v1::ControllerMessage* message) {
  v1::LogQuestion* out = message->mutable_log();
  out->set_id(question.id);
  write(question.attempt, out->mutable_attempt());
  out->set_gang(question.log.gang);
  out->set_rank(question.log.rank);
  out->set_from(question.log.from);
  if (question.since) out->set_since_ns(question.since->ns());
}

void write(const TerminalSize& size, v1::ExecTerminal* out) {
  out->set_columns(size.columns);
  out->set_rows(size.rows);
}

void write(const AttemptExecOpen& asked, v1::ControllerMessage* message) {
  v1::ExecOpen* out = message->mutable_exec_open();
  out->set_id(asked.open.id);
  write(asked.attempt, out->mutable_attempt());
  out->set_gang(asked.open.gang);
  out->set_rank(asked.open.rank);
  for (const std::string& word : asked.open.command) out->add_command(text(word));
  if (asked.open.terminal) write(*asked.open.terminal, out->mutable_terminal());
  out->set_terminal_type(text(asked.open.terminal_type));
}

void write(const ExecInput& input, v1::ControllerMessage* message) {
  v1::ExecInput* out = message->mutable_exec_input();
  out->set_id(input.id);
  out->set_bytes(input.bytes);
  out->set_end(input.end);
  if (input.terminal) write(*input.terminal, out->mutable_terminal());
  out->set_taken(input.taken);
  out->set_close(input.close);
}

// --- Reports ------------------------------------------------------------------------------------

void write(const Blame& blame, v1::Blame* out) {
  out->set_layer(number(blame.layer));
  if (blame.node.valid()) out->set_node(blame.node.value());
  out->set_evidence(text(blame.evidence));
}

void write(const Progress& progress, v1::RankProgress* out) {
  out->set_done(progress.done);
  out->set_lost_ns(progress.lost.count_ns());
  out->set_saving_ns(progress.saving.count_ns());
  out->set_undetected_ns(progress.undetected.count_ns());
}

void write(const AttemptReport& report, v1::AttemptReport* out) {
  write(report.token, out->mutable_token());
  out->set_stage(number(report.stage));
  if (report.up_epoch) out->set_up_epoch(*report.up_epoch);
  out->set_shed_epoch(report.shed_epoch);
  out->mutable_clocks()->Assign(report.clocks.begin(), report.clocks.end());
  if (report.end) {
    out->mutable_end()->set_kind(number(report.end->kind));
    write(report.end->blame, out->mutable_end()->mutable_blame());
    if (report.end->exit) {
      out->mutable_end()->set_exit_status(report.end->exit->status);
      out->mutable_end()->set_exit_rank(report.end->exit->rank);
    }
  }
  write(report.progress, out->mutable_progress());
  write(report.applied, out->mutable_applied());
}

void write(const Hello& hello, v1::AgentReport* report) {
  v1::Hello* out = report->mutable_hello();
  write(hello.answers, out->mutable_answers());
  out->set_at_ns(hello.at.ns());
  for (const NumberedReport& attempt : hello.attempts) {
    v1::NumberedReport* each = out->add_attempts();
    each->set_number(attempt.number);
    write(attempt.report, each->mutable_report());
  }
}

void write(const Heartbeat& beat, v1::AgentReport* report) {
  v1::Heartbeat* out = report->mutable_heartbeat();
  out->set_sequence(beat.sequence);
  out->set_at_ns(beat.at.ns());
  out->mutable_signals()->set_power_w(beat.signals.power_w);
  out->mutable_signals()->set_temperature_c(beat.signals.temperature_c);
  out->mutable_signals()->set_xid_count(beat.signals.xid_count);
  out->mutable_signals()->set_ecc_count(beat.signals.ecc_count);
  out->mutable_signals()->set_link_errors(beat.signals.link_errors);
}

void write(const AttemptReport& attempt, v1::AgentReport* report) {
  write(attempt, report->mutable_attempt());
}

void write(const Refused& refused, v1::AgentReport* report) {
  write(refused.stamp, report->mutable_refused()->mutable_stamp());
  report->mutable_refused()->set_why(number(refused.why));
  report->mutable_refused()->set_term(refused.term);
}

void write(const HealthFault& fault, v1::AgentReport* report) {
  v1::HealthFault* out = report->mutable_fault();
  out->set_layer(number(fault.layer));
  out->set_evidence(text(fault.evidence));
  out->set_repair(fault.repair);
  out->set_stops_jobs(fault.stops_jobs);
  if (fault.claimed_by.job.valid()) write(fault.claimed_by, out->mutable_claimed_by());
}

void write(const Mended&, v1::AgentReport* report) { (void)report->mutable_mended(); }

void write(const AgentOpening& opening, v1::AgentMessage* message) {
  v1::AgentOpen* out = message->mutable_open();
  out->set_node(text(opening.node));
  out->set_address(text(opening.address));
  out->set_boot(opening.boot);
  out->set_incarnation(opening.incarnation);
  out->set_version(text(opening.version));
  out->set_process(opening.process);
  out->set_user(text(opening.user));
  out->set_job_users(static_cast<v1::AgentOpen::JobUsers>(number(opening.job_users)));
  out->set_runs_commands(opening.runs_commands);
  v1::Inventory* inventory = out->mutable_inventory();
  inventory->set_accelerator(text(opening.inventory.accelerator));
  inventory->set_accelerators(opening.inventory.accelerators);
  inventory->set_emulated(opening.inventory.emulated);
  inventory->set_cores(opening.inventory.cores);
  inventory->set_memory_bytes(opening.inventory.memory_bytes);
  inventory->set_kernel(text(opening.inventory.kernel));
  inventory->set_driver(text(opening.inventory.driver));
  inventory->set_machine(text(opening.inventory.machine));
  inventory->set_firmware(text(opening.inventory.firmware));
  inventory->set_processor(text(opening.inventory.processor));
  inventory->set_packages(opening.inventory.packages);
  inventory->set_numa_nodes(opening.inventory.numa_nodes);
}

void write(const Report& report, v1::AgentMessage* message) {
  v1::AgentReport* out = message->mutable_report();
  write(report.from, out->mutable_from());
  out->set_number(report.number);
  std::visit([&](const auto& what) { write(what, out); }, report.what);
}

void write(const LogPart& part, v1::LogPart* out) {
  out->set_from(part.from);
  out->set_bytes(part.bytes);
}

void write(const AttemptLogPart& part, v1::AgentMessage* message) {
  v1::LogPart* out = message->mutable_log();
  out->set_id(part.id);
  out->set_found(part.found);
  out->set_size(part.size);
  if (part.since_from) out->set_since_from(*part.since_from);
  write(part.part, out);
}

void write(const KeptLog& kept, v1::AgentMessage* message) {
  v1::KeptLog* out = message->mutable_kept_log();
  write(kept.attempt, out->mutable_attempt());
  out->set_gang(kept.gang);
  out->set_rank(kept.rank);
  write(kept.part, out->mutable_part());
}

void write(const ExecOutput& output, v1::AgentMessage* message) {
  v1::ExecOutput* out = message->mutable_exec_output();
  out->set_id(output.id);
  out->set_output(output.output);
  out->set_errors(output.errors);
  out->set_taken(output.taken);
}

void write(const ExecEnd& end, v1::AgentMessage* message) {
  v1::ExecEnd* out = message->mutable_exec_end();
  out->set_id(end.id);
  out->set_status(end.status);
  out->set_error(text(end.error));
}

void write(const AttemptNotes& said, v1::AgentMessage* message) {
  v1::RankNotes* out = message->mutable_notes();
  write(said.attempt, out->mutable_attempt());
  out->set_step(said.progress.step);
  out->set_saved_step(said.progress.saved_step);
  out->set_tokens(said.progress.tokens);
  out->set_loss(said.progress.loss);
  out->set_checkpoint(text(said.progress.checkpoint));
  out->set_bad_lines(said.progress.bad_lines);
  for (const std::string& note : said.notes) out->add_notes(text(note));
  for (const RankPace& pace : said.paces) {
    v1::RankPace* own = out->add_paces();
    own->set_rank(pace.rank);
    own->set_seconds(pace.seconds);
  }
}

void write(const AcceleratorReading& reading, v1::AcceleratorReading* out) {
  if (reading.power_w) out->set_power_w(*reading.power_w);
  if (reading.temperature_c) out->set_temperature_c(*reading.temperature_c);
  if (reading.busy) out->set_busy(*reading.busy);
  if (reading.memory_bytes) out->set_memory_bytes(*reading.memory_bytes);
  if (reading.memory_used_bytes) out->set_memory_used_bytes(*reading.memory_used_bytes);
  if (reading.memory_errors) out->set_memory_errors(*reading.memory_errors);
  if (reading.link_errors) out->set_link_errors(*reading.link_errors);
  if (reading.clock) out->set_clock(*reading.clock);
}

void write(const NodeReading& reading, v1::AgentMessage* message) {
  *message->mutable_reading() = to_proto(reading);
}

}  // namespace

v1::AgentMessage to_proto(const AgentMessage& message) {
  v1::AgentMessage out;
  std::visit([&](const auto& what) { write(what, &out); }, message);
  return out;
}

v1::NodeReading to_proto(const NodeReading& reading) {
  v1::NodeReading out;
  out.set_cpu_busy(reading.cpu_busy);
  out.set_memory_bytes(reading.memory_bytes);
  out.set_memory_used_bytes(reading.memory_used_bytes);
  out.set_received_bytes(reading.received_bytes);
  out.set_sent_bytes(reading.sent_bytes);
  out.set_network_errors(reading.network_errors);
  out.set_link_errors(reading.link_errors);
  for (const AcceleratorReading& each : reading.accelerators) write(each, out.add_accelerators());
  out.set_unwell(text(reading.unwell));
  out.set_clock_refusal(text(reading.clock_refusal));
  out.set_burn_in(text(reading.burn_in));
  return out;
}

v1::ControllerMessage to_proto(const ControllerMessage& message) {
  v1::ControllerMessage out;
  std::visit([&](const auto& what) { write(what, &out); }, message);
  return out;
}

}  // namespace orrery
