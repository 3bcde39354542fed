#include "verbs/cluster/live_words.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/live_session.hpp"

namespace orrery {
namespace {

/// Completion must answer soon after a key press.
constexpr Duration kPatience = Duration::seconds(2);

std::vector<CompletionWord> ask(LiveSession& session, LiveWords kind) {
  if (kind == LiveWords::kNodes) {
    const Result<v1::ListNodesResponse> nodes = list_nodes(session);
    return nodes ? node_words(*nodes) : std::vector<CompletionWord>();
  }
  v1::ListJobsRequest request;
  request.set_all(kind == LiveWords::kJobs);
  const Result<v1::ListJobsResponse> jobs = list_jobs(session, std::move(request));
  return jobs ? job_words(*jobs) : std::vector<CompletionWord>();
}

}  // namespace

std::vector<CompletionWord> job_words(const v1::ListJobsResponse& jobs) {
  std::vector<CompletionWord> words;
  words.reserve(static_cast<std::size_t>(jobs.jobs_size()));
  for (const v1::Job& job : jobs.jobs()) {
    words.push_back({fmt::format("{}", job.id()), fmt::format("{}, {}", job.name(), job.phase())});
  }
  return words;
}

std::vector<CompletionWord> node_words(const v1::ListNodesResponse& nodes) {
  std::vector<CompletionWord> words;
  words.reserve(static_cast<std::size_t>(nodes.nodes_size()));
  for (const v1::Node& node : nodes.nodes()) words.push_back({node.name(), node.health()});
  return words;
}

std::vector<CompletionWord> live_words(const CommandOptions& options, LiveWords kind,
                                       const std::string& begun) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options, kPatience);
  if (!session) return {};
  std::vector<CompletionWord> words = ask(**session, kind);
  std::erase_if(words, [&](const CompletionWord& each) { return !each.word.starts_with(begun); });
  return words;
}

}  // namespace orrery
