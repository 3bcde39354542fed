#include "gateway/spans/call_trace.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace orrery {
namespace {

constexpr std::string_view kTraceparent = "traceparent";

}  // namespace

CallTrace::CallTrace(const WebHeaders& received, SpanExport exported, Rng& ids) {
  const auto came = received.find(kTraceparent);
  if (came && exported == SpanExport::kOff) return;
  std::optional<TraceContext> caller = came ? parse_traceparent(*came) : std::nullopt;
  if (caller) {
    parent_ = std::move(caller->span);
    own_ = *std::move(caller);
  } else {
    own_.trace = hex_text(ids.next_u64() | 1) + hex_text(ids.next_u64());
  }
  own_.span = hex_text(ids.next_u64() | 1);
  text_ = traceparent_text(own_);
  exported_ = exported == SpanExport::kOn && own_.sampled;
}

void CallTrace::put(std::vector<WebHeader>& headers) const {
  if (text_.empty()) return;
  std::erase_if(headers, [](const WebHeader& each) { return same_token(each.name, kTraceparent); });
  headers.push_back({kTraceparent, text_});
}

}  // namespace orrery
