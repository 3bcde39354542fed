#include "node/agent/agent_spec.hpp"

#include "base/text/utf8.hpp"

namespace orrery {

template <class Visitor, SameStruct<HookSpec> Self>
void describe(Visitor& visitor, Self& hook) {
  visitor.required("command", hook.command);
  visitor.optional("timeout", hook.timeout);
}

template <class Visitor, SameStruct<HealthSpec> Self>
void describe(Visitor& visitor, Self& health) {
  visitor.required("command", health.command);
  visitor.optional("interval", health.interval);
  visitor.optional("timeout", health.timeout);
  visitor.optional("failures", health.failures);
}

template <class Visitor, SameStruct<DeviceSpec> Self>
void describe(Visitor& visitor, Self& device) {
  visitor.required("files", device.files);
}

template <class Visitor, SameStruct<AgentSpec> Self>
void describe(Visitor& visitor, Self& spec) {
  visitor.required("apiVersion", spec.api_version);
  visitor.required("kind", spec.kind);
  visitor.optional("telemetry", spec.telemetry);
  visitor.optional("prologue", spec.prologue);
  visitor.optional("epilogue", spec.epilogue);
  visitor.optional("health", spec.health);
  visitor.optional("burn_in", spec.burn_in);
  visitor.optional("devices", spec.devices);
  visitor.optional("processes_max", spec.processes_max);
  visitor.optional("allow_agent_user", spec.allow_agent_user);
}

namespace {

constexpr Seconds kShortest{0.1};

template <class Program>
Status check(const Program& program) {
  if (program.command.empty() || program.command[0].empty()) {
    return input_error(program.where, "command: expected a program and its arguments");
  }
  if (program.timeout < kShortest) return input_error(program.where, "timeout: at least 100 ms");
  return {};
}

Status check_health(const HealthSpec& health) {
  if (health.interval < kShortest) return input_error(health.where, "interval: at least 100 ms");
  if (health.failures == 0) return input_error(health.where, "failures: at least 1");
  return check(health);
}

}  // namespace

Result<AgentSpec> read_agent_spec(const Document& document) {
  AgentSpec spec;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, spec, {}); !read) return forward_error(read);
  if (spec.api_version != "orrery/v1" || spec.kind != "Agent") {
    return input_error(root.position(),
                       fmt::format("expected apiVersion orrery/v1 and kind Agent, found {} and {}",
                                   printable(spec.api_version, 60), printable(spec.kind, 60)));
  }
  if (spec.telemetry < kShortest) {
    return input_error(root.position(), "telemetry: at least 100 ms");
  }
  for (const std::optional<HookSpec>* hook : {&spec.prologue, &spec.epilogue, &spec.burn_in}) {
    if (!*hook) continue;
    if (Status good = check(**hook); !good) return forward_error(good);
  }
  if (!spec.health) return spec;
  if (Status good = check_health(*spec.health); !good) return forward_error(good);
  return spec;
}

}  // namespace orrery
