#include "verbs/nodes/power_answer.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/terminal_text.hpp"
#include "base/text/text_table.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

std::string kilowatts(double watts) { return fmt::format("{:.1f} kW", watts / 1000); }

}  // namespace

std::string power_text(const v1::ListPowerDomainsResponse& domains, Racks racks) {
  if (domains.domains().empty()) return "the fleet has no power limits\n";
  TextTable table({{"NAME"},
                   {"KIND"},
                   {"PLANNED", Align::kRight},
                   {"LIMIT", Align::kRight},
                   {"CAP", Align::kRight},
                   {"ALL BUSY", Align::kRight},
                   {"SUPPLY"}});
  std::size_t left_out = 0;
  for (const v1::PowerDomain& domain : domains.domains()) {
    if (racks == Racks::kCapped && domain.kind() == "rack" && !domain.has_cap_w()) {
      ++left_out;
      continue;
    }
    table.add({domain.name(), domain.kind(), kilowatts(domain.planned_w()),
               domain.has_limit_w() ? kilowatts(domain.limit_w()) : "-",
               domain.has_cap_w() ? kilowatts(domain.cap_w()) : "-", kilowatts(domain.most_w()),
               domain.supply()});
  }
  const std::string rest =
      left_out > 0
          ? fmt::format("(racks not shown: {}; `orrery power --all` includes them)\n", left_out)
          : "";
  return table.text() + rest;
}

Result<LiveAnswer> answer_power(const LiveCall& call, Racks racks) {
  Result<v1::ListPowerDomainsResponse> domains = list_power(call.session);
  if (!domains) return forward_error(domains);
  std::string text = power_text(*domains, racks);
  return live_answer(*std::move(domains), std::move(text));
}

Result<v1::SetPowerCapRequest> cap_request(const PowerCap& cap) {
  v1::SetPowerCapRequest request;
  request.set_name(cap.name);
  if (cap.power == "none") return request;
  const Result<Watts> power = quantity_option<Watts>("power", cap.power);
  if (!power) return tl::unexpected(power.error());
  request.set_cap_w(power->value());
  return request;
}

LiveAnswer cap_answer(v1::PowerDomain domain) {
  const std::string name = one_line(domain.name());
  const std::string limit = domain.has_limit_w() ? kilowatts(domain.limit_w()) : "none";
  const bool over = domain.has_limit_w() && domain.planned_w() > domain.limit_w();
  std::string text = fmt::format(
      "{}: {} planned, limit {}{}\n", name, kilowatts(domain.planned_w()), limit,
      over ? "; jobs are slowed or stopped until the planned power is below the limit" : "");
  std::string warning;
  if (domain.has_limit_w() && domain.limit_w() < domain.idle_w()) {
    warning = fmt::format(
        "orrery: warning: {} cannot stay below {}: its idle nodes draw {}. No job starts there "
        "until the cap is raised or removed (`orrery power cap {} none`)\n",
        name, limit, kilowatts(domain.idle_w()), name);
  }
  LiveAnswer answer = live_answer(std::move(domain), std::move(text));
  answer.after = std::move(warning);
  return answer;
}

Result<LiveAnswer> set_power_cap(const LiveCall& call, const PowerCap& cap) {
  Result<v1::SetPowerCapRequest> request = cap_request(cap);
  if (!request) return forward_error(request);
  request->set_request_id(call.session.request_id());
  auto set = call.session.client().call<v1::PowerDomain>("SetPowerCap", *request);
  if (!set) return forward_error(set);
  return cap_answer(*std::move(set));
}

}  // namespace orrery
