#include "scheduler/tenants/tenants_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <span>

#include "base/text/name_check.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

Status read_value(const DocumentNode& node, DeviceCount& out, FieldReader::Options) {
  constexpr std::int64_t kDevicesMax = std::int64_t{1} << 32;
  out.where = node.position();
  const Result<std::int64_t> devices = read_integer(node, 0, kDevicesMax);
  if (!devices) return tl::unexpected(devices.error());
  out.devices = *devices;
  return {};
}

namespace {

constexpr std::size_t kTenantsMax = 1 << 16;
constexpr std::ptrdiff_t kDepthMax = 16;

bool is_name(std::string_view part) {
  constexpr std::size_t kLongest = 64;
  return !part.empty() && part.size() <= kLongest &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                  c == '.';
         });
}

// Whole path of an entry: its parent's and its own name.
std::string path_of(const TenantSpec& tenant) {
  return tenant.parent.empty() ? tenant.name : fmt::format("{}/{}", tenant.parent, tenant.name);
}

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : path.substr(0, slash);
}

Status check_path(const std::string& path, const SourcePosition& where) {
  if (std::count(path.begin(), path.end(), '/') >= kDepthMax) {
    return input_error(where, fmt::format("\"{}\" is nested deeper than {} tenants",
                                          printable(path, 60), kDepthMax));
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (!is_name(std::string_view(path).substr(begin, end - begin))) {
      return input_error(where, fmt::format("\"{}\" is not a name: expected 1 to 64 letters, "
                                            "digits, '-', '_' or '.', levels joined with '/'",
                                            printable(path, 60)));
    }
    begin = end + 1;
  }
  return {};
}

std::string_view last_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Why entries are not connected to the root: above them is an unknown tenant, or they form a cycle.
tl::unexpected<Error> loose_error(const TenantsSpec& spec, std::span<const TenantPlace> placed,
                                  std::span<const TenantPlace> loose) {
  std::map<std::string_view, const TenantPlace*> by_name;
  for (const TenantPlace& place : loose) by_name.emplace(last_name(place.path), &place);
  std::vector<const TenantPlace*> chain{&loose.front()};
  while (true) {
    const auto above = by_name.find(last_name(parent_of(chain.back()->path)));
    if (above == by_name.end()) break;
    const auto seen = std::find(chain.begin(), chain.end(), above->second);
    if (seen == chain.end()) {
      chain.push_back(above->second);
      continue;
    }
    std::vector<std::string_view> names;
    for (auto at = seen; at != chain.end(); ++at) names.push_back(last_name((*at)->path));
    names.push_back(names.front());
    return input_error(spec.tenants[above->second->entry].where,
                       fmt::format("parent: {} is a cycle", fmt::join(names, " -> ")));
  }
  const TenantPlace& last = *chain.back();
  const std::string_view parent = parent_of(last.path);
  std::vector<std::string_view> known;
  for (const TenantPlace& place : placed) known.push_back(place.path);
  return input_error(
      spec.tenants[last.entry].where,
      fmt::format("parent: there is no tenant \"{}\"{}", parent, did_you_mean(parent, known)));
}

Status check_values(const TenantSpec& tenant) {
  constexpr double kWeightMax = 1e6;
  if (!(tenant.weight > 0) || tenant.weight > kWeightMax) {
    return input_error(tenant.where, fmt::format("weight is {}, expected more than 0 and at most "
                                                 "{}",
                                                 tenant.weight, kWeightMax));
  }
  if (!tenant.borrow && !tenant.borrow_limit.empty()) {
    return input_error(tenant.where, "borrow_limit has no meaning with borrow: false");
  }
  if (tenant.run_as.empty()) return {};
  const Status named = check_posix_user(tenant.run_as, tenant.where);
  if (named) return {};
  return input_error(tenant.where, "run_as: " + named.error().message);
}

}  // namespace

Result<std::vector<TenantPlace>> place_tenants(const TenantsSpec& spec) {
  if (spec.tenants.size() > kTenantsMax) {
    return input_error(spec.where, fmt::format("tenants: {} of them, expected at most {}",
                                               spec.tenants.size(), kTenantsMax));
  }
  std::vector<std::string> paths;
  for (const TenantSpec& tenant : spec.tenants) paths.push_back(path_of(tenant));
  std::map<std::string_view, std::size_t> by_path;
  std::map<std::string_view, std::vector<std::size_t>> below;  // by path of the parent
  for (std::size_t i = 0; i < spec.tenants.size(); ++i) {
    const TenantSpec& tenant = spec.tenants[i];
    if (Status named = check_path(paths[i], tenant.where); !named) return forward_error(named);
    const auto [first, added] = by_path.emplace(paths[i], i);
    if (!added) {
      return input_error(tenant.where,
                         fmt::format("name: a second tenant \"{}\", the first is at {}", paths[i],
                                     spec.tenants[first->second].where.text()));
    }
    below[parent_of(paths[i])].push_back(i);
  }

  std::vector<TenantPlace> places{TenantPlace{}};
  for (std::size_t at = 0; at < places.size(); ++at) {
    const auto children = below.find(places[at].path);
    if (children == below.end()) continue;
    for (const std::size_t entry : children->second) places.push_back({paths[entry], at, entry});
    below.erase(children);
  }
  if (!below.empty()) {
    std::vector<TenantPlace> loose;
    for (const auto& [parent, entries] : below) {
      for (const std::size_t entry : entries) loose.push_back({paths[entry], 0, entry});
    }
    std::sort(loose.begin(), loose.end(),
              [](const TenantPlace& a, const TenantPlace& b) { return a.entry < b.entry; });
    return loose_error(spec, places, loose);
  }
  return places;
}

Result<TenantsSpec> read_tenants_spec(const Document& document) {
  TenantsSpec spec;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, spec, {}); !read) return forward_error(read);
  if (spec.api_version != "orrery/v1" || spec.kind != "Tenants") {
    return input_error(
        root.position(),
        fmt::format("expected apiVersion orrery/v1 and kind Tenants, found {} and {}",
                    printable(spec.api_version, 60), printable(spec.kind, 60)));
  }
  if (spec.tenants.empty()) return input_error(root.position(), "tenants: there are none");
  if (!(spec.half_life > Seconds(0))) {
    return input_error(root.position(), "half_life is 0, expected more");
  }
  for (const TenantSpec& tenant : spec.tenants) {
    if (Status checked = check_values(tenant); !checked) return forward_error(checked);
  }
  if (Result<std::vector<TenantPlace>> placed = place_tenants(spec); !placed) {
    return forward_error(placed);
  }
  return spec;
}

}  // namespace orrery
