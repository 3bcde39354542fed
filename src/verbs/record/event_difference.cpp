#include "verbs/record/event_difference.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/text/utf8.hpp"
#include "store/event_json.hpp"

namespace orrery {
namespace {

constexpr std::size_t kValueMax = 60;  ///< bytes of a value that are shown

/// The values of an event, by their paths.
using Fields = nlohmann::json;

Fields fields_of(const TimedEvent& event) { return Fields(event_json(event)).flatten(); }

/// Returns the text of a field; "nothing": the event does not have it.
std::string field_text(const Fields& fields, const std::string& path) {
  if (!fields.contains(path)) return "nothing";
  return printable(fields[path].dump(-1, ' ', false, Fields::error_handler_t::replace), kValueMax);
}

}  // namespace

std::string event_difference(const TimedEvent& decided, const TimedEvent& recorded) {
  const Fields ours = fields_of(decided);
  const Fields theirs = fields_of(recorded);
  const std::string kind = ours["/event"].get<std::string>();
  if (ours["/event"] != theirs["/event"]) {
    return fmt::format("{} instead of {}", kind, theirs["/event"].get<std::string>());
  }
  std::vector<std::string> differing;
  for (const auto& [path, value] : ours.items()) {
    if (!theirs.contains(path) || theirs[path] != value) differing.push_back(path);
  }
  for (const auto& [path, value] : theirs.items()) {
    if (!ours.contains(path)) differing.push_back(path);
  }
  if (differing.empty()) return kind + ": its fields print alike, but their bytes differ";
  const std::string& first = differing.front();
  std::string text = fmt::format("{}: {} is {} instead of {}", kind, first.substr(1),
                                 field_text(ours, first), field_text(theirs, first));
  const std::size_t more = differing.size() - 1;
  if (more == 1) text += ", and 1 more field differs";
  if (more > 1) text += fmt::format(", and {} more fields differ", more);
  return text;
}

}  // namespace orrery
