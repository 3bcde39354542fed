#include "fleet/import/imported_types.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/text/utf8.hpp"

namespace orrery {

// AutoDetect of Slurm writes a product's name with '_' for ' ': nvidia_h100_80gb_hbm3.
const Accelerator* find_imported_accelerator(const Catalog& catalog, const std::string& type) {
  if (const Accelerator* found = catalog.find<Accelerator>(type); found != nullptr) return found;
  for (const char blank : {' ', '-'}) {
    std::string spelled = type;
    std::replace(spelled.begin(), spelled.end(), '_', blank);
    const Accelerator* found = catalog.find<Accelerator>(spelled);
    if (found != nullptr) return found;
  }
  return nullptr;
}

Result<const NodeType*> ImportedTypes::with_accelerators(const std::string& type, int count,
                                                         const SourcePosition& where) {
  const std::string key = fmt::format("{}:{}", count, type);
  if (const auto known = chosen_.find(key); known != chosen_.end()) return known->second;
  const Accelerator* accelerator = find_imported_accelerator(catalog_, type);
  if (accelerator == nullptr) {
    Result<const Accelerator*> unknown = catalog_.require<Accelerator>(printable(type, 60), where);
    return forward_error(unknown);
  }
  std::vector<const NodeType*> fitting;
  std::vector<std::string> others;
  for (const NodeType& each : catalog_.all<NodeType>()) {
    if (each.accelerator != accelerator->id) continue;
    if (each.accelerators_per_node == count) fitting.push_back(&each);
    others.push_back(fmt::format("{} ({})", each.id, each.accelerators_per_node));
  }
  if (fitting.empty()) {
    return input_error(where, fmt::format("no node type of the catalog has {} x {}{}{}; add yours "
                                          "with --catalog",
                                          count, accelerator->id, others.empty() ? "" : ", it has ",
                                          fmt::join(others, ", ")));
  }
  const NodeType* usual = &catalog_.default_node(*accelerator);
  const bool usual_fits = std::find(fitting.begin(), fitting.end(), usual) != fitting.end();
  const NodeType* chosen = usual_fits ? usual : fitting.front();
  if (fitting.size() > 1) note_choice(*chosen, fitting);
  chosen_.emplace(key, chosen);
  return chosen;
}

Result<const NodeType*> ImportedTypes::without_accelerators(const SourcePosition& where) {
  ++cluster_.cpu_nodes;
  Result<const Accelerator*> cpu = catalog_.require<Accelerator>("cpu", where);
  if (!cpu) return forward_error(cpu);
  cluster_.cpu_type = &catalog_.default_node(**cpu);
  return cluster_.cpu_type;
}

void ImportedTypes::note_choice(const NodeType& chosen,
                                const std::vector<const NodeType*>& fitting) {
  std::string note = chosen.id + " rather than";
  for (const NodeType* each : fitting) {
    if (each != &chosen) note += " " + each->id;
  }
  auto& notes = cluster_.choices;
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

}  // namespace orrery
