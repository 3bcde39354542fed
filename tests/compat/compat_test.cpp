// tests/compat/compat_test.cpp - journals written by earlier versions can still be read and have
// the same content.
//
// A journal here is never written anew: it stands for the ones that are in use. Beside it lies what
// it says, a record a line: time, type and fields in order. `compat_test --update` writes those
// texts (read the difference: it should be the added fields alone) and journals that are not there,
// with one record of each type. A type that no journal has yet asks for a further one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "control/codec/any_record_test.hpp"
#include "control/codec/codec.hpp"
#include "control/codec/event_fields.hpp"
#include "control/log/journal.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 13> kVersions{"v1", "v2", "v3",  "v4",  "v5",  "v6", "v7",
                                                     "v8", "v9", "v10", "v11", "v12", "v13"};

/// Prints fields, separated by blanks: lists after their number of elements.
class PrintedFields : public FieldWalk<PrintedFields> {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    FieldWalk<PrintedFields>::operator()(fields...);
  }

  std::uint64_t natural(std::uint64_t value, std::uint64_t) { return print(value, "{}"); }
  std::int64_t integer(std::int64_t value, SignedRange) { return print(value, "{}"); }
  std::uint8_t choice(std::uint8_t value, std::uint8_t) { return print(value, "{}"); }
  std::size_t count(std::size_t value) { return print(value, "#{}"); }
  double real(double value) { return print(value, "{}"); }
  float real(float value) { return print(value, "{}"); }
  void text(std::string_view value) {
    line += " \"";
    for (const char c : value) {
      const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
      line += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    line += '"';
  }

  std::string line;

 private:
  template <class Value>
  Value print(Value value, std::string_view format) {
    line += ' ';
    line += fmt::format(fmt::runtime(format), value);
    return value;
  }
};

template <class Record>
std::string print(const Record& record, std::string_view type) {
  PrintedFields fields;
  fields.line = fmt::format("{} {}", record.at.text(), type);
  std::visit([&](const auto& what) { fields(what); }, record.what);
  return fields.line + '\n';
}

/// Beside what is printed: of an input, which command it was.
std::string request_of(const TimedEvent&) { return ""; }
std::string request_of(const Input& input) { return input.request_id + ' '; }

std::string_view name_of_type(const TimedEvent& event) { return event_name(event.what.index()); }
std::string_view name_of_type(const Input& input) { return input_name(input.what.index()); }

struct Said {
  std::string text;
  std::set<std::string, std::less<>> types;
};

template <class Record>
Said read(const std::string& bytes, const std::string& name) {
  Said said;
  auto reader = JournalReader<Record>::open(bytes, {.name = name});
  if (!reader) {
    ADD_FAILURE() << reader.error().text();
    return said;
  }
  for (;;) {
    const Result<std::optional<Record>> next = reader->next();
    if (!next) ADD_FAILURE() << next.error().text();
    if (!next || !*next) break;
    said.types.emplace(name_of_type(**next));
    said.text += request_of(**next) + print(**next, name_of_type(**next));
  }
  EXPECT_FALSE(reader->torn());
  said.text += fmt::format("history {:016x}\n", reader->history_hash());
  return said;
}

fs::path path_of(std::string_view content, std::string_view version, std::string_view extension) {
  return fs::path(ORRERY_SOURCE_DIR) / "tests/compat" /
         fmt::format("{}_{}.{}", content, version, extension);
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class Record>
std::set<std::string, std::less<>> expect_said(std::string_view content) {
  std::set<std::string, std::less<>> types;
  for (const std::string_view version : kVersions) {
    const fs::path path = path_of(content, version, "journal");
    Said said = read<Record>(contents(path), path.filename().string());
    EXPECT_EQ(said.text, contents(path_of(content, version, "txt"))) << path.filename();
    types.merge(said.types);
  }
  return types;
}

TEST(Compat, JournalsOfEveryVersionSayWhatTheySaid) {
  const auto types = expect_said<TimedEvent>("control");
  for (std::size_t type = 0; type < std::variant_size_v<Event>; ++type) {
    EXPECT_TRUE(types.contains(event_name(type))) << event_name(type) << " is in no journal";
  }
}

TEST(Compat, JournalsOfInputsOfEveryVersionSayWhatTheySaid) {
  const auto types = expect_said<Input>("inputs");
  for (std::size_t type = 0; type < std::variant_size_v<InputKind>; ++type) {
    EXPECT_TRUE(types.contains(input_name(type))) << input_name(type) << " is in no journal";
  }
}

// --- Writing what is missing --------------------------------------------------------------------

class FileSink final : public JournalSink {
 public:
  explicit FileSink(const fs::path& path) : file_(path, std::ios::binary) {}
  void write(std::string_view bytes) override { file_ << bytes; }

 private:
  std::ofstream file_;
};

void append_all(Journal& journal, Rng& rng) {
  for (std::size_t type = 0; type < std::variant_size_v<Event>; ++type) {
    journal.append(Instant::from_ns(1'700'000'000'000'000'001), any_event(type, rng));
  }
}

void append_all(InputJournal& journal, Rng& rng) {
  for (std::size_t type = 0; type < std::variant_size_v<InputKind>; ++type) {
    journal.append({.at = Instant::from_ns(1'700'000'000'000'000'001),
                    .what = any_input(type, rng),
                    .request_id = fmt::format("request-{}", type)});
  }
}

template <class Record, class JournalOf>
void update(std::string_view content) {
  for (const std::string_view version : kVersions) {
    const fs::path path = path_of(content, version, "journal");
    if (!fs::exists(path)) {
      FileSink sink(path);
      JournalOf journal({.writer = fmt::format("orrery of journal {}", version),
                         .setup = "no facts",
                         .sink = &sink});
      Rng rng = Rng::stream(1, version);
      append_all(journal, rng);
    }
    const Said said = read<Record>(contents(path), path.filename().string());
    std::ofstream(path_of(content, version, "txt"), std::ios::binary) << said.text;
  }
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "--update") {
    orrery::update<orrery::TimedEvent, orrery::Journal>("control");
    orrery::update<orrery::Input, orrery::InputJournal>("inputs");
  }
  return RUN_ALL_TESTS();
}
