// base/format/document_test.cpp - positions, what of YAML is refused, and hostile files.
#include "base/format/document.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

using namespace std::string_literals;

/// A document that must parse.
Document parsed(std::string_view text) {
  Result<Document> document = Document::parse(text, "a.yaml");
  EXPECT_TRUE(document) << (document ? "" : document.error().text());
  return document ? *std::move(document) : *Document::parse("{}", "a.yaml");
}

/// "file:line:column: message" of a text that must not.
std::string refusal(std::string_view text) {
  const Result<Document> document = Document::parse(text, "a.yaml");
  EXPECT_FALSE(document) << "accepted: " << text.substr(0, 100);
  if (document) return "";
  EXPECT_EQ(document.error().kind, ErrorKind::kInput);
  return document.error().text();
}

::testing::AssertionResult begins(const std::string& message, std::string_view expected) {
  if (message.starts_with(expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << message << "\" does not begin with " << expected;
}

std::string place(const DocumentNode& node) { return node.position().text(); }

TEST(Document, KnowsTheKindTextAndPlaceOfEveryNode) {
  const Document document = parsed("name: h100\nracks:\n  - count: 4\n  - []\nnone:\n");
  const auto entries = document.root().entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(document.file(), "a.yaml");
  EXPECT_EQ(place(document.root()), "a.yaml:1:1");
  EXPECT_EQ(entries[0].key.text(), "name");
  EXPECT_EQ(entries[0].value.text(), "h100");
  EXPECT_EQ(place(entries[0].value), "a.yaml:1:7");
  EXPECT_EQ(entries[1].value.kind(), NodeKind::kSequence);
  EXPECT_EQ(entries[1].value.size(), 2u);
  const auto items = entries[1].value.items();
  EXPECT_EQ(place(items[0]), "a.yaml:3:5");
  EXPECT_EQ(items[0].kind(), NodeKind::kMapping);
  EXPECT_EQ(place(items[0].entries()[0].value), "a.yaml:3:12");
  EXPECT_EQ(items[1].size(), 0u);
  EXPECT_EQ(entries[2].value.kind(), NodeKind::kNull);
}

TEST(Document, CountsColumnsInCodePoints) {
  const Document document = parsed("{Zürich: [東, x]}");
  EXPECT_EQ(place(document.root().entries()[0].value.items()[1]), "a.yaml:1:14");
}

TEST(Document, HasNoItemsOrEntriesWhereThereAreNone) {
  const Document document = parsed("[a, {b: c}]");
  EXPECT_TRUE(document.root().entries().empty());
  EXPECT_TRUE(document.root().items()[0].items().empty());
  EXPECT_TRUE(document.root().items()[1].items().empty());
  EXPECT_EQ(document.root().items()[1].text(), "");
}

TEST(Document, TellsQuotedTextFromBareWords) {
  const Document document = parsed("[null, 'null', ~, \"~\", '', Null, \"a\\tb\"]");
  const auto items = document.root().items();
  EXPECT_EQ(items[0].kind(), NodeKind::kNull);
  EXPECT_EQ(items[1].kind(), NodeKind::kScalar);
  EXPECT_TRUE(items[1].quoted());
  EXPECT_EQ(items[2].kind(), NodeKind::kNull);
  EXPECT_EQ(items[3].text(), "~");
  EXPECT_EQ(items[4].kind(), NodeKind::kScalar);
  EXPECT_EQ(items[5].kind(), NodeKind::kNull);
  EXPECT_EQ(items[6].text(), "a\tb");
  EXPECT_FALSE(items[0].quoted());
}

TEST(Document, DescribesANodeForMessages) {
  const Document document = parsed("[null, x, [], {}, " + std::string(100, 'y') + "]");
  const auto items = document.root().items();
  EXPECT_EQ(items[0].shown(), "nothing");
  EXPECT_EQ(items[1].shown(), "\"x\"");
  EXPECT_EQ(items[2].shown(), "a list");
  EXPECT_EQ(items[3].shown(), "a mapping");
  EXPECT_EQ(items[4].shown(), "\"" + std::string(60, 'y') + "...\"");
}

TEST(Document, ReadsJson) {
  const Document document =
      parsed("{\n\t\"a\": [1, -2.5e3, true, null],\n\t\"b\": \"\\u00fc\"\n}\n");
  const auto entries = document.root().entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].value.items()[1].text(), "-2.5e3");
  EXPECT_EQ(entries[0].value.items()[3].kind(), NodeKind::kNull);
  EXPECT_EQ(entries[1].value.text(), "ü");
  EXPECT_EQ(place(entries[1].key), "a.yaml:3:2");
}

