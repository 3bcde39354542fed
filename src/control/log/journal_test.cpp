#include "control/log/journal.hpp"

#include <gtest/gtest.h>

#include "control/codec/any_record_test.hpp"
#include "control/codec/codec.hpp"

namespace orrery {
namespace {

class StringSink final : public JournalSink {
 public:
  void write(std::string_view bytes) override {
    text.append(bytes);
    ends.push_back(text.size());
  }

  std::string text;
  std::vector<std::size_t> ends;  ///< ends of the head and of each frame
};

JournalOptions options_of(StringSink& sink) {
  return {.writer = "orrery 9.9", .setup = "facts 1234", .sink = &sink};
}

struct Written {
  StringSink sink;
  std::vector<TimedEvent> events;
  std::uint64_t history_hash = 0;
};

/// Writes one event of each type.
Written any_journal(std::uint64_t seed) {
  Written written;
  Journal journal(options_of(written.sink));
  Rng rng(seed);
  for (std::size_t type = 0; type < std::variant_size_v<Event>; ++type) {
    const auto at = Instant::from_ns(static_cast<std::int64_t>(1'000'000 * type));
    written.events.push_back({.at = at, .what = any_event(type, rng)});
    journal.append(at, written.events.back().what);
  }
  written.history_hash = journal.history_hash();
  return written;
}

std::string fields_of(const Event& event) {
  Encoder out;
  encode(event, out);
  return std::string(out.bytes());
}

/// The result of reading bytes.
struct Outcome {
  std::vector<TimedEvent> events;
  std::uint64_t good_bytes = 0;
  std::uint64_t history_hash = 0;
  bool torn = false;
  std::string error;
};

Outcome read(std::string_view bytes, std::span<const Upcaster> upcasters = builtin_upcasters()) {
  Outcome outcome;
  auto reader =
      JournalReader<TimedEvent>::open(bytes, {.name = "events.log", .upcasters = upcasters});
  if (!reader) {
    outcome.error = reader.error().text();
    return outcome;
  }
  for (;;) {
    Result<std::optional<TimedEvent>> next = reader->next();
    if (!next) outcome.error = next.error().text();
    if (!next || !*next) break;
    outcome.events.push_back(**std::move(next));
  }
  outcome.good_bytes = reader->good_bytes();
  outcome.history_hash = reader->history_hash();
  outcome.torn = reader->torn();
  return outcome;
}

/// Expects the first `count` events as they were written, and no others.
void expect_first(const Outcome& outcome, const Written& written, std::size_t count) {
  ASSERT_EQ(outcome.events.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(outcome.events[i].at, written.events[i].at);
    EXPECT_TRUE(fields_of(outcome.events[i].what) == fields_of(written.events[i].what)) << i;
  }
  EXPECT_EQ(outcome.good_bytes, written.sink.ends[count]);
}

TEST(Journal, ReadsBackWhatWasWritten) {
  const Written written = any_journal(1);
  const Outcome outcome = read(written.sink.text);
  EXPECT_EQ(outcome.error, "");
  EXPECT_FALSE(outcome.torn);
  expect_first(outcome, written, written.events.size());
  EXPECT_EQ(outcome.history_hash, written.history_hash);
}

TEST(Journal, SaysInItsHeadWhoWroteItAndOnWhat) {
  StringSink sink;
  JournalOptions options = options_of(sink);
  options.before = 17;
  const Journal journal(options);
  const auto reader = JournalReader<TimedEvent>::open(sink.text, {.name = "events.log"});
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->head().writer, "orrery 9.9");
  EXPECT_EQ(reader->head().setup, "facts 1234");
  EXPECT_EQ(reader->history_hash(), 17u);
  EXPECT_EQ(journal.history_hash(), 17u);
}

TEST(Journal, WithoutASinkKeepsTheHashAlone) {
  const Written written = any_journal(2);
  Journal journal;
  for (const TimedEvent& event : written.events) journal.append(event.at, event.what);
  EXPECT_EQ(journal.history_hash(), written.history_hash);
  EXPECT_EQ(journal.records(), written.events.size());
}

TEST(Journal, ItsHashDependsOnOrderTimeAndContent) {
  const Instant now = Instant::from_ns(5);
  Journal first;
  first.append(now, JobReleased{JobId(1)});
  first.append(now, JobRunning{JobId(1)});
  Journal other_order;
  other_order.append(now, JobRunning{JobId(1)});
  other_order.append(now, JobReleased{JobId(1)});
  Journal other_time;
  other_time.append(now, JobReleased{JobId(1)});
  other_time.append(Instant::from_ns(6), JobRunning{JobId(1)});
  EXPECT_NE(first.history_hash(), other_order.history_hash());
  EXPECT_NE(first.history_hash(), other_time.history_hash());
}

TEST(Journal, ThatContinuesAnotherHasTheHashOfBoth) {
  Journal whole;
  Journal begin;
  whole.append({}, JobReleased{JobId(1)});
  begin.append({}, JobReleased{JobId(1)});
  Journal rest({.before = begin.history_hash()});
  whole.append({}, JobRunning{JobId(1)});
  rest.append({}, JobRunning{JobId(1)});
  EXPECT_EQ(rest.history_hash(), whole.history_hash());
}

TEST(Journal, CutAnywhereKeepsWhatWasWholeAndSaysThatTheTailIsTorn) {
  const Written written = any_journal(3);
  const std::vector<std::size_t>& ends = written.sink.ends;
  std::size_t whole = 0;
  for (std::size_t size = ends[0]; size < written.sink.text.size(); ++size) {
    while (ends[whole + 1] <= size) ++whole;
    const Outcome outcome = read(std::string_view(written.sink.text).substr(0, size));
    ASSERT_EQ(outcome.error, "") << size;
    ASSERT_EQ(outcome.torn, size != ends[whole]) << size;
    ASSERT_EQ(outcome.events.size(), whole) << size;
    ASSERT_EQ(outcome.good_bytes, ends[whole]) << size;
  }
}

TEST(Journal, CutInsideItsHeadIsAnError) {
  const Written written = any_journal(4);
  for (std::size_t size = 0; size < written.sink.ends[0]; ++size) {
    EXPECT_EQ(read(written.sink.text.substr(0, size)).error.find("events.log: byte "), 0u) << size;
  }
}

TEST(Journal, EveryDamagedByteIsNoticedAndNothingAfterItIsRead) {
  const Written written = any_journal(5);
  const std::vector<std::size_t>& ends = written.sink.ends;
  Rng rng(5);
  std::size_t before = 0;
  for (std::size_t at = 0; at < written.sink.text.size(); ++at) {
    std::string bytes = written.sink.text;
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1 + rng.below(255)));
    const Outcome outcome = read(bytes);
    ASSERT_NE(outcome.error, "") << at;
    ASSERT_FALSE(outcome.torn) << at;
    if (at < ends[0]) continue;
    while (ends[before + 1] <= at) ++before;
    ASSERT_EQ(outcome.events.size(), before) << at;
    ASSERT_EQ(outcome.good_bytes, ends[before]) << at;
  }
}

