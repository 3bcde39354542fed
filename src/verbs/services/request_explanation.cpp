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

/// Returns the replicas that a decision compared; an empty list where it tells of none.
Json candidates_in(const Json& decision) {
  return decision.contains("candidates") ? decision["candidates"] : Json::array();
}

std::uint64_t count_in(const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

double amount_in(const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  return value.is_number() ? value.get<double>() : 0;
}

/// Returns which other replica computes the prompt, and what was expected without it; "": none.
std::string remote_text(const Json& decision) {
  const Json remote = decision.value("remote_prompt", Json());
  if (!remote.is_object()) return "";
  for (const Json& candidate : candidates_in(decision)) {
    if (shown(candidate, "verdict") != "prefill") continue;
    return fmt::format(
        "job {} computes its prompt, whose cache is sent in {:.2g} s; job {} alone: first token in "
        "{:.2g} s\n",
        shown(candidate, "job"), amount_in(remote, "transfer_s"), shown(remote, "local_job"),
        amount_in(remote, "local_ttft_s"));
  }
  return "";
}

/// Returns what the replica that was chosen was expected to do; "" where none was.
std::string chosen_text(const Json& decision) {
  for (const Json& candidate : candidates_in(decision)) {
    if (shown(candidate, "verdict") != "chosen") continue;
    std::string text =
        fmt::format("job {} of {}: {} of {} prompt tokens cached", shown(candidate, "job"),
                    shown(decision, "service"), count_in(candidate, "cached_tokens"),
                    count_in(decision, "prompt_tokens"));
    const double ttft_s = amount_in(candidate, "expected_ttft_s");
    const double wait_s = amount_in(candidate, "expected_wait_s");
    const double usd = amount_in(candidate, "usd");
    if (ttft_s > 0) text += fmt::format(", first token in {:.2g} s expected", ttft_s);
    if (wait_s > 0) text += fmt::format(", the last in {:.2g} s", wait_s);
    if (usd > 0) text += fmt::format(", for ${:.2g}", usd);
    return text + "\n" + remote_text(decision);
  }
  return "";
}

/// Returns why the other replicas were not chosen: "2 dearer, 1 full"; "": no reason.
std::string others_text(const Json& decision) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReasons{
      {{"slower", "slower"},
       {"late", "later than the service's targets allow"},
       {"dearer", "dearer"},
       {"less cached", "with less of the prompt cached"},
       {"busier", "busier"},
       {"other turn", "not drawn, or whose turn it was not"},
       {"full", "full"},
       {"excluded", "tried before, or not allowed"},
       {"failing", "failing"},
       {"other revision", "of the revision that the request was not drawn for"},
       {"only prefill", "for prompts alone, which would not pay"}}};
  std::string text;
  for (const auto& [verdict, reason] : kReasons) {
    int count = 0;
    for (const Json& each : candidates_in(decision)) {
      count += shown(each, "verdict") == verdict ? 1 : 0;
    }
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "not chosen: " : ", ", count, reason);
  }
  return text.empty() ? text : text + "\n";
}

/// Returns a table of the replicas that the gateway compared.
std::string candidates_text(const Json& decision) {
  constexpr std::array kKeys{
      "job",           "attempt",         "verdict",         "in_flight",       "tokens",
      "cached_tokens", "expected_ttft_s", "expected_tpot_s", "expected_wait_s", "usd"};
  TextTable table({{"REPLICA", Align::kRight},
                   {"ATTEMPT", Align::kRight},
                   {"VERDICT"},
                   {"IN FLIGHT", Align::kRight},
                   {"TOKENS", Align::kRight},
                   {"CACHED", Align::kRight},
                   {"TTFT, S", Align::kRight},
                   {"TPOT, S", Align::kRight},
                   {"END, S", Align::kRight},
                   {"USD", Align::kRight}});
  if (!decision.contains("candidates")) return "";
  for (const Json& candidate : candidates_in(decision)) {
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

/// Returns why the smaller or the larger model of a service answered; "": it has one.
std::string tier_text(const Json& decision) {
  if (!decision.contains("smaller_model")) return "";
  const std::string reason = shown(decision, "smaller_model");
  if (reason == "good enough") return "The smaller model answers: it is probably good enough.\n";
  const std::string why =
      reason == "doubtful"       ? "the smaller one is probably not good enough"
      : reason == "no allowance" ? "one more answer that is worse might break the promise"
      : reason == "learning"     ? "what the smaller one can answer is being learnt"
                                 : "the request is not of a kind that is compared, or the smaller "
                                   "model has no room";
  return fmt::format("The larger model answers: {}.\n", why);
}

}  // namespace

std::string explanation_text(const Json& answer) {
  if (!answer.contains("decisions")) return answer.dump(1) + "\n";
  std::string text;
  for (const Json& decision : answer["decisions"]) {
    if (!text.empty()) text += "\n";
    text += chosen_text(decision);
    const bool continues = decision.value("continues", Json()) == true;
    text +=
        one_line(fmt::format("{}: {}service {}, {} tokens, table {}: {}", shown(decision, "time"),
                             continues ? "the rest of a stream that broke off, " : "",
                             shown(decision, "service"), shown(decision, "tokens"),
                             shown(decision, "epoch"), shown(decision, "outcome"))) +
        "\n" + tier_text(decision) + others_text(decision) + candidates_text(decision);
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
