#include "fleet/spec/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "base/text/name_check.hpp"
#include "base/text/quantity_text.hpp"
#include "fleet/import/host_list.hpp"

namespace orrery {

Watts RedundantSupply::usable() const {
  switch (redundancy) {
    case Redundancy::kN:
      return capacity * units;
    case Redundancy::kN1:
      return capacity * (units - 1);
    case Redundancy::k2N: {
      const int half = units / 2;
      return capacity * half;
    }
  }
  return capacity;
}

namespace {

/// Checks the numbers and names of nodes where they stand, anywhere below a node of the document.
Status check_numbers(const DocumentNode& node) {
  constexpr int kCountMax = 1 << 20;
  for (const DocumentNode& item : node.items()) {
    if (Status checked = check_numbers(item); !checked) return checked;
  }
  for (const auto& [key, value] : node.entries()) {
    Status checked = check_numbers(value);
    const bool counts = key.text() == "count";
    const bool scalar = value.kind() == NodeKind::kScalar;
    if (counts || key.text() == "units" || (key.text() == "racks" && scalar)) {
      const auto number = read_integer(value, counts ? 0 : 1, kCountMax);
      if (!number) checked = tl::unexpected(number.error());
    } else if (key.text() == "names" && scalar) {
      const auto names = expand_host_list(value.text());
      if (!names) checked = input_error(value.position(), names.error().message);
    }
    if (!checked) return checked;
  }
  return {};
}

Status check_supply(const RedundantSupply& supply) {
  if (supply.usable() > Watts(0)) return {};
  return input_error(
      supply.where,
      fmt::format("\"{}\" has {} unit(s) of {}, which with redundancy {} leaves "
                  "nothing to use",
                  supply.name, supply.units, print(supply.capacity), word_of(supply.redundancy)));
}

Status check_pod(const PodSpec& pod) {
  if (pod.racks.empty()) return input_error(pod.where, "the pod has no racks");
  for (const RackSpec& rack : pod.racks) {
    if (rack.nodes.empty()) return input_error(rack.where, "the rack has no nodes");
  }
  return {};
}

Status check_hall(const HallSpec& hall) {
  if (hall.pods.empty()) return input_error(hall.where, "the hall has no pods");
  if (hall.ups) {
    if (Status checked = check_supply(*hall.ups); !checked) return checked;
  }
  for (const RedundantSupply& loop : hall.cooling_loops) {
    if (Status checked = check_supply(loop); !checked) return checked;
  }
  for (const PodSpec& pod : hall.pods) {
    if (Status checked = check_pod(pod); !checked) return checked;
  }
  return {};
}

// Refuses keys that would have no effect.
Status check_fabric(const FabricSpec& fabric) {
  const bool dragonfly = fabric.topology == FabricTopology::kDragonfly ||
                         fabric.topology == FabricTopology::kDragonflyPlus;
  const bool tree_keys = fabric.leaf_oversubscription != 1 || fabric.spine_oversubscription != 1 ||
                         fabric.planes != 1 || fabric.unit_nodes || fabric.pod_nodes;
  if (dragonfly && tree_keys) {
    return input_error(fabric.where,
                       "leaf_oversubscription, spine_oversubscription, planes, "
                       "unit_nodes and pod_nodes have no meaning for a dragonfly");
  }
  if (!dragonfly && fabric.dragonfly) {
    return input_error(fabric.where, "dragonfly: has no meaning for a fat tree");
  }
  return {};
}

Status check_site(const SiteSpec& site) {
  if (site.halls.empty()) return input_error(site.where, "the site has no halls");
  if (site.pue && (*site.pue < 1 || *site.pue > 3)) {
    return input_error(site.where, fmt::format("pue is {}, expected 1 to 3", *site.pue));
  }
  if (site.price_factor && (*site.price_factor <= 0 || *site.price_factor > 100)) {
    return input_error(site.where, fmt::format("price_factor is {}, expected more than 0 and at "
                                               "most 100",
                                               *site.price_factor));
  }
  for (const FabricSpec& fabric : site.fabrics) {
    if (Status checked = check_fabric(fabric); !checked) return checked;
  }
  for (const RedundantSupply& feed : site.feeds) {
    if (Status checked = check_supply(feed); !checked) return checked;
  }
  for (const HallSpec& hall : site.halls) {
    if (Status checked = check_hall(hall); !checked) return checked;
  }
  return {};
}

Status check_names(const FleetSpec& spec) {
  const auto name = [](const auto& item) -> const std::string& { return item.name; };
  if (Status named = check_name(spec.name, spec.where); !named) return named;
  if (Status unique = check_unique(spec.sites, name, "site"); !unique) return unique;
  for (const SiteSpec& site : spec.sites) {
    Status unique = check_unique(site.halls, name, "hall");
    if (unique) unique = check_unique(site.fabrics, name, "fabric");
    if (unique) unique = check_unique(site.storage, name, "storage");
    if (unique) unique = check_unique(site.feeds, name, "feed");
    for (const HallSpec& hall : site.halls) {
      if (unique) unique = check_unique(hall.cooling_loops, name, "cooling loop");
      if (unique) unique = check_unique(hall.pods, name, "group of pods");
      for (const PodSpec& pod : hall.pods) {
        if (unique) unique = check_unique(pod.racks, name, "group of racks");
      }
    }
    if (!unique) return unique;
  }
  return {};
}

Status check_wan(const FleetSpec& spec) {
  for (const WanSpec& wan : spec.wan) {
    for (const std::string& end : {wan.from, wan.to}) {
      const bool known = std::any_of(spec.sites.begin(), spec.sites.end(),
                                     [&](const SiteSpec& site) { return site.name == end; });
      if (!known) return input_error(wan.where, fmt::format("there is no site \"{}\"", end));
    }
    if (wan.from == wan.to) return input_error(wan.where, "a WAN link from a site to itself");
  }
  return {};
}

}  // namespace

Result<FleetSpec> read_fleet_spec(const Document& document) {
  FleetSpec spec;
  const DocumentNode root = document.root();
  if (const auto kind = read_elsewhere<FleetSpec>(root, "kind"); kind && kind->text() != "Fleet") {
    return input_error(kind->position(),
                       fmt::format("expected kind Fleet, found {}", kind->shown()));
  }
  if (Status read = read_struct(root, spec, {}); !read) return forward_error(read);
  if (spec.api_version != "orrery/v1" || spec.kind != "Fleet") {
    return input_error(root.position(),
                       fmt::format("expected apiVersion orrery/v1 and kind Fleet, found {} and {}",
                                   spec.api_version, spec.kind));
  }
  if (Status checked = check_numbers(root); !checked) return forward_error(checked);
  if (spec.sites.empty()) return input_error(root.position(), "the fleet has no sites");
  for (const SiteSpec& site : spec.sites) {
    if (Status checked = check_site(site); !checked) return forward_error(checked);
  }
  Status status = check_names(spec);
  if (status) status = check_wan(spec);
  if (!status) return forward_error(status);
  return spec;
}

Result<FleetSpec> load_fleet_spec(const std::string& path) {
  Result<Document> document = Document::load(path);
  if (!document) return forward_error(document);
  return read_fleet_spec(*document);
}

Result<FleetFile> read_fleet_file(std::string_view text, const std::string& file) {
  Result<std::vector<Document>> documents = Document::parse_all(text, file);
  if (!documents) return forward_error(documents);
  Result<FleetSpec> spec = read_fleet_spec(documents->front());
  if (!spec) return forward_error(spec);
  documents->erase(documents->begin());
  Result<FactOverlay> facts = fact_overlay(*std::move(documents));
  if (!facts) return forward_error(facts);
  return FleetFile{*std::move(spec), *std::move(facts)};
}

Result<FleetFile> load_fleet_file(const std::string& path) {
  const Result<std::string> text = read_file(path, Document::kSizeMax);
  if (!text) return tl::unexpected(text.error());
  return read_fleet_file(*text, path == "-" ? "<stdin>" : path);
}

}  // namespace orrery
