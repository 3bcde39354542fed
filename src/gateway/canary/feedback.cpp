#include "gateway/canary/feedback.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

/// Whether a replica of the revision takes requests.
bool is_routed(const GatewayCore& core, const GatewayService& service, std::uint64_t revision) {
  if (!service.index) return false;
  const std::vector<RoutedReplica>& replicas = core.table().services[*service.index].replicas;
  return std::ranges::any_of(
      replicas, [revision](const RoutedReplica& each) { return each.revision == revision; });
}

}  // namespace

std::optional<ErrorAnswer> note_feedback(GatewayCore& core, const RoutedKey& key,
                                         std::string_view body) {
  const nlohmann::json read = nlohmann::json::parse(body, nullptr, false);
  if (!read.is_object()) {
    return bad_request("expected a JSON object with model, revision and score", "");
  }
  const auto model = read.find("model");
  if (model == read.end() || !model->is_string()) {
    return bad_request("expected the name of a model", "model");
  }
  const auto revision = read.find("revision");
  if (revision == read.end() || !revision->is_number_unsigned()) {
    return bad_request("expected the number that x-orrery-revision of the answer has", "revision");
  }
  const auto score = read.find("score");
  const double value = score != read.end() && score->is_number() ? score->get<double>() : -1;
  if (!(value >= 0 && value <= 1)) {
    return bad_request("expected a number from 0 to 1, 1 is best", "score");
  }
  const auto& name = model->get_ref<const std::string&>();
  GatewayService* const service = core.find_service(name, key);
  if (service == nullptr) return unknown_model(name);
  const auto number = revision->get<std::uint64_t>();
  if (!is_routed(core, *service, number)) {
    return ErrorAnswer{
        .status = 404,
        .message = fmt::format("Revision {} of the model '{}' has no replica.", number, name),
        .type = "invalid_request_error",
        .param = "revision",
        .code = "revision_not_found"};
  }
  service->canary.add_score(static_cast<std::uint32_t>(number), value);
  return std::nullopt;
}

}  // namespace orrery
