#include "perf/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

/// Part of the device memory a driver and its runtime leave to programs, where the catalog does
/// not state it: 80 GB parts show 79.1 to 79.6 GiB of 80.
constexpr double kVisibleMemory = 0.99;

LinkClass link_of(const ScaleUp& scale_up) {
  const std::string& topology = scale_up.topology;
  if (topology.starts_with("torus") || topology == "ring") return LinkClass::kTorus;
  if (topology.find("mesh") != std::string::npos) return LinkClass::kMesh;
  return LinkClass::kSwitched;
}

LinkClass link_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::kInfiniband:
      return LinkClass::kInfiniband;
    case FabricKind::kRoce:
      return LinkClass::kRoce;
    case FabricKind::kSlingshot:
      return LinkClass::kSlingshot;
    case FabricKind::kEfa:
      return LinkClass::kEfa;
    case FabricKind::kOmniPath:
      return LinkClass::kOmniPath;
    case FabricKind::kEthernet:
      return LinkClass::kEthernet;
  }
  return LinkClass::kEthernet;
}

int dimensions_of(const ScaleUp& scale_up) {
  if (scale_up.topology.starts_with("torus3d")) return 3;
  return scale_up.topology.starts_with("torus2d") ? 2 : 1;
}

class MachineBuilder {
 public:
  MachineBuilder(const Catalog& catalog, const MachineRequest& request)
      : catalog_(catalog), request_(request), node_(catalog.default_node(*request.accelerator)) {}

  Result<Machine> build() {
    const Accelerator& a = *request_.accelerator;
    if (request_.accelerators == 0) return input_error({}, "a machine needs accelerators");
    machine_.accelerator = &a;
    machine_.node = &node_;
    machine_.generation = a.architecture;
    machine_.ranks_per_accelerator = request_.ranks_per_accelerator;
    machine_.ranks = request_.accelerators * request_.ranks_per_accelerator;
    set_device(a);
    if (machine_.peak_of(NumberFormat::kBf16) <= 0) {
      return infeasible(
          fmt::format("{}: the catalog has no rate for 16-bit or 32-bit matrix "
                      "products",
                      a.id));
    }
    set_tiers(a);
    return machine_;
  }

 private:
  void set_device(const Accelerator& a) {
    const double share = 1.0 / request_.ranks_per_accelerator;
    for (std::size_t i = 0; i < kNumberFormats; ++i) {
      machine_.peak[i] = a.rates[i] ? a.rates[i]->value() * share : 0;
    }
    auto& bf16 = machine_.peak[static_cast<std::size_t>(NumberFormat::kBf16)];
    auto& fp16 = machine_.peak[static_cast<std::size_t>(NumberFormat::kFp16)];
    if (fp16 <= 0) fp16 = bf16;
    if (bf16 <= 0) bf16 = std::max(fp16, machine_.peak_of(NumberFormat::kFp32));
    const Bytes visible = a.driver_visible_memory.value_or(a.memory * kVisibleMemory);
    machine_.memory = visible.value() * share;
    machine_.memory_bandwidth = a.memory_bandwidth.value() * share;
    machine_.host_bandwidth =
        a.host.bandwidth_per_direction.value_or(BytesPerSecond{0}).value() * share;
    machine_.compute_units = a.compute_units ? *a.compute_units * share : 0;
    machine_.host_memory = host_memory_of_rank(machine_);
  }

  void set_tiers(const Accelerator& a) {
    const std::uint64_t per_node =
        std::max<std::uint64_t>(1, request_.node_accelerators.value_or(
                                       static_cast<std::uint32_t>(node_.accelerators_per_node)));
    std::uint64_t domain = std::max<std::uint64_t>(
        1, request_.scale_up_domain.value_or(
               static_cast<std::uint32_t>(node_.scale_up_domain_accelerators)));
    if (!request_.scale_up_domain && domain == 8) domain = std::min(domain, per_node);
    if (request_.slice_accelerators) domain = *request_.slice_accelerators;
    const bool joined = a.scale_up.bandwidth_per_direction && domain > 1;
    if (joined) add_scale_up(a, domain);
    if (per_node > (joined ? domain : 1)) add_host_tier(a, per_node);
    const std::uint64_t reached = machine_.tiers.empty() ? 1 : machine_.tiers.back().size;
    if (reached < machine_.ranks || machine_.tiers.empty() || request_.scale_out) {
      add_scale_out(a, per_node);
    }
  }

