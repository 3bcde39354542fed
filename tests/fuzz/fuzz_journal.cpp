// tests/fuzz/fuzz_journal.cpp - any bytes as a journal, and as the fields of any record; what is
// read is written again as the same bytes. The first byte picks which.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "control/codec/codec.hpp"
#include "control/log/journal.hpp"

namespace orrery {
namespace {

bool leaves_out(const Event& event) { return std::holds_alternative<PlanFound>(event); }
bool leaves_out(const InputKind& input) { return std::holds_alternative<PlanReady>(input); }

template <class Record>
void check_record(const tl::expected<Record, DecodingFault>& record, std::string_view fields) {
  if (!record) {
    ORRERY_ASSERT(record.error().what.starts_with("expected "), "a refusal says why");
    ORRERY_ASSERT(record.error().offset <= fields.size(), "and where");
    return;
  }
  Encoder again;
  encode(*record, again);
  ORRERY_ASSERT(leaves_out(*record) || again.bytes() == fields, "a value has one encoding");
}

template <class Record>
void check_journal(std::string_view bytes) {
  auto reader = JournalReader<Record>::open(bytes, {.name = "any.log"});
  if (!reader) {
    ORRERY_ASSERT(!reader.error().message.empty(), "a refusal says why");
    return;
  }
  for (;;) {
    const std::uint64_t before = reader->good_bytes();
    const Result<std::optional<Record>> next = reader->next();
    ORRERY_ASSERT(reader->good_bytes() <= bytes.size(), "nothing is read behind the end");
    if (!next) ORRERY_ASSERT(!next.error().message.empty(), "a refusal says why");
    if (!next || !*next) break;
    ORRERY_ASSERT(reader->good_bytes() > before, "every record has bytes");
  }
}

/// A journal whose frames are whole around fields that may be anything: cut at each zero byte.
void check_framed(std::string_view bytes) {
  class StringSink final : public JournalSink {
   public:
    void write(std::string_view written) override { text.append(written); }
    std::string text;
  } sink;
  FrameWriter frames({.content = JournalContent::kEvents, .writer = "fuzz"}, &sink);
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.find('\0'), bytes.size() - 1) + 1;
    const auto type = static_cast<unsigned char>(bytes[0]);
    frames.begin({.id = type, .version = 1}).raw(bytes.substr(0, size));
    frames.finish();
    bytes.remove_prefix(size);
  }
  check_journal<TimedEvent>(sink.text);
}

void check_as(std::uint8_t as, std::string_view bytes) {
  const std::size_t events = std::variant_size_v<Event>;
  const std::size_t inputs = std::variant_size_v<InputKind>;
  if (as < events) return check_record(decode_event({.type = as, .fields = bytes}), bytes);
  if (as < events + inputs) {
    return check_record(decode_input({.type = as - events, .fields = bytes}), bytes);
  }
  if (as % 3 == 0) return check_journal<TimedEvent>(bytes);
  if (as % 3 == 1) return check_journal<Input>(bytes);
  check_framed(bytes);
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.empty()) orrery::check_as(data[0], bytes.substr(1));
  return 0;
}
