// The wire follows the rules of api/agents/proto_fields.hpp, except for the forms here.
#include "api/agents/agent_messages.hpp"

#include "api/agents/proto_reader.hpp"
#include "api/agents/proto_writer.hpp"
#include "node/agent_fields.hpp"

namespace orrery {

/// An agent of a newer release may know more kinds of users.
template <>
inline constexpr bool kIgnoresNewerValues<JobUsers> = true;

/// The exit of a rank is in two fields of AttemptEnd.
template <>
struct ProtoForm<std::optional<RankExit>> {
  static void write(const std::optional<RankExit>& exit, google::protobuf::Message& out) {
    if (!exit) return;
    auto& end = static_cast<v1::AttemptEnd&>(out);
    end.set_exit_rank(exit->rank);
    end.set_exit_status(exit->status);
  }
  static void read(std::optional<RankExit>& exit, const google::protobuf::Message& in,
                   ProtoFault& /*fault*/) {
    const auto& end = static_cast<const v1::AttemptEnd&>(in);
    exit.reset();
    if (end.has_exit_status()) exit = RankExit{end.exit_rank(), end.exit_status()};
  }
};

/// The program of an order is within its LaunchRanks.
template <>
struct ProtoForm<NodeOrder> {
  static void write(const NodeOrder& ordered, google::protobuf::Message& out) {
    write_proto(ordered.order, out);
    auto& order = static_cast<v1::AgentOrder&>(out);
    if (!order.has_launch()) return;
    write_proto(ordered.program, *order.mutable_launch()->mutable_program());
  }
  static void read(NodeOrder& ordered, const google::protobuf::Message& in, ProtoFault& fault) {
    read_proto(ordered.order, in, fault);
    const auto& order = static_cast<const v1::AgentOrder&>(in);
    if (order.has_launch()) read_proto(ordered.program, order.launch().program(), fault);
  }
};

/// Every agent sends one each second: with protobuf's own setters it takes two thirds of the time.
template <>
struct ProtoForm<Heartbeat> {
  static void write(const Heartbeat& beat, google::protobuf::Message& out) {
    auto& to = static_cast<v1::Heartbeat&>(out);
    to.set_sequence(beat.sequence);
    to.set_at_ns(beat.at.ns());
    v1::Signals& signals = *to.mutable_signals();
    signals.set_power_w(beat.signals.power_w);
    signals.set_temperature_c(beat.signals.temperature_c);
    signals.set_xid_count(beat.signals.xid_count);
    signals.set_ecc_count(beat.signals.ecc_count);
    signals.set_link_errors(beat.signals.link_errors);
  }
  static void read(Heartbeat& beat, const google::protobuf::Message& in, ProtoFault& fault) {
    ProtoReader<Heartbeat> reader(in, fault);
    code(reader, beat);
  }
};

namespace {

template <class Proto, class T>
Proto written(const T& value) {
  Proto out;
  write_proto(value, out);
  return out;
}

template <class T>
Result<T> read_whole(const google::protobuf::Message& in) {
  T out;
  ProtoFault fault;
  read_proto(out, in, fault);
  if (!fault.what().empty()) return environment_error(fault.what());
  return out;
}

}  // namespace

v1::AgentMessage to_proto(const AgentMessage& message) {
  return written<v1::AgentMessage>(message);
}

v1::ControllerMessage to_proto(const ControllerMessage& message) {
  return written<v1::ControllerMessage>(message);
}

v1::NodeReading to_proto(const NodeReading& reading) { return written<v1::NodeReading>(reading); }

Result<AgentMessage> from_proto(const v1::AgentMessage& message) {
  return read_whole<AgentMessage>(message);
}

Result<ControllerMessage> from_proto(const v1::ControllerMessage& message) {
  return read_whole<ControllerMessage>(message);
}

}  // namespace orrery
