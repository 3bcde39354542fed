// orrery-agent: the agent of one node (node/agent/agent_process.hpp).
//
// Logs go to standard error. SIGTERM and SIGINT end the agent alone: keepers and ranks run on, and
// the next agent of the directory finds them; within a hold of a resource manager they end first.
// DIR/tls holds what it shows the controller (api/agents/certificates.hpp).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "api/agents/controller_streams.hpp"
#include "api/grpc/client.hpp"
#include "api/grpc/controller_route.hpp"
#include "api/grpc/grpc_library.hpp"
#include "api/renewal/certificate_call.hpp"
#include "api/renewal/certificate_renewal.hpp"
#include "apps/option_hooks.hpp"
#include "apps/orrery-agent/discovery_report.hpp"
#include "base/format/document.hpp"
#include "base/system/daemon_signals.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_env.hpp"
#include "base/text/line_changes.hpp"
#include "base/text/terminal_text.hpp"
#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"
#include "node/agent/agent_process.hpp"
#include "node/devices/device_files.hpp"
#include "node/devices/discovery.hpp"
#include "node/machine/burn_in.hpp"
#include "node/machine/host_inventory.hpp"
#include "node/machine/kernel_counters.hpp"
#include "node/machine/openblas_core.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

constexpr const char* kControllersHelp =
    "HOST:PORT of the controller; several are separated by commas, or the option is repeated";

/// How the agent joins the cluster, and in which hold.
struct Joining {
  std::string token;      ///< --join
  std::string authority;  ///< file of the cluster's CA certificate
  std::string hold;       ///< HOLD:ID; empty: in none
};

struct Options {
  Joining joining;
  std::vector<std::string> controllers;
  std::string node;
  std::string directory;
  std::string address;
  std::string emulated;
  std::string keeper;
  std::string catalog;
  std::string output = "text";
  bool discover = false;
  bool burn_in = false;
  bool allow_agent_user = false;
  std::optional<std::uint64_t> boot;
};

