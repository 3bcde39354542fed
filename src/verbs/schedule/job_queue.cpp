#include "verbs/schedule/job_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scheduler/request/job_array.hpp"
#include "scheduler/request/resolve.hpp"
#include "verbs/schedule/submit_request.hpp"
#include "verbs/spec_files.hpp"

namespace orrery {
namespace {

/// Files as they are, directories as their files of YAML and JSON by name.
Result<std::vector<std::string>> files_of(std::span<const std::string> paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (is_file_name(entry.path().filename().string())) inside.push_back(entry.path().string());
    }
    if (error) return environment_error(fmt::format("{}: {}", path, error.message()));
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace

Status JobQueue::add(const std::string& file, const Place& place, const Limits& limits) {
  Result<JobSpec> spec = load_job_spec(file);
  if (!spec) return forward_error(spec);
  if (Status bound = take_bounds(limits.by, limits.under, *spec); !bound) return bound;
  if (!spec->after.empty()) {
    HeldJob& held = held_.emplace_back(HeldJob{spec->name, {}});
    for (const AfterSpec& after : spec->after) held.after.push_back(after.job);
    return {};
  }
  // Without a file of tenants all jobs are of the one tenant.
  if (place.tenants.size() == 2 && place.tenants.find("default")) spec->tenant = "default";
  Result<JobRequest> job = resolve_job(*spec, {.fleet = place.fleet.pristine(),
                                               .models = place.fleet.facts().models(),
                                               .tenants = place.tenants,
                                               .works = works_,
                                               .sizes = &place.fleet.sizes(),
                                               .now = place.now});
  if (!job) {
    if (job.error().kind != ErrorKind::kInfeasible) return forward_error(job);
    refused_.push_back({spec->name, job.error().text()});
    return {};
  }
  job->class_id = classes_.of(*job);
  for (JobRequest& each : requests_of(*spec, *job, ArrayId::at(jobs_.size()), classes_)) {
    const JobRequest& one = jobs_.emplace_back(std::move(each));
    waiting_.push_back({JobId::at(jobs_.size() - 1), &one, place.now, 0, 0});
  }
  return {};
}

Status JobQueue::load(std::span<const std::string> paths, const Place& place,
                      const Limits& limits) {
  Result<std::vector<std::string>> files = files_of(paths);
  if (!files) return forward_error(files);
  for (const std::string& file : *files) {
    if (Status added = add(file, place, limits); !added) return added;
  }
  return {};
}

void JobQueue::take_out(JobId job) {
  std::erase_if(waiting_, [&](const WaitingJob& each) { return each.id == job; });
}

}  // namespace orrery
