#include "workload/trace/trace_generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/numbers/distribution.hpp"
#include "base/numbers/math.hpp"
#include "base/numbers/rng.hpp"
#include "workload/trace/even_jobs.hpp"

namespace orrery {
namespace {

constexpr double kJobsMax = 2e7;

// Most users submit one job at a time, few a sweep of up to a hundred: 7.7 on average.
constexpr Zipf::Parameters kBurst = {.n = 100, .exponent = 1.5};
constexpr Exponential kGapInBurst = {.rate = 1.0 / 15};  // 1/s: a script that submits

double shares_within(const TraceShape& shape) {
  double sum = 0;
  for (const SizeShare& size : trace_statistics(shape.style).sizes) {
    if (size.accelerators <= shape.accelerators) sum += size.share;
  }
  return sum;
}

// Whole seconds, as traces have them, and at least one.
Duration whole_run(double seconds) {
  return Duration::seconds(std::max<std::int64_t>(1, std::llround(seconds)));
}

// Draws the size and the run time of jobs.
class JobDraw {
 public:
  JobDraw(const TraceShape& shape, std::uint64_t seed)
      : statistics_(trace_statistics(shape.style)),
        shares_(shares_within(shape)),
        sizes_(Rng::stream(seed, "trace sizes")),
        runs_(Rng::stream(seed, "trace runs")) {}

  std::uint32_t size() {
    double rest = sizes_.uniform() * shares_;
    std::uint32_t drawn = 1;
    for (const SizeShare& size : statistics_.sizes) {
      drawn = size.accelerators;
      rest -= size.share;
      if (rest < 0) break;
    }
    return drawn;
  }

  Duration run(std::uint32_t size) {
    const double stretch = math::pow(size, statistics_.size_exponent);
    double seconds = 0;
    do {
      const RunPart& part = part_of(runs_.uniform());
      const Lognormal run{.mu = math::log(part.median_s), .sigma = part.sigma};
      seconds = stretch * run.sample(runs_);
    } while (seconds > statistics_.run_max_s);
    return whole_run(seconds);
  }

 private:
  [[nodiscard]] const RunPart& part_of(double rest) const {
    for (const RunPart& part : statistics_.runs) {
      rest -= part.share;
      if (rest < 0) return part;
    }
    return statistics_.runs.back();
  }

  const TraceStatistics& statistics_;
  double shares_;
  Rng sizes_;
  Rng runs_;
};

// Jobs that one user submits at once: a run of the trace's jobs.
struct Burst {
  std::size_t first;
  std::size_t size;
};

// Bursts of jobs with owner, size and run time.
class Drawing {
 public:
  Drawing(const TraceShape& shape, std::uint64_t seed)
      : shape_(shape), draw_(shape, seed), people_(Rng::stream(seed, "trace people")) {
    owners_.reserve(shape.users);
    const Zipf tenant({.n = shape.tenants, .exponent = 1.0});
    for (std::uint32_t user = 1; user <= shape.users; ++user) {
      owners_.push_back(
          {fmt::format("user-{}", user), fmt::format("tenant-{}", tenant.sample(people_))});
    }
  }

  /// Draws so many jobs, each independently.
  void draw(std::size_t count) {
    const Zipf user({.n = shape_.users, .exponent = 1.0});
    const Zipf burst_size(kBurst);
    while (jobs.size() < count) {
      const Burst burst{jobs.size(), 0};
      const Owner& owner = owners_[user.sample(people_) - 1];
      const std::uint32_t accelerators = draw_.size();
      std::uint64_t left = burst_size.sample(people_);
      for (; left > 0 && jobs.size() < count; --left) {
        add(owner, accelerators, draw_.run(accelerators));
      }
      bursts.push_back({burst.first, jobs.size() - burst.first});
    }
  }

  /// The jobs of `even`, with all run times multiplied by `stretch`.
  void draw(EvenJobs even, double stretch) {
    const Zipf user({.n = shape_.users, .exponent = 1.0});
    const Zipf burst_size(kBurst);
    while (even.left() > 0) {
      const Burst burst{jobs.size(), 0};
      const Owner& owner = owners_[user.sample(people_) - 1];
      const std::size_t size = even.pick_size();
      std::uint64_t left = burst_size.sample(people_);
      for (; left > 0 && even.left_of(size) > 0; --left) {
        add(owner, even.accelerators(size), whole_run(even.take_run_s(size) * stretch));
      }
      bursts.push_back({burst.first, jobs.size() - burst.first});
    }
  }

  std::vector<TraceJob> jobs;
  std::vector<Burst> bursts;
  double work = 0;  ///< accelerator-seconds

 private:
  struct Owner {
    std::string user;
    std::string tenant;
  };

  void add(const Owner& owner, std::uint32_t accelerators, Duration run) {
    TraceJob& job = jobs.emplace_back();
    job.user = owner.user;
    job.tenant = owner.tenant;
    job.accelerators = accelerators;
    job.run = run;
    work += accelerator_seconds(job);
  }

