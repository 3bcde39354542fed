// base/format/field_reader_test.cpp - every way a file can be wrong, with the exact place.
#include "base/format/field_reader.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace orrery {
namespace {

enum class Colour { kRed, kGreen };

std::array<EnumWord<Colour>, 2> enum_words(Colour) {
  return {{{"red", Colour::kRed}, {"green", Colour::kGreen}}};
}

struct Slot {
  int width = 1;
  std::string label;
};

template <class Visitor, SameStruct<Slot> Self>
void describe(Visitor& visitor, Self& slot) {
  visitor.required("width", slot.width);
  visitor.optional("label", slot.label);
}

struct Type {
  std::string name;
  double speed = 1;
  SourcePosition where;
};

template <class Visitor, SameStruct<Type> Self>
void describe(Visitor& visitor, Self& type) {
  visitor.sole("name", type.name);
  visitor.optional("speed", type.speed);
}

struct Shelf {
  std::string name;
  int slots = 0;
  bool open = false;
  double share = 0.5;
  Colour colour = Colour::kRed;
  Bytes memory;
  Microseconds latency;
  std::optional<Watts> power;
  std::optional<Slot> door;
  std::vector<Slot> list;
  std::vector<std::vector<int>> shapes;
  std::vector<std::pair<std::string, Bytes>> sizes;
  std::uint8_t small = 0;
  std::optional<bool> locked;
  std::optional<Instant> built;
  std::vector<Type> types;
  SourcePosition where;
};

template <class Visitor, SameStruct<Shelf> Self>
void describe(Visitor& visitor, Self& shelf) {
  visitor.required("name", shelf.name);
  visitor.optional("slots", shelf.slots);
  visitor.optional("open", shelf.open);
  visitor.optional("share", shelf.share);
  visitor.optional("colour", shelf.colour);
  visitor.optional("memory", shelf.memory);
  visitor.optional("latency_us", shelf.latency);
  visitor.optional("power", shelf.power);
  visitor.optional("door", shelf.door);
  visitor.optional("list", shelf.list);
  visitor.optional("shapes", shelf.shapes);
  visitor.optional("sizes", shelf.sizes);
  visitor.optional("small", shelf.small);
  visitor.optional("locked", shelf.locked);
  visitor.optional("built", shelf.built);
  visitor.optional("types", shelf.types);
  visitor.elsewhere("extra");
}

constexpr FieldReader::Options kInText;
constexpr FieldReader::Options kInKey{Units::kInTextOrKey, FieldReader::Options::Mode::kWhole};
constexpr FieldReader::Options kPatch{Units::kInTextOrKey, FieldReader::Options::Mode::kPatch};

Status read_into(Shelf& shelf, std::string_view yaml, FieldReader::Options options = kInText) {
  const Result<Document> document = Document::parse(yaml, "s.yaml");
  EXPECT_TRUE(document) << (document ? "" : document.error().text());
  return read_struct(document->root(), shelf, options);
}

Shelf read(std::string_view yaml, FieldReader::Options options = kInText) {
  Shelf shelf;
  const Status status = read_into(shelf, yaml, options);
  EXPECT_TRUE(status) << (status ? "" : status.error().text());
  return shelf;
}

std::string refusal(std::string_view yaml, FieldReader::Options options = kInText) {
  Shelf shelf;
  const Status status = read_into(shelf, yaml, options);
  EXPECT_FALSE(status) << "accepted: " << yaml;
  return status ? "" : status.error().text();
}

::testing::AssertionResult begins(const std::string& message, std::string_view expected) {
  if (message.starts_with(expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << message << "\" does not begin with " << expected;
}

TEST(FieldReader, FillsEveryKindOfField) {
  const Shelf shelf = read(
      "name: top\nslots: 8\nopen: true\nshare: 0.25\ncolour: green\nmemory: 80 GiB\n"
      "latency_us: 3 us\npower: 700 W\ndoor: {width: 2, label: left}\n"
      "list: [{width: 3}, {width: 4}]\nshapes: [[4, 4], [8]]\nsizes: {a: 1 KiB, b: 2 KiB}\n"
      "small: 255\nextra: {anything: [goes]}\n");
  EXPECT_EQ(shelf.name, "top");
  EXPECT_EQ(shelf.slots, 8);
  EXPECT_TRUE(shelf.open);
  EXPECT_EQ(shelf.share, 0.25);
  EXPECT_EQ(shelf.colour, Colour::kGreen);
  EXPECT_EQ(shelf.memory, Bytes(80 * 0x1p30));
  EXPECT_DOUBLE_EQ(shelf.latency.quantity.value(), 3e-6);
  EXPECT_EQ(shelf.power, Watts(700));
  ASSERT_TRUE(shelf.door);
  EXPECT_EQ(shelf.door->label, "left");
  ASSERT_EQ(shelf.list.size(), 2u);
  EXPECT_EQ(shelf.list[1].width, 4);
  EXPECT_EQ(shelf.shapes, (std::vector<std::vector<int>>{{4, 4}, {8}}));
  ASSERT_EQ(shelf.sizes.size(), 2u);
  EXPECT_EQ(shelf.sizes[1].first, "b");
  EXPECT_EQ(shelf.sizes[1].second, Bytes(2048));
  EXPECT_EQ(shelf.small, 255);
  EXPECT_EQ(shelf.where, (SourcePosition{"s.yaml", 1, 1}));
}

TEST(FieldReader, LeavesWhatIsAbsentOrNullAsItWas) {
  const Shelf shelf = read("name: x\nshare:\npower: null\nlist: ~\n");
  EXPECT_EQ(shelf.share, 0.5);
  EXPECT_FALSE(shelf.power);
  EXPECT_FALSE(shelf.door);
}

TEST(FieldReader, NamesAMissingKeyAtItsMapping) {
  EXPECT_EQ(refusal("slots: 3\n"), "s.yaml:1:1: the key \"name\" is missing");
  EXPECT_EQ(refusal("name:\n"), "s.yaml:1:1: the key \"name\" is missing");
  EXPECT_EQ(refusal("name: x\nlist:\n- width: 1\n- label: y\n"),
            "s.yaml:4:3: the key \"width\" is missing");
}

TEST(FieldReader, NamesAnUnknownKeyAndTheNearestKnownOne) {
  EXPECT_TRUE(begins(refusal("name: x\nslot: 3\n"),
                     "s.yaml:2:1: unknown key \"slot\", did you mean \"slots\"?; known here: name, "
                     "slots, open,"));
  EXPECT_TRUE(begins(refusal("name: x\nelephant: 3\n"),
                     "s.yaml:2:1: unknown key \"elephant\"; known here: "));
  EXPECT_TRUE(begins(refusal("name: x\ndoor: {width: 1, lable: y}\n"),
                     "s.yaml:2:18: unknown key \"lable\", did you mean \"label\"?"));
}

TEST(FieldReader, BlamesTheMistypedKeyRatherThanTheOneItWasMeantToBe) {
  EXPECT_TRUE(
      begins(refusal("nmae: x\n"), "s.yaml:1:1: unknown key \"nmae\", did you mean \"name\""));
}

TEST(FieldReader, RefusesValuesOfAnotherType) {
  EXPECT_EQ(refusal("name: [x]\n"), "s.yaml:1:7: expected text, found a list");
  EXPECT_EQ(refusal("name: x\nslots: many\n"),
            "s.yaml:2:8: expected a whole number, found \"many\"");
  EXPECT_EQ(refusal("name: x\nslots: 2.5\n"), "s.yaml:2:8: expected a whole number, found \"2.5\"");
  EXPECT_EQ(refusal("name: x\nslots: '8'\n"), "s.yaml:2:8: expected a whole number, found \"8\"");
  EXPECT_EQ(refusal("name: x\nopen: yes\n"), "s.yaml:2:7: expected true or false, found \"yes\"");
  EXPECT_EQ(refusal("name: x\nopen: 'true'\n"),
            "s.yaml:2:7: expected true or false, found \"true\"");
  EXPECT_EQ(refusal("name: x\nshare: .nan\n"), "s.yaml:2:8: expected a number, found \".nan\"");
  EXPECT_EQ(refusal("name: x\nshare: inf\n"), "s.yaml:2:8: expected a number, found \"inf\"");
  EXPECT_EQ(refusal("name: x\nshare: {a: b}\n"), "s.yaml:2:8: expected a number, found a mapping");
  EXPECT_EQ(refusal("name: x\nlist: {width: 1}\n"), "s.yaml:2:7: expected a list, found a mapping");
  EXPECT_EQ(refusal("name: x\nlist: [1]\n"), "s.yaml:2:8: expected a mapping, found \"1\"");
  EXPECT_EQ(refusal("name: x\nlist: [~]\n"), "s.yaml:2:8: expected a mapping, found nothing");
  EXPECT_EQ(refusal("name: x\nsizes: [1]\n"), "s.yaml:2:8: expected a mapping, found a list");
  EXPECT_EQ(refusal("[]\n"), "s.yaml:1:1: expected a mapping, found a list");
}

TEST(FieldReader, ReadsWholeNumbersHoweverTheyAreWritten) {
  EXPECT_EQ(read("{name: x, slots: 1e3}").slots, 1000);
  EXPECT_EQ(read("{name: x, slots: 4.0}").slots, 4);
  EXPECT_EQ(read("{name: x, slots: -2147483647}").slots, -2147483647);
}

TEST(FieldReader, RefusesNumbersOutsideTheirRange) {
  EXPECT_EQ(refusal("name: x\nslots: 3000000000\n"),
            "s.yaml:2:8: 3000000000 is out of range, expected -2147483647 to 2147483647");
  EXPECT_EQ(refusal("name: x\nsmall: 256\n"), "s.yaml:2:8: 256 is out of range, expected 0 to 255");
  EXPECT_EQ(refusal("name: x\nsmall: -1\n"), "s.yaml:2:8: -1 is out of range, expected 0 to 255");
}

TEST(FieldReader, RefusesUnknownWordsWithTheKnownOnes) {
  EXPECT_EQ(refusal("name: x\ncolour: gren\n"),
            "s.yaml:2:9: unknown value \"gren\", did you mean \"green\"?; expected one of: red, "
            "green");
  EXPECT_EQ(refusal("name: x\ncolour: [red]\n"),
            "s.yaml:2:9: unknown value a list; expected one of: red, green");
}

TEST(FieldReader, WantsUnitsUnlessTheKeyNamesThem) {
  EXPECT_EQ(refusal("name: x\nmemory: 80\n"),
            "s.yaml:2:9: \"80\" has no unit; expected a size such as \"80 GiB\"");
  EXPECT_EQ(read("{name: x, memory: 80}", kInKey).memory, Bytes(80));
  EXPECT_EQ(read("{name: x, memory: 80 GiB}", kInKey).memory, Bytes(80 * 0x1p30));
  EXPECT_TRUE(begins(refusal("name: x\nmemory: '80'\n", kInKey), "s.yaml:2:9: \"80\" has no unit"));
  EXPECT_EQ(refusal("name: x\nmemory: [80]\n", kInKey),
            "s.yaml:2:9: expected a size such as \"80 GiB\", found a list");
}

TEST(FieldReader, CountsBareNumbersInTheUnitTheKeyNames) {
  EXPECT_DOUBLE_EQ(read("{name: x, latency_us: 1.5}", kInKey).latency.quantity.value(), 1.5e-6);
  EXPECT_DOUBLE_EQ(read("{name: x, latency_us: 1.5 ms}", kInKey).latency.quantity.value(), 1.5e-3);
}

TEST(FieldReader, RefusesNegativeAbsurdAndWronglyMeasuredQuantities) {
  EXPECT_TRUE(begins(refusal("name: x\nmemory: -1\n", kInKey), "s.yaml:2:9: -1 B is negative"));
  EXPECT_TRUE(begins(refusal("name: x\nmemory: 1e30\n", kInKey), "s.yaml:2:9: "));
  EXPECT_TRUE(begins(refusal("name: x\nmemory: inf\n", kInKey),
                     "s.yaml:2:9: the size is not a finite number"));
  EXPECT_TRUE(begins(refusal("name: x\npower: 3 GiB\n"),
                     "s.yaml:2:8: \"3 GiB\" has the unknown unit \"GiB\""));
  EXPECT_TRUE(begins(refusal("name: x\nsizes:\n  a: 1 KiB\n  b: 2\n"), "s.yaml:4:6: \"2\" has no"));
}

TEST(FieldReader, ReportsTheFirstFailureOfTheDescription) {
  EXPECT_TRUE(begins(refusal("open: 1\nslots: x\nname: n\n"), "s.yaml:2:8:"));
}

TEST(FieldReader, PatchesOnlyTheKeysGiven) {
  Shelf shelf = read("{name: x, slots: 8, power: 700 W, door: {width: 2, label: left}}");
  ASSERT_TRUE(read_into(shelf, "\nslots: 9\n", kPatch));
  EXPECT_EQ(shelf.name, "x");
  EXPECT_EQ(shelf.slots, 9);
  EXPECT_EQ(shelf.power, Watts(700));
  EXPECT_EQ(shelf.where.line, 2);
}

TEST(FieldReader, PatchesInsideAPresentStructAndEmptiesItWithNull) {
  Shelf shelf = read("{name: x, power: 700 W, door: {width: 2, label: left}}");
  ASSERT_TRUE(read_into(shelf, "{door: {label: right}, power: null}", kPatch));
  ASSERT_TRUE(shelf.door);
  EXPECT_EQ(shelf.door->width, 2);
  EXPECT_EQ(shelf.door->label, "right");
  EXPECT_FALSE(shelf.power);
}

TEST(FieldReader, ReplacesListsAndPairsWhole) {
  Shelf shelf = read("{name: x, list: [{width: 1}, {width: 2}], sizes: {a: 1 B}}");
  ASSERT_TRUE(read_into(shelf, "{list: [{width: 7}], sizes: {b: 2 B}}", kPatch));
  ASSERT_EQ(shelf.list.size(), 1u);
  EXPECT_EQ(shelf.list[0].width, 7);
  ASSERT_EQ(shelf.sizes.size(), 1u);
  EXPECT_EQ(shelf.sizes[0].first, "b");
}

TEST(FieldReader, WantsWholeItemsInAPatchedList) {
  Shelf shelf = read("{name: x, list: [{width: 1}]}");
  const Status status = read_into(shelf, "list: [{label: y}]\n", kPatch);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "s.yaml:1:8: the key \"width\" is missing");
}

TEST(FieldReader, TellsAnAbsentTruthFromAFalseOne) {
  EXPECT_FALSE(read("{name: x}").locked.has_value());
  EXPECT_EQ(read("{name: x, locked: false}").locked, false);
  EXPECT_TRUE(begins(refusal("{name: x, locked: no}"), "s.yaml:1:19: expected true or false"));
}

TEST(FieldReader, ReadsAPointInTimeQuotedOrNot) {
  for (const char* text : {"2026-12-01T00:00:00Z", "\"2026-12-01T00:00:00Z\""}) {
    EXPECT_EQ(read(std::string("{name: x, built: ") + text + "}").built->text(),
              "2026-12-01T00:00:00Z");
  }
  EXPECT_TRUE(begins(refusal("{name: x, built: tomorrow}"),
                     "s.yaml:1:18: \"tomorrow\" is not a time; expected a time such as"));
  EXPECT_TRUE(begins(refusal("{name: x, built: [1]}"), "s.yaml:1:18: expected text"));
}

TEST(FieldReader, TakesASoleFieldForItsMapping) {
  const Shelf shelf = read("name: x\ntypes: [h100, {name: a100, speed: 0.5}]\n");
  ASSERT_EQ(shelf.types.size(), 2u);
  EXPECT_EQ(shelf.types[0].name, "h100");
  EXPECT_EQ(shelf.types[0].speed, 1);
  EXPECT_EQ(shelf.types[0].where.text(), "s.yaml:2:9");
  EXPECT_EQ(shelf.types[1].name, "a100");
  EXPECT_EQ(shelf.types[1].speed, 0.5);
}

TEST(FieldReader, SaysThatASoleFieldOrItsMappingWasExpected) {
  EXPECT_EQ(refusal("{name: x, types: [[h100]]}"),
            "s.yaml:1:19: expected text or a mapping, found a list");
  EXPECT_EQ(refusal("{name: x, types: [{speed: 1}]}"), "s.yaml:1:19: the key \"name\" is missing");
  EXPECT_EQ(refusal("{name: x, door: left}"), "s.yaml:1:17: expected a mapping, found \"left\"");
}

TEST(FieldReader, KeepsAFailureItIsTold) {
  const Result<Document> document = Document::parse("{name: x}", "s.yaml");
  ASSERT_TRUE(document);
  FieldReader reader(document->root(), {});
  std::string name;
  reader.required("name", name);
  EXPECT_TRUE(reader.ok());
  reader.fail(input_error({}, "the first"));
  reader.fail(input_error({}, "the second"));
  reader.fail({});
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.finish().error().message, "the first");
}

}  // namespace
}  // namespace orrery
