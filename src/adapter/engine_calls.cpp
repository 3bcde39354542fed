#include "adapter/engine_calls.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/system/real_clock.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kBodyMax = std::size_t{8} << 20;

/// A count of an answer's usage; none: it has none.
std::optional<std::uint64_t> count_of(const nlohmann::json& usage, const char* key) {
  if (!usage.is_object()) return std::nullopt;
  const auto found = usage.find(key);
  if (found == usage.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

tl::unexpected<Error> nonsense(const EngineAnswer& answer, std::string_view expected) {
  return environment_error(fmt::format("/v1/completions answered \"{}\", expected {}",
                                       printable(answer.body, 200), expected));
}

}  // namespace

class EngineCalls::Call final : public WebCallEvents {
 public:
  struct Question {
    std::string method;
    std::string path;
    std::string body;
  };
  Call(EngineCalls& calls, Question question, Duration limit, Done done)
      : calls_(calls), question_(std::move(question)), limit_(limit), done_(std::move(done)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() override {
    if (timer_) calls_.loop_.cancel(*timer_);
  }

  void begin(std::uint64_t number) {
    number_ = number;
    begun_ = clock_.now_monotonic();
    timer_ = calls_.loop_.call_after(limit_, [this] {
      timer_.reset();
      call_.cancel();
      note_failure(fmt::format("gave no answer in {}", limit_.text()));
      calls_.end(number_);
    });
    static constexpr std::array kHeaders{WebHeader{"Content-Type", "application/json"}};
    call_ = calls_.client_->start(calls_.endpoint_,
                                  {.method = question_.method,
                                   .target = question_.path,
                                   .headers = kHeaders,
                                   .body = question_.body},
                                  *this);
  }
  [[nodiscard]] EngineAnswer take_answer() { return std::move(answer_); }
  [[nodiscard]] Done take_done() { return std::exchange(done_, nullptr); }

  void on_head(const WebResponseHead& head) override { answer_.status = head.status; }
  void on_body(std::string_view bytes) override {
    if (answer_.body.size() + bytes.size() <= kBodyMax) {
      answer_.body += bytes;
      return;
    }
    call_.cancel();
    note_failure(fmt::format("answered more than {} bytes", kBodyMax));
    end_later();
  }
  void on_end() override {
    note_time();
    end_later();
  }
  void on_error(const WebCallFailure& failure) override {
    note_failure(failure.error.message);
    end_later();
  }

 private:
  void note_time() { answer_.seconds = (clock_.now_monotonic() - begun_).count_seconds(); }
  void note_failure(std::string why) {
    answer_ = {.failure = std::move(why)};
    note_time();
  }
  /// Ends the call in a later turn of the loop: the callback may destroy the client.
  void end_later() {
    if (timer_) calls_.loop_.cancel(*timer_);
    timer_ = calls_.loop_.call_after(Duration::seconds(0), [this] {
      timer_.reset();
      calls_.end(number_);
    });
  }

  EngineCalls& calls_;
  Question question_;
  Duration limit_;
  Done done_;
  RealClock clock_;
  Instant begun_;
  std::uint64_t number_ = 0;
  EngineAnswer answer_;
  std::optional<TimerId> timer_;
  WebCall call_;
};

std::string EngineAnswer::text() const {
  if (status == 0) return failure;
  return fmt::format("answered {}: {}", status, printable(body, 200));
}

EngineCalls::EngineCalls(RealLoop& loop, std::string endpoint)
    : loop_(loop), endpoint_(std::move(endpoint)), client_(WebClient::make(loop, {})) {}

EngineCalls::~EngineCalls() { calls_.clear(); }

void EngineCalls::get(std::string_view path, Duration limit, Done done) {
  Call::Question question{.method = "GET", .path = std::string(path), .body = {}};
  begin(std::make_unique<Call>(*this, std::move(question), limit, std::move(done)));
}

void EngineCalls::post(std::string_view path, std::string body, Duration limit, Done done) {
  Call::Question question{.method = "POST", .path = std::string(path), .body = std::move(body)};
  begin(std::make_unique<Call>(*this, std::move(question), limit, std::move(done)));
}

void EngineCalls::begin(std::unique_ptr<Call> call) {
  Call& begun = *call;
  const std::uint64_t number = next_++;
  calls_.emplace(number, std::move(call));
  begun.begin(number);
}

void EngineCalls::cancel() { calls_.clear(); }

void EngineCalls::end(std::uint64_t number) {
  const auto found = calls_.find(number);
  const Done done = found->second->take_done();
  const EngineAnswer answer = found->second->take_answer();
  calls_.erase(found);
  done(answer);
}

std::string completion_body(const std::string& model, const std::string& prompt,
                            std::uint64_t tokens) {
  return nlohmann::ordered_json{{"model", model},   {"prompt", prompt},   {"max_tokens", tokens},
                                {"temperature", 0}, {"ignore_eos", true}, {"stream", false}}
      .dump();
}

Result<CompletionUsage> read_completion(const EngineAnswer& answer) {
  if (answer.status != 200) {
    return environment_error(fmt::format("/v1/completions {}", answer.text()));
  }
  const auto json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return nonsense(answer, "JSON");
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty() ||
      !choices->front().is_object() || !choices->front().contains("text") ||
      !choices->front()["text"].is_string()) {
    return nonsense(answer, "choices with a text");
  }
  const auto usage = json.find("usage");
  if (usage == json.end()) return nonsense(answer, "usage");
  const std::optional<std::uint64_t> prompt = count_of(*usage, "prompt_tokens");
  const std::optional<std::uint64_t> tokens = count_of(*usage, "completion_tokens");
  if (!prompt || !tokens || *tokens == 0) return nonsense(answer, "the tokens of prompt and text");
  return CompletionUsage{.prompt_tokens = *prompt, .completion_tokens = *tokens};
}

}  // namespace orrery
