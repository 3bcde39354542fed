#include "adapter/engine_slots.hpp"

#include <limits>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

std::optional<std::uint32_t> count_at(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto count = found->get<std::uint64_t>();
  if (count == 0 || count > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(count);
}

}  // namespace

std::string_view slots_path(EngineName engine) {
  switch (engine) {
    case EngineName::kLlamacpp:
      return "/props";
    case EngineName::kSglang:
      return "/get_server_info";
    case EngineName::kOrrery:
    case EngineName::kVllm:
    case EngineName::kTrtllm:
      break;
  }
  return "";
}

std::optional<std::uint32_t> slots_answered(EngineName engine, std::string_view body) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (engine == EngineName::kLlamacpp) return count_at(json, "total_slots");
  if (engine != EngineName::kSglang) return std::nullopt;
  // What the scheduler has settled on stands before what was asked for, which may be null.
  if (json.is_object() && json.contains("internal_states") && json["internal_states"].is_array() &&
      !json["internal_states"].empty()) {
    const auto& state = json["internal_states"].front();
    if (const auto slots = count_at(state, "effective_max_running_requests_per_dp")) return slots;
    if (const auto slots = count_at(state, "max_running_requests")) return slots;
  }
  return count_at(json, "max_running_requests");
}

}  // namespace orrery
