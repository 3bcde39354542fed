// gateway/spans/call_trace.hpp - the trace of one request on its way through the gateway.
//
// Part of a call's request (gateway/gateway_call.hpp). Without a receiver of spans the gateway
// passes what came on, and begins a trace where none came; with one, the replica sees the gateway's
// span as its caller. Plain value.
#pragma once

#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "gateway/spans/trace_context.hpp"
#include "http/web_headers.hpp"

namespace orrery {

enum class SpanExport : std::uint8_t { kOff, kOn };

class CallTrace {
 public:
  CallTrace(const WebHeaders& received, SpanExport exported, Rng& ids);

  /// Whether the request's span is sent.
  [[nodiscard]] bool exported() const { return exported_; }
  [[nodiscard]] const TraceContext& own() const { return own_; }
  /// The caller's span; empty: the trace begins here.
  [[nodiscard]] const std::string& parent() const { return parent_; }

  /// Puts the traceparent for the replica into what is passed on. The value lives as long as this.
  void put(std::vector<WebHeader>& headers) const;

 private:
  TraceContext own_;
  std::string parent_;
  std::string text_;  ///< for the replica; empty: what came stays
  bool exported_ = false;
};

}  // namespace orrery
