#include "serving/route_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

/// The value of a key of a mapping; the mapping where it has none.
DocumentNode child(const DocumentNode& mapping, std::string_view key) {
  for (const DocumentNode::Entry& entry : mapping.entries()) {
    if (entry.key.text() == key) return entry.value;
  }
  return mapping;
}

std::vector<DocumentNode> items_of(const DocumentNode& mapping, std::string_view key) {
  return child(mapping, key).items();
}

bool has_port(std::string_view endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == endpoint.npos || colon == 0) return false;
  const std::string_view digits = endpoint.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return failed == std::errc() && end == digits.data() + digits.size() && port != 0;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Status check_replicas(const DocumentNode& node, const RoutedService& service) {
  const std::vector<DocumentNode> items = items_of(node, "replicas");
  std::set<std::uint64_t> jobs;
  for (std::size_t i = 0; i < service.replicas.size(); ++i) {
    const RoutedReplica& replica = service.replicas[i];
    if (!has_port(replica.endpoint)) {
      return input_error(child(items[i], "endpoint").position(),
                         fmt::format("endpoint \"{}\": expected HOST:PORT", replica.endpoint));
    }
    if (!jobs.insert(replica.job).second) {
      return input_error(child(items[i], "job").position(),
                         fmt::format("a second replica with job {}", replica.job));
    }
  }
  return {};
}

Status check_tenants(const DocumentNode& node, const RoutedService& service) {
  const std::vector<DocumentNode> items = items_of(node, "tenants");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < service.tenants.size(); ++i) {
    const RoutedTenant& tenant = service.tenants[i];
    if (!names.insert(tenant.name).second) {
      return input_error(child(items[i], "name").position(),
                         fmt::format("a second tenant with name \"{}\"", tenant.name));
    }
    if (!(tenant.weight > 0) || !std::isfinite(tenant.weight)) {
      return input_error(child(items[i], "weight").position(),
                         fmt::format("weight {}, expected more than 0", tenant.weight));
    }
    if (!(tenant.tokens_per_s >= 0) || !std::isfinite(tenant.tokens_per_s)) {
      return input_error(child(items[i], "tokens_per_s").position(),
                         fmt::format("tokens_per_s {}, expected 0 or more", tenant.tokens_per_s));
    }
  }
  if (service.batch_deadline_s >= 0) return {};
  return input_error(child(node, "batch_deadline_s").position(),
                     fmt::format("{}, expected 0 or more", service.batch_deadline_s));
}

Status check_services(const DocumentNode& root, const RouteTable& table) {
  const std::vector<DocumentNode> items = items_of(root, "services");
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> models;
  std::set<std::uint64_t> ids;
  for (std::size_t i = 0; i < table.services.size(); ++i) {
    const RoutedService& service = table.services[i];
    if (!ids.insert(service.id).second) {
      return input_error(child(items[i], "id").position(),
                         fmt::format("a second service with id {}", service.id));
    }
    const auto [first, added] = models.emplace(std::pair(service.tenant, service.model), i);
    if (!added) {
      return input_error(
          child(items[i], "model").position(),
          fmt::format("a second service of tenant \"{}\" with model \"{}\", the first is at {}",
                      service.tenant, service.model, items[first->second].position().text()));
    }
    if (Status fits = check_replicas(items[i], service); !fits) return fits;
    if (Status fits = check_tenants(items[i], service); !fits) return fits;
    if (service.canary && !(service.canary->share >= 0 && service.canary->share <= 1)) {
      return input_error(child(child(items[i], "canary"), "share").position(),
                         fmt::format("share {}, expected 0 to 1", service.canary->share));
    }
  }
  return {};
}

Status check_keys(const DocumentNode& root, const RouteTable& table) {
  const std::vector<DocumentNode> items = items_of(root, "keys");
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    if (is_sha256(table.keys[i].sha256)) continue;
    return input_error(child(items[i], "sha256").position(),
                       "expected the SHA-256 of a key as 64 lower-case hexadecimal digits");
  }
  return {};
}

}  // namespace

Result<RouteTable> read_route_table(const Document& document) {
  RouteTable table;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, table, {}); !read) return forward_error(read);
  if (Status fits = check_services(root, table); !fits) return forward_error(fits);
  if (Status fits = check_keys(root, table); !fits) return forward_error(fits);
  std::ranges::sort(table.services, {}, &RoutedService::id);
  for (RoutedService& service : table.services) {
    std::ranges::sort(service.replicas, {}, &RoutedReplica::job);
  }
  std::ranges::sort(table.keys, {}, &RoutedKey::sha256);
  return table;
}

std::string write_route_table(const RouteTable& table) { return to_json(table).dump(2) + "\n"; }

}  // namespace orrery