  void add_scale_up(const Accelerator& a, std::uint64_t domain) {
    Tier tier{
        .link = link_of(a.scale_up),
        .size = domain * request_.ranks_per_accelerator,
        .bandwidth = a.scale_up.bandwidth_per_direction->value() / request_.ranks_per_accelerator,
        .dimensions = dimensions_of(a.scale_up)};
    const ScaleUpLink* link =
        a.scale_up.technology ? catalog_.find<ScaleUpLink>(*a.scale_up.technology) : nullptr;
    if (link != nullptr) tier.latency = Seconds(link->small_message_latency).value();
    tier.in_network_reduction = a.scale_up.topology == "nvswitch" && a.year >= 2022;
    machine_.tiers.push_back(tier);
  }

  /// Through the host's PCIe switches and processors.
  void add_host_tier(const Accelerator& a, std::uint64_t per_node) {
    const double link = a.host.bandwidth_per_direction.value_or(BytesPerSecond{16e9}).value();
    machine_.tiers.push_back({.link = LinkClass::kPcie,
                              .size = per_node * request_.ranks_per_accelerator,
                              .bandwidth = link / request_.ranks_per_accelerator,
                              .latency = 5e-6});
  }

  void add_scale_out(const Accelerator& a, std::uint64_t per_node) {
    const ScaleOutFabric* fabric =
        request_.fabric != nullptr ? request_.fabric : catalog_.default_fabric(node_);
    const bool between_slices = machine_.tiers.size() == 1 &&
                                machine_.tiers[0].link == LinkClass::kTorus &&
                                a.kind == AcceleratorKind::kTpu;
    double bandwidth = node_.compute_bandwidth.value() / std::max(1, node_.accelerators_per_node);
    if (request_.node_bandwidth) {
      bandwidth = request_.node_bandwidth->value() / static_cast<double>(per_node);
    } else if (bandwidth <= 0 && a.typical_scale_out) {
      bandwidth = a.typical_scale_out->value();
    }
    Tier tier{.link = between_slices ? LinkClass::kDataCenter : LinkClass::kEthernet,
              .size = std::max(machine_.ranks,
                               machine_.tiers.empty() ? 1 : machine_.tiers.back().size * 2),
              .bandwidth = std::max(bandwidth, 1e8) / request_.ranks_per_accelerator,
              .latency = 5e-6};
    if (fabric != nullptr && !between_slices) {
      tier.link = link_of(fabric->kind);
      if (fabric->small_message_latency) {
        tier.latency = Seconds(*fabric->small_message_latency).value();
      }
      tier.routing = fabric->routing.value_or(Routing::kAdaptive);
      tier.gpudirect = fabric->gpudirect.value_or(true);
    }
    machine_.assumptions.push_back(fmt::format(
        "nodes of {} ({} accelerators), {} at {:.0f} Gb/s per accelerator", node_.id, per_node,
        fabric != nullptr ? fabric->name : std::string("a network"), bandwidth * 8e-9));
    machine_.tiers.push_back(tier);
  }

  const Catalog& catalog_;
  const MachineRequest& request_;
  const NodeType& node_;
  Machine machine_;
};

}  // namespace

std::optional<double> host_memory_of_rank(const Machine& machine) {
  const NodeType& node = *machine.node;
  if (!node.host_memory) return std::nullopt;
  const double ranks =
      double{1} * std::max(1, node.accelerators_per_node) * machine.ranks_per_accelerator;
  return node.host_memory->value() / ranks;
}

Result<Machine> machine_of(const Catalog& catalog, const MachineRequest& request) {
  return MachineBuilder(catalog, request).build();
}

}  // namespace orrery