TEST(Journal, NamesOffsetAndBothChecksumsOfADamagedRecord) {
  StringSink sink;
  Journal journal(options_of(sink));
  journal.append({}, JobReleased{JobId(1)});
  journal.append({}, JobReleased{JobId(2)});
  const std::size_t second = sink.ends[1];
  sink.text[second + 11] ^= 1;  // after type, version, length, check and time
  const std::string error = read(sink.text).error;
  EXPECT_EQ(error.find(fmt::format("events.log: byte {}: the record after 1 good ones is damaged: "
                                   "expected checksum ",
                                   second)),
            0u)
      << error;
  EXPECT_NE(error.find(fmt::format("found {:016x}", journal.history_hash())), std::string::npos);
  EXPECT_NE(error.find("(written by orrery 9.9)"), std::string::npos) << error;
}

TEST(Journal, AnErrorIsSaidAgainWhenAskedAgain) {
  Written written = any_journal(6);
  written.sink.text[written.sink.ends[3] + 1] ^= 1;
  auto reader = JournalReader<TimedEvent>::open(written.sink.text, {.name = "events.log"});
  ASSERT_TRUE(reader);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(*reader->next());
  const auto once = reader->next();
  const auto twice = reader->next();
  ASSERT_FALSE(once);
  ASSERT_FALSE(twice);
  EXPECT_EQ(once.error().text(), twice.error().text());
}

