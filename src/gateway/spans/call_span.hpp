// gateway/spans/call_span.hpp - what a trace shows of one request: the gateway's span.
//
// A call makes one when it ends; otlp_json() writes some of them as an ExportTraceServiceRequest of
// OTLP/HTTP in JSON, with the attributes of OpenTelemetry's conventions for generative AI. Plain
// values and a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "gateway/spans/trace_context.hpp"

namespace orrery {

struct CallSpan {
  struct Asked {
    std::string operation;  ///< "chat", "text_completion", "embeddings"
    std::string model;
    std::string service;
    std::string tenant;            ///< that the key counts as
    std::string request;           ///< x-request-id
    std::uint64_t max_tokens = 0;  ///< 0: not told
  };
  struct Answered {
    std::string_view outcome;  ///< name_of(RequestEnd)
    int status = 0;            ///< 0: no answer has begun
    std::string endpoint;      ///< of the replica that was asked last; empty: none was
    std::uint64_t input_tokens = 0;
    std::uint64_t output_tokens = 0;
    double ttft_s = 0;           ///< 0: no stream
    std::uint32_t failures = 0;  ///< of replicas
  };

  TraceContext own;
  std::string parent;  ///< the caller's span; empty: there is none
  Instant start;       ///< of the time of day
  Instant end;
  Asked asked;
  Answered answered;
};

/// `gateway`: the name of the instance.
[[nodiscard]] std::string otlp_json(std::span<const CallSpan> spans, std::string_view gateway);

/// What a path of OpenAI's API asks for, in the words of those conventions; "": none of them.
[[nodiscard]] std::string_view operation_of(std::string_view path);

}  // namespace orrery
