// api/agents/agent_messages_test.cpp - messages of any content come back as they were, senseless
// ones not at all.
#include "api/agents/agent_messages.hpp"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>

#include "base/numbers/rng.hpp"
#include "control/codec/encoder.hpp"
#include "node/agent_fields.hpp"

namespace orrery {

namespace {

/// "Reads" any fields within what the messages may hold.
class AnyFields : public FieldWalk<AnyFields> {
 public:
  explicit AnyFields(Rng& rng) : rng_(rng) {}
  std::uint64_t natural(std::uint64_t, std::uint64_t max) {
    const std::uint64_t value = rng_.next_u64() >> rng_.below(64);
    return 1 + (max == std::numeric_limits<std::uint64_t>::max() ? value / 2 : value % (max - 1));
  }
  std::int64_t integer(std::int64_t, SignedRange) {
    return static_cast<std::int64_t>(1 + (rng_.next_u64() >> (1 + rng_.below(60))) / 2);
  }
  std::uint8_t choice(std::uint8_t, std::uint8_t last) {
    return static_cast<std::uint8_t>(rng_.below(std::uint64_t{last} + 1));
  }
  double real(double) { return 1 - rng_.uniform(); }
  std::size_t count(std::size_t) { return static_cast<std::size_t>(1 + rng_.below(3)); }
  void text(std::string& out) { out.assign(rng_.below(9), 'a'); }
  [[nodiscard]] static bool good() { return true; }

