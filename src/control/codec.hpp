// control/codec.hpp - events and inputs as bytes, and back.
//
// The project's own binary form (control/encoder.hpp), described in docs/formats.md: the fields in
// order, no names, no types, one encoding a value. What type a record is, and which version of it,
// stands beside it in the frame of a journal (control/journal.hpp).
//
// Not written: the entry of PlanFound and PlanReady, which is a function of its key and of the
// facts a journal's head names. A digest stands for it (the number of plans and the step time of
// the best, or the kind of refusal). A reader that is given a PlanSource asks it for the entry and
// checks it against the digest; without one the entry stays empty.
// Cost: tens of nanoseconds for most events, about 200 for a submission.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "control/decoder.hpp"
#include "control/encoder.hpp"
#include "control/event.hpp"
#include "control/input.hpp"
#include "control/setup.hpp"

namespace orrery {

/// Adds the fields of the event that is there; its type is event.index().
void encode(const Event& event, Encoder& out);
void encode(const InputKind& input, Encoder& out);

/// The name of a type, "JobStarted"; "" where there is none of that number.
[[nodiscard]] std::string_view event_name(std::uint64_t type);
[[nodiscard]] std::string_view input_name(std::uint64_t type);

struct EncodedRecord {
  std::uint64_t type = 0;
  std::string_view fields;
  const PlanSource* plans = nullptr;  ///< none: entries of plans stay empty
};

/// Precondition: the type has a name. Errors: bytes that no encode() wrote, with what was expected
/// where; a plan whose digest is another.
[[nodiscard]] tl::expected<Event, DecodingFault> decode_event(const EncodedRecord& record);
[[nodiscard]] tl::expected<InputKind, DecodingFault> decode_input(const EncodedRecord& record);

}  // namespace orrery
