#include "verbs/services/request_explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "api/cluster_directory.hpp"
#include "base/system/real_env.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text_table.hpp"
#include "base/text/utf8.hpp"
#include "http/web_client.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/local/local_gateway.hpp"
#include "verbs/local/local_record.hpp"

namespace orrery {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr Duration kSilence = Duration::seconds(10);
constexpr std::size_t kAnswerMax = std::size_t{4} << 20;
constexpr int kOk = 200;
constexpr int kNotFound = 404;

/// The answer of one call as it arrives.
class Answered final : public WebCallEvents {
 public:
  void on_head(const WebResponseHead& head) override { status = head.status; }
  void on_body(std::string_view bytes) override {
    body += bytes.substr(0, kAnswerMax - std::min(kAnswerMax, body.size()));
  }
  void on_end() override { done = true; }
  void on_error(const WebCallFailure& failure) override {
    error = failure.error;
    done = true;
  }

  int status = 0;
  std::string body;
  std::optional<Error> error;
  bool done = false;
};

struct Question {
  std::string target;
  std::string token;
};

/// Asks one gateway. Errors: it does not answer.
Result<Answered> ask(const std::string& url, const Question& question) {
  if (!url.starts_with(kScheme)) {
    return environment_error(fmt::format("{}: expected a URL with http://", url));
  }
  Result<std::unique_ptr<RealEnv>> env = RealEnv::create();
  if (!env) return forward_error(env);
  const std::unique_ptr<WebClient> client =
      WebClient::make((*env)->loop(), {.silence_max = kSilence});
  const std::string authorization = "Bearer " + question.token;
  const std::vector<WebHeader> headers{{"Authorization", authorization}};
  Answered answered;
  const std::string endpoint = url.substr(kScheme.size(), url.find('/', kScheme.size()));
  const WebCall call = client->start(
      endpoint, {.method = "GET", .target = question.target, .headers = headers, .body = {}},
      answered);
  (*env)->run_until([&] { return answered.done; });
  if (answered.error) return tl::unexpected(*answered.error);
  return answered;
}

/// Adds the URLs of the gateways by which running services are reached.
Status add_gateways_of_services(LiveSession& session, std::vector<std::string>& urls) {
  v1::ListJobsRequest list;
  list.set_phase("running");
  const Result<v1::ListJobsResponse> jobs = list_jobs(session, list);
  if (!jobs) return tl::unexpected(jobs.error());
  for (const v1::Job& job : jobs->jobs()) {
    if (job.kind() != "Serve") continue;
    v1::GetJobRequest request;
    request.set_id(job.id());
    const Result<v1::Job> known = session.client().call<v1::Job>("GetJob", request);
    if (!known) continue;
    for (const std::string& url : known->service().endpoints()) {
      if (std::ranges::find(urls, url) == urls.end()) urls.push_back(url);
    }
    if (!urls.empty()) return {};  // every gateway routes to every service
  }
  return {};
}

void add_local_gateway(const std::string& directory, std::vector<std::string>& urls) {
  RealStorage storage;
  const Result<LocalRecord> record = read_local_record(storage, directory);
  const std::string url = record ? gateway_url(*record) : "";
  if (!url.empty() && std::ranges::find(urls, url) == urls.end()) urls.push_back(url);
}

bool is_request_id(std::string_view text) {
  constexpr std::size_t kIdMax = 128;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= kIdMax && std::ranges::all_of(text, fits);
}

/// Returns a value as text; "" where there is none.
std::string shown(const Json& object, const char* key) {
  if (!object.contains(key)) return "";
  const Json& value = object[key];
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump();
}

/// Returns a table of the replicas that the gateway compared.
std::string candidates_text(const Json& decision) {
  constexpr std::array kKeys{"job",    "attempt",           "verdict",        "in_flight",
                             "tokens", "seconds_per_token", "expected_wait_s"};
  TextTable table({{"REPLICA", Align::kRight},
                   {"ATTEMPT", Align::kRight},
                   {"VERDICT"},
                   {"IN FLIGHT", Align::kRight},
                   {"TOKENS", Align::kRight},
                   {"S/TOKEN", Align::kRight},
                   {"EXPECTED WAIT, S", Align::kRight}});
  if (!decision.contains("candidates")) return "";
  for (const Json& candidate : decision["candidates"]) {
    std::vector<std::string> row;
    row.reserve(kKeys.size());
    for (const char* key : kKeys) row.push_back(shown(candidate, key));
    table.add(std::move(row));
  }
  return table.text();
}

Result<LiveAnswer> answer_of(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) {
    return environment_error("the gateway's answer is no JSON object: " + printable(body, 100));
  }
  v1::Explanation why;
  why.set_text(explanation_text(json));
  LiveAnswer answer = live_answer(why, terminal_text(why.text(), Newlines::kKept));
  answer.json = std::move(json);
  return answer;
}

}  // namespace

std::string explanation_text(const Json& answer) {
  if (!answer.contains("decisions")) return answer.dump(1) + "\n";
  std::string text;
  for (const Json& decision : answer["decisions"]) {
    if (!text.empty()) text += "\n";
    const bool continues = decision.value("continues", Json()) == true;
    text +=
        one_line(fmt::format("{}: {}service {}, {} tokens, table {}: {}", shown(decision, "time"),
                             continues ? "the rest of a stream that broke off, " : "",
                             shown(decision, "service"), shown(decision, "tokens"),
                             shown(decision, "epoch"), shown(decision, "outcome"))) +
        "\n" + candidates_text(decision);
  }
  return text;
}

Result<LiveAnswer> explain_request(const LiveCall& call, const std::string& request) {
  if (!is_request_id(request)) {
    return input_error({}, fmt::format("--request \"{}\": expected the x-request-id of an "
                                       "answer",
                                       printable(request, 60)));
  }
  std::vector<std::string> urls;
  const Status listed = add_gateways_of_services(call.session, urls);
  if (!listed) return tl::unexpected(listed.error());
  const std::string directory = cluster_directory(call.options);
  add_local_gateway(directory, urls);
  if (urls.empty()) return environment_error("no gateway of the cluster is known");
  RealStorage storage;
  const Result<ClusterAddress> cluster = read_cluster_address(storage, directory);
  if (!cluster) return tl::unexpected(cluster.error());
  std::optional<Error> failure;
  for (const std::string& url : urls) {
    const Result<Answered> answered = ask(url, {"/explain/" + request, cluster->token});
    if (answered && answered->status == kOk) return answer_of(answered->body);
    if (!answered) {
      failure = answered.error();
    } else if (answered->status != kNotFound) {
      failure = environment_error(fmt::format("{} answers {}: {}", url, answered->status,
                                              printable(answered->body, 200)))
                    .value();
    }
  }
  if (failure) return tl::unexpected(*failure);
  return input_error(
      {}, fmt::format("no gateway knows the request {}: each keeps its newest ones", request));
}

}  // namespace orrery
