#include "api/jobs/job_listing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format/field_writer.hpp"
#include "base/text/name_check.hpp"
#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

/// A page may be short: the number of archived jobs that filters skip is bounded, too.
constexpr std::size_t kArchivedMax = 10'000;

/// Errors: a phase or a tenant that does not exist, with the nearest name. A tenant that the caller
/// does not see counts as not existing.
Status check_filters(const v1::ListJobsRequest& request, const State& state,
                     const Visibility& sees) {
  if (!request.phase().empty()) {
    std::vector<std::string_view> words;
    for (const auto& entry : enum_words(JobPhase{})) words.push_back(entry.word);
    if (std::ranges::find(words, request.phase()) == words.end()) {
      return input_error({},
                         fmt::format("no state \"{}\"{}: expected {}", request.phase(),
                                     did_you_mean(request.phase(), words), fmt::join(words, ", ")));
    }
  }
  if (request.tenant().empty()) return {};
  std::vector<std::string_view> paths;
  for (std::uint32_t at = 1; at < state.tenants().size(); ++at) {
    const std::string& path = state.tenants().path(TenantId(at));
    if (sees.tenant(path)) paths.push_back(path);
  }
  if (std::ranges::find(paths, request.tenant()) != paths.end()) return {};
  return input_error({}, fmt::format("no tenant \"{}\"{}; `orrery tenants` lists them",
                                     request.tenant(), did_you_mean(request.tenant(), paths)));
}

bool asks_for_ended(const v1::ListJobsRequest& request) {
  return request.all() || std::ranges::any_of(enum_words(JobPhase{}), [&](auto& each) {
           return each.word == request.phase() && ended(each.value);
         });
}

}  // namespace

void JobListing::begin(Controller& controller, const v1::ListJobsRequest& request,
                       const std::shared_ptr<Call>& call) {
  const Result<Page> page = page_of(request);
  if (!page) return call->fail(page.error());
  const Visibility sees(controller.state(), call->caller());
  if (const Status known = check_filters(request, controller.state(), sees); !known) {
    return call->fail(known.error());
  }
  std::make_shared<JobListing>(controller, request, call, *page)->go_on();
}

JobListing::JobListing(Controller& controller, const v1::ListJobsRequest& request,
                       const std::shared_ptr<Call>& call, const Page& page)
    : controller_(controller),
      request_(request),
      call_(call),
      sees_(controller.state(), call->caller()),
      size_(page.size),
      next_(controller.state().jobs()),
      ended_too_(asks_for_ended(request)),
      archive_(std::make_shared<ArchiveWalk>(controller)) {
  if (!request.page_token().empty()) next_ = std::min(next_, page.first);
}

bool JobListing::wanted(std::string_view phase, const std::string& tenant,
                        const std::string& name) const {
  return sees_.tenant(tenant) && (request_.phase().empty() || phase == request_.phase()) &&
         (request_.tenant().empty() || tenant == request_.tenant()) &&
         (request_.name().empty() || matches(name, request_.name()));
}

void JobListing::go_on() {
  for (; next_ > 0 && static_cast<std::uint32_t>(response_.jobs_size()) < size_; --next_) {
    const JobId id = JobId::at(next_ - 1);
    if (state().has(id)) {
      add(state().job(id));
    } else if (ended_too_) {
      if (archived_ >= kArchivedMax) break;
      if (!add_archived(id.value())) return;
    }
  }
  answer();
}

bool JobListing::add_archived(std::uint64_t id) {
  if (!archive_->has(id)) {
    archive_->read(id, [self = shared_from_this()] {
      if (self->call_->wanted()) self->go_on();
    });
    return false;
  }
  ++archived_;
  std::optional<v1::Job> job = archive_->find(id);
  if (job && by_user(job->submitter()) && wanted(job->phase(), job->tenant(), job->name())) {
    *response_.add_jobs() = *std::move(job);
  }
  return true;
}

void JobListing::add(const Job& job) {
  if (ended(job.phase) && !ended_too_) return;
  if (!by_user(job.submitter)) return;
  if (!wanted(word_of(job.phase), state().tenants().path(job.tenant), job.name)) return;
  *response_.add_jobs() = job_view(controller_, job.id, JobDetail::kListed);
}

void JobListing::answer() {
  explain_waits(controller_, response_);
  if (next_ > 0) response_.set_next_page_token(std::to_string(next_));
  controller_.after_durable(
      [call = call_, response = std::move(response_)] { call->reply(response); });
}

}  // namespace orrery