TEST(Document, ReadsLinesEndedByCarriageReturnAndLineFeed) {
  const Document document = parsed("a: 1\r\nb:\r\n  - x\r\n");
  const auto entries = document.root().entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].value.text(), "1");
  EXPECT_EQ(place(entries[1].value.items()[0]), "a.yaml:3:5");
}

TEST(Document, SkipsAByteOrderMark) {
  EXPECT_EQ(parsed("\xEF\xBB\xBF"
                   "a: 1")
                .root()
                .entries()[0]
                .key.text(),
            "a");
}

TEST(Document, RefusesAFileWithoutContent) {
  EXPECT_EQ(refusal(""), "a.yaml:1:1: the file is empty");
  EXPECT_EQ(refusal("# a comment\n\n# another\n"), "a.yaml:1:1: the file is empty");
  EXPECT_EQ(refusal("\n\n"), "a.yaml:1:1: the file is empty");
}

TEST(Document, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(refusal("a: 1\nb: 2\nc:\n  x: 1\n  'x': 2\n"),
            "a.yaml:5:3: the key \"x\" stands twice, first in line 4");
  EXPECT_EQ(refusal("{b: 1, a: 2, b: 3}"),
            "a.yaml:1:14: the key \"b\" stands twice, first in line 1");
}

TEST(Document, AcceptsTheSameKeyInDifferentMappings) {
  EXPECT_EQ(parsed("- {a: 1}\n- {a: 2}\n").root().size(), 2u);
}

TEST(Document, RefusesAnchorsAliasesAndTags) {
  EXPECT_EQ(refusal("a: &x 1\n"), "a.yaml:1:4: anchors (&name) are not supported");
  EXPECT_EQ(refusal("a: &x [1]\n"), "a.yaml:1:4: anchors (&name) are not supported");
  EXPECT_EQ(refusal("a: 1\nb: *x\n"), "a.yaml:2:4: aliases (*name) are not supported");
  EXPECT_EQ(refusal("a: !!str 1\n"), "a.yaml:1:4: tags (!name) are not supported");
  EXPECT_EQ(refusal("- !mine {a: 1}\n"), "a.yaml:1:3: tags (!name) are not supported");
}

TEST(Document, RefusesASecondDocument) {
  EXPECT_EQ(refusal("a: 1\n---\nb: 2\n"), "a.yaml:2:1: a second document; expected one a file");
  EXPECT_EQ(parsed("---\na: 1\n...\n").root().size(), 1u);
}

TEST(Document, ParsesAllDocumentsOfATextAndKeepsTheirLines) {
  const auto all = Document::parse_all("a: 1\n---\n# nothing\n---\nb: 2\n---\n", "a.yaml");
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->front().root().entries().front().key.text(), "a");
  EXPECT_EQ(all->back().root().entries().front().key.position().text(), "a.yaml:5:1");
  EXPECT_EQ(all->back().line(), 4);
  const auto bad = Document::parse_all("a: 1\n---\nb: [\n", "a.yaml");
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().text().starts_with("a.yaml:4:1: not valid YAML")) << bad.error().text();
  for (const std::string empty : {"", "---\n---\n", "# nothing\n"}) {
    const auto none = Document::parse_all(empty, "a.yaml");
    ASSERT_FALSE(none) << empty;
    EXPECT_EQ(none.error().text(), "a.yaml:1:1: the file is empty");
  }
  std::string many;
  for (std::size_t i = 0; i <= Document::kDocumentsMax; ++i) many += "---\na: 1\n";
  const auto refused = Document::parse_all(many, "a.yaml");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "a.yaml:2001:1: more than 1000 documents");
}

TEST(Document, RefusesKeysThatAreListsOrMappings) {
  EXPECT_EQ(refusal("[1, 2]: x\n"), "a.yaml:1:1: a key that is a list or a mapping");
  EXPECT_EQ(refusal("? {a: b}\n: x\n"), "a.yaml:1:3: a key that is a list or a mapping");
}

TEST(Document, NestsSixtyFourLevelsAndNoMore) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(parsed(nested(64)).root().size(), 1u);
  EXPECT_EQ(refusal(nested(65)), "a.yaml:1:65: nested deeper than 64 levels");
  EXPECT_TRUE(begins(refusal(std::string(1'000'000, '[')), "a.yaml:1:65: nested deeper"));
}