 private:
  Rng& rng_;
};

/// Makes a launch of any content one that can be followed.
void make_whole(NodeOrder& ordered, Rng& rng) {
  auto* launch = std::get_if<LaunchRanks>(&ordered.order.what);
  if (launch == nullptr) {
    ordered.program = {};
    return;
  }
  ordered.program.command.at(0) = "program";
  ordered.program.gangs.resize(launch->shares.size());
  for (std::size_t i = 0; i < launch->shares.size(); ++i) {
    RankShare& share = launch->shares[i];
    GangLayout& layout = ordered.program.gangs[i];
    share.gang = layout.gang = static_cast<std::uint32_t>(i);
    share.devices = 0;
    share.share = static_cast<std::uint16_t>(1 + rng.below(kWholeDevice));
    layout.nodes = {{"a", {2, 0}}, {"b", {1}}};
    layout.here = static_cast<std::uint32_t>(rng.below(2));
    share.ranks = layout.nodes[layout.here].ranks;
    const auto count = static_cast<int>(share.ranks.size());
    while (std::popcount(share.devices) < count) share.devices |= std::uint64_t{1} << rng.below(64);
  }
}

template <class Message>
std::string bytes_of(const Message& message) {
  Encoder encoder;
  encoder(message);
  return std::string(encoder.bytes());
}

/// Over the network and back.
template <class Message>
Result<Message> carried(const Message& message) {
  const auto sent = to_proto(message);
  std::remove_const_t<decltype(sent)> received;
  EXPECT_TRUE(received.ParseFromString(sent.SerializeAsString()));
  return from_proto(received);
}

template <class Message>
void expect_same(const Message& message) {
  const Result<Message> back = carried(message);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(bytes_of(*back), bytes_of(message));
}

TEST(AgentMessages, OfAgentsComeBackAsTheyWere) {
  Rng rng = Rng::stream(1, "agent messages");
  AnyFields any(rng);
  for (int i = 0; i < 500; ++i) {
    AgentMessage message;
    any(message);
    expect_same(message);
  }
}

TEST(AgentMessages, OfControllersComeBackAsTheyWere) {
  Rng rng = Rng::stream(2, "agent messages");
  AnyFields any(rng);
  for (int i = 0; i < 500; ++i) {
    ControllerMessage message;
    any(message);
    if (auto* ordered = std::get_if<NodeOrder>(&message)) make_whole(*ordered, rng);
    expect_same(message);
  }
}

TEST(AgentMessages, WhatIsAbsentStaysAbsent) {
  expect_same(AgentMessage(Report{{NodeId(0)}, 0, AttemptReport{{{JobId(0), 1}, 1}}}));
  expect_same(AgentMessage(AgentOpening{}));
  expect_same(ControllerMessage(NodeOrder{{1, {}, {NodeId(0)}, Reconcile{}}, {}}));
}

TEST(AgentMessages, AnOptionalThatIsZeroStaysPresent) {
  const AgentMessage report(
      Report{{NodeId(0)},
             0,
             AttemptReport{.token = {{JobId(0), 1}, 1},
                           .up_epoch = 0,
                           .end = AttemptEnd{.kind = ExitKind::kProgram, .exit = RankExit{0, 0}}}});
  expect_same(report);
  const auto attempt = std::get<AttemptReport>(std::get<Report>(*carried(report)).what);
  EXPECT_EQ(attempt.up_epoch, 0u);
  ASSERT_TRUE(attempt.end);
  EXPECT_TRUE(attempt.end->exit);
  const AgentMessage part(AttemptLogPart{.since_from = 0});
  expect_same(part);
  EXPECT_EQ(std::get<AttemptLogPart>(*carried(part)).since_from, 0u);
  const AgentMessage reading(NodeReading{.accelerators = {{.power_w = 0,
                                                           .temperature_c = 0,
                                                           .busy = 0,
                                                           .memory_bytes = 0,
                                                           .memory_used_bytes = 0,
                                                           .memory_errors = 0,
                                                           .link_errors = 0,
                                                           .clock = 0}}});
  expect_same(reading);
  const AcceleratorReading read = std::get<NodeReading>(*carried(reading)).accelerators.at(0);
  EXPECT_EQ(read.power_w, 0);
  EXPECT_EQ(read.memory_errors, 0u);
  EXPECT_EQ(read.clock, 0);
  const ControllerMessage question(
      AttemptLogQuestion{.attempt = {JobId(0), 1}, .since = Instant()});
  expect_same(question);
  EXPECT_EQ(std::get<AttemptLogQuestion>(*carried(question)).since, Instant());
}

TEST(AgentMessages, TextsThatAreNoneAreMendedAndLogsAreNot) {
  const std::string odd("a\xff\xc3\x28\0b", 6);
  const auto fault = carried(AgentMessage(Report{{NodeId(1)}, 2, HealthFault{{}, odd}}));
  ASSERT_TRUE(fault) << fault.error().text();
  EXPECT_EQ(std::get<HealthFault>(std::get<Report>(*fault).what).evidence,
            "a?"
            "?(?b");
  const auto log = carried(AgentMessage(AttemptLogPart{1, true, 6, {0, odd}}));
  ASSERT_TRUE(log) << log.error().text();
  EXPECT_EQ(std::get<AttemptLogPart>(*log).part.bytes, odd);
}

/// "Reads" 2, 3, 4 .. into the fields of a struct, and one element into each list.
class CountedFields : public FieldWalk<CountedFields> {
 public:
  std::uint64_t natural(std::uint64_t, std::uint64_t) { return ++last_; }
  std::int64_t integer(std::int64_t, SignedRange) { return static_cast<std::int64_t>(++last_); }
  static std::uint8_t choice(std::uint8_t, std::uint8_t last) { return last; }
  double real(double) { return static_cast<double>(++last_) / 128; }
  static std::size_t count(std::size_t) { return 1; }
  void text(std::string& out) { out = fmt::format("t{}", ++last_); }
  [[nodiscard]] static bool good() { return true; }

