#include "node/launch/launch_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/assert.hpp"
#include "node/steps/slurm_variables.hpp"

namespace orrery {
namespace {

using Environment = std::map<std::string, std::string>;

template <class Value>
struct NamedValue {
  std::string_view name;
  Value value;
};

constexpr std::array<NamedValue<LaunchStyle>, 8> kStyles{{{"pytorch", LaunchStyle::kTorch},
                                                          {"torch", LaunchStyle::kTorch},
                                                          {"megatron-lm", LaunchStyle::kTorch},
                                                          {"deepspeed", LaunchStyle::kDeepspeed},
                                                          {"tensorflow", LaunchStyle::kTensorflow},
                                                          {"jax", LaunchStyle::kJax},
                                                          {"mpi", LaunchStyle::kMpi},
                                                          {"slurm", LaunchStyle::kSlurm}}};

constexpr std::array<NamedValue<DeviceList>, 4> kLists{{{"cuda", DeviceList::kCuda},
                                                        {"rocm", DeviceList::kRocm},
                                                        {"neuron", DeviceList::kNeuron},
                                                        {"xla-tpu", DeviceList::kTpu}}};

std::string_view variable_of(DeviceList list) {
  switch (list) {
    case DeviceList::kNone:
      return "";
    case DeviceList::kCuda:
      return "CUDA_VISIBLE_DEVICES";
    case DeviceList::kRocm:
      return "ROCR_VISIBLE_DEVICES";
    case DeviceList::kNeuron:
      return "NEURON_RT_VISIBLE_CORES";
    case DeviceList::kTpu:
      return "TPU_VISIBLE_CHIPS";
  }
  return "";
}

/// Returns the node of rank 0, the rendezvous. With one process per node it is the first node.
std::size_t first_node(const GangLayout& layout, LaunchUnit per) {
  if (per == LaunchUnit::kNode) return 0;
  const auto at = std::find_if(layout.nodes.begin(), layout.nodes.end(), [](const GangNode& node) {
    return std::find(node.ranks.begin(), node.ranks.end(), 0u) != node.ranks.end();
  });
  ORRERY_ASSERT(at != layout.nodes.end(), "ranks of a gang count from 0");
  return static_cast<std::size_t>(at - layout.nodes.begin());
}

/// Returns the role of a gang in the plan; torch's own default where there is none.
std::string role_of(const std::string& plan, std::uint32_t gang) {
  const nlohmann::json read = nlohmann::json::parse(plan, nullptr, false);
  const nlohmann::json::json_pointer place(fmt::format("/gangs/{}/role", gang));
  if (!read.contains(place) || !read.at(place).is_string()) return "default";
  const std::string name = read.at(place);
  return name.empty() ? "default" : name;
}

/// The place of one process in its gang.
struct Seat {
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  std::uint32_t local = 0;
  std::uint32_t local_world = 0;
  std::uint32_t node = 0;
  std::uint32_t nodes = 0;
};

class ContractWriter {
 public:
  ContractWriter(const LaunchFacts& facts, const GangLayout& layout)
      : facts_(facts), layout_(layout), role_(role_of(facts.plan, layout.gang)) {}

  /// `devices`: those that the process may use, in the order of local ranks.
  [[nodiscard]] Variables write(const Seat& seat, const std::vector<std::uint32_t>& devices) {
    environment_.clear();
    set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    const std::size_t shares = facts_.per == LaunchUnit::kNode ? devices.size() : 1;
    set("OMP_NUM_THREADS", std::max<std::size_t>(1, facts_.threads * shares));
    if (!facts_.openblas_core_type.empty()) set("OPENBLAS_CORETYPE", facts_.openblas_core_type);
    for (const auto& [name, value] : facts_.environment) set(name, value);
    write_style(seat, devices.size());
    if (facts_.devices != DeviceList::kNone) {
      set(std::string(variable_of(facts_.devices)), list_of(devices));
    }
    set("ORRERY_JOB", facts_.job);
    set("ORRERY_JOB_ID", facts_.attempt.job.value());
    set("ORRERY_ATTEMPT", facts_.attempt.attempt);
    set("ORRERY_TENANT", facts_.tenant);
    set("ORRERY_PLAN", facts_.plan);
    set("ORRERY_PROGRESS", facts_.progress);
    // Ranks started by mpirun would inherit the numbers of mpirun's own process.
    if (facts_.style != LaunchStyle::kMpi) {
      set("ORRERY_RANK", seat.rank);
      set("ORRERY_LOCAL_RANK", seat.local);
      set("ORRERY_WORLD_SIZE", seat.world);
    }
    set("ORRERY_GANG", layout_.gang);
    set("ORRERY_ADDRESS", layout_.nodes[layout_.here].address);
    set("ORRERY_MASTER", master_endpoint());
    // The keeper writes the membership file beside the stream.
    const std::size_t slash = facts_.progress.rfind('/');
    set("ORRERY_MEMBERSHIP", facts_.progress.substr(0, slash + 1) + "membership");
    return {environment_.begin(), environment_.end()};
  }