TEST(Journal, ALengthThatWasDamagedIsNotTakenForATornTail) {
  Written written = any_journal(7);
  written.sink.text[written.sink.ends[0] + 4] ^= 0x40;  // the length now reaches far beyond the end
  const Outcome outcome = read(written.sink.text);
  EXPECT_FALSE(outcome.torn);
  EXPECT_NE(outcome.error.find("check"), std::string::npos);
}

/// A file whose space was allocated, but whose last sectors were not written before a crash.
TEST(Journal, ATailOfZerosIsTorn) {
  const Written written = any_journal(8);
  Outcome outcome = read(written.sink.text + std::string(4096, '\0'));
  EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(outcome.torn);
  expect_first(outcome, written, written.events.size());

  StringSink sink;
  Journal journal(options_of(sink));
  journal.append({}, JobReleased{JobId(1)});
  journal.append({}, TenantsSet{std::string(3000, 'x')});
  for (std::size_t from = 512; from < 3000; from += 512) {
    std::string bytes = sink.text;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(), '\0');
    outcome = read(bytes);
    EXPECT_EQ(outcome.error, "") << from;
    EXPECT_TRUE(outcome.torn) << from;
    EXPECT_EQ(outcome.good_bytes, sink.ends[1]) << from;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from - 5), bytes.end(), '\0');
    bytes.back() = 'x';
    EXPECT_NE(read(bytes).error, "") << "zeros with something after them are no torn write";
  }
}

TEST(Journal, OfInputsReadsBackWithRequestIds) {
  StringSink sink;
  InputJournal journal(options_of(sink));
  Rng rng(9);
  std::vector<Input> inputs;
  for (std::size_t type = 0; type < std::variant_size_v<InputKind>; ++type) {
    inputs.push_back({.at = Instant::from_ns(static_cast<std::int64_t>(rng.next_u64())),
                      .what = any_input(type, rng),
                      .request_id = type % 2 == 0 ? "request 7" : ""});
    journal.append(inputs.back());
  }
  auto reader = JournalReader<Input>::open(sink.text, {.name = "inputs.log"});
  ASSERT_TRUE(reader);
  for (const Input& input : inputs) {
    const auto found = reader->next();
    ASSERT_TRUE(found) << found.error().text();
    ASSERT_TRUE(*found);
    EXPECT_EQ((*found)->at, input.at);
    EXPECT_EQ((*found)->request_id, input.request_id);
    Encoder written;
    encode(input.what, written);
    Encoder again;
    encode((*found)->what, again);
    EXPECT_TRUE(written.bytes() == again.bytes()) << input_name(input.what.index());
  }
  EXPECT_FALSE(*reader->next());
  EXPECT_EQ(reader->history_hash(), journal.history_hash());
}

TEST(Journal, OfInputsIsNotReadAsOneOfEvents) {
  StringSink sink;
  const InputJournal journal(options_of(sink));
  EXPECT_EQ(read(sink.text).error,
            "events.log: byte 13: expected a journal of events, found one of inputs (written by "
            "orrery 9.9)");
}

