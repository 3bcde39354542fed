#include "apps/orrery/job_end.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "apps/orrery/live_text.hpp"

namespace orrery {

Status wait_for_jobs(const CommandOptions& options, LiveSession& session,
                     const std::vector<std::uint64_t>& ids) {
  Json ends = Json::array();
  std::vector<std::string> failures;
  for (const std::uint64_t id : ids) {
    v1::WaitJobRequest request;
    request.set_id(id);
    Result<v1::Job> job = session.client().wait<v1::Job>("WaitJob", request);
    if (!job) return forward_error(job);
    const std::string text =
        one_line(fmt::format("job {} ({}) {}", id, job->name(), outcome(*job)));
    const bool finished = job->phase() == "finished";
    if (!finished) failures.push_back(text);
    if (options.output == OutputFormat::kJson) {
      ends.push_back(answer_json(*job));
    } else if (finished) {
      print_text(text + "\n");
    }
  }
  if (options.output == OutputFormat::kJson) print_json(ids.size() == 1 ? ends[0] : ends);
  if (failures.empty()) return {};
  std::string text = failures.front();
  for (std::size_t i = 1; i < failures.size(); ++i) text += "\norrery: " + failures[i];
  return infeasible(std::move(text));
}

}  // namespace orrery
