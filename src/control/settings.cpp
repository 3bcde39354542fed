#include "control/settings.hpp"

#include "base/format/document.hpp"
#include "scheduler/tenants/tenants_spec.hpp"

namespace orrery {

Result<TenantTree> tenants_from(const std::string& yaml, const Topology& topology) {
  Result<Document> document = Document::parse(yaml, "tenants");
  if (!document) return forward_error(document);
  Result<TenantsSpec> spec = read_tenants_spec(*document);
  if (!spec) return forward_error(spec);
  return build_tenant_tree(*spec, topology);
}

Result<Policy> policy_from(const std::string& yaml) {
  Result<Document> document = Document::parse(yaml, "policy");
  if (!document) return forward_error(document);
  return read_policy(*document);
}

}  // namespace orrery
