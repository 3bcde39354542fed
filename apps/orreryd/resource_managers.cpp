#include "apps/orreryd/resource_managers.hpp"

#include <filesystem>
#include <memory>
#include <utility>

#include "base/format/checksum.hpp"

namespace orrery {
namespace {

std::string own_agent() {
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (own.parent_path() / "orrery-agent").string();
}

}  // namespace

void begin_resource_managers(RealEnv& real, const ManagersSpec& spec, PilotRoute route,
                             Controller& controller) {
  route.program = own_agent();
  controller.holds().begin(spec, [&](const ManagerSpec& each, std::uint64_t cluster,
                                     ResourceManager::Reported reported) {
    // Two managers may be of one Slurm: each knows its own holds.
    route.cluster = checksum(each.name, cluster);
    return std::make_unique<SlurmManager>(real, slurm_setup(each, route), std::move(reported));
  });
}

}  // namespace orrery
