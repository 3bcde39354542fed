// workload/requests/request_generator.hpp - requests drawn from a few numbers: a rate with bursts
// and days, lengths, conversations whose prompts begin alike.
//
//   apiVersion: orrery/v1
//   kind: Requests
//   span: 1 h
//   rate: 5                       # requests a second; or `rates: FILE.csv` (t_s,rate_req_per_s)
//   cv: 4                         # of the times between arrivals; 1: a Poisson process
//   day: 0.5                      # the rate swings by half over a day, least at its beginning
//   prompt: {median: 1000, sigma: 1}
//   output: {median: 200, sigma: 0.8}
//   sessions: {turns: 4, think: 20 s, shared: 2048, prefixes: 10}
//   batch: 0.2                    # share of requests of class batch
//
// Times between arrivals are gamma variates in operational time, in which the rate is one. Lengths
// are log-normal, cut at `max`. With sessions an arrival begins a conversation of a geometric
// number of turns (with that mean): each prompt is a system prompt (one of `prefixes`, the k-th as
// often as 1/k), all earlier prompts and answers, and a new part with the length of `prompt`. Pure:
// the same spec and seed give the same requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {

/// Tokens, log-normal.
struct LengthSpec {
  double median = 1;
  double sigma = 0;  ///< of the logarithm
  double max = 131072;
  SourcePosition where;
};

template <class Visitor, SameStruct<LengthSpec> Self>
void describe(Visitor& visitor, Self& l) {
  visitor.sole("median", l.median);
  visitor.optional("sigma", l.sigma);
  visitor.optional("max", l.max);
}

struct SessionSpec {
  double turns = 1;            ///< mean
  Seconds think;               ///< mean, from one turn's arrival to the next
  std::uint32_t shared = 0;    ///< tokens of a system prompt
  std::uint32_t prefixes = 1;  ///< different system prompts
  SourcePosition where;
};

template <class Visitor, SameStruct<SessionSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("turns", s.turns);
  visitor.optional("think", s.think);
  visitor.optional("shared", s.shared);
  visitor.optional("prefixes", s.prefixes);
}

struct RequestSpec {
  std::string api_version;
  std::string kind;
  std::optional<Seconds> span;
  std::optional<double> rate;
  std::string rates;  ///< a file, in place of `rate`
  double cv = 1;
  double day = 0;
  LengthSpec prompt = {.median = 1000, .sigma = 1};
  LengthSpec output = {.median = 200, .sigma = 0.8};
  std::optional<SessionSpec> sessions;
  double batch = 0;
  SourcePosition where;
};

template <class Visitor, SameStruct<RequestSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("apiVersion", r.api_version);
  visitor.required("kind", r.kind);
  visitor.optional("span", r.span);
  visitor.optional("rate", r.rate);
  visitor.optional("rates", r.rates);
  visitor.optional("cv", r.cv);
  visitor.optional("day", r.day);
  visitor.optional("prompt", r.prompt);
  visitor.optional("output", r.output);
  visitor.optional("sessions", r.sessions);
  visitor.optional("batch", r.batch);
}

/// A stretch of time with one rate; it lasts until the next one begins.
struct RateWindow {
  Duration begin;
  double rate = 0;  ///< requests a second
};

/// Requests that may be drawn at most.
inline constexpr std::size_t kDrawnRequestsMax = std::size_t{40} << 20;

/// Errors with file:line:column: a key missing, unknown or out of its range; neither or both of
/// `rate` and `rates`.
[[nodiscard]] Result<RequestSpec> read_request_spec(const Document& document);

/// Draws the requests. `rates` ascend; they replace the spec's own rate. Error: none is drawn, or
/// more than kDrawnRequestsMax.
[[nodiscard]] Result<RequestTrace> generate_requests(const RequestSpec& spec,
                                                     std::vector<RateWindow> rates,
                                                     std::uint64_t seed);

}  // namespace orrery