  const TraceShape& shape_;
  JobDraw draw_;
  Rng people_;
  std::vector<Owner> owners_;  // by rank: the first submits most
};

using Shares = std::array<double, 3>;

constexpr std::array kEnds = {TraceStatus::kCompleted, TraceStatus::kCancelled,
                              TraceStatus::kFailed};

TraceStatus end_drawn(const Shares& shares, Rng& rng) {
  double rest = rng.uniform() * (shares[0] + shares[1] + shares[2]);
  for (std::size_t end = 0; end < kEnds.size(); ++end) {
    rest -= shares[end];
    if (rest < 0) return kEnds[end];
  }
  return kEnds.back();
}

// Jobs by accelerator-seconds, the most first.
std::vector<std::size_t> by_work(const std::vector<TraceJob>& jobs) {
  std::vector<std::pair<double, std::size_t>> keyed;
  keyed.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i)
    keyed.emplace_back(-accelerator_seconds(jobs[i]), i);
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::size_t> order;
  order.reserve(jobs.size());
  for (const auto& [work, job] : keyed) order.push_back(job);
  return order;
}

// Assigns ends so that after every job each end has its share of the accelerator-seconds, as nearly
// as that job allows: for the few jobs that hold most of them, chance would decide too much.
class EvenEnds {
 public:
  explicit EvenEnds(const Shares& shares) : shares_(shares) {}

  TraceStatus next(double work) {
    std::size_t most = 0;
    for (std::size_t end = 0; end < owed_.size(); ++end) {
      owed_[end] += shares_[end] * work;
      if (owed_[end] > owed_[most]) most = end;
    }
    owed_[most] -= work;
    return kEnds[most];
  }

 private:
  Shares shares_;
  Shares owed_{};
};

// Two groups of jobs, the long 5 % and the rest, each with shares of its own, are the least that
// gives both the published shares of jobs, p, and those of accelerator-seconds, g. With f the long
// ones' part of the jobs and t that of the seconds, their shares b and the others' a solve
//   (1 - f) a + f b = p,  (1 - t) a + t b = g.
void draw_ends(std::vector<TraceJob>& jobs, const TraceStatistics& statistics, Rng rng) {
  constexpr std::size_t kOneInLong = 20;
  const std::size_t long_jobs = jobs.size() / kOneInLong;
  const std::vector<std::size_t> order = by_work(jobs);
  double of_long = 0;
  double of_all = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double work = accelerator_seconds(jobs[order[i]]);
    of_all += work;
    if (i < long_jobs) of_long += work;
  }
  Shares brief = statistics.ends;
  Shares lengthy = statistics.ends;
  const double f = static_cast<double>(long_jobs) / static_cast<double>(jobs.size());
  const double t = of_long / of_all;
  if (t - f > 1e-3) {
    for (std::size_t end = 0; end < brief.size(); ++end) {
      const double p = statistics.ends[end];
      const double g = statistics.ends_by_time[end];
      lengthy[end] = std::max(0.0, ((1 - f) * g - (1 - t) * p) / (t - f));
      brief[end] = std::max(0.0, (t * p - f * g) / (t - f));
    }
  }
  EvenEnds even(lengthy);
  for (std::size_t i = 0; i < order.size(); ++i) {
    TraceJob& job = jobs[order[i]];
    job.status = i < long_jobs ? even.next(accelerator_seconds(job)) : end_drawn(brief, rng);
  }
}

// Draws points in time whose density follows the hours of the week.
class Rhythm {
 public:
  // Precondition: the span is positive.
  Rhythm(Instant start, Duration span) {
    constexpr std::int64_t kThursday = 3;  // 1970-01-01
    constexpr std::int64_t kWeek = std::int64_t{7} * 24;
    const std::int64_t hours = (span.count_ns() + kHour.count_ns() - 1) / kHour.count_ns();
    const std::int64_t first = start.ns() / kHour.count_ns() + kThursday * 24;
    last_hour_ = span - kHour * (hours - 1);
    sums_.reserve(static_cast<std::size_t>(hours));
    double sum = 0;
    for (std::int64_t hour = 0; hour < hours; ++hour) {
      const std::int64_t of_week = ((first + hour) % kWeek + kWeek) % kWeek;
      const double length = length_of(hour, hours).count_seconds();
      sum += length * submit_rate(static_cast<std::uint64_t>(of_week));
      sums_.push_back(sum);
    }
  }

  // Since the start, at most the span.
  Duration draw(Rng& rng) const {
    const double point = rng.uniform() * sums_.back();
    const auto hour = std::upper_bound(sums_.begin(), sums_.end() - 1, point) - sums_.begin();
    const Duration length = length_of(hour, std::ssize(sums_));
    return kHour * hour + Duration::from_seconds(rng.uniform() * length.count_seconds());
  }

 private:
  static constexpr Duration kHour = Duration::hours(1);

