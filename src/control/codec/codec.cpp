// control/codec/codec.cpp - where the fields of events and inputs meet encoder and decoder.
#include "control/codec/codec.hpp"

#include <array>
#include <utility>

#include "base/assert.hpp"
#include "control/codec/event_fields.hpp"

namespace orrery {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Event>> kEventNames{
    "JobSubmitted",   "JobReleased",     "JobStarted",     "JobRunning",   "JobResized",
    "ClockSet",       "JobStopping",     "DevicesFreed",   "JobRequeued",  "JobEnded",
    "NodeChanged",    "NodeBooted",      "SpareSet",       "LinkChanged",  "PowerLimitSet",
    "TenantsSet",     "PolicySet",       "SlotsReserved",  "PlanFound",    "DecisionDropped",
    "MaintenanceSet", "LemonFound",      "IdleCauseSet",   "PassDone",     "CancelAsked",
    "JobsArchived",   "WorkSettled",     "NodeAccused",    "JobHoldSet",   "JobChanged",
    "FleetSet",       "JobResolved",     "NodeLent",       "ForeignSet",   "HoldBilled",
    "ReplicaChanged", "ServiceUpdating", "ServiceUpdated", "ServiceScaled"};
constexpr std::array<std::string_view, std::variant_size_v<InputKind>> kInputNames{
    "SubmitJob",     "CancelJob",    "DrainNode",    "ResumeNode",     "FenceNode",
    "SetSpare",      "SetPowerCap",  "SetTenants",   "SetPolicy",      "SetMaintenance",
    "RanksUp",       "RanksEnded",   "RanksGone",    "NodeJoined",     "NodeHeard",
    "NodeFault",     "NodeRepaired", "LinkObserved", "SupplyObserved", "Tick",
    "Proposal",      "PlanReady",    "ArchiveJobs",  "WorkReported",   "HoldJob",
    "RequeueJob",    "ChangeJob",    "SetFleet",     "ResolveJob",     "NodeGranted",
    "NodeAbsent",    "ForeignUse",   "HoldRecorded", "ReplicaSeen",    "UpdateService",
    "CanaryVerdict", "ScaleOrder"};

template <class Variant>
void encode_fields(const Variant& record, Encoder& out) {
  std::visit([&out](const auto& alternative) { out(alternative); }, record);
}

template <class Variant, std::size_t I>
void decode_alternative(Decoder& decoder, Variant& out) {
  decoder(out.template emplace<I>());
}

template <class Variant, std::size_t... I>
tl::expected<Variant, DecodingFault> decode_fields(const EncodedRecord& record,
                                                   std::index_sequence<I...>) {
  ORRERY_ASSERT(record.type < sizeof...(I), "the type of a record is looked up before it is read");
  using Decode = void (*)(Decoder&, Variant&);
  static constexpr std::array<Decode, sizeof...(I)> kDecoders{&decode_alternative<Variant, I>...};
  Decoder decoder(record.fields, record.plans);
  tl::expected<Variant, DecodingFault> out;
  kDecoders[record.type](decoder, *out);
  if (std::optional<DecodingFault> fault = decoder.finish()) {
    return tl::unexpected(*std::move(fault));
  }
  return out;
}

}  // namespace

void encode(const Event& event, Encoder& out) { encode_fields(event, out); }
void encode(const InputKind& input, Encoder& out) { encode_fields(input, out); }

bool same_fields(const JobRequest& a, const JobRequest& b) {
  Encoder of_a;
  Encoder of_b;
  of_a(a);
  of_b(b);
  return of_a.bytes() == of_b.bytes();
}

std::string_view event_name(std::uint64_t type) {
  return type < kEventNames.size() ? kEventNames[type] : "";
}
std::string_view input_name(std::uint64_t type) {
  return type < kInputNames.size() ? kInputNames[type] : "";
}

tl::expected<Event, DecodingFault> decode_event(const EncodedRecord& record) {
  return decode_fields<Event>(record, std::make_index_sequence<std::variant_size_v<Event>>{});
}
tl::expected<InputKind, DecodingFault> decode_input(const EncodedRecord& record) {
  return decode_fields<InputKind>(record,
                                  std::make_index_sequence<std::variant_size_v<InputKind>>{});
}

}  // namespace orrery