 private:
  std::uint64_t last_ = 1;
};

template <class T>
T counted() {
  T value;
  CountedFields fields;
  fields(value);
  return value;
}

template <class Proto>
std::string shown(const Proto& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  EXPECT_TRUE(printer.PrintToString(message, &text));
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

template <class T>
std::string wire_of_order() {
  Order order = counted<Order>();
  order.what = counted<T>();
  return shown(to_proto(ControllerMessage(NodeOrder{order, counted<NodeProgram>()})));
}

template <class T>
std::string wire_of_report() {
  return shown(to_proto(AgentMessage(Report{counted<AgentIdentity>(), 7, counted<T>()})));
}

template <class T>
std::string wire_to_agent() {
  return shown(to_proto(ControllerMessage(counted<T>())));
}

template <class T>
std::string wire_to_controller() {
  return shown(to_proto(AgentMessage(counted<T>())));
}

TEST(AgentMessages, OrdersAreOnTheWireAsInEveryRelease) {
  EXPECT_EQ(wire_of_order<LaunchRanks>(),
            "order { cluster: 2 stamp { term: 3 sequence: 4 } to { node: 4 boot: 6 "
            "incarnation: 7 } launch { token { job: 1 attempt: 3 epoch: 4 } shares { gang: 5 "
            "devices: 6 ranks: 7 clock: 0.0625 share: 9 } delay_ns: 10 grace_ns: 11 lease { "
            "kind: BINDING length_ns: 12 } heard_ns: 13 program { job: \"t2\" tenant: \"t3\" "
            "plan: \"t4\" framework: \"t5\" per: NODE command: \"t6\" environment { name: "
            "\"t7\" value: \"t8\" } directory: \"t9\" restarts_max: 10 work_steps: 11 gangs { "
            "gang: 12 nodes { address: \"t13\" ranks: 14 } here: 15 master_port: 16 restarts: "
            "17 } user: \"t18\" needs { gang: 19 cpu_thousandths: 20 memory_mib: 21 } output: "
            "\"t22\" error: \"t23\" } } }");
  EXPECT_EQ(wire_of_order<EndRanks>(),
            "order { cluster: 2 stamp { term: 3 sequence: 4 } to { node: 4 boot: 6 "
            "incarnation: 7 } end { token { job: 1 attempt: 3 epoch: 4 } grace_ns: 5 } }");
  EXPECT_EQ(wire_of_order<KillRanks>(),
            "order { cluster: 2 stamp { term: 3 sequence: 4 } to { node: 4 boot: 6 "
            "incarnation: 7 } kill { token { job: 1 attempt: 3 epoch: 4 } } }");
  EXPECT_EQ(wire_of_order<RenewLease>(),
            "order { cluster: 2 stamp { term: 3 sequence: 4 } to { node: 4 boot: 6 "
            "incarnation: 7 } renew { attempt { job: 1 attempt: 3 } heard_ns: 4 } }");
  EXPECT_EQ(wire_of_order<MendNode>(),
            "order { cluster: 2 stamp { term: 3 sequence: 4 } to { node: 4 boot: 6 "
            "incarnation: 7 } mend { layer: 8 } }");
  EXPECT_EQ(wire_of_order<Reconcile>(),
            "order { cluster: 2 stamp { term: 3 sequence: 4 } to { node: 4 boot: 6 "
            "incarnation: 7 } reconcile { } }");
  EXPECT_EQ(wire_of_order<Acknowledge>(),
            "order { cluster: 2 stamp { term: 3 sequence: 4 } to { node: 4 boot: 6 "
            "incarnation: 7 } acknowledge { number: 2 } }");
}

TEST(AgentMessages, OtherMessagesOfControllersAreOnTheWireAsInEveryRelease) {
  EXPECT_EQ(wire_to_agent<AgentWelcome>(),
            "welcome { cluster: 2 node: 2 beat_ns: 4 repeat_ns: 5 }");
  EXPECT_EQ(wire_to_agent<AttemptLogQuestion>(),
            "log { id: 2 attempt { job: 2 attempt: 4 } gang: 5 rank: 6 from: 7 since_ns: 8 }");
  EXPECT_EQ(wire_to_agent<BurnIn>(), "burn_in { }");
  EXPECT_EQ(wire_to_agent<AttemptExecOpen>(),
            "exec_open { id: 4 attempt { job: 1 attempt: 3 } gang: 5 rank: 6 command: \"t7\" "
            "terminal { columns: 8 rows: 9 } terminal_type: \"t10\" }");
  EXPECT_EQ(wire_to_agent<ExecInput>(),
            "exec_input { id: 2 bytes: \"t3\" end: true terminal { columns: 4 rows: 5 } "
            "taken: 6 close: true }");
}

TEST(AgentMessages, ReportsAreOnTheWireAsInEveryRelease) {
  EXPECT_EQ(wire_of_report<Hello>(),
            "report { from { node: 1 boot: 3 incarnation: 4 } number: 7 hello { answers { "
            "term: 2 sequence: 3 } at_ns: 4 attempts { number: 5 report { token { job: 5 "
            "attempt: 7 epoch: 8 } stage: 6 up_epoch: 9 shed_epoch: 10 clocks: 0.0859375 end "
            "{ kind: 4 blame { layer: 8 node: 11 evidence: \"t13\" } exit_status: 15 "
            "exit_rank: 14 } progress { done: 0.125 lost_ns: 17 saving_ns: 18 undetected_ns: "
            "19 } applied { term: 20 sequence: 21 } replica { phase: 4 endpoint: \"t22\" pid: 23 "
            "slots: 24 pace { prefill_tokens_s: 0.1953125 step_s: 0.203125 step_full_s: 0.2109375 "
            "} kv_tokens: 28 kv_events: \"t29\" } } } } }");
  EXPECT_EQ(wire_of_report<Heartbeat>(),
            "report { from { node: 1 boot: 3 incarnation: 4 } number: 7 heartbeat { sequence: "
            "2 at_ns: 3 signals { power_w: 4 temperature_c: 5 xid_count: 6 ecc_count: 7 "
            "link_errors: 8 } } }");
  EXPECT_EQ(wire_of_report<AttemptReport>(),
            "report { from { node: 1 boot: 3 incarnation: 4 } number: 7 attempt { token { "
            "job: 1 attempt: 3 epoch: 4 } stage: 6 up_epoch: 5 shed_epoch: 6 clocks: "
            "0.0546875 end { kind: 4 blame { layer: 8 node: 7 evidence: \"t9\" } exit_status: "
            "11 exit_rank: 10 } progress { done: 0.09375 lost_ns: 13 saving_ns: 14 "
            "undetected_ns: 15 } applied { term: 16 sequence: 17 } replica { phase: 4 endpoint: "
            "\"t18\" pid: 19 slots: 20 pace { prefill_tokens_s: 0.1640625 step_s: 0.171875 "
            "step_full_s: 0.1796875 } kv_tokens: 24 kv_events: \"t25\" } } }");
  EXPECT_EQ(wire_of_report<Refused>(),
            "report { from { node: 1 boot: 3 incarnation: 4 } number: 7 refused { stamp { "
            "term: 2 sequence: 3 } why: 6 term: 4 } }");
  EXPECT_EQ(wire_of_report<HealthFault>(),
            "report { from { node: 1 boot: 3 incarnation: 4 } number: 7 fault { layer: 8 "
            "evidence: \"t2\" repair: true stops_jobs: true claimed_by { job: 2 attempt: 4 } "
            "} }");
  EXPECT_EQ(wire_of_report<Mended>(),
            "report { from { node: 1 boot: 3 incarnation: 4 } number: 7 mended { } }");
}

TEST(AgentMessages, OtherMessagesOfAgentsAreOnTheWireAsInEveryRelease) {
  EXPECT_EQ(wire_to_controller<AgentOpening>(),
            "open { node: \"t2\" address: \"t3\" boot: 4 incarnation: 5 version: \"t6\" "
            "inventory { accelerator: \"t7\" accelerators: 8 emulated: true cores: 9 "
            "memory_bytes: 10 kernel: \"t11\" driver: \"t12\" machine: \"t13\" processor: "
            "\"t15\" packages: 16 numa_nodes: 17 firmware: \"t14\" } process: 18 user: "
            "\"t19\" job_users: ANY runs_commands: true hold { key: \"t20\" id: \"t21\" } }");
  EXPECT_EQ(wire_to_controller<AttemptLogPart>(),
            "log { id: 2 found: true from: 4 size: 3 bytes: \"t5\" since_from: 6 }");
  EXPECT_EQ(wire_to_controller<KeptLog>(),
            "kept_log { attempt { job: 1 attempt: 3 } gang: 4 rank: 5 part { from: 6 bytes: "
            "\"t7\" } }");
  EXPECT_EQ(wire_to_controller<AttemptNotes>(),
            "notes { attempt { job: 1 attempt: 3 } step: 4 saved_step: 5 tokens: 6 loss: "
            "0.0546875 checkpoint: \"t8\" notes: \"t10\" bad_lines: 9 paces { rank: 11 "
            "seconds: 0.09375 } }");
  EXPECT_EQ(wire_to_controller<NodeReading>(),
            "reading { cpu_busy: 0.015625 memory_bytes: 3 memory_used_bytes: 4 "
            "received_bytes: 5 sent_bytes: 6 network_errors: 7 link_errors: 8 accelerators { "
            "power_w: 0.0703125 temperature_c: 0.078125 busy: 0.0859375 memory_bytes: 12 "
            "memory_used_bytes: 13 memory_errors: 14 link_errors: 15 clock: 0.125 } unwell: "
            "\"t17\" clock_refusal: \"t18\" burn_in: \"t19\" }");
  EXPECT_EQ(wire_to_controller<ExecOutput>(),
            "exec_output { id: 2 output: \"t3\" errors: \"t4\" taken: 5 }");
  EXPECT_EQ(wire_to_controller<ExecEnd>(), "exec_end { id: 2 status: 3 error: \"t4\" }");
  EXPECT_EQ(wire_to_controller<HoldEnding>(), "hold_ending { why: \"t2\" }");
}

NodeOrder launch_order() {
  NodeOrder ordered{{7, {1, 1}, {NodeId(3), 5, 1}, LaunchRanks{}}, {}};
  auto& launch = std::get<LaunchRanks>(ordered.order.what);
  launch.token = {{JobId(4), 1}, 1};
  launch.shares = {{.gang = 0, .devices = 0b101, .ranks = {2, 3}}};
  ordered.program.command = {"program"};
  ordered.program.gangs = {{.gang = 0, .nodes = {{"a", {0, 1}}, {"b", {2, 3}}}, .here = 1}};
  return ordered;
}

std::string refusal(const std::function<void(v1::AgentOrder&)>& change) {
  v1::ControllerMessage message = to_proto(ControllerMessage(launch_order()));
  change(*message.mutable_order());
  const auto read = from_proto(message);
  return read ? "" : read.error().message;
}

TEST(AgentMessages, SenselessOrdersAreRefusedAndNamed) {
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_EQ(from_proto(v1::ControllerMessage()).error().message, "a message that says nothing");
  EXPECT_EQ(refusal([](auto& order) { order.clear_what(); }), "an order that says nothing");
  EXPECT_EQ(refusal([](auto& order) { order.mutable_to()->set_node(~0u); }),
            "node 4294967295, expected at most 4294967294");
  EXPECT_EQ(refusal([](auto& order) { order.mutable_mend()->set_layer(9); }),
            "layer 9, expected 0 to 8");
  const auto launch = [](const std::function<void(v1::LaunchRanks&)>& change) {
    return refusal([&](v1::AgentOrder& order) { change(*order.mutable_launch()); });
  };
  EXPECT_EQ(launch([](auto& ranks) { ranks.clear_shares(); }), "no ranks");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_shares(0)->set_devices(1); }),
            "2 ranks of gang 0 for 1 devices");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_shares(0)->set_share(0); }),
            "no share of a device");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_shares(0)->set_share(1001); }),
            "share of a device 1001, expected at most 1000");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_shares(0)->set_share(65536); }),
            "share of a device 65536, expected at most 1000");
  EXPECT_EQ(launch([](auto& ranks) {
              ranks.mutable_lease()->set_kind(static_cast<v1::Lease::Kind>(-1));
            }),
            "kind of a lease 4294967295, expected 0 to 1");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_lease()->set_length_ns(-1); }),
            "lease -1 ns, expected none below 0");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_shares(0)->set_clock(-1); }),
            "clock -1, expected a part of the full one");
  EXPECT_EQ(launch([](auto& ranks) { ranks.set_grace_ns(-1); }),
            "grace -1 ns, expected none below 0");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_token()->set_job(std::uint64_t{1} << 32); }),
            "job 4294967296, expected at most 4294967294");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_program()->clear_command(); }), "no program");
  EXPECT_EQ(launch([](auto& ranks) { ranks.mutable_program()->clear_gangs(); }),
            "no layout of gang 0");
  const auto gang = [&](const std::function<void(v1::GangLayout&)>& change) {
    return launch([&](auto& ranks) { change(*ranks.mutable_program()->mutable_gangs(0)); });
  };
  EXPECT_EQ(gang([](auto& layout) { layout.set_here(0); }),
            "other ranks of gang 0 here than its layout says");
  EXPECT_EQ(gang([](auto& layout) { layout.mutable_nodes(0)->set_ranks(0, 7); }),
            "the ranks of gang 0 do not count from 0 to 3");
  EXPECT_EQ(gang([](auto& layout) { layout.set_master_port(65536); }),
            "master port 65536, expected at most 65535");
}

