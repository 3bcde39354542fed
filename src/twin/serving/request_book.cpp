#include "twin/serving/request_book.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr Picoseconds kPsPerNs = 1000;

/// The value below or at which this share of sorted values lies.
double ranked(const std::vector<float>& sorted, double share) {
  const double at = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  return static_cast<double>(sorted[static_cast<std::size_t>(std::max(at, 0.0))]);
}

}  // namespace

QuantilesOf quantiles_of(std::vector<float>& values) {
  QuantilesOf found;
  if (values.empty()) return found;
  std::ranges::sort(values);
  double sum = 0;
  for (const float each : values) sum += static_cast<double>(each);
  found.mean = sum / static_cast<double>(values.size());
  found.p50 = ranked(values, 0.5);
  found.p90 = ranked(values, 0.9);
  found.p99 = ranked(values, 0.99);
  found.max = static_cast<double>(values.back());
  return found;
}

RequestBook::RequestBook(const RequestTrace& trace, const RequestTargets& targets)
    : trace_(trace),
      targets_(targets),
      entries_(trace.requests.size()),
      open_(trace.requests.size()) {}

Picoseconds RequestBook::arrival_of(std::uint32_t request) const {
  return trace_.requests[request].arrival.count_ns() * kPsPerNs;
}

void RequestBook::begin(std::uint32_t request, Picoseconds now) {
  if (entries_[request].first < 0) entries_[request].first = now;
}

void RequestBook::end(std::uint32_t request, RequestFate fate) {
  ORRERY_ASSERT(entries_[request].fate == RequestFate::kOpen, "a request ends once");
  entries_[request].fate = fate;
  --open_;
}

void RequestBook::complete(std::uint32_t request, Picoseconds now) {
  ORRERY_ASSERT(has_begun(request), "an answer begins before it ends");
  end(request, RequestFate::kCompleted);
  entries_[request].end = now;
}

void RequestBook::refuse(std::uint32_t request, RequestFate fate) { end(request, fate); }

double RequestBook::ttft_s(std::uint32_t request) const {
  return seconds_of_ps(entries_[request].first - arrival_of(request));
}

double RequestBook::tpot_s(std::uint32_t request) const {
  const Entry& entry = entries_[request];
  const std::uint32_t tokens = trace_.requests[request].output_tokens;
  return tokens < 2 ? 0 : seconds_of_ps(entry.end - entry.first) / (tokens - 1);
}

bool RequestBook::is_within(std::uint32_t request) const {
  return (targets_.ttft_s <= 0 || ttft_s(request) <= targets_.ttft_s) &&
         (targets_.tpot_s <= 0 || tpot_s(request) <= targets_.tpot_s);
}

ClassFigures RequestBook::figures_of(std::optional<RequestClass> request_class) const {
  ClassFigures figures;
  std::vector<float> ttft;
  std::vector<float> tpot;
  std::vector<float> whole;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const TraceRequest& request = trace_.requests[i];
    if (request_class.value_or(request.request_class) != request.request_class) continue;
    ++figures.requests;
    const Entry& entry = entries_[i];
    if (entry.fate == RequestFate::kShed) ++figures.shed;
    if (entry.fate == RequestFate::kFailed) ++figures.failed;
    if (entry.fate != RequestFate::kCompleted) continue;
    ++figures.completed;
    if (is_within(i)) ++figures.within;
    ttft.push_back(static_cast<float>(ttft_s(i)));
    if (request.output_tokens > 1) tpot.push_back(static_cast<float>(tpot_s(i)));
    whole.push_back(static_cast<float>(seconds_of_ps(entry.end - arrival_of(i))));
  }
  figures.ttft = quantiles_of(ttft);
  figures.tpot = quantiles_of(tpot);
  figures.whole = quantiles_of(whole);
  return figures;
}

double RequestBook::oracle_rate() const {
  std::vector<bool> seen(trace_.blocks, false);
  std::uint64_t tokens = 0;
  std::uint64_t found = 0;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const TraceRequest& request = trace_.requests[i];
    if (entries_[i].fate == RequestFate::kFailed) continue;
    tokens += request.prompt_tokens;
    const auto chain = trace_.chain_of(request);
    std::uint32_t known = 0;
    while (known < chain.size() && seen[chain[known]]) ++known;
    const std::uint32_t common = std::min(known * kTraceBlockTokens, request.prompt_tokens - 1);
    found += std::uint64_t{common / kKvBlockTokens} * kKvBlockTokens;
    for (const std::uint32_t block : chain) seen[block] = true;
  }
  return tokens == 0 ? 0 : static_cast<double>(found) / static_cast<double>(tokens);
}

void RequestBook::report(ServiceFigures& figures) const {
  figures.all = figures_of(std::nullopt);
  figures.interactive = figures_of(RequestClass::kInteractive);
  figures.batch = figures_of(RequestClass::kBatch);
  figures.oracle_rate = oracle_rate();
  Picoseconds last = 0;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    last = std::max({last, entries_[i].end, arrival_of(i)});
    if (entries_[i].fate != RequestFate::kCompleted) continue;
    figures.prompt_tokens += trace_.requests[i].prompt_tokens;
    figures.output_tokens += trace_.requests[i].output_tokens;
  }
  const Picoseconds first = entries_.empty() ? 0 : arrival_of(0);
  figures.span = Duration::nanoseconds((last - first) / kPsPerNs);
}

}  // namespace orrery
