#include "serving/admission/tenant_terms.hpp"

namespace orrery {

TenantTerms::TenantTerms(const std::vector<RoutedTenant>& tenants, std::uint32_t gateways) {
  for (const RoutedTenant& each : tenants) {
    RoutedTenant& mine = tenants_[each.name];
    mine = each;
    mine.tokens_per_s /= static_cast<double>(gateways);
  }
}

RoutedTenant TenantTerms::named(std::string_view name) const {
  const auto at = tenants_.find(name);
  return at == tenants_.end() ? RoutedTenant{.name = std::string(name)} : at->second;
}

RoutedTenant TenantTerms::of(const RoutedKey& key) const {
  if (const auto at = tenants_.find(key.name); at != tenants_.end()) return at->second;
  for (std::string_view path = key.tenant; !path.empty();) {
    if (const auto at = tenants_.find(path); at != tenants_.end()) return at->second;
    const std::size_t slash = path.rfind('/');
    path = path.substr(0, slash == path.npos ? 0 : slash);
  }
  return {.name = key.tenant.empty() ? key.name : key.tenant};
}

}  // namespace orrery