std::string refusal(const std::function<void(v1::AttemptReport&)>& change) {
  const Report report{{NodeId(1)}, 1, AttemptReport{.end = AttemptEnd{}}};
  v1::AgentMessage message = to_proto(AgentMessage(report));
  message.mutable_report()->mutable_attempt()->mutable_token()->set_job(1);
  change(*message.mutable_report()->mutable_attempt());
  const auto read = from_proto(message);
  return read ? "" : read.error().message;
}

TEST(AgentMessages, SenselessReportsAreRefusedAndNamed) {
  using Attempt = v1::AttemptReport;
  EXPECT_EQ(refusal([](Attempt&) {}), "");
  EXPECT_EQ(refusal([](Attempt& report) { report.set_stage(7); }), "stage 7, expected 0 to 6");
  EXPECT_EQ(refusal([](Attempt& report) { report.mutable_end()->set_kind(5); }),
            "kind of an end 5, expected 0 to 4");
  EXPECT_EQ(refusal([](Attempt& report) {
              report.mutable_progress()->set_done(std::numeric_limits<double>::quiet_NaN());
            }),
            "nan of the work done, expected 0 to 1");
  EXPECT_EQ(refusal([](Attempt& report) { report.mutable_progress()->set_lost_ns(-1); }),
            "time lost -1 ns, expected none below 0");
  EXPECT_EQ(refusal([](Attempt& report) { report.add_clocks(0); }),
            "clock 0, expected a part of the full one");
  v1::AgentMessage beat = to_proto(AgentMessage(Report{{NodeId(1)}, 0, Heartbeat{}}));
  beat.mutable_report()->mutable_heartbeat()->mutable_signals()->set_temperature_c(65536);
  EXPECT_EQ(from_proto(beat).error().message, "temperature 65536, expected at most 65535");
  beat.mutable_report()->clear_what();
  EXPECT_EQ(from_proto(beat).error().message, "a report that says nothing");
}

