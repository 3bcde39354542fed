// tests/fuzz/fuzz_trace.cpp - any bytes as a trace, plain or gzip: the first byte picks the format,
// and whether bad rows are skipped. What is read keeps its invariants, and is written as our own
// format and read again to the same text.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "workload/gavel_throughputs.hpp"
#include "workload/trace/trace_file.hpp"
#include "workload/trace/trace_mapping.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

constexpr std::uint8_t kPick = 0x0F;
constexpr std::uint8_t kGuess = 0x0E;
constexpr std::uint8_t kThroughputs = 0x0F;
constexpr std::uint8_t kSkip = 0x10;
static_assert(kTraceFormatWords.size() <= kGuess);

void check_job(const TraceJob& job) {
  ORRERY_ASSERT(job.run >= Duration(), "no job runs backwards");
  ORRERY_ASSERT(job.share >= 1 && job.share <= 1000, "a share is some of an accelerator");
  ORRERY_ASSERT(job.share == 1000 || job.accelerators == 1, "only one accelerator is shared");
  ORRERY_ASSERT(job.accelerators <= kTraceAcceleratorsMax, "sizes are bounded");
  ORRERY_ASSERT(!job.name.empty(), "every job has a name");
}

// A spec is written by its own writer, which fuzz_job checks.
void check_written(Trace trace) {
  map_trace(trace, {}, 1);
  const std::string text = write_trace(trace, "fuzz");
  if (text.size() > Document::kSizeMax) return;
  const Result<Trace> again = read_trace_file(text, "written.yaml", {});
  ORRERY_ASSERT(again, "what is written is a trace");
  ORRERY_ASSERT(again->jobs.size() == trace.jobs.size(), "of as many jobs");
  ORRERY_ASSERT(write_trace(*again, "fuzz") == text, "written the same");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::uint8_t pick = data[0] & kPick;
  TraceOptions options;
  if (pick < kTraceFormatWords.size()) options.format = static_cast<TraceFormat>(pick);
  if ((data[0] & kSkip) != 0) options.bad_rows = TraceOptions::BadRows::kSkip;
  if (pick == kThroughputs) {
    static_cast<void>(GavelThroughputs::read(bytes, "fuzz"));
    return 0;
  }
  const Result<Trace> trace = read_trace(bytes, "fuzz", options);
  if (!trace) return 0;
  for (const TraceJob& job : trace->jobs) check_job(job);
  check_written(*trace);
  return 0;
}
