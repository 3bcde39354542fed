#include "verbs/cluster/live_lists.hpp"

#include <utility>

namespace orrery {
namespace {

constexpr std::uint32_t kPage = 1'000;

/// The rows of every page, `rows` being the field of a page that has them.
template <class Response, class Request, class Row>
Result<Response> all_pages(LiveSession& session, const char* method, Request request,
                           google::protobuf::RepeatedPtrField<Row>* (Response::*rows)()) {
  request.set_page_size(kPage);
  Response all;
  while (true) {
    auto page = session.client().call<Response>(method, request);
    if (!page) return forward_error(page);
    for (Row& row : *((*page).*rows)()) (all.*rows)()->Add(std::move(row));
    if (page->next_page_token().empty()) return all;
    request.set_page_token(page->next_page_token());
  }
}

}  // namespace

Result<v1::ListJobsResponse> list_jobs(LiveSession& session, v1::ListJobsRequest request) {
  return all_pages(session, "ListJobs", std::move(request), &v1::ListJobsResponse::mutable_jobs);
}

Result<v1::ListNodesResponse> list_nodes(LiveSession& session) {
  return all_pages(session, "ListNodes", v1::ListNodesRequest(),
                   &v1::ListNodesResponse::mutable_nodes);
}

Result<v1::ListPowerDomainsResponse> list_power(LiveSession& session) {
  return all_pages(session, "ListPowerDomains", v1::ListPowerDomainsRequest(),
                   &v1::ListPowerDomainsResponse::mutable_domains);
}

}  // namespace orrery
