#include "control/codec/codec.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "control/codec/any_record_test.hpp"

namespace orrery {
namespace {

template <class Record>
std::string encoded(const Record& record) {
  Encoder out;
  encode(record, out);
  return std::string(out.bytes());
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

auto decode(const Event& like, std::string_view fields) {
  return decode_event({.type = like.index(), .fields = fields});
}
auto decode(const InputKind& like, std::string_view fields) {
  return decode_input({.type = like.index(), .fields = fields});
}

template <class Record>
void expect_round_trip(const Record& record) {
  const std::string bytes = encoded(record);
  const auto found = decode(record, bytes);
  ASSERT_TRUE(found) << found.error().offset << ": " << found.error().what;
  EXPECT_EQ(found->index(), record.index());
  EXPECT_EQ(hex(encoded(*found)), hex(bytes));
}

TEST(Codec, EventsOfEveryTypeComeBackBitForBit) {
  Rng rng(1);
  for (std::size_t type = 0; type < std::variant_size_v<Event>; ++type) {
    SCOPED_TRACE(event_name(type));
    for (int i = 0; i < 100; ++i) expect_round_trip(any_event(type, rng));
  }
}

TEST(Codec, InputsOfEveryTypeComeBackBitForBit) {
  Rng rng(2);
  for (std::size_t type = 0; type < std::variant_size_v<InputKind>; ++type) {
    SCOPED_TRACE(input_name(type));
    for (int i = 0; i < 100; ++i) expect_round_trip(any_input(type, rng));
  }
}

template <class Record>
void expect_every_cut_noticed(const Record& record) {
  const std::string bytes = encoded(record);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto found = decode(record, std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(found) << "of " << bytes.size() << " bytes " << size << " are enough";
    EXPECT_LE(found.error().offset, size);
    EXPECT_NE(found.error().what.find("expected"), std::string::npos);
  }
  EXPECT_FALSE(decode(record, bytes + '\0'));
}

TEST(Codec, CutAnywhereARecordIsAnError) {
  Rng rng(3);
  for (std::size_t type = 0; type < std::variant_size_v<Event>; ++type) {
    SCOPED_TRACE(event_name(type));
    for (int i = 0; i < 5; ++i) expect_every_cut_noticed(any_event(type, rng));
  }
  for (std::size_t type = 0; type < std::variant_size_v<InputKind>; ++type) {
    SCOPED_TRACE(input_name(type));
    for (int i = 0; i < 5; ++i) expect_every_cut_noticed(any_input(type, rng));
  }
}

TEST(Codec, BytesThatAreReadAreTheOnesThatWouldBeWritten) {
  Rng rng(4);
  int read = 0;
  for (int i = 0; i < 5000; ++i) {
    const Event event = any_event(rng.below(std::variant_size_v<Event>), rng);
    if (std::holds_alternative<PlanFound>(event)) continue;  // its entry is left out
    std::string bytes = encoded(event);
    char& byte = bytes[rng.below(bytes.size())];
    byte = static_cast<char>(byte ^ (1 << rng.below(8)));
    const auto found = decode(event, bytes);
    if (!found) continue;
    ++read;
    EXPECT_EQ(hex(encoded(*found)), hex(bytes)) << event_name(event.index());
  }
  EXPECT_GT(read, 1000);
}

TEST(Codec, WritesNumbersAsDocumented) {
  EXPECT_EQ(hex(encoded(Event(JobReleased{JobId()}))), "00");
  EXPECT_EQ(hex(encoded(Event(JobReleased{JobId(0)}))), "01");
  EXPECT_EQ(hex(encoded(Event(JobReleased{JobId(299)}))), "ac02");
  EXPECT_EQ(hex(encoded(Event(NodeBooted{NodeId(1), ~std::uint64_t{0}}))),
            "02"
            "ffffffffffffffffff01");
  EXPECT_EQ(hex(encoded(Event(TenantsSet{"abc"}))),
            "03"
            "616263");
  EXPECT_EQ(hex(encoded(Event(LinkChanged{LinkId(0), {.health = 1, .load = 0.5F}}))),
            "01"
            "0000803f"
            "0000003f");
  EXPECT_EQ(hex(encoded(Event(PowerLimitSet{PowerDomainId(0), {}, Watts(1)}))),
            "01"
            "00"
            "01"
            "000000000000f03f");
  EXPECT_EQ(hex(encoded(Event(JobRequeued{
                JobId(0), {.done = 0, .lost = Duration::nanoseconds(-1)}, Instant::max()}))),
            "01"
            "0000000000000000"
            "01"
            "00"
            "00"
            "feffffffffffffffff01");
}

DecodingFault fault_of(std::uint64_t type, std::string_view fields) {
  const auto found = decode_event({.type = type, .fields = fields});
  EXPECT_FALSE(found);
  return found ? DecodingFault{} : found.error();
}

std::uint64_t type_of(const Event& event) { return event.index(); }

TEST(Codec, SaysWhereBytesAreWrongAndWhatWasExpected) {
  const std::uint64_t released = type_of(JobReleased{});
  EXPECT_EQ(fault_of(released, "").what, "expected 1 bytes, found the end after 0");
  EXPECT_EQ(fault_of(released, std::string_view("\x80\x00", 2)).what,
            "expected a number in as few bytes as it needs, found zeros at its end");
  EXPECT_EQ(fault_of(released, "\xff\xff\xff\xff\x1f").what,
            "expected a number of at most 4294967295, found 8589934591");
  EXPECT_EQ(fault_of(released, std::string(11, '\xff')).what,
            "expected a number of at most 64 bits, found a longer one");
  EXPECT_EQ(fault_of(released, "\x01yz").what, "expected the end, found 2 more bytes");
  const DecodingFault pass = fault_of(type_of(PassDone{}), "\x02");
  EXPECT_EQ(pass.what, "expected a choice of 0 to 1, found 2");
  EXPECT_EQ(pass.offset, 0u);
  const DecodingFault health = fault_of(type_of(NodeChanged{}), "\x01\x63");
  EXPECT_EQ(health.what, "expected a choice of 0 to 8, found 99");
  EXPECT_EQ(health.offset, 1u);
}

TEST(Codec, MakesNoRoomForWhatIsNotThere) {
  EXPECT_EQ(fault_of(type_of(TenantsSet{}), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").what,
            "expected a text of at most 0 bytes, found one of 18446744073709551615");
  EXPECT_EQ(fault_of(type_of(SlotsReserved{}), "\x80\x80\x80\x80\x10zzz").what,
            "expected a list of at most 3 elements, found one of 4294967296");
}

TEST(Codec, RefusesACauseOfIdlenessThatTheLedgerDoesNotKnow) {
  EXPECT_EQ(fault_of(type_of(IdleCauseSet{}), "\x01\x14").what,
            "expected a choice of 0 to 19, found 20");
}

TEST(Codec, EveryTypeHasItsName) {
  EXPECT_EQ(event_name(Event(JobSubmitted{}).index()), "JobSubmitted");
  EXPECT_EQ(event_name(Event(DevicesFreed{}).index()), "DevicesFreed");
  EXPECT_EQ(event_name(Event(PlanFound{}).index()), "PlanFound");
  EXPECT_EQ(event_name(Event(PassDone{}).index()), "PassDone");
  EXPECT_EQ(event_name(Event(CancelAsked{}).index()), "CancelAsked");
  EXPECT_EQ(event_name(std::variant_size_v<Event>), "");
  EXPECT_EQ(input_name(InputKind(SubmitJob{}).index()), "SubmitJob");
  EXPECT_EQ(input_name(InputKind(NodeHeard{}).index()), "NodeHeard");
  EXPECT_EQ(input_name(InputKind(PlanReady{}).index()), "PlanReady");
  EXPECT_EQ(input_name(std::variant_size_v<InputKind>), "");
}

// --- Entries of plans ---------------------------------------------------------------------------

const PlanKey kKey{WorkId(3), FleetTypeId(1), 16};

std::shared_ptr<const PlanEntry> plans_of(double step_seconds) {
  std::vector<PlannedWork> plans(2);
  plans[0].step_seconds = step_seconds;
  return std::make_shared<const PlanEntry>(std::move(plans));
}

auto decode_plan(const PlanFound& event, const PlanSource& source) {
  const std::string bytes = encoded(Event(event));
  return decode_event({.type = Event(event).index(), .fields = bytes, .plans = &source});
}

TEST(Codec, LeavesTheEntryOfAPlanToWhoKnowsIt) {
  const auto entry = plans_of(1.5);
  const std::string bytes = encoded(Event(PlanFound{kKey, entry}));
  const auto without = decode_event({.type = Event(PlanFound{}).index(), .fields = bytes});
  ASSERT_TRUE(without);
  EXPECT_EQ(std::get<PlanFound>(*without).key, kKey);
  EXPECT_EQ(std::get<PlanFound>(*without).entry, nullptr);

  const auto with = decode_plan({kKey, entry}, [&](const PlanKey& key) {
    EXPECT_EQ(key, kKey);
    return entry;
  });
  ASSERT_TRUE(with);
  EXPECT_EQ(std::get<PlanFound>(*with).entry, entry);
}

TEST(Codec, NoticesAPlanThatIsNoLongerTheOneThatWasLogged) {
  const auto found =
      decode_plan({kKey, plans_of(1.5)}, [](const PlanKey&) { return plans_of(1.25); });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().what,
            "expected work 3 on 16 accelerators of type 1 to have 2 plans, the best of 1.5 s a "
            "step, found 2 plans, the best of 1.25 s a step");

  const auto refusal = std::make_shared<const PlanEntry>(
      tl::unexpected(Rejection{.kind = RejectionKind::kMemory, .reason = "too large"}));
  const auto refused = decode_plan({kKey, refusal}, [](const PlanKey&) { return plans_of(1); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "expected work 3 on 16 accelerators of type 1 to have no plan (memory), found 2 plans, "
            "the best of 1 s a step");
  EXPECT_TRUE(decode_plan({kKey, refusal}, [&](const PlanKey&) { return refusal; }));
  EXPECT_FALSE(decode_plan({kKey, refusal}, [](const PlanKey&) { return nullptr; }));
}

TEST(Codec, WherePlansAreAskedForOneThatWasNeverThereStaysAway) {
  const auto found = decode_plan({kKey, nullptr}, [](const PlanKey&) { return plans_of(1); });
  ASSERT_TRUE(found);
  EXPECT_EQ(std::get<PlanFound>(*found).entry, nullptr);
}

}  // namespace
}  // namespace orrery
