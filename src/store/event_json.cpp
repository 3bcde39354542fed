// store/event_json.cpp - walks the fields of an event (control/codec/event_fields.hpp) into JSON.
#include "store/event_json.hpp"

#include <string_view>
#include <type_traits>

#include "base/assert.hpp"
#include "control/codec/codec.hpp"
#include "control/codec/event_fields.hpp"

namespace orrery {
namespace {

// --- Names --------------------------------------------------------------------------------------

/// The names of a struct's fields, in the order in which they are walked. A struct without names
/// here does not compile; names that do not match its fields fail at their first use (the tests
/// cover every type of event).
template <class Struct>
inline constexpr std::string_view kFieldNames =
    [] { static_assert(!std::is_same_v<Struct, Struct>, "name its fields below"); }();

template <>
inline constexpr std::string_view kFieldNames<HostNeeds> = "cpu memory cxl disk";
template <>
inline constexpr std::string_view kFieldNames<GangRequest> =
    "type devices node_devices share host required preferred segment exclusive rails_aligned slice "
    "sites";
template <>
inline constexpr std::string_view kFieldNames<PlanKey> = "work type devices";
template <>
inline constexpr std::string_view kFieldNames<GangOption> = "gang speed plan";
template <>
inline constexpr std::string_view kFieldNames<Rejection> = "kind blocking reason";
template <>
inline constexpr std::string_view kFieldNames<ExcludedType> = "type why";
template <>
inline constexpr std::string_view kFieldNames<SpreadSpec> = "level most";
template <>
inline constexpr std::string_view kFieldNames<RoleRequest> =
    "name gangs options excluded devices_min devices_max spread work steps";
template <>
inline constexpr std::string_view kFieldNames<DataRequest> = "site size";
template <>
inline constexpr std::string_view kFieldNames<JobRequest> =
    "name kind tenant priority preemptible roles goal deadline budget time_limit estimate data "
    "checkpoint_interval checkpoint_cost restart class_id";
template <>
inline constexpr std::string_view kFieldNames<Preparation> = "program compile";
template <>
inline constexpr std::string_view kFieldNames<Submission> =
    "request restart choose_interval restart_max after array parallel prepare";
template <>
inline constexpr std::string_view kFieldNames<NodeDevices> = "node devices";
template <>
inline constexpr std::string_view kFieldNames<Allocation> = "ranks idle share";
template <>
inline constexpr std::string_view kFieldNames<PlacedGang> = "role option allocation host";
template <>
inline constexpr std::string_view kFieldNames<GangTerms> = "length ratio clock draw plan";
template <>
inline constexpr std::string_view kFieldNames<Reservation> = "job start gangs lost_device_seconds";
template <>
inline constexpr std::string_view kFieldNames<PlansFound> = "plans step_seconds";
template <>
inline constexpr std::string_view kFieldNames<PlanFound> = "key digest";
template <>
inline constexpr std::string_view kFieldNames<Blame> = "layer node evidence";
template <>
inline constexpr std::string_view kFieldNames<RankExit> = "rank status";
template <>
inline constexpr std::string_view kFieldNames<JobHoldSet> = "job hold";
template <>
inline constexpr std::string_view kFieldNames<JobChanged> =
    "job priority time_limit estimate class_id";
template <>
inline constexpr std::string_view kFieldNames<Progress> = "done lost saving undetected";
template <>
inline constexpr std::string_view kFieldNames<JobSubmitted> =
    "job submission request_id spec submitter run_as after_any after_notok hold";
template <>
inline constexpr std::string_view kFieldNames<JobReleased> = "job";
template <>
inline constexpr std::string_view kFieldNames<JobStarted> =
    "job attempt gangs terms expected checkpoint delay compile microdollars";
template <>
inline constexpr std::string_view kFieldNames<JobRunning> = "job source";
template <>
inline constexpr std::string_view kFieldNames<JobResized> =
    "job epoch gangs terms in_favour_of done";
template <>
inline constexpr std::string_view kFieldNames<ClockSet> = "job gang terms done";
template <>
inline constexpr std::string_view kFieldNames<JobStopping> =
    "job reason in_favour_of blame progress exit";
template <>
inline constexpr std::string_view kFieldNames<DevicesFreed> = "job attempt nodes epoch progress";
template <>
inline constexpr std::string_view kFieldNames<JobRequeued> = "job progress not_before";
template <>
inline constexpr std::string_view kFieldNames<JobEnded> = "job phase progress blame";
template <>
inline constexpr std::string_view kFieldNames<NodeChanged> = "node health blame window why";
template <>
inline constexpr std::string_view kFieldNames<NodeBooted> = "node boot";
template <>
inline constexpr std::string_view kFieldNames<SpareSet> = "node spare";
template <>
inline constexpr std::string_view kFieldNames<LinkState> = "health load";
template <>
inline constexpr std::string_view kFieldNames<LinkChanged> = "link state";
template <>
inline constexpr std::string_view kFieldNames<PowerLimitSet> = "domain what limit";
template <>
inline constexpr std::string_view kFieldNames<TenantsSet> = "yaml";
template <>
inline constexpr std::string_view kFieldNames<FleetSet> = "yaml";
template <>
inline constexpr std::string_view kFieldNames<PolicySet> = "yaml";
template <>
inline constexpr std::string_view kFieldNames<SlotsReserved> = "slots";
template <>
inline constexpr std::string_view kFieldNames<DecisionDropped> = "job why";
template <>
inline constexpr std::string_view kFieldNames<MaintenanceSet> = "window nodes from to why";
template <>
inline constexpr std::string_view kFieldNames<LemonFound> = "node faults";
template <>
inline constexpr std::string_view kFieldNames<IdleCauseSet> = "type cause";
template <>
inline constexpr std::string_view kFieldNames<PassDone> = "kind";
template <>
inline constexpr std::string_view kFieldNames<CancelAsked> = "job";
template <>
inline constexpr std::string_view kFieldNames<JobsArchived> = "jobs";
template <>
inline constexpr std::string_view kFieldNames<WorkSettled> = "job progress";
template <>
inline constexpr std::string_view kFieldNames<NodeAccused> = "job attempt node verdict evidence";

// --- Values -------------------------------------------------------------------------------------

/// A codec in the sense of control/codec/field_walk.hpp that makes JSON.
class JsonCodec {
 public:
  /// Adds the fields of the struct that is walked.
  template <class... Fields>
  void operator()(const Fields&... fields) {
    const std::string_view names = names_;
    Json object = Json::object();
    std::size_t at = 0;
    (add(object, name_at(names, at), fields), ...);
    ORRERY_ASSERT(at > names.size(), "every name has a field");
    object_ = std::move(object);
  }

