// adapter/engine_calls.hpp - HTTP calls to an inference engine, each with a whole answer or a
// reason within a time.
//
// Owned by what supervises an engine, used on the loop. No callback runs inside a call of it. A
// callback may make other calls, and may destroy the object. Its end, or cancel(), ends all calls
// without callbacks. Cost: one object a call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/system/real_loop.hpp"
#include "base/time.hpp"
#include "http/web_client.hpp"

namespace orrery {

struct EngineAnswer {
  int status = 0;  ///< 0: there was no whole answer
  std::string body;
  std::string failure;  ///< why there was none
  double seconds = 0;   ///< from the call to its end

  /// "answered 500: ..", with the beginning of its body, or the failure.
  [[nodiscard]] std::string text() const;
};

class EngineCalls {
 public:
  using Done = std::function<void(const EngineAnswer&)>;

  /// `endpoint`: "HOST:PORT", numeric. The loop outlives it.
  EngineCalls(RealLoop& loop, std::string endpoint);
  EngineCalls(const EngineCalls&) = delete;
  EngineCalls& operator=(const EngineCalls&) = delete;
  ~EngineCalls();

  void get(std::string_view path, Duration limit, Done done);
  /// Sends JSON.
  void post(std::string_view path, std::string body, Duration limit, Done done);
  void cancel();

 private:
  class Call;

  void begin(std::unique_ptr<Call> call);
  void end(std::uint64_t number);

  RealLoop& loop_;
  std::string endpoint_;
  std::unique_ptr<WebClient> client_;
  std::map<std::uint64_t, std::unique_ptr<Call>> calls_;  ///< end before the client
  std::uint64_t next_ = 0;
};

/// Returns the body of a request for exactly `tokens` tokens: stop tokens have no effect.
[[nodiscard]] std::string completion_body(const std::string& model, const std::string& prompt,
                                          std::uint64_t tokens);

/// The usage in an answer of /v1/completions.
struct CompletionUsage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;  ///< at least one
};

/// Reads the usage of an answer. Errors (kEnvironment) say what was expected and what was found: no
/// answer, an error status, no text or no tokens.
[[nodiscard]] Result<CompletionUsage> read_completion(const EngineAnswer& answer);

}  // namespace orrery
