#include "workload/trace_input/trace_kubernetes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "workload/kubernetes_list.hpp"
#include "workload/kubernetes_pod.hpp"
#include "workload/trace_input/trace_columns.hpp"
#include "workload/trace_input/trace_parts.hpp"

namespace orrery {
namespace {

class KubernetesReader {
 public:
  KubernetesReader(std::string_view text, const std::string& file, const TraceOptions& options)
      : list_(text, file), file_(file), options_(options) {}

  Result<Trace> read() {
    if (Status fine = check_job_columns(options_, file_); !fine) return forward_error(fine);
    while (true) {
      Result<std::optional<nlohmann::json>> item = list_.next();
      if (!item) return forward_error(item);
      if (!*item) break;
      if (Status taken = take(**item); !taken) return forward_error(taken);
    }
    if (items_ == 0) {
      return input_error({file_, 0, 0},
                         "the list has no Pod and no Job, expected what \"kubectl get pods,jobs "
                         "-A -o json\" prints");
    }
    return make_trace();
  }

 private:
  Status take(const nlohmann::json& item) {
    const std::string_view kind = json_text(&item, "kind");
    if (kind != "Pod" && kind != "Job") return {};
    ++items_;
    const SourcePosition where = list_.where();
    Result<KubernetesWork> work =
        kind == "Pod" ? read_kubernetes_pod(item, where) : read_kubernetes_job(item, where);
    if (work && work->start && work->end && *work->end - *work->start > kTraceRunMax) {
      work =
          input_error(where, fmt::format("{} {}/{}: ran from {} to {}, expected at most 100 years",
                                         kind, work->job.tenant, work->job.name,
                                         work->start->text(), work->end->text()));
    }
    if (!work) {
      if (options_.bad_rows == TraceOptions::BadRows::kError) return forward_error(work);
      trace_.skipped.push_back({work.error().where, work.error().message});
      return {};
    }
    latest_ = std::max(latest_, work->latest);
    if (!work->is_job) with_pods_.insert(work->key);
    works_.push_back(*std::move(work));
    return {};
  }

  Trace make_trace() {
    std::vector<TracePart> parts;
    parts.reserve(works_.size());
    std::size_t running = 0;
    for (KubernetesWork& work : works_) {
      if (work.is_job && with_pods_.contains(work.key)) continue;
      if (!work.left_out.empty()) {
        trace_.leave_out(work.left_out, work.job.line);
        continue;
      }
      if (!work.end) ++running;
      const Instant start = *work.start;
      work.job.run = std::max(work.end.value_or(latest_), start) - start;
      parts.push_back({std::move(work.key), std::move(work.job), start});
    }
    if (running > 0) {
      trace_.notes.push_back(
          fmt::format("{} still running {} with the latest time of the list, {}",
                      running == 1 ? "1 pod or Job" : fmt::format("{} pods and Jobs", running),
                      running == 1 ? "ends" : "end", latest_.text()));
    }
    for (TraceJob& job : join_trace_parts(parts, JoinedStatus::kLast)) {
      if (options_.within(job.submit) && is_wanted(job, options_)) {
        trace_.jobs.push_back(std::move(job));
      }
    }
    return std::move(trace_);
  }

  KubernetesList list_;
  const std::string& file_;
  const TraceOptions& options_;
  std::size_t items_ = 0;
  std::vector<KubernetesWork> works_;
  std::unordered_set<std::string> with_pods_;  ///< keys of jobs whose pods are there
  Instant latest_;
  Trace trace_;
};

}  // namespace

Result<Trace> read_kubernetes_trace(std::string_view text, const std::string& file,
                                    const TraceOptions& options) {
  return KubernetesReader(text, file, options).read();
}

}  // namespace orrery
