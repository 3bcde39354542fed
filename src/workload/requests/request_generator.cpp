#include "workload/requests/request_generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers/distribution.hpp"
#include "base/numbers/math.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr double kDayS = 86400;
/// Tokens that an engine can be expected to hold, of a prompt and its answer.
constexpr double kLengthMax = 1 << 24;

Status check_range(const SourcePosition& where, std::string_view what, double value,
                   std::array<double, 2> range) {
  if (value >= range[0] && value <= range[1]) return {};
  return input_error(where,
                     fmt::format("{}: {}, expected {} to {}", what, value, range[0], range[1]));
}

Status check_length(const LengthSpec& length, std::string_view name) {
  Status fine =
      check_range(length.where, fmt::format("{}.median", name), length.median, {1, kLengthMax});
  if (fine) fine = check_range(length.where, fmt::format("{}.sigma", name), length.sigma, {0, 4});
  if (fine)
    fine = check_range(length.where, fmt::format("{}.max", name), length.max, {1, kLengthMax});
  return fine;
}

Status check_sessions(const SessionSpec& sessions) {
  const auto number = [](std::uint32_t count) { return static_cast<double>(count); };
  Status fine = check_range(sessions.where, "sessions.turns", sessions.turns, {1, 1e4});
  if (fine) {
    fine = check_range(sessions.where, "sessions.think", sessions.think.value(), {0, 1e7});
  }
  if (fine) {
    fine = check_range(sessions.where, "sessions.shared", number(sessions.shared),
                       {0, kLengthMax / 2});
  }
  if (fine) {
    fine = check_range(sessions.where, "sessions.prefixes", number(sessions.prefixes), {1, 1e6});
  }
  return fine;
}

Status check_spec(const RequestSpec& spec) {
  if (spec.api_version != "orrery/v1" || spec.kind != "Requests") {
    return input_error(spec.where,
                       fmt::format("expected apiVersion orrery/v1 and kind Requests, "
                                   "found {} and {}",
                                   printable(spec.api_version, 60), printable(spec.kind, 60)));
  }
  if (spec.rate.has_value() == !spec.rates.empty()) {
    return input_error(spec.where, "expected either \"rate\" or \"rates\"");
  }
  if (spec.day > 0 && !spec.rates.empty()) {
    return input_error(spec.where, "\"day\" with \"rates\", expected only one of them");
  }
  if (spec.rate && !spec.span) return input_error(spec.where, "the key \"span\" is missing");
  Status fine;
  if (spec.rate) fine = check_range(spec.where, "rate", *spec.rate, {1e-6, 1e6});
  if (fine && spec.span) fine = check_range(spec.where, "span", spec.span->value(), {1e-3, 1e9});
  if (fine) fine = check_range(spec.where, "cv", spec.cv, {0.05, 50});
  if (fine) fine = check_range(spec.where, "day", spec.day, {0, 1});
  if (fine) fine = check_range(spec.where, "batch", spec.batch, {0, 1});
  if (fine) fine = check_length(spec.prompt, "prompt");
  if (fine) fine = check_length(spec.output, "output");
  if (fine && spec.sessions) fine = check_sessions(*spec.sessions);
  return fine;
}

/// The mean number of requests of the windows.
double mean_requests(const std::vector<RateWindow>& windows, Duration span) {
  double requests = 0;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Duration end = i + 1 == windows.size() ? span : std::min(span, windows[i + 1].begin);
    if (end > windows[i].begin)
      requests += windows[i].rate * (end - windows[i].begin).count_seconds();
  }
  return requests;
}

std::uint32_t draw_length(const LengthSpec& length, Rng& rng) {
  const Lognormal law{.mu = math::log(length.median), .sigma = length.sigma};
  return static_cast<std::uint32_t>(std::clamp(std::round(law.sample(rng)), 1.0, length.max));
}

/// The factor of a day curve: least at the beginning of a day, highest half a day later.
double day_factor(double swing, double at_s) {
  // A cubic in place of a cosine: the same on every CPU.
  const double phase = at_s / kDayS - std::floor(at_s / kDayS);
  const double half = phase < 0.5 ? phase * 2 : (1 - phase) * 2;  // 0, 1 at mid-day, 0
  const double wave = half * half * (3 - 2 * half) * 2 - 1;       // -1, 1, -1, smooth
  return 1 + swing * wave;
}

/// The windows of a spec's own rate: ten minutes each where it has a day curve.
std::vector<RateWindow> own_rates(const RequestSpec& spec) {
  constexpr double kStepS = 600;
  std::vector<RateWindow> windows;
  const double span = spec.span ? spec.span->value() : 0;
  const double step = spec.day > 0 ? kStepS : span;
  const auto count = static_cast<std::size_t>(std::ceil(span / step));
  windows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double begin = static_cast<double>(i) * step;
    const double factor = day_factor(spec.day, begin + step / 2);
    windows.push_back(
        {Duration::from_seconds(begin), spec.rate.value_or(0) * (spec.day > 0 ? factor : 1)});
  }
  return windows;
}

class RequestDrawing {
 public:
  RequestDrawing(const RequestSpec& spec, std::uint64_t seed)
      : spec_(spec),
        gaps_(Rng::stream(seed, "requests.gaps")),
        lengths_(Rng::stream(seed, "requests.lengths")),
        classes_(Rng::stream(seed, "requests.classes")),
        sessions_(Rng::stream(seed, "requests.sessions")) {}