 private:
  void set(std::string name, std::string value) {
    environment_[std::move(name)] = std::move(value);
  }
  template <std::integral Number>
  void set(std::string name, Number value) {
    set(std::move(name), fmt::format("{}", value));
  }

  void write_style(const Seat& seat, std::size_t devices) {
    switch (facts_.style) {
      case LaunchStyle::kNative:
        return;
      case LaunchStyle::kTorch:
      case LaunchStyle::kDeepspeed:
        return is_torchrun(facts_.command.at(0)) ? write_torchrun(seat, devices)
                                                 : write_torch(seat);
      case LaunchStyle::kTensorflow:
        return set("TF_CONFIG", tensorflow_config(seat));
      case LaunchStyle::kJax:
        set("JAX_COORDINATOR_ADDRESS", master_endpoint());
        set("JAX_NUM_PROCESSES", seat.world);
        return set("JAX_PROCESS_ID", seat.rank);
      case LaunchStyle::kMpi:
        set("ORRERY_HOSTFILE", facts_.hostfile);
        return set("ORRERY_RANKFILE", facts_.rankfile);
      case LaunchStyle::kSlurm:
        return write_slurm(seat, devices);
    }
  }

  void write_torch(const Seat& seat) {
    set("RANK", seat.rank);
    set("LOCAL_RANK", seat.local);
    set("WORLD_SIZE", seat.world);
    set("LOCAL_WORLD_SIZE", seat.local_world);
    set("GROUP_RANK", seat.node);
    set("GROUP_WORLD_SIZE", seat.nodes);
    set("ROLE_RANK", seat.rank);
    set("ROLE_NAME", role_);
    set("ROLE_WORLD_SIZE", seat.world);
    set("MASTER_ADDR", master_address());
    set("MASTER_PORT", layout_.master_port);
    set("TORCHELASTIC_RESTART_COUNT", layout_.restarts);
    set("TORCHELASTIC_MAX_RESTARTS", facts_.restarts_max);
    set("TORCHELASTIC_RUN_ID", run_id());
    set("TORCHELASTIC_USE_AGENT_STORE", "False");
    set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (facts_.style != LaunchStyle::kDeepspeed) return;
    set("CROSS_RANK", seat.node);
    set("CROSS_SIZE", seat.nodes);
    set("LOCAL_SIZE", seat.local_world);
  }

  void write_torchrun(const Seat& seat, std::size_t devices) {
    set("PET_NNODES", seat.nodes);
    set("PET_NPROC_PER_NODE", devices);
    set("PET_NODE_RANK", seat.node);
    set("PET_RDZV_BACKEND", "c10d");
    set("PET_RDZV_ENDPOINT", master_endpoint());
    set("PET_RDZV_ID", run_id());
    // The job restarts as a whole; a launcher that restarted ranks, too, would multiply restarts.
    set("PET_MAX_RESTARTS", "0");
  }

  void write_slurm(const Seat& seat, std::size_t devices) {
    std::vector<std::string> addresses;
    addresses.reserve(layout_.nodes.size());
    for (const GangNode& node : layout_.nodes) addresses.push_back(node.address);
    SlurmSeat node{.job = fmt::format("{}", facts_.attempt.job.value()),
                   .name = facts_.job,
                   .account = facts_.tenant,
                   .addresses = addresses,
                   .here = seat.node,
                   .cpus = facts_.threads * devices,
                   .restarts = layout_.restarts};
    if (facts_.devices != DeviceList::kNone) node.devices = devices;
    for (auto& [name, value] : slurm_variables(node)) set(name, std::move(value));
    // Leaves the gang's own ports free for tasks that meet there.
    constexpr std::uint32_t kStepPorts = 32;
    set("ORRERY_STEP_PORT", layout_.master_port + kStepPorts);
    set("ORRERY_STEP_NODE", seat.node);
    set("ORRERY_STEP_NODES", compress_host_list(addresses));
  }

  /// Workers of a node listen on consecutive ports, by their order there.
  [[nodiscard]] std::string tensorflow_config(const Seat& seat) const {
    std::vector<std::string> workers(seat.world);
    for (const GangNode& node : layout_.nodes) {
      const bool whole = facts_.per == LaunchUnit::kNode;
      const std::size_t count = whole ? 1 : node.ranks.size();
      for (std::size_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(&node - layout_.nodes.data());
        workers.at(whole ? at : node.ranks[i]) = fmt::format("{}:{}", node.address, port(i));
      }
    }
    const nlohmann::ordered_json config{{"cluster", {{"worker", workers}}},
                                        {"task", {{"type", "worker"}, {"index", seat.rank}}}};
    return config.dump();
  }

  [[nodiscard]] std::size_t port(std::size_t after) const { return layout_.master_port + after; }
  /// Returns the address where rank 0 listens.
  [[nodiscard]] const std::string& master_address() const {
    return layout_.nodes[first_node(layout_, facts_.per)].address;
  }
  [[nodiscard]] std::string master_endpoint() const {
    return fmt::format("{}:{}", master_address(), layout_.master_port);
  }
  [[nodiscard]] std::string run_id() const {
    return fmt::format("{}-{}", facts_.job, facts_.attempt.attempt);
  }

