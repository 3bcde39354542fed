// workload/job_spec_test.hpp - job specs for tests, as they are read or refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "workload/job_spec.hpp"

namespace orrery {

inline Result<JobSpec> spec_of(const std::string& yaml) {
  Result<Document> document = Document::parse(yaml, "job.yaml");
  if (!document) return forward_error(document);
  return read_job_spec(*document);
}

inline JobSpec accepted(const std::string& yaml) {
  Result<JobSpec> spec = spec_of(yaml);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text()) << "\n" << yaml;
  return spec ? *std::move(spec) : JobSpec();
}

/// Returns why a spec is refused.
inline std::string refusal(const std::string& yaml) {
  const Result<JobSpec> spec = spec_of(yaml);
  EXPECT_FALSE(spec) << "accepted:\n" << yaml;
  return spec ? "" : spec.error().text();
}

}  // namespace orrery