TEST(Document, RefusesBytesThatAreNotText) {
  EXPECT_EQ(refusal("a: 1\nü: \xC3\x28\n"), "a.yaml:2:4: byte 0xc3 is not valid UTF-8 text");
  EXPECT_EQ(refusal("a: 1\nb: x\0y\n"s), "a.yaml:2:5: byte 0x00 is not valid UTF-8 text");
  EXPECT_TRUE(begins(refusal("a: 1\nb: \x01\n"), "a.yaml:2:4: not valid YAML or JSON: control"));
}

TEST(Document, RefusesTabsAsIndentation) {
  EXPECT_TRUE(begins(refusal("a:\n\tb: 1\n"), "a.yaml:2:1: not valid YAML or JSON"));
}

TEST(Document, SaysWhereYamlBreaksOff) {
  EXPECT_TRUE(begins(refusal("a: [1, 2\n"), "a.yaml:2:1: not valid YAML or JSON"));
  EXPECT_TRUE(begins(refusal("a: 'x\n"), "a.yaml:2:1: not valid YAML or JSON"));
  EXPECT_TRUE(begins(refusal("{\"a\": 1,, }"), "a.yaml:1:9: not valid YAML or JSON"));
  EXPECT_TRUE(begins(refusal("a: 1\n b: 2\n"), "a.yaml:2:3: not valid YAML or JSON"));
}

TEST(Document, RefusesMoreThanEightMebibytes) {
  EXPECT_EQ(refusal(std::string(9u << 20, ' ')),
            "a.yaml:1:1: 9437184 bytes are more than the 8 MiB a file may have");
}

TEST(Document, RefusesMoreThanTwoMillionValues) {
  std::string text = "[";
  for (int i = 0; i < 2'000'000; ++i) text += "1,";
  EXPECT_TRUE(begins(refusal(text + "1]"), "a.yaml:1:4000000: more than 2000000 values"));
}

// Each kind of garbage gets one error; what YAML happens to accept is fine too.
TEST(Document, AnswersGarbageWithOneError) {
  Rng rng = Rng::stream(1, "document");
  std::string bytes(7u << 20, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.below(256));
  EXPECT_TRUE(begins(refusal(bytes), "a.yaml:"));
  for (char& c : bytes) c = static_cast<char>(32 + rng.below(95));
  EXPECT_TRUE(begins(refusal(bytes), "a.yaml:"));
  bytes.resize(10u << 20, 'x');
  EXPECT_TRUE(begins(refusal(bytes), "a.yaml:1:1: 10485760 bytes are more"));
}

TEST(Document, SurvivesShortTextsOfTheLettersYamlKnows) {
  constexpr std::string_view kLetters = "{}[],:?-&*!|>'\"%@`# \n\t\rab~1\\.<=";
  Rng rng = Rng::stream(2, "document");
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text(1 + rng.below(24), '\0');
    for (char& c : text) c = kLetters[rng.below(kLetters.size())];
    const Result<Document> document = Document::parse(text, "a.yaml");
    accepted += document ? 1 : 0;
    if (!document) {
      ASSERT_GE(document.error().where.line, 1) << text;
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Document, StaysReadableWhenMoved) {
  Document first = parsed("a: [x, y]");
  const Document second = std::move(first);
  EXPECT_EQ(second.root().entries()[0].value.items()[1].text(), "y");
}

TEST(Document, LoadsAFileAndNamesItInErrors) {
  const std::string path = testing::TempDir() + "/orrery_document_test.yaml";
  std::ofstream(path) << "a: 1\na: 2\n";
  const Result<Document> twice = Document::load(path);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().text(), path + ":2:1: the key \"a\" stands twice, first in line 1");
  std::ofstream(path) << "a: 1\n";
  EXPECT_TRUE(Document::load(path));
  const Result<std::string> text = read_file(path, 4);
  ASSERT_FALSE(text);
  EXPECT_TRUE(begins(text.error().text(), path + ": larger than"));
  EXPECT_EQ(read_file(path, 5).value_or(""), "a: 1\n");
  std::filesystem::remove(path);
  const Result<Document> gone = Document::load(path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().text(), path + ": No such file or directory");
  EXPECT_FALSE(Document::load(testing::TempDir()));
}

}  // namespace
}  // namespace orrery
