#include "apps/orrery/job_options.hpp"

#include "apps/orrery/output.hpp"
#include "verbs/jobs/job_end.hpp"

namespace orrery {

void add_job_selection(CLI::App& verb, JobSelection& selection) {
  verb.add_option("job", selection.jobs,
                  "numbers or names of jobs; the name of a job array selects all its jobs")
      ->type_name("JOB..");
  verb.add_option("--name", selection.name,
                  "jobs whose name matches PATTERN (* any characters, ? one)")
      ->type_name("PATTERN");
  verb.add_option("--tenant", selection.tenant, "jobs of this tenant only")->type_name("PATH");
  verb.add_option("--user", selection.user, "jobs that this user submitted")->type_name("NAME");
  verb.add_option("--state", selection.phase,
                  "jobs in this state: held, queued, starting, running or stopping")
      ->type_name("STATE");
}

Status print_ends(const CommandOptions& options, LiveSession& session,
                  const std::vector<std::uint64_t>& ids) {
  std::vector<v1::Job> ends;
  const bool json = options.output == OutputFormat::kJson;
  const Status status =
      wait_for_jobs(session, ids, [&](const v1::Job& job, const std::string& text) {
        if (json) {
          ends.push_back(job);
        } else if (job.phase() == "finished") {
          print_text(text + "\n");
        }
      });
  if (json && ends.size() == ids.size()) print_json(ends_json(ends));
  return status;
}

}  // namespace orrery