int complain(const Error& error) {
  fmt::print(stderr, "orrery-agent: {}\n", terminal_text(error.text(), Newlines::kKept));
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

Result<Catalog> load_catalog(const std::string& directory) {
  const Result<std::vector<FactOverlay>> overlays = read_fact_overlays(directory);
  if (!overlays) return tl::unexpected(overlays.error());
  return Catalog::load(builtin_catalog(), *overlays);
}

/// Declares the accelerators of "h100:8", so many of a type of the catalog, without looking for
/// them.
Status emulate(const std::string& text, const Catalog& catalog, NodeInventory& inventory) {
  // A mask names the devices of a node.
  constexpr std::uint32_t kDevicesMax = std::numeric_limits<std::uint64_t>::digits;
  const std::size_t colon = text.rfind(':');
  std::uint32_t count = 0;
  const char* const end = text.data() + text.size();
  const char* const digits = colon == text.npos ? end : text.data() + colon + 1;
  const auto [rest, failed] = std::from_chars(digits, end, count);
  if (failed != std::errc() || rest != end || count == 0 || count > kDevicesMax) {
    return input_error(
        {}, fmt::format("--emulate: \"{}\": expected TYPE:N with N from 1 to {}, such as h100:8",
                        text, kDevicesMax));
  }
  Result<const Accelerator*> type = catalog.require<Accelerator>(text.substr(0, colon));
  if (!type) return input_error({}, fmt::format("--emulate: {}", type.error().message));
  inventory.accelerator = (*type)->id;
  inventory.accelerators = count;
  inventory.emulated = true;
  return {};
}

/// Returns the directory of orrery_jax, in the build or as installed; empty: there is none.
std::string python_packages(const std::filesystem::path& programs) {
  for (const auto& place : {programs / "python", programs.parent_path() / "share/orrery/python"}) {
    std::error_code failed;
    if (std::filesystem::is_directory(place / "orrery_jax", failed)) return place.string();
  }
  return "";
}

/// The discovered hardware of this machine, and what the node offers.
struct Machine {
  NodeInventory inventory = host_inventory();
  Discovery discovery;
};

Result<Machine> look_around(const Options& options, const Catalog& catalog, Storage& storage) {
  Machine machine;
  if (!options.emulated.empty()) {
    if (Status known = emulate(options.emulated, catalog, machine.inventory); !known) {
      return forward_error(known);
    }
    return machine;
  }
  machine.discovery = discover_accelerators(catalog, storage, {});
  offer(machine.discovery, catalog, machine.inventory);
  return machine;
}

/// Describes how programs name the devices that the node offers, and how their clocks are set.
void describe_devices(const Machine& machine, const Catalog& catalog, NodeLaunchFacts& facts) {
  const Accelerator* type = catalog.find<Accelerator>(machine.inventory.accelerator);
  // Clocks of processors, and of declared devices, are parts of CPUs.
  const bool by_cpus =
      machine.inventory.emulated || (type != nullptr && type->kind == AcceleratorKind::kCpu);
  if (by_cpus) facts.device_cpu = facts.threads * 1000;
  const Supply* supply = type != nullptr ? catalog.supply(*type) : nullptr;
  if (supply != nullptr) facts.devices = device_list_of(supply->platform);
  for (const FoundAccelerator& each : machine.discovery.accelerators) {
    if (each.type != machine.inventory.accelerator) continue;
    facts.device_names.push_back(fmt::to_string(each.number));
  }
}

/// Returns the spec in DIR/agent.yaml; where there is no file, its defaults.
Result<AgentSpec> spec_of(const std::string& directory) {
  const std::string path = directory + "/agent.yaml";
  if (!std::filesystem::exists(path)) return AgentSpec{};
  Result<Document> text = Document::load(path);
  if (!text) return tl::unexpected(text.error());
  return read_agent_spec(*text);
}

/// Returns the lines of DIR/agent.yaml that differ from what the previous agent applied.
std::vector<std::string> changes_of_spec(const std::string& directory, Storage& storage) {
  constexpr std::size_t kTextMax = std::size_t{8} << 20;
  const std::string path = directory + "/agent.yaml";
  const std::string text = storage.read_file(path, kTextMax).value_or("");
  if (text.empty() && !std::filesystem::exists(path + ".applied")) return {};
  std::vector<std::string> changes;
  for (const LineChange& change : changes_since_applied(storage, path, text)) {
    changes.push_back(change_text("agent.yaml", change));
  }
  return changes;
}

TelemetrySetup telemetry_of(const AgentSpec& spec, Machine& machine) {
  TelemetrySetup setup{.interval = Duration::from_seconds(spec.telemetry.value())};
  for (const FoundAccelerator& each : machine.discovery.accelerators) {
    const bool offered = each.type == machine.inventory.accelerator;
    if (offered && each.driver) setup.devices.push_back({*each.driver, each.number});
  }
  setup.drivers = std::move(machine.discovery.drivers);
  return setup;
}

Result<AgentProcessSetup> setup_of(const Options& options, Storage& storage) {
  const Result<Catalog> catalog = load_catalog(options.catalog);
  if (!catalog) return tl::unexpected(catalog.error());
  Result<Machine> machine = look_around(options, *catalog, storage);
  if (!machine) return forward_error(machine);
  AgentProcessSetup setup{.directory = std::filesystem::absolute(options.directory).string(),
                          .keeper = options.keeper};
  while (setup.directory.ends_with('/')) setup.directory.pop_back();
  std::error_code failed;
  const std::filesystem::path programs =
      std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  const std::string own_program = (programs / "orrery-agent").string();
  if (setup.keeper.empty()) setup.keeper = (programs / "orrery-keeper").string();
  setup.facts.python = python_packages(programs);
  setup.opening.node = options.node;
  setup.opening.version = ORRERY_VERSION;
  const NodeInventory& inventory = setup.opening.inventory = machine->inventory;
  setup.facts.threads = std::max(1u, inventory.cores / std::max(1u, inventory.accelerators));
  describe_devices(*machine, *catalog, setup.facts);
  Result<AgentSpec> spec = spec_of(setup.directory);
  if (!spec) return forward_error(spec);
  setup.file_changes = changes_of_spec(setup.directory, storage);
  Result<NodeDeviceFiles> files = node_device_files(*spec, inventory, machine->discovery);
  if (!files) return forward_error(files);
  setup.facts.files = *std::move(files);
  setup.facts.processes_max = spec->processes_max;
  setup.notes = std::move(machine->discovery.notes);
  const bool allowed = spec->allow_agent_user.value_or(options.allow_agent_user);
  setup.facts.agent = agent_user(allowed ? AgentUserJobs::kAllowed : AgentUserJobs::kRefused);
  setup.facts.name = options.node;
  setup.opening.user = setup.facts.agent.own.name;
  setup.opening.job_users = setup.facts.agent.jobs;
  setup.opening.runs_commands = true;
  if (const std::string& hold = options.joining.hold; !hold.empty()) {
    const std::size_t colon = hold.find(':');
    setup.opening.hold = {.key = hold.substr(0, colon), .id = hold.substr(colon + 1)};
  }
  setup.telemetry = telemetry_of(*spec, *machine);
  setup.spec = *std::move(spec);
  if (!setup.spec.burn_in) {
    setup.spec.burn_in = HookSpec{.command = {own_program, "--burn-in"}, .timeout = Seconds(600)};
  }
  setup.opening.address = options.address.empty() ? inventory.machine : options.address;
  constexpr std::size_t kCpuInfoMax = std::size_t{64} << 20;
  setup.facts.openblas_core_type =
      openblas_core_type(storage.read_file("/proc/cpuinfo", kCpuInfoMax).value_or(""));
  if (options.boot) {
    setup.opening.boot = *options.boot;
    return setup;
  }
  Result<std::uint64_t> boot = boot_number(storage);
  if (!boot) return forward_error(boot);
  setup.opening.boot = *boot;
  return setup;
}

/// Whether the agent has a certificate that has not expired.
bool has_joined(const Env& env, const std::string& directory) {
  const Result<AgentTls> tls = read_agent_tls(env.storage, directory);
  if (!tls) return false;
  const Result<CertificateTerm> term = term_of(tls->identity);
  return term && env.clock.now_wall() < term->until;
}

/// Returns the token that --join names: a text, or, after '@', a file that holds it.
Result<std::string> join_token(const std::string& join) {
  if (!join.starts_with('@')) return join;
  constexpr std::size_t kTokenMax = 4096;
  Result<std::string> text = read_file(join.substr(1), kTokenMax);
  if (!text) return forward_error(text);
  text->erase(text->find_last_not_of(" \t\r\n") + 1);
  if (!text->empty() && text->find_first_of(" \t\r\n") == text->npos) return text;
  return input_error({join.substr(1), 0, 0},
                     "expected one token, as `orrery node token NODE` prints it");
}

/// Gets the certificate of this node, unless it has a valid one.
Status join(const Options& options, const Env& env, const std::string& directory) {
  if (options.joining.token.empty() || has_joined(env, directory)) return {};
  constexpr std::size_t kAuthorityMax = 64 << 10;
  Result<std::string> authority = read_file(options.joining.authority, kAuthorityMax);
  if (!authority) return forward_error(authority);
  Result<CertificateRequest> made = request_certificate();
  if (!made) return forward_error(made);
  Result<std::string> token = join_token(options.joining.token);
  if (!token) return forward_error(token);
  // The controller may not have heard yet that the hold runs.
  const Duration retry =
      options.joining.hold.empty() ? Duration::seconds(10) : Duration::minutes(5);
  Client client({.addresses = options.controllers, .authority = *authority, .retry = retry});
  v1::JoinRequest request;
  request.set_token(*token);
  request.set_node(options.node);
  request.set_certificate_request(made->request);
  const Result<v1::JoinResponse> joined = client.call<v1::JoinResponse>("Join", request);
  if (!joined) return tl::unexpected(joined.error());
  if (joined->node() != options.node) {
    return input_error(
        {}, fmt::format("--join: the token is for node \"{}\", and is now used", joined->node()));
  }
  // The token is used up, so the certificate must survive a loss of power.
  RealStorage durable;
  return write_agent_tls(durable, directory,
                         {{joined->certificate(), made->key}, *std::move(authority)});
}

int serve(const Options& options) {
  const std::vector<std::string> controllers = ControllerRoute(options.controllers).addresses();
  const GrpcLibrary grpc;
  // Processes of a node end with its boot, and their files may be lost with it.
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create({}, Durability::kUntilBoot);
  if (!real) return complain(real.error());
  Result<AgentProcessSetup> setup = setup_of(options, (*real)->env().storage);
  if (!setup) return complain(setup.error());
  Status fits = check_agent_directory((*real)->env().storage, setup->directory);
  if (!fits) return complain(fits.error());
  if (Status joined = join(options, (*real)->env(), setup->directory); !joined) {
    return complain(joined.error());
  }
  Result<AgentTls> tls = read_agent_tls((*real)->env().storage, setup->directory);
  if (!tls) return complain(tls.error());
  DescriptorLogSink sink;
  const Env env = (*real)->env();
  ControllerStreams streams(env, Log(sink), controllers, *tls);
  RealStorage durable;
  std::unique_ptr<CertificateCall> call;
  const Result<std::unique_ptr<CertificateRenewal>> renewal = CertificateRenewal::begin(
      {env.clock, env.timers, env.entropy, durable, env.transport, env.inbox}, Log(sink),
      {.directory = setup->directory,
       .tls = *std::move(tls),
       .ask =
           [&](const AgentTls& shown, const std::string& request, CertificateCall::Answer answer) {
             call = std::make_unique<CertificateCall>(
                 env.inbox, CertificateCallSetup{controllers, shown}, request, std::move(answer));
           },
       .renewed = [&](const AgentTls& shown) { streams.show(shown); }});
  if (!renewal) return complain(renewal.error());
  Result<std::unique_ptr<AgentProcess>> agent =
      AgentProcess::open(**real, streams.channel(), Log(sink), *std::move(setup));
  if (!agent) return complain(agent.error());
  const Status ended = (*agent)->run();
  return ended ? 0 : complain(ended.error());
}

/// Prints what an agent would report of this machine, without one.
int show_discovery(const Options& options) {
  RealStorage storage(Durability::kUntilBoot);
  const Result<Catalog> catalog = load_catalog(options.catalog);
  if (!catalog) return complain(catalog.error());
  Result<Machine> machine = look_around(options, *catalog, storage);
  if (!machine) return complain(machine.error());
  const DiscoveryReport report(machine->inventory, machine->discovery);
  fmt::print("{}\n", options.output == "json" ? report.json().dump(2) : report.text());
  return 0;
}

/// Runs the agent's own burn-in, for nodes whose agent.yaml names none.
int try_machine_out() {
  RealStorage storage(Durability::kUntilBoot);
  const KernelCounters memory = read_kernel_counters(storage, {});
  // Takes half of the free memory: other processes may want some meanwhile.
  const Status passed =
      burn_in(RealClock(), {.memory = (memory.memory_bytes - memory.memory_used_bytes) / 2});
  return passed ? 0 : complain(passed.error());
}

void add_joining_options(CLI::App& app, Joining& joining) {
  auto* ca = app.add_option("--ca", joining.authority,
                            "CA certificate of the cluster: tls/ca.pem in the cluster directory");
  app.add_option("--join", joining.token,
                 "@FILE with the token of `orrery node token NODE` (or the token itself, which "
                 "`ps` then shows); needed for the first start and after the certificate has "
                 "expired. The agent keeps its certificate in the directory and renews it")
      ->needs(ca);
  app.add_option("--hold", joining.hold,
                 "HOLD:ID of the hold of a resource manager in which the agent runs, as its pilot "
                 "gives it; SIGTERM then ends the ranks as well")
      ->check([](const std::string& text) {
        return text.find(':') == std::string::npos ? std::string("expected HOLD:ID")
                                                   : std::string();
      });
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  CLI::App app(
      "The agent of one node starts the processes of jobs for the controller and reports their "
      "state.\n"
      "`orrery up` starts agents on this machine. Jobs keep running when an agent stops or "
      "restarts.",
      "orrery-agent");
  orrery::Options options;
  auto* controller = app.add_option("--controller", options.controllers, orrery::kControllersHelp);
  controller->delimiter(',')->allow_extra_args(false);
  auto* node = app.add_option("--node", options.node, "name of this node in the fleet");
  auto* directory = app.add_option("--dir", options.directory,
                                   "state directory of the agent; each agent needs its own");
  app.add_option("--address", options.address,
                 "host name or address of this node for other nodes (default: the host name)");
  app.add_option("--emulate", options.emulated,
                 "emulated accelerators for tests and demonstrations, TYPE:N, such as h100:8");
  app.add_option("--keeper", options.keeper,
                 "path of orrery-keeper (default: in the directory of this program)");
  app.add_option(
      "--boot", options.boot,
      "boot number, for nodes that share a machine (default: the boot number of the kernel)");
  orrery::add_joining_options(app, options.joining);
  app.add_flag("--allow-agent-user", options.allow_agent_user,
               "let an agent that runs as root run jobs without run_as as root; allow_agent_user "
               "in DIR/agent.yaml takes precedence");
  app.add_option(
         "--catalog", options.catalog,
         "directory of facts that overlay the built-in catalog, such as more names of accelerators")
      ->check(CLI::ExistingDirectory);
  auto* discover = app.add_flag("--discover", options.discover,
                                "print the discovered hardware of this machine and exit");
  app.add_flag("--burn-in", options.burn_in,
               "test all processors and half of the free memory for 30 s and exit");
  app.add_option("-o,--output", options.output, "output format of --discover, text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->needs(discover);
  app.set_version_flag("--version", std::string("orrery-agent ") + ORRERY_VERSION);
  orrery::hook_options(app);
  try {
    app.parse(count, arguments);
    orrery::drop_ignored_option(app);
    for (const CLI::Option* option : {controller, node, directory}) {
      if (!options.discover && !options.burn_in && option->empty())
        throw CLI::RequiredError(option->get_name());
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.burn_in) return orrery::try_machine_out();
  if (options.discover) return orrery::show_discovery(options);
  orrery::block_signals(orrery::DaemonSignals::kEnd);
  return orrery::serve(options);
}