  template <class T>
  [[nodiscard]] Json value(const T& it) {
    return of(std::type_identity<T>{}, it);
  }

 private:
  /// Returns the word that begins at `at`, and moves `at` behind the blank after it.
  static std::string name_at(std::string_view names, std::size_t& at) {
    ORRERY_ASSERT(at < names.size(), "every field has a name");
    const std::size_t end = std::min(names.find(' ', at), names.size());
    const std::string_view name = names.substr(at, end - at);
    at = end + 1;
    return std::string(name);
  }
  template <class T>
  void add(Json& object, const std::string& name, const T& field) {
    object[name] = value(field);
  }

  template <class T>
  Json of(std::type_identity<T>, const T& it) {
    if constexpr (WordedEnum<T>) {
      for (const auto& [word, each] : enum_words(T{})) {
        if (each == it) return std::string(word);
      }
      return static_cast<std::uint64_t>(it);
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<std::uint64_t>(it);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return it;
    } else {
      names_ = kFieldNames<T>;
      code(*this, it);
      return std::move(object_);
    }
  }
  static Json of(std::type_identity<std::monostate>, std::monostate) { return nullptr; }
  static Json of(std::type_identity<std::string>, const std::string& it) { return it; }
  static Json of(std::type_identity<Duration>, Duration it) {
    return it == Duration::max() ? Json(nullptr) : Json(it.count_seconds());
  }
  static Json of(std::type_identity<Instant>, Instant it) {
    return it == Instant::max() ? Json(nullptr) : Json(it.text());
  }
  template <class Tag>
  static Json of(std::type_identity<Id<Tag>>, Id<Tag> it) {
    return it.valid() ? Json(it.value()) : Json(nullptr);
  }
  template <class Dimension>
  static Json of(std::type_identity<Quantity<Dimension>>, Quantity<Dimension> it) {
    return it.value();
  }
  template <class T, std::size_t N>
  Json of(std::type_identity<std::array<T, N>>, const std::array<T, N>& it) {
    return list(it);
  }
  template <class T>
  Json of(std::type_identity<std::vector<T>>, const std::vector<T>& it) {
    return list(it);
  }
  template <class T>
  Json of(std::type_identity<std::optional<T>>, const std::optional<T>& it) {
    return it ? value(*it) : Json(nullptr);
  }
  template <class T>
  Json of(std::type_identity<std::unique_ptr<const T>>, const std::unique_ptr<const T>& it) {
    return it ? value(*it) : Json(nullptr);
  }
  template <class... T>
  Json of(std::type_identity<std::variant<T...>>, const std::variant<T...>& it) {
    return std::visit([this](const auto& each) -> Json { return this->value(each); }, it);
  }
  template <class Range>
  Json list(const Range& range) {
    Json array = Json::array();
    for (const auto& each : range) array.push_back(value(each));
    return array;
  }

  std::string_view names_;  ///< names of the struct that is walked next
  Json object_;             ///< result for the struct that was walked last
};

}  // namespace

Json event_json(const TimedEvent& event) {
  JsonCodec codec;
  Json json = {{"at", event.at.text()}, {"event", event_name(event.what.index())}};
  Json fields = codec.value(event.what);
  json.update(fields);
  return json;
}

}  // namespace orrery