  [[nodiscard]] std::string list_of(const std::vector<std::uint32_t>& devices) const {
    std::string list;
    for (const std::uint32_t device : devices) {
      if (!list.empty()) list += ',';
      list += device < facts_.device_names.size() ? facts_.device_names[device]
                                                  : fmt::format("{}", device);
    }
    return list;
  }

  const LaunchFacts& facts_;
  const GangLayout& layout_;
  std::string role_;
  Environment environment_;
};

std::vector<std::uint32_t> devices_of(const RankShare& share) {
  std::vector<std::uint32_t> devices;
  devices.reserve(share.ranks.size());
  for (std::uint64_t left = share.devices; left != 0; left &= left - 1) {
    devices.push_back(static_cast<std::uint32_t>(std::countr_zero(left)));
  }
  return devices;
}

/// Programs of these launchers find their device by LOCAL_RANK among the devices of all ranks here.
bool sees_devices_of_peers(LaunchStyle style) {
  return style == LaunchStyle::kTorch || style == LaunchStyle::kDeepspeed;
}

template <class Value, std::size_t N>
Value value_of(const std::array<NamedValue<Value>, N>& table, std::string_view name) {
  for (const NamedValue<Value>& entry : table) {
    if (entry.name == name) return entry.value;
  }
  return Value{};
}

}  // namespace

LaunchStyle launch_style_of(std::string_view framework) { return value_of(kStyles, framework); }

DeviceList device_list_of(std::string_view platform) { return value_of(kLists, platform); }

std::vector<RankStart> rank_starts(const LaunchFacts& facts, const GangLayout& layout,
                                   const RankShare& share) {
  const std::vector<std::uint32_t> devices = devices_of(share);
  ORRERY_ASSERT(layout.gang == share.gang && layout.here < layout.nodes.size(),
                "a layout is of the gang and names this node");
  ORRERY_ASSERT(devices.size() == share.ranks.size(), "each device has its rank");
  const bool by_mpirun = facts.style == LaunchStyle::kMpi;
  if (by_mpirun && layout.here != first_node(layout, facts.per)) return {};
  ContractWriter writer(facts, layout);
  const auto nodes = static_cast<std::uint32_t>(layout.nodes.size());
  std::vector<RankStart> starts;
  starts.reserve(devices.size());
  if (facts.per == LaunchUnit::kNode || by_mpirun || facts.style == LaunchStyle::kSlurm) {
    const std::uint32_t rank = by_mpirun ? 0 : layout.here;
    const Seat seat{rank, nodes, 0, 1, layout.here, nodes};
    RankStart start{{}, rank, writer.write(seat, devices)};
    start.slots.reserve(devices.size());
    for (const std::uint32_t device : devices) start.slots.push_back({share.gang, device});
    starts.push_back(std::move(start));
    return starts;
  }
  const std::size_t world = std::accumulate(
      layout.nodes.begin(), layout.nodes.end(), std::size_t{0},
      [](std::size_t sum, const GangNode& node) { return sum + node.ranks.size(); });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Seat seat{share.ranks[i],
                    static_cast<std::uint32_t>(world),
                    static_cast<std::uint32_t>(i),
                    static_cast<std::uint32_t>(devices.size()),
                    layout.here,
                    nodes};
    const bool all = sees_devices_of_peers(facts.style);
    const std::vector<std::uint32_t> seen = all ? devices : std::vector{devices[i]};
    starts.push_back({{{share.gang, devices[i]}}, share.ranks[i], writer.write(seat, seen)});
  }
  return starts;
}

std::string mpi_hostfile(const GangLayout& layout, LaunchUnit per) {
  std::vector<std::pair<std::string_view, std::size_t>> hosts;
  hosts.reserve(layout.nodes.size());
  for (const GangNode& node : layout.nodes) {
    auto host = std::find_if(hosts.begin(), hosts.end(),
                             [&](const auto& known) { return known.first == node.address; });
    if (host == hosts.end()) host = hosts.insert(host, {node.address, 0});
    host->second += per == LaunchUnit::kNode ? 1 : node.ranks.size();
  }
  std::string text;
  for (const auto& [address, slots] : hosts) text += fmt::format("{} slots={}\n", address, slots);
  return text;
}

std::string mpi_rankfile(const GangLayout& layout, LaunchUnit per, std::uint32_t cores) {
  std::map<std::uint32_t, std::string_view> addresses;
  std::uint32_t place = 0;
  for (const GangNode& node : layout.nodes) {
    if (per == LaunchUnit::kNode) {
      addresses[place++] = node.address;
    } else {
      for (const std::uint32_t rank : node.ranks) addresses[rank] = node.address;
    }
  }
  std::string text;
  for (const auto& [rank, address] : addresses) {
    text += fmt::format("rank {}={} slot=0-{}\n", rank, address, std::max(cores, 1u) - 1);
  }
  return text;
}

}  // namespace orrery
