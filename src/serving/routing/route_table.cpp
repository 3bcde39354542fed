#include "serving/routing/route_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
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

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// Checks that numbers are finite and not negative.
Status check_amounts(const DocumentNode& node,
                     std::initializer_list<std::pair<std::string_view, double>> amounts) {
  for (const auto& [key, amount] : amounts) {
    if (amount >= 0 && std::isfinite(amount)) continue;
    return input_error(child(node, key).position(),
                       fmt::format("{} {}, expected 0 or more", key, amount));
  }
  return {};
}

Status check_transfer(const DocumentNode& node, const RoutedTransfer& transfer) {
  for (const auto& [key, amount] :
       {std::pair("token_bytes", transfer.token_bytes), std::pair("bytes_s", transfer.bytes_s)}) {
    if (amount > 0 && std::isfinite(amount)) continue;
    return input_error(child(node, key).position(),
                       fmt::format("{} {}, expected more than 0", key, amount));
  }
  return {};
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
    if (!replica.kv_events.empty() && !has_port(replica.kv_events)) {
      return input_error(child(items[i], "kv_events").position(),
                         fmt::format("kv_events \"{}\": expected HOST:PORT", replica.kv_events));
    }
    if (!jobs.insert(replica.job).second) {
      return input_error(child(items[i], "job").position(),
                         fmt::format("a second replica with job {}", replica.job));
    }
    const ReplicaPace& pace = replica.pace;
    if (Status fits = check_amounts(items[i], {{"usd_s", replica.usd_s}}); !fits) return fits;
    Status fits =
        check_amounts(child(items[i], "pace"), {{"prefill_tokens_s", pace.prefill_tokens_s},
                                                {"step_s", pace.step_s},
                                                {"step_full_s", pace.step_full_s}});
    if (!fits) return fits;
    if (!replica.transfer) continue;
    fits = check_transfer(child(items[i], "transfer"), *replica.transfer);
    if (!fits) return fits;
  }
  return check_amounts(node, {{"batch_deadline_s", service.batch_deadline_s},
                              {"ttft_p99_s", service.ttft_p99_s},
                              {"tpot_p99_s", service.tpot_p99_s},
                              {"wakes_in_s", service.wakes_in_s}});
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
    Status fits = check_amounts(items[i], {{"tokens_per_s", tenant.tokens_per_s}});
    if (!fits) return fits;
  }
  return {};
}

Status check_services(const DocumentNode& root, const RouteTable& table) {
  const std::vector<DocumentNode> items = items_of(root, "services");
  std::map<std::pair<std::string, std::string>, std::size_t> models;  // by tenant and model
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

Status check_peers(const DocumentNode& root, const RouteTable& table) {
  constexpr std::size_t kKeyMin = 32;
  if (!table.peers) return {};
  const DocumentNode node = child(root, "peers");
  if (table.peers->key.size() < kKeyMin) {
    return input_error(
        child(node, "key").position(),
        fmt::format("a key of {} bytes, expected {} or more", table.peers->key.size(), kKeyMin));
  }
  const std::vector<DocumentNode> items = items_of(node, "gateways");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < table.peers->gateways.size(); ++i) {
    const RoutedGateway& gateway = table.peers->gateways[i];
    if (!names.insert(gateway.name).second) {
      return input_error(child(items[i], "name").position(),
                         fmt::format("a second gateway with name \"{}\"", gateway.name));
    }
    if (!has_port(gateway.address)) {
      return input_error(child(items[i], "address").position(),
                         fmt::format("address \"{}\": expected HOST:PORT", gateway.address));
    }
  }
  return {};
}

}  // namespace

bool has_port(std::string_view endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == endpoint.npos || colon == 0) return false;
  const std::string_view digits = endpoint.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return failed == std::errc() && end == digits.data() + digits.size() && port != 0;
}

Result<RouteTable> read_route_table(const Document& document) {
  RouteTable table;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, table, {}); !read) return forward_error(read);
  if (Status fits = check_services(root, table); !fits) return forward_error(fits);
  if (Status fits = check_keys(root, table); !fits) return forward_error(fits);
  if (Status fits = check_peers(root, table); !fits) return forward_error(fits);
  std::ranges::sort(table.services, {}, &RoutedService::id);
  for (RoutedService& service : table.services) {
    std::ranges::sort(service.replicas, {}, &RoutedReplica::job);
  }
  std::ranges::sort(table.keys, {}, &RoutedKey::sha256);
  return table;
}

std::string write_route_table(const RouteTable& table) { return to_json(table).dump(2) + "\n"; }

}  // namespace orrery
