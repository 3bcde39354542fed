// What happens to the fleet of a simulation: failures, arrivals, events at stated times.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/utf8.hpp"
#include "twin/faults/failure_file.hpp"
#include "twin/world/arrivals.hpp"
#include "verbs/option_text.hpp"
#include "verbs/simulate/simulate_request.hpp"

namespace orrery {
namespace {

/// Jobs of a trace know their tenants by number.
bool same_tenants(const TenantTree& a, const TenantTree& b) {
  if (a.size() != b.size()) return false;
  for (std::uint32_t t = 0; t < a.size(); ++t) {
    if (a.path(TenantId(t)) != b.path(TenantId(t))) return false;
  }
  return true;
}

}  // namespace

Status SimulateRequest::load_failures(const std::string& name) {
  if (name == "none") return {};
  if (is_file_name(name)) {
    Result<Document> document = files_.keep(name);
    if (!document) return forward_error(document);
    Result<FailureSpec> spec = read_failure_spec(*document, facts_.catalog());
    if (!spec) return forward_error(spec);
    failures_ = *std::move(spec);
    return {};
  }
  Result<const FailureSpec*> known = facts_.catalog().require<FailureSpec>(name);
  if (!known) return wrong("failures", known.error().message);
  failures_ = **known;
  return {};
}

// "mi300x:180 days:90 days,h100:never"
Status SimulateRequest::load_arrivals(const std::string& list) {
  if (list.empty()) return {};
  std::vector<Delivery> deliveries;
  for (const std::string& piece : pieces(list)) {
    const std::size_t colon = std::min(piece.find(':'), piece.size());
    const std::string name = piece.substr(0, colon);
    const Result<const Accelerator*> known = facts_.catalog().require<Accelerator>(name);
    if (!known) return wrong("arrivals", known.error().message);
    const std::optional<FleetTypeId> type = cluster_->topology().find_type((*known)->id);
    if (!type) return wrong("arrivals", fmt::format("no {} in this fleet", (*known)->id));
    Delivery& delivery = deliveries.emplace_back(Delivery{*type, Duration::max(), {}});
    const std::string times = piece.substr(std::min(colon + 1, piece.size()));
    if (times == "never") continue;
    const std::size_t second = std::min(times.find(':'), times.size());
    Result<Seconds> after = quantity_option<Seconds>("arrivals", times.substr(0, second));
    if (!after) return forward_error(after);
    delivery.after = Duration::from_seconds(after->value());
    if (second == times.size()) continue;
    Result<Seconds> over = quantity_option<Seconds>("arrivals", times.substr(second + 1));
    if (!over) return forward_error(over);
    delivery.over = Duration::from_seconds(over->value());
  }
  arrivals_ = arrivals_of(cluster_->topology(), deliveries, begin_);
  return {};
}

Status SimulateRequest::load_events(const std::string& name) {
  if (name.empty()) return {};
  Result<Document> document = files_.keep(name);
  if (!document) return forward_error(document);
  const auto tenants = [this](const std::string& file) -> Result<std::string> {
    Result<Document> figures = files_.keep(file);
    if (!figures) return forward_error(figures);
    Result<TenantsSpec> read = read_tenants_spec(*figures);
    if (!read) return forward_error(read);
    Result<TenantTree> tree = build_tenant_tree(*read, cluster_->topology());
    if (!tree) return forward_error(tree);
    if (!same_tenants(*tree, cluster_->tenants())) {
      return input_error({file, 1, 1}, "expected the tenants of the simulation, in their order");
    }
    return files_.texts.at(file);
  };
  Result<PlannedEvents> planned =
      read_planned_events(*document, {cluster_->topology(), begin_, tenants});
  if (!planned) return forward_error(planned);
  planned_ = *std::move(planned);
  const std::string of = planned_.name.empty() ? name : printable(planned_.name, 60);
  notes_.push_back(fmt::format("events of {}: {} operator actions, {} faults", of,
                               planned_.commands.size(), planned_.faults.size()));
  return {};
}

}  // namespace orrery
