// base/format/field_writer_test.cpp - structs as JSON for programs and as rows for people.
#include "base/format/field_writer.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orrery {
namespace {

enum class Mood { kCalm, kBusy };

std::array<EnumWord<Mood>, 2> enum_words(Mood) {
  return {{{"calm", Mood::kCalm}, {"busy", Mood::kBusy}}};
}

struct Part {
  std::string name;
  int count = 0;
};

template <class Visitor, SameStruct<Part> Self>
void describe(Visitor& visitor, Self& part) {
  visitor.required("name", part.name);
  visitor.required("count", part.count);
}

struct Machine {
  std::string id = "m1";
  Mood mood = Mood::kBusy;
  bool on = true;
  double share = 0.5;
  Bytes memory{80 * 0x1p30};
  DollarsPerHour price{DollarsPerSecond(2.95 / 3600)};
  std::optional<Watts> power;
  std::optional<Part> door;
  std::vector<Part> parts = {{"fan", 4}, {"disk", 2}};
  std::vector<int> shape = {4, 4, 8};
  std::vector<std::string> none;
  std::vector<std::pair<std::string, Bytes>> sizes = {{"l2", Bytes(1024)}};
};

template <class Visitor, SameStruct<Machine> Self>
void describe(Visitor& visitor, Self& m) {
  visitor.required("id", m.id);
  visitor.required("mood", m.mood);
  visitor.optional("on", m.on);
  visitor.optional("share", m.share);
  visitor.optional("memory", m.memory);
  visitor.optional("price", m.price);
  visitor.optional("power", m.power);
  visitor.optional("door", m.door);
  visitor.optional("parts", m.parts);
  visitor.optional("shape", m.shape);
  visitor.optional("none", m.none);
  visitor.optional("sizes", m.sizes);
  visitor.elsewhere("elsewhere");
}

TEST(FieldWriter, WritesJsonInTheUnitsTheKeysName) {
  EXPECT_EQ(to_json(Machine{}).dump(),
            "{\"id\":\"m1\",\"mood\":\"busy\",\"on\":true,\"share\":0.5,\"memory\":85899345920,"
            "\"price\":2.95,\"power\":null,\"door\":null,"
            "\"parts\":[{\"name\":\"fan\",\"count\":4},{\"name\":\"disk\",\"count\":2}],"
            "\"shape\":[4,4,8],\"none\":[],\"sizes\":{\"l2\":1024}}");
}

TEST(FieldWriter, WritesPresentOptionalsAsTheirValues) {
  Machine machine;
  machine.power = Watts(700);
  machine.door = Part{"left", 1};
  const Json json = to_json(machine);
  EXPECT_EQ(json["power"].dump(), "700");
  EXPECT_EQ(json["door"].dump(), "{\"name\":\"left\",\"count\":1}");
}

TEST(FieldWriter, WritesWholeNumbersWithoutAPoint) {
  EXPECT_EQ(json_number(8).dump(), "8");
  EXPECT_EQ(json_number(-3).dump(), "-3");
  EXPECT_EQ(json_number(2.5).dump(), "2.5");
  EXPECT_EQ(json_number(9007199254740992.0).dump(), "9007199254740992");
  EXPECT_EQ(json_number(1e300).dump(), "1e+300");
}

TEST(FieldWriter, WritesRowsWithUnitsForPeople) {
  Machine machine;
  machine.door = Part{"left", 1};
  std::string rows;
  for (const FieldRow& row : rows_of(machine)) rows += row.key + "=" + row.value + "\n";
  EXPECT_EQ(rows,
            "id=m1\nmood=busy\non=yes\nshare=0.5\nmemory=80 GiB\nprice=$2.95/h\n"
            "door.name=left\ndoor.count=1\n"
            "parts[0].name=fan\nparts[0].count=4\nparts[1].name=disk\nparts[1].count=2\n"
            "shape=4, 4, 8\nsizes.l2=1 KiB\n");
}

TEST(FieldWriter, LeavesOutRowsThatSayNothing) {
  const auto rows = rows_of(Part{"", 3});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key, "count");
}

TEST(FieldWriter, WritesWhatTheReaderReadsBack) {
  Machine machine;
  machine.power = Watts(700);
  machine.share = 0.1;
  const std::string text = to_json(machine).dump(2);
  const Result<Document> document = Document::parse(text, "m.json");
  ASSERT_TRUE(document);
  Machine again{.id = "", .parts = {}, .shape = {}, .sizes = {}};
  const Status status = read_struct(document->root(), again, {.units = Units::kInTextOrKey});
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(to_json(again).dump(2), text);
}

TEST(FieldWriter, KnowsTheWordOfAnEnumerator) { EXPECT_EQ(word_of(Mood::kCalm), "calm"); }

}  // namespace
}  // namespace orrery