std::string refusal_of_message(const AgentMessage& message,
                               const std::function<void(v1::AgentMessage&)>& change) {
  v1::AgentMessage sent = to_proto(message);
  change(sent);
  const auto read = from_proto(sent);
  return read ? "" : read.error().message;
}

TEST(AgentMessages, SenselessReadingsAndNotesAreRefusedAndNamed) {
  const auto reading = [](const std::function<void(v1::NodeReading&)>& change) {
    const NodeReading read{.accelerators = {AcceleratorReading{}}};
    return refusal_of_message(read, [&](auto& sent) { change(*sent.mutable_reading()); });
  };
  EXPECT_EQ(reading([](auto&) {}), "");
  EXPECT_EQ(reading([](auto& sent) { sent.set_cpu_busy(1.5); }),
            "part of the CPUs 1.5, expected 0 to 1");
  EXPECT_EQ(reading([](auto& sent) {
              for (int i = 0; i < 64; ++i) sent.add_accelerators();
            }),
            "65 accelerators, expected at most 64");
  const auto accelerator = [&](const std::function<void(v1::AcceleratorReading&)>& change) {
    return reading([&](auto& sent) { change(*sent.mutable_accelerators(0)); });
  };
  EXPECT_EQ(accelerator([](auto& sent) { sent.set_busy(-1); }),
            "part of an accelerator -1, expected 0 to 1");
  EXPECT_EQ(accelerator([](auto& sent) { sent.set_clock(2); }), "clock 2, expected 0 to 1");
  EXPECT_EQ(
      accelerator([](auto& sent) { sent.set_power_w(std::numeric_limits<double>::infinity()); }),
      "a power or temperature that is no number");
  const AttemptNotes notes{.attempt = {JobId(1), 1}, .paces = {{0, 1.5}}};
  EXPECT_EQ(refusal_of_message(notes, [](auto&) {}), "");
  EXPECT_EQ(refusal_of_message(
                notes, [](auto& sent) { sent.mutable_notes()->mutable_paces(0)->set_seconds(-1); }),
            "seconds of a step that are no time");
}

