#include "gateway/apart/prompt_bodies.hpp"

#include <array>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

/// Adds keys to a JSON object.
std::string with(std::string_view body, std::string_view keys) {
  const std::size_t brace = body.rfind('}');
  std::string made;
  made.reserve(body.size() + keys.size() + 1);
  made.append(body.substr(0, brace)).append(",").append(keys).append(body.substr(brace));
  return made;
}

}  // namespace

PromptPlaces prompt_places_of(std::string_view path, std::string_view body,
                              const RequestFacts& facts) {
  if (facts.needs_one_replica || facts.prompt.size == 0) return PromptPlaces::kAnswering;
  const bool one_text = path == "/v1/completions" && body[facts.prompt.at] == '"';
  return one_text || path == "/v1/chat/completions" ? PromptPlaces::kAny : PromptPlaces::kAnswering;
}

std::string prompt_body(std::string_view path, std::string_view body) {
  std::string keys = R"("stream":false,"stream_options":null,"max_tokens":1,"min_tokens":0,)";
  if (path.starts_with("/v1/chat/")) keys += R"("max_completion_tokens":1,)";
  keys += R"("ignore_eos":true,"stop":[],"stop_token_ids":[],"kv_transfer_params":)"
          R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,)"
          R"("remote_block_ids":null,"remote_host":null,"remote_port":null})";
  return with(body, keys);
}

std::string cache_place(std::string_view answer) {
  const nlohmann::json read = nlohmann::json::parse(answer, nullptr, false);
  const auto place = read.is_object() ? read.find("kv_transfer_params") : read.end();
  if (!read.is_object() || place == read.end() || !place->is_object()) return "";
  constexpr std::array kKeys{"remote_engine_id", "remote_block_ids", "remote_host", "remote_port"};
  for (const char* key : kKeys) {
    const auto found = place->find(key);
    if (found == place->end() || found->is_null()) return "";
  }
  nlohmann::json made = *place;
  made["do_remote_prefill"] = true;
  made["do_remote_decode"] = false;
  return made.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string answer_body(std::string_view body, std::string_view cache_place) {
  return with(body, std::string(R"("kv_transfer_params":)").append(cache_place));
}

}  // namespace orrery
