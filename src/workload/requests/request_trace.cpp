#include "workload/requests/request_trace.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/format/field_writer.hpp"

namespace orrery {

void keep_half(RequestTrace& trace, TraceHalf half) {
  std::vector<TraceRequest>& all = trace.requests;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  if (half == TraceHalf::kFirst) {
    if (middle != all.end()) trace.span = std::min(trace.span, middle->arrival);
    all.erase(middle, all.end());
    return;
  }
  all.erase(all.begin(), middle);
  if (all.empty()) return;
  const Duration begin = all.front().arrival;
  for (TraceRequest& each : all) each.arrival = each.arrival - begin;
  trace.span = trace.span - begin;
}

void speed_up(RequestTrace& trace, double factor) {
  const auto faster = [factor](Duration time) {
    return Duration::from_seconds(time.count_seconds() / factor);
  };
  for (TraceRequest& each : trace.requests) each.arrival = faster(each.arrival);
  trace.span = faster(trace.span);
}

std::string write_requests(const RequestTrace& trace) {
  std::string text;
  constexpr std::int64_t kNanoseconds = 1'000'000;  // of a millisecond
  for (const TraceRequest& each : trace.requests) {
    const std::int64_t ns = each.arrival.count_ns();
    auto out = std::back_inserter(text);
    fmt::format_to(out, R"({{"timestamp": {})", ns / kNanoseconds);
    if (ns % kNanoseconds != 0) fmt::format_to(out, ".{:06}", ns % kNanoseconds);
    fmt::format_to(out, R"(, "input_length": {}, "output_length": {})", each.prompt_tokens,
                   each.output_tokens);
    if (each.chain_size > 0) {
      fmt::format_to(out, R"(, "hash_ids": [{}])", fmt::join(trace.chain_of(each), ", "));
    }
    if (const std::string& tenant = trace.tenants[each.tenant]; !tenant.empty()) {
      fmt::format_to(out, R"(, "tenant": {})", Json(tenant).dump());
    }
    if (each.request_class != RequestClass::kInteractive) {
      fmt::format_to(out, R"(, "class": "{}")", word_of(each.request_class));
    }
    text += "}\n";
  }
  return text;
}

}  // namespace orrery