  // The last hour need not be whole.
  [[nodiscard]] Duration length_of(std::int64_t hour, std::int64_t hours) const {
    return hour + 1 == hours ? last_hour_ : kHour;
  }

  Duration last_hour_;
  std::vector<double> sums_;
};

Duration whole_seconds(Duration time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return Duration::seconds(time.count_ns() / kSecond);
}

void draw_submits(Drawing& drawing, const TraceShape& shape, Duration span, Rng rng) {
  const Rhythm rhythm(shape.start, span);
  for (const Burst& burst : drawing.bursts) {
    Duration since = rhythm.draw(rng);
    for (std::size_t i = burst.first; i < burst.first + burst.size; ++i) {
      drawing.jobs[i].submit = shape.start + whole_seconds(std::min(since, span));
      since += Duration::from_seconds(kGapInBurst.sample(rng));
    }
  }
}

// Within a span no job runs for more than half of it or asks for more than a twentieth of the
// work: one alone would decide how a short trace fares, and when its last job ends.
JobLimits limits_of(const TraceShape& shape) {
  constexpr double kOfSpan = 0.5;
  constexpr double kOfWork = 0.05;
  const double span = shape.span->count_seconds();
  return {.accelerators = shape.accelerators,
          .run_max_s = kOfSpan * span,
          .work_max_s = kOfWork * shape.utilisation * shape.accelerators * span};
}

double mean_work(const TraceShape& shape) {
  if (shape.span) return mean_work_within(trace_statistics(shape.style), limits_of(shape));
  constexpr int kSample = 2000;
  JobDraw draw(shape, 0);
  double work = 0;
  for (int i = 0; i < kSample; ++i) {
    const std::uint32_t size = draw.size();
    work += draw.run(size).count_seconds() * size;
  }
  return work / kSample;
}

// As many jobs as have the work on average; deviations by chance are compensated by scaling all run
// times alike.
void draw_span(Drawing& drawing, const TraceShape& shape, std::uint64_t seed) {
  constexpr double kStretchMax = 2;
  const double work = shape.utilisation * shape.accelerators * shape.span->count_seconds();
  const auto jobs = static_cast<std::uint64_t>(std::max(1.0, std::round(work / mean_work(shape))));
  const EvenJobs even(trace_statistics(shape.style), limits_of(shape), jobs,
                      Rng::stream(seed, "trace jobs"));
  const double stretch = work / even.work();
  drawing.draw(even, std::clamp(stretch, 1 / kStretchMax, kStretchMax));
}

}  // namespace

Status check_trace_shape(const TraceShape& shape) {
  constexpr Duration kShortest = Duration::hours(1);
  constexpr Duration kLongest = Duration::hours(24) * 3653;
  if (shape.jobs.has_value() == shape.span.has_value()) {
    return input_error({}, "expected either the number of jobs or the span of the trace");
  }
  if (shape.accelerators == 0 || shape.users == 0 || shape.tenants == 0 || shape.jobs == 0u) {
    return input_error({}, "expected at least one job, accelerator, user and tenant");
  }
  if (!(shape.utilisation > 0 && shape.utilisation <= 10)) {
    return input_error({}, fmt::format("utilisation is {}, expected more than 0 and at most 10",
                                       shape.utilisation));
  }
  if (shape.span && !(*shape.span >= kShortest && *shape.span <= kLongest)) {
    return input_error({},
                       fmt::format("the span is {}, expected 1 h to 10 years", shape.span->text()));
  }
  const double rate = shape.utilisation * shape.accelerators / mean_work(shape);  // jobs a second
  const double jobs = shape.jobs ? *shape.jobs : rate * shape.span->count_seconds();
  if (jobs > kJobsMax) {
    return input_error({},
                       fmt::format("about {:.3g} jobs, expected at most {:.0f}", jobs, kJobsMax));
  }
  if (jobs <= rate * kLongest.count_seconds()) return {};
  return input_error({}, fmt::format("{} jobs would take {} accelerators more than ten years, "
                                     "expected fewer",
                                     jobs, shape.accelerators));
}

Trace generate_trace(const TraceShape& shape, std::uint64_t seed) {
  ORRERY_ASSERT(check_trace_shape(shape), "the shape was checked");
  Drawing drawing(shape, seed);
  if (shape.span) {
    draw_span(drawing, shape, seed);
  } else {
    drawing.draw(*shape.jobs);
  }
  const double seconds = drawing.work / (shape.utilisation * shape.accelerators);
  const Duration span =
      std::max(shape.span.value_or(Duration::from_seconds(seconds)), Duration::seconds(1));
  draw_ends(drawing.jobs, trace_statistics(shape.style), Rng::stream(seed, "trace ends"));
  draw_submits(drawing, shape, span, Rng::stream(seed, "trace submits"));
  Trace trace;
  trace.jobs = std::move(drawing.jobs);
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
  std::size_t number = 0;
  for (TraceJob& job : trace.jobs) job.name = fmt::format("job-{}", ++number);
  return trace;
}

}  // namespace orrery