TEST(Journal, OtherFilesAreNoJournals) {
  EXPECT_EQ(read("kind: Fleet\n").error, "events.log: byte 0: expected the head of a journal");
  EXPECT_EQ(read("").error, "events.log: byte 0: the journal ends inside its head");
}

// --- Types and versions -------------------------------------------------------------------------

/// Returns a journal of one record, as another program wrote it.
std::string journal_of(FrameType type, std::string_view fields) {
  StringSink sink;
  FrameWriter frames({.content = JournalContent::kEvents, .writer = "orrery 0.0.1"}, &sink);
  Encoder& out = frames.begin(type);
  out(Instant::from_ns(1));
  out.raw(fields);
  frames.finish();
  return sink.text;
}

FrameType type_of(const Event& event, std::uint8_t version) {
  return {.id = static_cast<std::uint32_t>(event.index()), .version = version};
}

TEST(Journal, AnUnknownTypeStopsWithTheNameOfTheWriter) {
  const Outcome outcome = read(journal_of({.id = 200, .version = 1}, "abc"));
  EXPECT_NE(outcome.error.find("a record of the unknown type 200"), std::string::npos);
  EXPECT_NE(outcome.error.find("(written by orrery 0.0.1)"), std::string::npos);
  EXPECT_TRUE(outcome.events.empty());
}

TEST(Journal, AVersionFromTheFutureStops) {
  const std::string bytes = journal_of(type_of(JobReleased{}, 2), "\x01");
  EXPECT_NE(read(bytes).error.find("JobReleased of version 2, expected one of 1 to 1"),
            std::string::npos);
}

TEST(Journal, ARecordThatIsNoneIsNamedWithItsOffset) {
  const std::string bytes = journal_of(type_of(JobReleased{}, 1), "");
  const std::size_t payload = bytes.size() - 8;
  EXPECT_EQ(read(bytes).error,
            fmt::format("events.log: byte {}: JobReleased: expected 1 bytes, found the end after 0 "
                        "(written by orrery 0.0.1)",
                        payload));
}

/// Stands for a first version of LemonFound with the node alone, and a second one without the
/// number of faults.
std::string add_a_fault(std::string_view fields) { return std::string(fields) + "\x01"; }
std::string double_the_faults(std::string_view fields) {
  std::string raised(fields);
  raised.back() = static_cast<char>(2 * raised.back());
  return raised;
}

TEST(Journal, RaisesOlderVersionsStepByStep) {
  const FrameType first = type_of(LemonFound{}, 1);
  const FrameType second = type_of(LemonFound{}, 2);
  const std::vector<Upcaster> upcasters{
      {.content = JournalContent::kInputs, .from = first, .raise = double_the_faults},
      {.content = JournalContent::kEvents, .from = first, .raise = add_a_fault},
      {.content = JournalContent::kEvents, .from = second, .raise = double_the_faults}};
  EXPECT_EQ(present_version(JournalContent::kEvents, first.id, upcasters), 3);
  EXPECT_EQ(present_version(JournalContent::kEvents, first.id + 1, upcasters), 1);

  const auto faults_of = [&](FrameType type, std::string_view fields) {
    const Outcome outcome = read(journal_of(type, fields), upcasters);
    EXPECT_EQ(outcome.error, "");
    if (outcome.events.size() != 1) return 0U;
    const auto& lemon = std::get<LemonFound>(outcome.events[0].what);
    EXPECT_EQ(lemon.node, NodeId(6));
    return lemon.faults;
  };
  EXPECT_EQ(faults_of(first, "\x07"), 2u);
  EXPECT_EQ(faults_of(second, "\x07\x05"), 10u);
  EXPECT_EQ(faults_of(type_of(LemonFound{}, 3), "\x07\x05"), 5u);
  EXPECT_NE(read(journal_of(type_of(LemonFound{}, 4), "\x07\x05"), upcasters).error, "");
}

}  // namespace
}  // namespace orrery
