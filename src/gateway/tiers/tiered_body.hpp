// gateway/tiers/tiered_body.hpp - a request that either model of a service with tiers may answer.
//
// Only requests whose answers are one text are of this kind: others (tools, a form of the answer,
// several answers, images, probabilities) go to the large model. A value. Cost: a JSON parse of the
// body.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "http/web_request.hpp"
#include "serving/tiers/tier_model.hpp"

namespace orrery {

class TieredBody {
 public:
  /// Nothing: the request is of another kind.
  [[nodiscard]] static std::optional<TieredBody> read(const WebRequest& request);

  /// Sizes of prompt, answer and conversation (logarithms), then of the prompt's bytes the shares
  /// of digits, signs of code, bytes beyond ASCII and line ends, then the mean length of its words.
  [[nodiscard]] const TierFeatures& features() const { return features_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The body for another model.
  [[nodiscard]] std::string for_model(std::string_view model) const;
  /// The body for another model, to be answered whole.
  [[nodiscard]] std::string for_comparison(std::string_view model) const;
  /// The prompt, the newest messages last, cut to its last 16 KiB.
  [[nodiscard]] const std::string& prompt() const { return prompt_; }

 private:
  std::string path_;
  nlohmann::ordered_json body_;
  std::string prompt_;
  TierFeatures features_{};
};

/// The text of an answer, whole or as events, in bytes as a replica sent them; nothing: it is
/// incomplete, an error, or calls a tool.
[[nodiscard]] std::optional<std::string> answer_text(std::string_view answer);

}  // namespace orrery
