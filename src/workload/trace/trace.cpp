#include "workload/trace/trace.hpp"

#include <algorithm>

namespace orrery {
namespace {

bool before(const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; }

}  // namespace

Instant Trace::first_submit() const {
  const auto job = std::min_element(jobs.begin(), jobs.end(), before);
  return job == jobs.end() ? Instant() : job->submit;
}

Instant Trace::last_submit() const {
  const auto job = std::max_element(jobs.begin(), jobs.end(), before);
  return job == jobs.end() ? Instant() : job->submit;
}

void Trace::leave_out(std::string_view reason, int line) {
  const auto known = std::find_if(left_out.begin(), left_out.end(),
                                  [&](const LeftOutRows& each) { return each.reason == reason; });
  if (known == left_out.end()) {
    left_out.push_back({std::string(reason), 1, line});
  } else {
    ++known->rows;
  }
}

double accelerator_seconds(const TraceJob& job) {
  return job.run.count_seconds() * job.accelerators * job.share / 1000.0;
}

double Trace::accelerator_seconds() const {
  double sum = 0;
  for (const TraceJob& job : jobs) sum += orrery::accelerator_seconds(job);
  return sum;
}

}  // namespace orrery