TEST(AgentMessages, SenselessAnswersOfControllersAreRefusedAndNamed) {
  const auto welcome = [](Duration beat, Duration repeat) {
    const auto read = carried(ControllerMessage(AgentWelcome{1, NodeId(0), beat, repeat}));
    return read ? "" : read.error().message;
  };
  const Duration second = Duration::seconds(1);
  EXPECT_EQ(welcome(second, second), "");
  EXPECT_EQ(welcome(Duration{}, second), "a beat that is no time");
  EXPECT_EQ(welcome(second, Duration{}), "a beat that is no time");
  EXPECT_EQ(welcome(-second, second), "beat -1000000000 ns, expected none below 0");
  v1::ControllerMessage input = to_proto(ControllerMessage(ExecInput{.terminal = TerminalSize{}}));
  EXPECT_TRUE(from_proto(input));
  input.mutable_exec_input()->mutable_terminal()->set_rows(65536);
  EXPECT_EQ(from_proto(input).error().message, "rows of a terminal 65536, expected at most 65535");
}

TEST(AgentMessages, KindsOfUsersThatOnlyANewerAgentKnowsAreNotTold) {
  v1::AgentMessage opening = to_proto(AgentMessage(AgentOpening{.job_users = JobUsers::kAny}));
  EXPECT_EQ(std::get<AgentOpening>(*from_proto(opening)).job_users, JobUsers::kAny);
  opening.mutable_open()->set_job_users(static_cast<v1::AgentOpen::JobUsers>(9));
  EXPECT_EQ(std::get<AgentOpening>(*from_proto(opening)).job_users, JobUsers::kUntold);
}

TEST(AgentMessages, AFaultThatNoAttemptClaimsComesBackWithoutOne) {
  const auto fault = carried(AgentMessage(Report{{NodeId(1)}, 2, HealthFault{}}));
  ASSERT_TRUE(fault) << fault.error().text();
  EXPECT_FALSE(std::get<HealthFault>(std::get<Report>(*fault).what).claimed_by.job.valid());
}

}  // namespace
}  // namespace orrery
