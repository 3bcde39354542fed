#include "store/stored_facts.hpp"

#include <optional>

#include "base/document.hpp"
#include "control/settings.hpp"
#include "fleet/spec.hpp"

namespace orrery {
namespace {

Result<std::optional<TenantsSpec>> tenants_of(const std::string& yaml) {
  if (yaml.empty()) return std::nullopt;
  const Result<Document> text = Document::parse(yaml, "tenants.yaml");
  if (!text) return tl::unexpected(text.error());
  Result<TenantsSpec> spec = read_tenants_spec(*text);
  if (!spec) return forward_error(spec);
  return *std::move(spec);
}

}  // namespace

Result<StoredFacts> stored_facts(const ControlFacts::Facts& facts, const SetupTexts& texts) {
  const Result<Document> document = Document::parse(texts.fleet, "fleet.yaml");
  if (!document) return tl::unexpected(document.error());
  const Result<FleetSpec> fleet = read_fleet_spec(*document);
  if (!fleet) return tl::unexpected(fleet.error());
  const Result<std::optional<TenantsSpec>> tenants = tenants_of(texts.tenants);
  if (!tenants) return tl::unexpected(tenants.error());
  Result<Policy> policy = policy_from(texts.policy);
  if (!policy) return forward_error(policy);
  Result<std::unique_ptr<ControlFacts>> made =
      ControlFacts::make(facts, *fleet, *tenants ? &**tenants : nullptr);
  if (!made) return forward_error(made);
  return StoredFacts{*std::move(made), *std::move(policy)};
}

}  // namespace orrery
