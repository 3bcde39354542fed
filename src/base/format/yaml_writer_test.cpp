// base/format/yaml_writer_test.cpp - structs as YAML: what is left out, and that the rest reads
// back.
#include "base/format/yaml_writer.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orrery {
namespace {

enum class Mood { kBusy, kCalm };

std::array<EnumWord<Mood>, 2> enum_words(Mood) {
  return {{{"busy", Mood::kBusy}, {"calm", Mood::kCalm}}};
}

struct Part {
  std::string name;
  double speed = 1;
};

template <class Visitor, SameStruct<Part> Self>
void describe(Visitor& visitor, Self& part) {
  visitor.sole("name", part.name);
  visitor.optional("speed", part.speed);
}

struct Room {
  std::uint32_t doors = 1;
  std::optional<Watts> light;
};

template <class Visitor, SameStruct<Room> Self>
void describe(Visitor& visitor, Self& room) {
  visitor.optional("doors", room.doors);
  visitor.optional("light", room.light);
}

struct House {
  std::string name;
  std::string street = "main";
  std::int32_t floors = 0;
  Mood mood = Mood::kCalm;
  bool open = true;
  std::optional<bool> sold;
  std::optional<Instant> built;
  Bytes memory;
  Room hall;
  std::vector<Room> rooms;
  std::vector<Part> parts;
  std::vector<int> shape = {4, 4};
  std::vector<std::vector<int>> shapes;
  std::vector<DollarsPerSecond> rents;
  std::vector<std::pair<std::string, Bytes>> sizes;
};

template <class Visitor, SameStruct<House> Self>
void describe(Visitor& visitor, Self& h) {
  visitor.required("name", h.name);
  visitor.optional("street", h.street);
  visitor.optional("floors", h.floors);
  visitor.optional("mood", h.mood);
  visitor.optional("open", h.open);
  visitor.optional("sold", h.sold);
  visitor.optional("built", h.built);
  visitor.optional("memory", h.memory);
  visitor.optional("hall", h.hall);
  visitor.optional("rooms", h.rooms);
  visitor.optional("parts", h.parts);
  visitor.optional("shape", h.shape);
  visitor.optional("shapes", h.shapes);
  visitor.optional("rents", h.rents);
  visitor.optional("sizes", h.sizes);
}

House read_back(const std::string& yaml) {
  const Result<Document> document = Document::parse(yaml, "house.yaml");
  EXPECT_TRUE(document) << (document ? "" : document.error().text()) << "\n" << yaml;
  House house;
  const Status read = document ? read_struct(document->root(), house, {}) : Status();
  EXPECT_TRUE(read) << (read ? "" : read.error().text()) << "\n" << yaml;
  return house;
}

TEST(YamlWriter, LeavesOutWhatIsAsInANewStruct) {
  EXPECT_EQ(write_yaml(House{.name = "a"}), "name: a\n");
}

TEST(YamlWriter, WritesWhatDiffersFromANewStructEvenIfItSaysNothing) {
  const House house{.name = "a",
                    .street = "",
                    .floors = 1,
                    .mood = Mood::kBusy,
                    .open = false,
                    .sold = false,
                    .shape = {}};
  EXPECT_EQ(write_yaml(house),
            "name: a\nstreet: \"\"\nfloors: 1\nmood: busy\nopen: false\nsold: false\nshape: []\n");
}

TEST(YamlWriter, WritesASoleFieldAsItsMapping) {
  const House house{.name = "a", .parts = {{"door", 1}, {"lift", 0.5}}};
  EXPECT_EQ(write_yaml(house), "name: a\nparts:\n- door\n- name: lift\n  speed: 0.5\n");
}

TEST(YamlWriter, NestsMappingsAndLists) {
  const House house{.name = "a",
                    .built = Instant(),
                    .memory = Bytes(0x1p30),
                    .hall = {.doors = 2, .light = std::nullopt},
                    .rooms = {{}, {.doors = 1, .light = Watts(60)}},
                    .shapes = {{1, 2}, {}},
                    .rents = {DollarsPerSecond(1), DollarsPerSecond(1.0 / 3600)},
                    .sizes = {{"a b", Bytes(1)}}};
  EXPECT_EQ(write_yaml(house),
            "name: a\nbuilt: \"1970-01-01T00:00:00Z\"\nmemory: 1 GiB\nhall:\n  doors: 2\n"
            "rooms:\n- {}\n- light: 60 W\nshapes: [[1, 2], []]\n"
            "rents: [\"$3,600/h\", $1.00/h]\nsizes:\n  \"a b\": 1 B\n");
}

TEST(YamlWriter, WritesWhatTheReaderReadsBack) {
  House house{.name = "null", .street = "a: b", .floors = -7, .sold = true};
  house.built = Instant::from_ns(1);
  house.memory = Bytes(123456789);
  house.rooms = {{}, {.doors = 0, .light = Watts(0.123456)}};
  house.parts = {{"true", 1}, {"12", 3}};
  house.shapes = {{1}, {}, {2, 3}};
  house.rents = {DollarsPerSecond(4)};
  house.sizes = {{"", Bytes(1)}, {"key: #", Bytes(2)}};
  const House again = read_back(write_yaml(house));
  EXPECT_EQ(to_json(again).dump(), to_json(house).dump());
}

TEST(YamlWriter, WritesAValueThatIsNoMapping) {
  EXPECT_EQ(write_yaml(std::vector<int>{1, 2}), "[1, 2]\n");
  EXPECT_EQ(write_yaml(Part{"door", 1}), "door\n");
  EXPECT_EQ(write_yaml(std::vector<Part>{{"door", 2}}), "- name: door\n  speed: 2\n");
  EXPECT_EQ(write_yaml(Room{}), "{}\n");
}

}  // namespace
}  // namespace orrery
