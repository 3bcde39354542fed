#include "twin/figures/use_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "report/plot/plot.hpp"

namespace orrery {
namespace {

constexpr std::size_t kCausesMax = 6;
constexpr std::size_t kLossesMax = 11;
constexpr std::size_t kTenantsMax = 24;

Axis hours_axis() { return {.title = "device-hours", .symbol = "GPU-h"}; }

struct Cause {
  std::string name;
  std::size_t use;
  double hours;
};

std::string name_of(std::size_t use) {
  std::string name(enum_words(DeviceUse::kUseful)[use].word);
  std::ranges::replace(name, '-', ' ');
  return name;
}

UseHours total_of(const PolicyReport& policy) {
  UseHours total{};
  for (const UseHours& hours : policy.use) {
    for (std::size_t use = 0; use < kDeviceUses; ++use) {
      if (std::isfinite(hours[use])) total[use] += hours[use];
    }
  }
  return total;
}

double sum_of(const UseHours& hours) { return std::reduce(hours.begin(), hours.end()); }

/// Whether the use is a cause of idle devices.
bool is_idle(std::size_t use) {
  return use >= static_cast<std::size_t>(DeviceUse::kNoDemand) &&
         use <= static_cast<std::size_t>(DeviceUse::kSpare);
}

enum class Causes : std::uint8_t { kAllButUseful, kIdle };

// The largest first, none without hours; those after the first `count_max` are left out.
std::vector<Cause> causes_of(const UseHours& hours, Causes which, std::size_t count_max) {
  std::vector<Cause> causes;
  causes.reserve(kDeviceUses);
  for (std::size_t use = 1; use < kDeviceUses; ++use) {
    if (which == Causes::kIdle && !is_idle(use)) continue;
    if (hours[use] > 0) causes.push_back({name_of(use), use, hours[use]});
  }
  std::ranges::stable_sort(causes, std::greater(), &Cause::hours);
  if (causes.size() > count_max) causes.resize(count_max);
  return causes;
}

Figure waterfall(const PolicyReport& policy) {
  const UseHours total = total_of(policy);
  const double all = sum_of(total);
  const double useful = total[static_cast<std::size_t>(DeviceUse::kUseful)];
  WaterfallPlot plot{
      .value = hours_axis(), .whole = "all device-hours", .amount = all, .rest = "useful"};
  double shown = useful;
  for (const Cause& cause : causes_of(total, Causes::kAllButUseful, kLossesMax)) {
    plot.losses.push_back({cause.name, cause.hours});
    shown += cause.hours;
  }
  if (all - shown > all * 1e-6) plot.losses.push_back({"other losses", all - shown});
  return {.title = "Goodput: where the device-hours went",
          .note = "All device-hours, less each loss, down to the hours of lasting progress.",
          .html = plot_html(plot)};
}

Figure idle_by_type(const ReportData& data, const PolicyReport& policy) {
  const std::vector<Cause> causes = causes_of(total_of(policy), Causes::kIdle, kCausesMax);
  BarPlot plot{.value = hours_axis()};
  for (const Cause& cause : causes) plot.parts.push_back({.name = cause.name});
  plot.parts.push_back({.name = "other causes", .tone = Tone::kMuted});
  for (std::size_t type = 0; type < std::min(policy.use.size(), data.types.size()); ++type) {
    Bar bar{.label = data.types[type]};
    double idle = 0;
    for (std::size_t use = 0; use < kDeviceUses; ++use) {
      if (is_idle(use)) idle += policy.use[type][use];
    }
    for (const Cause& cause : causes) {
      bar.parts.push_back(policy.use[type][cause.use]);
      idle -= policy.use[type][cause.use];
    }
    bar.parts.push_back(std::max(idle, 0.0));
    plot.bars.push_back(std::move(bar));
  }
  return {.title = "Idle devices by cause",
          .note = "Device-hours in which a healthy device had no job, by type and cause.",
          .html = plot_html(plot)};
}

}  // namespace

Figure use_by_policy(const ReportData& data) {
  struct Group {
    const char* name;
    Tone tone;
    DeviceUse first;
    DeviceUse last;
  };
  static constexpr std::array<Group, 6> kGroups = {
      {{"useful", Tone::kSeries, DeviceUse::kUseful, DeviceUse::kUseful},
       {"lost work", Tone::kAlarm, DeviceUse::kLost, DeviceUse::kLost},
       {"saving and starting", Tone::kSeries, DeviceUse::kSaving, DeviceUse::kStarting},
       {"blocked", Tone::kSeries, DeviceUse::kUndetected, DeviceUse::kExclusive},
       {"idle", Tone::kMuted, DeviceUse::kNoDemand, DeviceUse::kSpare},
       {"draining, down, repair", Tone::kSeries, DeviceUse::kDraining, DeviceUse::kRepair}}};
  BarPlot plot{.value = hours_axis()};
  for (const Group& group : kGroups) plot.parts.push_back({group.name, group.tone});
  for (const PolicyReport& policy : data.policies) {
    if (policy.use.empty()) continue;
    const UseHours total = total_of(policy);
    Bar bar{.label = policy.name};
    for (const Group& group : kGroups) {
      bar.parts.push_back(std::reduce(total.begin() + static_cast<std::ptrdiff_t>(group.first),
                                      total.begin() + static_cast<std::ptrdiff_t>(group.last) + 1));
    }
    plot.bars.push_back(std::move(bar));
  }
  return {.title = "Device-hours",
          .note = "Use of the devices over the whole run.",
          .html = plot_html(plot)};
}

void add_use(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy) {
  if (policy.use.empty()) return;
  figures.push_back(waterfall(policy));
  figures.push_back(idle_by_type(data, policy));
}

void add_tenants(std::vector<Figure>& figures, const PolicyReport& policy) {
  if (policy.tenants.empty()) return;
  std::vector<TenantUse> tenants = policy.tenants;
  const auto weight = [](const TenantUse& tenant) {
    const double most = std::max(tenant.used_hours, tenant.guaranteed_hours.value_or(0));
    return std::isfinite(most) ? most : 0;
  };
  std::ranges::stable_sort(tenants, std::greater(), weight);
  if (tenants.size() > kTenantsMax) tenants.resize(kTenantsMax);
  BarPlot plot{.value = hours_axis(),
               .parts = {{.name = "within the guarantee"}, {.name = "beyond it"}},
               .mark = "guarantee"};
  for (const TenantUse& tenant : tenants) {
    const double within = std::min(tenant.used_hours, tenant.guaranteed_hours.value_or(0));
    plot.bars.push_back({.label = tenant.name,
                         .parts = {within, tenant.used_hours - within},
                         .mark = tenant.guaranteed_hours});
  }
  figures.push_back(
      {.title = "Tenants",
       .note = tenants.size() < policy.tenants.size()
                   ? fmt::format("Use against guarantee of the {} largest of {} tenants.",
                                 tenants.size(), policy.tenants.size())
                   : "Use against guarantee over the window.",
       .html = plot_html(plot)});
}

namespace {

std::vector<TextTable::Column> group_columns(const std::string& first) {
  return {{first},
          {"jobs", Align::kRight},
          {"mean completion time", Align::kRight},
          {"mean queueing time", Align::kRight},
          {"mean stretch", Align::kRight}};
}

std::vector<Cell> group_cells(const GroupFigures& group) {
  return {{group.name},
          {std::to_string(group.jobs)},
          {value_text({.unit = AxisUnit::kDuration}, group.avg_jct_s)},
          {value_text({.unit = AxisUnit::kDuration}, group.avg_queueing_s)},
          {fmt::format("{:.3g}", group.avg_stretch)}};
}

}  // namespace

std::string groups_html(const PolicyReport& policy) {
  const FairnessFigures& fairness = policy.fairness;
  std::string html;
  if (fairness.tenants.size() > 1) {
    std::vector<TextTable::Column> columns = group_columns("tenant");
    columns.push_back({"finish-time fairness", Align::kRight});
    columns.push_back({"dominant share", Align::kRight});
    HtmlTable table(std::move(columns));
    for (const GroupFigures& tenant : fairness.tenants) {
      std::vector<Cell> cells = group_cells(tenant);
      cells.push_back({fmt::format("{:.3g}", tenant.rho)});
      cells.push_back({fmt::format("{:.1f} %", tenant.dominant_share * 100)});
      table.add(cells);
    }
    html +=
        "<h3>Tenants</h3>\n" + table.html() +
        fmt::format(
            "<p class=\"note\">Finish-time fairness: completion time over the completion time with "
            "only the tenant's share of the accelerators (Themis, NSDI 2020); Jain's index over "
            "the tenants is {:.3f}. Stretch: completion over run time, runs under 10 s as 10 s. "
            "Dominant share: share of the accelerator type of which the tenant used the largest "
            "part.</p>\n",
            fairness.jain);
  }
  if (fairness.kinds.size() > 1) {
    HtmlTable table(group_columns("kind"));
    for (const GroupFigures& kind : fairness.kinds) table.add(group_cells(kind));
    html += "<h3>Kinds of jobs</h3>\n" + table.html();
  }
  return html;
}

std::string use_table(const ReportData& data, const PolicyReport& policy) {
  const std::size_t types = std::min(policy.use.size(), data.types.size());
  if (types == 0) return {};
  std::vector<TextTable::Column> columns = {{"use of the devices"}};
  for (std::size_t type = 0; type < types; ++type) {
    columns.push_back({data.types[type], Align::kRight});
  }
  columns.insert(columns.end(), {{"all types", Align::kRight}, {"share", Align::kRight}});
  HtmlTable table(std::move(columns));
  const UseHours total = total_of(policy);
  for (std::size_t use = 0; use < kDeviceUses; ++use) {
    if (total[use] <= 0) continue;
    std::vector<Cell> cells = {{name_of(use)}};
    for (std::size_t type = 0; type < types; ++type) {
      cells.push_back({value_text({}, policy.use[type][use])});
    }
    cells.push_back({value_text({}, total[use])});
    cells.push_back({fmt::format("{:.2f} %", total[use] / sum_of(total) * 100)});
    table.add(cells);
  }
  return "<h3>Device-hours by cause and type (GPU-h)</h3>\n" + table.html();
}

}  // namespace orrery
