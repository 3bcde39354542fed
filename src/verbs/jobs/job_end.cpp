#include "verbs/jobs/job_end.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {

Status wait_for_jobs(LiveSession& session, const std::vector<std::uint64_t>& ids,
                     const std::function<void(const v1::Job&, const std::string&)>& ended) {
  std::vector<std::string> failures;
  for (const std::uint64_t id : ids) {
    v1::WaitJobRequest request;
    request.set_id(id);
    Result<v1::Job> job = session.client().wait<v1::Job>("WaitJob", request);
    if (!job) return forward_error(job);
    const std::string text =
        one_line(fmt::format("job {} ({}) {}", id, job->name(), outcome(*job)));
    if (job->phase() != "finished") failures.push_back(text);
    ended(*job, text);
  }
  if (failures.empty()) return {};
  std::string text = failures.front();
  for (std::size_t i = 1; i < failures.size(); ++i) text += "\norrery: " + failures[i];
  return infeasible(std::move(text));
}

Json ends_json(const std::vector<v1::Job>& jobs) {
  if (jobs.size() == 1) return answer_json(jobs.front());
  Json ends = Json::array();
  for (const v1::Job& job : jobs) ends.push_back(answer_json(job));
  return ends;
}

}  // namespace orrery
