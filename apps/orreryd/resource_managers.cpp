#include "apps/orreryd/resource_managers.hpp"

#include <filesystem>
#include <memory>
#include <utility>

#include "base/format/document.hpp"

namespace orrery {
namespace {

Result<ManagersSpec> read_spec(ConfigFiles& files) {
  Result<std::string> yaml = files.text("managers.yaml");
  if (!yaml) return forward_error(yaml);
  if (yaml->empty()) return ManagersSpec();
  const Result<Document> document = Document::parse(*yaml, "managers.yaml");
  if (!document) return tl::unexpected(document.error());
  return read_managers(*document);
}

std::string own_agent() {
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (own.parent_path() / "orrery-agent").string();
}

}  // namespace

Status begin_resource_managers(RealEnv& real, ConfigFiles& files, PilotRoute route,
                               Controller& controller) {
  Result<ManagersSpec> spec = read_spec(files);
  if (!spec) return forward_error(spec);
  route.program = own_agent();
  const LiveHolds::MakeManager make =
      [&](const ManagerSpec& each, std::uint64_t cluster,
          ResourceManager::Reported reported) -> Result<std::unique_ptr<ResourceManager>> {
    route.cluster = cluster;
    return std::make_unique<SlurmManager>(real, slurm_setup(each, route), std::move(reported));
  };
  return controller.holds().begin(*std::move(spec), make);
}

}  // namespace orrery
