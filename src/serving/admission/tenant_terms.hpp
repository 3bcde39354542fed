// serving/admission/tenant_terms.hpp - what the holder of a key gets of a service: the terms of
// the tenant that the key counts as.
//
// Made of each route table, one for a service. Plain value; cost: O(depth of the key's tenant x log
// tenants) a search.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "serving/routing/route_table.hpp"

namespace orrery {

class TenantTerms {
 public:
  TenantTerms() = default;
  /// The limits are shared evenly by that many gateways. Precondition: gateways > 0.
  TenantTerms(const std::vector<RoutedTenant>& tenants, std::uint32_t gateways);

  /// Returns the terms of a key: of the tenant with the name of its holder, else of that with the
  /// path of its tenant or the nearest above. Where there is none, those of a tenant of its own
  /// with the key's path (its holder's name, where it has none), weight 1, priority 0 and no limit.
  [[nodiscard]] RoutedTenant of(const RoutedKey& key) const;
  /// Returns the terms of a tenant by the name that of() returned once, which a later table may
  /// lack.
  [[nodiscard]] RoutedTenant named(std::string_view name) const;

 private:
  std::map<std::string, RoutedTenant, std::less<>> tenants_;
};

}  // namespace orrery
