#include "apps/orrery/live_lists.hpp"

#include <utility>

namespace orrery {
namespace {

constexpr std::uint32_t kPage = 1'000;

}  // namespace

Result<v1::ListJobsResponse> list_jobs(LiveSession& session, v1::ListJobsRequest request) {
  request.set_page_size(kPage);
  v1::ListJobsResponse all;
  while (true) {
    auto page = session.client().call<v1::ListJobsResponse>("ListJobs", request);
    if (!page) return forward_error(page);
    for (v1::Job& job : *page->mutable_jobs()) *all.add_jobs() = std::move(job);
    if (page->next_page_token().empty()) return all;
    request.set_page_token(page->next_page_token());
  }
}

Result<v1::ListNodesResponse> list_nodes(LiveSession& session) {
  v1::ListNodesRequest request;
  request.set_page_size(kPage);
  v1::ListNodesResponse all;
  while (true) {
    auto page = session.client().call<v1::ListNodesResponse>("ListNodes", request);
    if (!page) return forward_error(page);
    for (v1::Node& node : *page->mutable_nodes()) *all.add_nodes() = std::move(node);
    if (page->next_page_token().empty()) return all;
    request.set_page_token(page->next_page_token());
  }
}

Result<v1::ListPowerDomainsResponse> list_power(LiveSession& session) {
  v1::ListPowerDomainsRequest request;
  request.set_page_size(kPage);
  v1::ListPowerDomainsResponse all;
  while (true) {
    auto page = session.client().call<v1::ListPowerDomainsResponse>("ListPowerDomains", request);
    if (!page) return forward_error(page);
    for (v1::PowerDomain& domain : *page->mutable_domains()) *all.add_domains() = std::move(domain);
    if (page->next_page_token().empty()) return all;
    request.set_page_token(page->next_page_token());
  }
}

}  // namespace orrery
