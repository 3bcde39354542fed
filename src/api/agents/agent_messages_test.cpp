// api/agents/agent_messages_test.cpp - messages of any content come back as they were, senseless
// ones not at all.
#include "api/agents/agent_messages.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>

#include "base/numbers/rng.hpp"
#include "control/codec/encoder.hpp"
#include "node/keeper/keeper_fields.hpp"

namespace orrery {

[[nodiscard]] constexpr RefusalReason last_of(RefusalReason) { return RefusalReason::kLeaseOver; }

template <class Codec, SameStruct<AgentIdentity> S>
void code(Codec& codec, S& value) {
  auto& [node, boot, incarnation] = value;
  codec(node, boot, incarnation);
}
template <class Codec, SameStruct<MendNode> S>
void code(Codec& codec, S& value) {
  auto& [layer] = value;
  codec(layer);
}
template <class Codec, SameStruct<Reconcile> S>
void code(Codec&, S&) {}
template <class Codec, SameStruct<Acknowledge> S>
void code(Codec& codec, S& value) {
  auto& [number] = value;
  codec(number);
}
template <class Codec, SameStruct<Order> S>
void code(Codec& codec, S& value) {
  auto& [cluster, stamp, to, what] = value;
  codec(cluster, stamp, to, what);
}
template <class Codec, SameStruct<Signals> S>
void code(Codec& codec, S& value) {
  auto& [power, temperature, xid, ecc, link] = value;
  codec(power, temperature, xid, ecc, link);
}
template <class Codec, SameStruct<Heartbeat> S>
void code(Codec& codec, S& value) {
  auto& [sequence, at, signals] = value;
  codec(sequence, at, signals);
}
template <class Codec, SameStruct<NumberedReport> S>
void code(Codec& codec, S& value) {
  auto& [number, report] = value;
  codec(number, report);
}
template <class Codec, SameStruct<Hello> S>
void code(Codec& codec, S& value) {
  auto& [answers, at, attempts] = value;
  codec(answers, at, attempts);
}
template <class Codec, SameStruct<Refused> S>
void code(Codec& codec, S& value) {
  auto& [stamp, why, term] = value;
  codec(stamp, why, term);
}
template <class Codec, SameStruct<HealthFault> S>
void code(Codec& codec, S& value) {
  auto& [layer, evidence, repair, stops_jobs, claimed_by] = value;
  codec(layer, evidence, repair, stops_jobs, claimed_by);
}
template <class Codec, SameStruct<Mended> S>
void code(Codec&, S&) {}
template <class Codec, SameStruct<Report> S>
void code(Codec& codec, S& value) {
  auto& [from, number, what] = value;
  codec(from, number, what);
}
template <class Codec, SameStruct<NodeInventory> S>
void code(Codec& codec, S& value) {
  auto& [accelerator, accelerators, emulated, cores, memory, kernel, driver, machine, firmware,
         processor, packages, numa_nodes] = value;
  codec(accelerator, accelerators, emulated, cores, memory, kernel, driver, machine, firmware,
        processor, packages, numa_nodes);
}
template <class Codec, SameStruct<AcceleratorReading> S>
void code(Codec& codec, S& value) {
  auto& [power, temperature, busy, memory, used, memory_errors, link_errors, clock] = value;
  codec(power, temperature, busy, memory, used, memory_errors, link_errors, clock);
}
template <class Codec, SameStruct<NodeReading> S>
void code(Codec& codec, S& value) {
  auto& [cpu_busy, memory, used, received, sent, network_errors, link_errors, accelerators, unwell,
         clock_refusal, burn_in] = value;
  codec(cpu_busy, memory, used, received, sent, network_errors, link_errors, accelerators, unwell,
        clock_refusal, burn_in);
}
template <class Codec, SameStruct<AgentOpening> S>
void code(Codec& codec, S& value) {
  [[maybe_unused]] auto& [node, address, boot, incarnation, version, inventory, process, key, user,
                          job_users, runs_commands] = value;
  codec(node, address, boot, incarnation, version, inventory, process, user, job_users,
        runs_commands);
}
template <class Codec, SameStruct<AgentWelcome> S>
void code(Codec& codec, S& value) {
  auto& [cluster, node, beat, repeat] = value;
  codec(cluster, node, beat, repeat);
}
template <class Codec, SameStruct<NodeProgram> S>
void code(Codec& codec, S& value) {
  auto& [job, tenant, plan, framework, per, command, environment, directory, restarts_max,
         work_steps, gangs, user, needs, copies] = value;
  codec(job, tenant, plan, framework, per, command, environment, directory, restarts_max,
        work_steps, gangs, user, needs, copies);
}
template <class Codec, SameStruct<NodeOrder> S>
void code(Codec& codec, S& value) {
  auto& [order, program] = value;
  codec(order, program);
}
template <class Codec, SameStruct<AttemptLogQuestion> S>
void code(Codec& codec, S& value) {
  auto& [id, attempt, log, since] = value;
  codec(id, attempt, log, since);
}
template <class Codec, SameStruct<BurnIn> S>
void code(Codec&, S&) {}
template <class Codec, SameStruct<AttemptExecOpen> S>
void code(Codec& codec, S& value) {
  auto& [attempt, open] = value;
  codec(attempt, open);
}
template <class Codec, SameStruct<AttemptLogPart> S>
void code(Codec& codec, S& value) {
  auto& [id, found, size, part, since_from] = value;
  codec(id, found, size, part, since_from);
}
template <class Codec, SameStruct<KeptLog> S>
void code(Codec& codec, S& value) {
  auto& [attempt, gang, rank, part] = value;
  codec(attempt, gang, rank, part);
}
template <class Codec, SameStruct<AttemptNotes> S>
void code(Codec& codec, S& value) {
  auto& [attempt, progress, notes, paces] = value;
  codec(attempt, progress, notes, paces);
}

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
  v1::AgentMessage beat = to_proto(AgentMessage(Report{{NodeId(1)}, 0, Heartbeat{}}));
  beat.mutable_report()->mutable_heartbeat()->mutable_signals()->set_temperature_c(65536);
  EXPECT_EQ(from_proto(beat).error().message, "temperature 65536, expected at most 65535");
  beat.mutable_report()->clear_what();
  EXPECT_EQ(from_proto(beat).error().message, "a report that says nothing");
}

}  // namespace
}  // namespace orrery
