#include "store/stored_facts.hpp"

#include <optional>

#include "base/format/document.hpp"
#include "control/settings.hpp"
#include "fleet/spec/spec.hpp"

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

Result<StoredFacts> stored_facts(const Facts& base, const SetupTexts& texts) {
  const Result<FleetFile> fleet = read_fleet_file(texts.fleet, "fleet.yaml");
  if (!fleet) return tl::unexpected(fleet.error());
  const Result<std::optional<TenantsSpec>> tenants = tenants_of(texts.tenants);
  if (!tenants) return tl::unexpected(tenants.error());
  Result<Policy> policy = policy_from(texts.policy);
  if (!policy) return forward_error(policy);
  StoredFacts stored{.own = nullptr, .facts = nullptr, .policy = *std::move(policy)};
  if (!fleet->facts.empty()) {
    Result<Facts> own = base.with(fleet->facts);
    if (!own) return forward_error(own);
    stored.own = std::make_unique<const Facts>(*std::move(own));
  }
  const Facts& facts = stored.own == nullptr ? base : *stored.own;
  Result<std::unique_ptr<ControlFacts>> made =
      ControlFacts::make({facts.catalog(), facts.calibration(), base.models()}, fleet->spec,
                         *tenants ? &**tenants : nullptr);
  if (!made) return forward_error(made);
  stored.facts = *std::move(made);
  return stored;
}

}  // namespace orrery
