// control/codec/codec.hpp - events and inputs as bytes, and back.
//
// The project's own binary form, which control/codec/encoder.hpp describes: the fields in order,
// without names or types, one encoding for a value. The type of a record and its version stand
// beside it in the frame of a journal (control/log/journal.hpp).
//
// Not written: the entry of PlanFound and PlanReady, which is a function of its key and of the
// facts that a journal's head names. A digest replaces it (the number of plans and the step time of
// the best, or the kind of refusal). A reader with a PlanSource requests the entry from it and
// checks it against the digest; without a PlanSource the entry stays empty.
// Cost: tens of nanoseconds for most events, about 200 for a submission.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "control/codec/decoder.hpp"
#include "control/codec/encoder.hpp"
#include "control/event.hpp"
#include "control/input.hpp"
#include "control/setup.hpp"

namespace orrery {

/// Adds the fields of the event's present alternative; its type is event.index().
void encode(const Event& event, Encoder& out);
void encode(const InputKind& input, Encoder& out);

/// Whether two requests have the same fields, but for the number of their array.
[[nodiscard]] bool same_fields(const JobRequest& a, const JobRequest& b);

/// Returns the name of a type, for example "JobStarted"; "" if no type has that number.
[[nodiscard]] std::string_view event_name(std::uint64_t type);
[[nodiscard]] std::string_view input_name(std::uint64_t type);

struct EncodedRecord {
  std::uint64_t type = 0;
  std::string_view fields;
  const PlanSource* plans = nullptr;  ///< none: entries of plans stay empty
};

/// Precondition: the type has a name. Errors: bytes that encode() did not write (the error says
/// what was expected at which offset); a plan with another digest.
[[nodiscard]] tl::expected<Event, DecodingFault> decode_event(const EncodedRecord& record);
[[nodiscard]] tl::expected<InputKind, DecodingFault> decode_input(const EncodedRecord& record);

}  // namespace orrery
