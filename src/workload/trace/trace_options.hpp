// workload/trace/trace_options.hpp - which trace to read and how much of it: plain values that the
// caller of a reader fills in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "workload/trace_input/trace_text.hpp"

namespace orrery {

enum class TraceFormat : std::uint8_t {
  kPhilly,      ///< Philly, Helios and the like: CSV with submit, duration and GPUs
  kSwf,         ///< Standard Workload Format of the Parallel Workloads Archive, version 2.2
  kGavel,       ///< tab-separated job types and steps
  kOpenb,       ///< pods of Alibaba's cluster-trace-gpu-v2023
  kMuri,        ///< times in milliseconds, with iterations and stages
  kTiresias,    ///< as Muri, but in seconds and without stages
  kSia,         ///< applications without run times
  kAcme,        ///< AcmeTrace: jobs of Seren and Kalos, with their kind and the time of their start
  kPai,         ///< the task table of Alibaba's cluster-trace-gpu-v2020
  kPaiJobs,     ///< the list of jobs of its simulator
  kSacct,       ///< jobs of Slurm as sacct prints them
  kKubernetes,  ///< pods and Jobs as kubectl prints them in JSON
  kOrrery,      ///< our own, YAML or JSON
};

inline constexpr std::array<std::string_view, 13> kTraceFormatWords = {
    "philly", "swf", "gavel",    "openb", "muri",       "tiresias", "sia",
    "acme",   "pai", "pai-jobs", "sacct", "kubernetes", "orrery"};

[[nodiscard]] std::string_view word_of(TraceFormat format);
/// Errors (without position): an unknown format; the message names the nearest.
[[nodiscard]] Result<TraceFormat> trace_format(std::string_view word);

struct TraceOptions {
  std::optional<TraceFormat> format;  ///< none: guessed from the first line
  /// Keeps the rows whose cell in the named column of the file is exactly `value`; all conditions
  /// must hold.
  struct Where {
    std::string column;
    std::string value;
  };
  std::vector<Where> where;
  /// Unit of plain numbers in columns that name no unit; none: that of the format.
  std::optional<TimeUnit> unit;
  std::optional<Instant> from;  ///< of submits, inclusive, like `to`
  std::optional<Instant> to;
  enum class BadRows : std::uint8_t { kError, kSkip } bad_rows = BadRows::kError;

  [[nodiscard]] bool within(Instant submit) const {
    return (!from || submit >= *from) && (!to || submit <= *to);
  }
};

}  // namespace orrery
