// control/log/journal.cpp - writes records into frames and reads them again.
#include "control/log/journal.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"
#include "control/codec/codec.hpp"

namespace orrery {
namespace {

JournalHead head_of(const JournalOptions& options, JournalContent content) {
  return {.content = content,
          .before = options.before,
          .writer = options.writer,
          .setup = options.setup};
}

template <class Variant>
FrameType type_of(const Variant& record, JournalContent content) {
  const auto id = static_cast<std::uint32_t>(record.index());
  return {.id = id, .version = present_version(content, id, builtin_upcasters())};
}

// The differences between records of events and of inputs.

constexpr JournalContent content_of(const TimedEvent&) { return JournalContent::kEvents; }
constexpr JournalContent content_of(const Input&) { return JournalContent::kInputs; }

std::string_view name_of_type(const TimedEvent&, std::uint32_t type) { return event_name(type); }
std::string_view name_of_type(const Input&, std::uint32_t type) { return input_name(type); }

void read_envelope(Decoder& decoder, TimedEvent& out) { decoder(out.at); }
void read_envelope(Decoder& decoder, Input& out) { decoder(out.at, out.request_id); }

auto decode(const EncodedRecord& record, const TimedEvent&) { return decode_event(record); }
auto decode(const EncodedRecord& record, const Input&) { return decode_input(record); }

struct RaiseWith {
  JournalContent content = JournalContent::kEvents;
  std::span<const Upcaster> upcasters;
};

/// Returns the fields of a frame in the present version of its type; raised fields are stored in
/// `room`. None: no chain of upcasters leads from the frame's version to the present one.
std::optional<std::string_view> raise(const Frame& frame, std::string_view fields,
                                      const RaiseWith& with, std::string& room) {
  std::uint8_t version = frame.type.version;
  for (const Upcaster& one : with.upcasters) {
    const bool fits = one.content == with.content && one.from.id == frame.type.id;
    if (!fits || one.from.version != version) continue;
    room = one.raise(fields);
    fields = room;
    ++version;
  }
  if (version != present_version(with.content, frame.type.id, with.upcasters)) return std::nullopt;
  return fields;
}

}  // namespace

Journal::Journal(const JournalOptions& options)
    : frames_(head_of(options, JournalContent::kEvents), options.sink) {}

void Journal::append(Instant at, const Event& event) {
  Encoder& out = frames_.begin(type_of(event, JournalContent::kEvents));
  out(at);
  encode(event, out);
  frames_.finish();
}

InputJournal::InputJournal(const JournalOptions& options)
    : frames_(head_of(options, JournalContent::kInputs), options.sink) {}

void InputJournal::append(const Input& input) {
  Encoder& out = frames_.begin(type_of(input.what, JournalContent::kInputs));
  out(input.at, input.request_id);
  encode(input.what, out);
  frames_.finish();
}

template <class Record>
Result<JournalReader<Record>> JournalReader<Record>::open(std::string_view bytes,
                                                          JournalReadOptions options) {
  Result<FrameReader> frames = FrameReader::open(bytes, options.name, content_of(Record{}));
  if (!frames) return forward_error(frames);
  return JournalReader(*std::move(frames), std::move(options));
}

template <class Record>
Result<std::optional<Record>> JournalReader<Record>::next() {
  if (failed_) return tl::unexpected(*failed_);
  Result<std::optional<Frame>> frame = frames_.next();
  if (!frame) return fail(std::move(frame.error()));
  if (!*frame) return std::nullopt;
  Result<Record> record = read(**frame);
  if (!record) return fail(std::move(record.error()));
  stand();
  return *std::move(record);
}

template <class Record>
void JournalReader<Record>::go_on(std::string_view bytes, std::string name) {
  ORRERY_ASSERT(!failed_, "nothing is read after damage");
  frames_.go_on(bytes, std::move(name));
  stand();
}

template <class Record>
tl::unexpected<Error> JournalReader<Record>::fail(Error error) {
  failed_ = error;
  return tl::unexpected(std::move(error));
}

template <class Record>
Result<Record> JournalReader<Record>::read(const Frame& frame) const {
  Record record;
  const std::uint64_t at = frame.payload_at;
  const std::string_view name = name_of_type(record, frame.type.id);
  if (name.empty()) {
    return frames_.error_at(at, fmt::format("a record of the unknown type {}", frame.type.id));
  }
  Decoder envelope(frame.payload);
  read_envelope(envelope, record);
  const std::string_view fields = frame.payload.substr(envelope.offset());
  if (!envelope.good()) {
    return frames_.error_at(at, fmt::format("{}: {}", name, envelope.finish()->what));
  }
  std::string room;
  const RaiseWith with{.content = content_of(record), .upcasters = options_.upcasters};
  const std::optional<std::string_view> raised = raise(frame, fields, with, room);
  if (!raised) {
    const int present = present_version(with.content, frame.type.id, with.upcasters);
    return frames_.error_at(at, fmt::format("{} of version {}, expected one of 1 to {}", name,
                                            frame.type.version, present));
  }
  auto what = decode({.type = frame.type.id, .fields = *raised, .plans = options_.plans}, record);
  if (!what) {
    const std::uint64_t offset = at + envelope.offset() + what.error().offset;
    return frames_.error_at(offset, fmt::format("{}: {}", name, what.error().what));
  }
  record.what = *std::move(what);
  return record;
}

template class JournalReader<TimedEvent>;
template class JournalReader<Input>;

}  // namespace orrery