  Result<RequestTrace> draw(const std::vector<RateWindow>& windows, Duration span) {
    trace_.span = span;
    if (const double expected = mean_requests(windows, span);
        expected > static_cast<double>(kDrawnRequestsMax)) {
      return input_error(spec_.where, fmt::format("about {:.3g} requests, expected at most {}",
                                                  expected, kDrawnRequestsMax));
    }
    const double gap_shape = 1 / (spec_.cv * spec_.cv);
    const Gamma gap{.shape = gap_shape, .scale = 1 / gap_shape};
    const double turns = spec_.sessions ? spec_.sessions->turns : 1;
    double left = gap.sample(gaps_) * turns;  // operational time until the next arrival
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const bool last = i + 1 == windows.size();
      const Duration window_end = last ? span : std::min(span, windows[i + 1].begin);
      const double end = window_end.count_seconds();
      double at = windows[i].begin.count_seconds();
      const double rate = windows[i].rate;
      while (rate > 0 && at + left / rate < end) {
        at += left / rate;
        add(at);
        if (trace_.requests.size() > kDrawnRequestsMax) {
          return input_error(
              spec_.where, fmt::format("more than {} requests, expected fewer", kDrawnRequestsMax));
        }
        left = gap.sample(gaps_) * turns;
      }
      left = std::max(left - rate * std::max(end - at, 0.0), 0.0);
    }
    return finish();
  }

 private:
  void add(double at) {
    if (spec_.sessions) return add_session(*spec_.sessions, at);
    TraceRequest& each = trace_.requests.emplace_back();
    each.arrival = Duration::from_seconds(at);
    each.prompt_tokens = draw_length(spec_.prompt, lengths_);
    each.output_tokens = draw_length(spec_.output, lengths_);
    set_class(each);
  }

  void set_class(TraceRequest& each) {
    if (spec_.batch > 0 && classes_.uniform() < spec_.batch) {
      each.request_class = RequestClass::kBatch;
    }
  }

  void add_session(const SessionSpec& session, double at) {
    const Zipf prefixes({.n = session.prefixes, .exponent = 1});
    const std::uint64_t prefix = prefixes.sample(sessions_);
    std::vector<std::uint32_t> chain = prefix_chain(session, prefix);
    std::uint32_t known = session.shared;
    const double again = 1 - 1 / session.turns;
    const double limit = trace_.span.count_seconds();
    do {
      TraceRequest each;
      each.arrival = Duration::from_seconds(at);
      each.prompt_tokens = known + draw_length(spec_.prompt, lengths_);
      each.output_tokens = draw_length(spec_.output, lengths_);
      set_class(each);
      const std::uint32_t whole = each.prompt_tokens / kTraceBlockTokens;
      while (chain.size() < whole) chain.push_back(trace_.blocks++);
      each.chain_begin = static_cast<std::uint32_t>(trace_.chains.size());
      each.chain_size = trace_blocks_of(each.prompt_tokens);
      trace_.chains.insert(trace_.chains.end(), chain.begin(), chain.end());
      // The last block of a prompt goes on in the next turn: there it is another one.
      if (each.chain_size > chain.size()) trace_.chains.push_back(trace_.blocks++);
      trace_.requests.push_back(each);
      known = each.prompt_tokens + each.output_tokens;
      if (known > static_cast<std::uint32_t>(spec_.prompt.max)) return;
      if (session.think.value() > 0) {
        at += Exponential{.rate = 1 / session.think.value()}.sample(sessions_);
      }
    } while (at < limit && sessions_.uniform() < again);
  }

  /// The whole blocks of a system prompt.
  std::vector<std::uint32_t> prefix_chain(const SessionSpec& session, std::uint64_t prefix) {
    const std::uint32_t whole = session.shared / kTraceBlockTokens;
    if (prefix >= prefixes_.size()) prefixes_.resize(prefix + 1);
    std::vector<std::uint32_t>& chain = prefixes_[prefix];
    while (chain.size() < whole) chain.push_back(trace_.blocks++);
    return chain;
  }

  Result<RequestTrace> finish() {
    if (trace_.requests.empty()) {
      return input_error(spec_.where, "no request is drawn; expected a longer span or more rate");
    }
    std::ranges::stable_sort(trace_.requests, {}, &TraceRequest::arrival);
    const auto drawn = [](const LengthSpec& length) {
      return fmt::format("log-normal, median {}, sigma {}, at most {}", length.median, length.sigma,
                         length.max);
    };
    trace_.notes.push_back(fmt::format(
        "requests are drawn: times between arrivals are gamma variates with a coefficient of "
        "variation of {}; tokens of prompts are {}; of answers {}",
        spec_.cv, drawn(spec_.prompt), drawn(spec_.output)));
    return std::move(trace_);
  }

  const RequestSpec& spec_;
  Rng gaps_;
  Rng lengths_;
  Rng classes_;
  Rng sessions_;
  RequestTrace trace_;
  std::vector<std::vector<std::uint32_t>> prefixes_;  ///< chains of system prompts, by rank
};

}  // namespace

Result<RequestSpec> read_request_spec(const Document& document) {
  RequestSpec spec;
  if (Status read = read_struct(document.root(), spec, {}); !read) return forward_error(read);
  if (Status fine = check_spec(spec); !fine) return forward_error(fine);
  return spec;
}

Result<RequestTrace> generate_requests(const RequestSpec& spec, std::vector<RateWindow> rates,
                                       std::uint64_t seed) {
  if (rates.empty()) rates = own_rates(spec);
  Duration span = spec.span ? Duration::from_seconds(spec.span->value()) : Duration();
  if (!spec.span && !rates.empty()) {
    // The last window is as long as the one before it.
    const std::size_t count = rates.size();
    const Duration length =
        count > 1 ? rates[count - 1].begin - rates[count - 2].begin : Duration::hours(1);
    span = rates.back().begin + length;
  }
  if (span > kTraceSpanMax) {
    return input_error(spec.where, fmt::format("{}, expected at most 90 days", span.text()));
  }
  return RequestDrawing(spec, seed).draw(rates, span);
}

}  // namespace orrery
