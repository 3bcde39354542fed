#include "executor/services/service_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/format/document.hpp"
#include "base/text/utf8.hpp"
#include "executor/services/service_book.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

bool is_cancelled(const Job& job) {
  return job.cancel || (job.phase == JobPhase::kStopping && job.stop == StopReason::kCancelled);
}

bool runs(const State& state, const Service& service) {
  return service.update || std::ranges::any_of(service.live, [&](JobId replica) {
           return !is_cancelled(state.job(replica));
         });
}

std::string model_of(const Service& service, const std::string& name) {
  const Result<Document> document =
      Document::parse(service.revision.texts.spec, "the service's spec");
  if (!document) return name;
  const Result<JobSpec> spec = read_job_spec(*document);
  return spec && !spec->service.revisions.empty() ? spec->service.revisions.front().model : name;
}

}  // namespace

Status check_service_names(const State& state, const JobText& text, const JobRequest& asked) {
  if (asked.kind != JobKind::kServe) return {};
  const Result<Document> document = Document::parse(text.text, text.file);
  if (!document) return tl::unexpected(document.error());
  const Result<JobSpec> spec = read_job_spec(*document);
  if (!spec) return tl::unexpected(spec.error());
  if (spec->service.revisions.empty()) return {};
  const RevisionSpec& revision = spec->service.revisions.front();
  for (const auto& [id, service] : state.services().all()) {
    const JobRequest& present = service.revision.replica->request;
    if (present.tenant != asked.tenant || !runs(state, service)) continue;
    const std::string name = service_name(present.name);
    const std::string known = fmt::format("service {} (job {})", printable(name, 60), id.value());
    if (name == service_name(asked.name)) {
      return input_error(spec->where,
                         fmt::format("{} runs already: expected another name, or `--update {}`, "
                                     "which gives that service another model or other replicas",
                                     known, printable(name, 60)));
    }
    if (revision.model == model_of(service, name)) {
      return input_error(
          revision.where,
          fmt::format("{} serves model \"{}\" already: expected another `model`, the name that "
                      "clients ask for, or `--update {}`",
                      known, printable(revision.model, 60), printable(name, 60)));
    }
  }
  return {};
}

}  // namespace orrery
