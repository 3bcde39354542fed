#include "twin/design/design_spec.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/name_check.hpp"

namespace orrery {
namespace {

constexpr std::size_t kWorksMax = 8;
constexpr double kYearsMax = 50;

Status check_kind(const DesignSpec& spec, const SourcePosition& where) {
  if (spec.api_version == "orrery/v1" && spec.kind == "Design") return {};
  return input_error(where,
                     fmt::format("expected apiVersion orrery/v1 and kind Design, found {} and {}",
                                 spec.api_version, spec.kind));
}

Status check_site(const DesignSite& site) {
  if (site.power <= Watts(0)) return input_error(site.where, "power: expected more than 0 W");
  if (site.budget && *site.budget <= Dollars(0)) {
    return input_error(site.where, "budget: expected more than $0");
  }
  if (!(site.years > 0) || site.years > kYearsMax) {
    return input_error(site.where,
                       fmt::format("years is {}, expected up to {}", site.years, kYearsMax));
  }
  if (site.pue && !(*site.pue >= 1)) {
    return input_error(site.where, fmt::format("pue is {}, expected at least 1", *site.pue));
  }
  return {};
}

Status check_work(const DesignWork& work) {
  const auto refuse = [&](const std::string& what) {
    return input_error(work.where, fmt::format("\"{}\": {}", work.name, what));
  };
  if (work.kind == JobKind::kBatch) {
    return refuse("kind Batch has no model to plan for; expected Train, FineTune or Serve");
  }
  if (!(work.share > 0) || !std::isfinite(work.share)) return refuse("share: expected more than 0");
  if (!(work.bytes_per_token >= 0)) return refuse("bytes_per_token: expected 0 or more");
  if (work.work.rate || work.work.steps) {
    return refuse("share already states the amount: expected no rate and no steps");
  }
  if (work.duration && *work.duration < Seconds(60))
    return refuse("duration: expected 1 min or more");
  if (work.accelerators && *work.accelerators == 0)
    return refuse("accelerators: expected 1 or more");
  if (work.serves()) {
    if (work.work.input_tokens && work.work.output_tokens) return {};
    return refuse("a service needs input_tokens and output_tokens of a request");
  }
  if (!work.accelerators) return refuse("needs accelerators: those of one job");
  return {};
}

}  // namespace

Result<DesignSpec> read_design_spec(const Document& document) {
  DesignSpec spec;
  Status status = read_struct(document.root(), spec, {});
  if (status) status = check_kind(spec, document.root().position());
  if (status) status = check_site(spec.site);
  if (status && (spec.workload.empty() || spec.workload.size() > kWorksMax)) {
    status = input_error(spec.where, fmt::format("workload has {} entries, expected 1 to {}",
                                                 spec.workload.size(), kWorksMax));
  }
  if (status) {
    status = check_unique(
        spec.workload, [](const DesignWork& work) { return std::string_view(work.name); }, "work");
  }
  double sum = 0;
  for (DesignWork& work : spec.workload) {
    work.work.where = work.where;
    if (status) status = check_work(work);
    sum += work.share;
  }
  if (!status) return forward_error(status);
  for (DesignWork& work : spec.workload) work.share /= sum;
  return spec;
}

Result<DesignSpec> load_design_spec(const std::string& path) {
  Result<Document> document = Document::load(path);
  if (!document) return forward_error(document);
  return read_design_spec(*document);
}

}  // namespace orrery
