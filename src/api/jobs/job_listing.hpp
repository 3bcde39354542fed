// api/jobs/job_listing.hpp - a page of the list of jobs: those of the state, and those of the
// archive, which is read beside the loop.
//
// Made for one call, on the controller's loop; the controller outlives it. The list is of no single
// instant: jobs that end while the archive is read may be shown as they were a moment before.
#pragma once

#include <memory>
#include <string>

#include "api/grpc/call.hpp"
#include "api/jobs/archive_walk.hpp"
#include "api/page.hpp"
#include "api/views.hpp"

namespace orrery {

class JobListing : public std::enable_shared_from_this<JobListing> {
 public:
  /// Answers the call with the page, newest job first. Errors: a phase or a tenant that does not
  /// exist, with the nearest name; a page that is not well formed.
  static void begin(Controller& controller, const v1::ListJobsRequest& request,
                    const std::shared_ptr<Call>& call);
  JobListing(Controller& controller, const v1::ListJobsRequest& request,
             const std::shared_ptr<Call>& call, const Page& page);

 private:
  /// Goes on until the page is full or the archive has to be read.
  void go_on();
  /// Adds a job of the archive; returns false where it has to be read first.
  [[nodiscard]] bool add_archived(std::uint64_t id);
  void add(const Job& job);
  void answer();
  [[nodiscard]] bool wanted(std::string_view phase, const std::string& tenant,
                            const std::string& name) const;
  [[nodiscard]] bool by_user(const std::string& submitter) const {
    return request_.user().empty() || submitter == request_.user();
  }
  [[nodiscard]] const State& state() const { return controller_.state(); }

  Controller& controller_;
  v1::ListJobsRequest request_;
  std::shared_ptr<Call> call_;
  Visibility sees_;
  std::uint32_t size_;
  std::uint64_t next_;  ///< number of the next job to look at, plus one
  bool ended_too_;      ///< jobs that have ended are wanted
  std::size_t archived_ = 0;
  std::shared_ptr<ArchiveWalk> archive_;
  v1::ListJobsResponse response_;
};

}  // namespace orrery
