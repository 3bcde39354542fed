// tests/fuzz/fuzz_job.cpp - any text as a job: what is read is written and read again to the same
// spec. A text that begins with #! is a script for sbatch.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "workload/slurm/sbatch_script.hpp"

namespace orrery {
namespace {

// Quantities are printed with a unit, so their last bits may differ.
bool same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    const double x = a.get<double>();
    const double y = b.get<double>();
    return std::abs(x - y) <= 1e-12 * std::abs(x);
  }
  if (!a.is_structured() || a.type() != b.type() || a.size() != b.size()) return a == b;
  for (auto one = a.begin(), other = b.begin(); one != a.end(); ++one, ++other) {
    if (!same(*one, *other)) return false;
  }
  return true;
}

void check_written(const JobSpec& spec) {
  const std::string text = write_job_spec(spec);
  const Result<Document> document = Document::parse(text, "written.yaml");
  ORRERY_ASSERT(document, "what is written is YAML");
  const Result<JobSpec> again = read_job_spec(*document);
  ORRERY_ASSERT(again, "what is written is a job");
  ORRERY_ASSERT(same(to_json(spec), to_json(*again)), "and the same job");
  ORRERY_ASSERT(write_job_spec(*again) == text, "written the same");
}

void read_script(std::string_view text) {
  for (const auto unknown : {UnknownSbatchOption::kError, UnknownSbatchOption::kNote}) {
    const Result<SbatchJob> job = read_sbatch_script(
        text, {.file = "a.sh", .directory = "/", .environment = {{"A", "b"}}, .unknown = unknown});
    if (!job) continue;
    const Result<Document> document = Document::parse(write_job_spec(job->spec), "written.yaml");
    if (!document) continue;  // the bytes are no text
    // Names and tenants may still be invalid.
    if (const Result<JobSpec> spec = read_job_spec(*document)) check_written(*spec);
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("#!")) {
    read_script(text);
    return 0;
  }
  const Result<Document> document = Document::parse(text, "job.yaml");
  if (!document) return 0;
  const Result<JobSpec> spec = read_job_spec(*document);
  if (!spec) return 0;
  check_written(*spec);
  static_cast<void>(check_at(*spec, Instant::from_ns(0)));
  return 0;
}
