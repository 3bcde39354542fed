// fleet/import/slurm_conf_test.cpp - lines, settings and errors.
#include "fleet/import/slurm_conf.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/numbers/rng.hpp"
#include "fleet/import/slurm_test.hpp"

namespace orrery {
namespace {

using Lines = std::vector<SlurmLine>;

class SlurmConf : public SlurmDirectory {
 protected:
  Lines read(const std::string& text) {
    write("slurm.conf", text);
    Result<Lines> lines = read_slurm_conf(path("slurm.conf"));
    EXPECT_TRUE(lines) << (lines ? "" : lines.error().text());
    return lines ? *std::move(lines) : Lines();
  }

  std::string error_of(const std::string& text) {
    write("slurm.conf", text);
    return shown_error(read_slurm_conf(path("slurm.conf")));
  }
};

TEST_F(SlurmConf, ReadsSettingsWithKeysInAnyCase) {
  const Lines lines = read("ClusterName=Atlas\n\n  NODENAME=n[1-2]\tcpus = 4  Gres=gpu:h100:8\r\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].first().key, "clustername");
  EXPECT_EQ(lines[0].first().value, "Atlas");
  ASSERT_EQ(lines[1].settings.size(), 3u);
  EXPECT_EQ(lines[1].first().key, "nodename");
  EXPECT_EQ(lines[1].find("cpus")->value, "4");
  EXPECT_EQ(lines[1].find("gres")->value, "gpu:h100:8");
  EXPECT_EQ(lines[1].find("state"), nullptr);
  EXPECT_EQ(lines[1].find("gres")->where.line, 3);
  EXPECT_EQ(lines[1].find("gres")->where.column, 29);
}

TEST_F(SlurmConf, ACommentEndsALineUnlessItIsEscaped) {
  const Lines lines = read("# all of it\nA=1 # B=2\nC=x\\#y\nD=\"a b\"# e\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].settings.size(), 1u);
  EXPECT_EQ(lines[1].first().value, "x#y");
  EXPECT_EQ(lines[2].first().value, "a b");
}

TEST_F(SlurmConf, ABackslashJoinsTheNextLineAndPlacesStayRight) {
  const Lines lines = read("Nodes=a,\\\nb \\\n  CPUs=4 # last\nState=UP\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].first().value, "a,b");
  EXPECT_EQ(lines[0].find("cpus")->where.line, 3);
  EXPECT_EQ(lines[0].find("cpus")->where.column, 3);
  EXPECT_EQ(lines[1].first().where.line, 4);
}

TEST_F(SlurmConf, ValuesWithBlanksStandInQuotes) {
  const Lines lines = read("Reason=\"bad memory\" State=\"\"\n");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first().value, "bad memory");
  EXPECT_EQ(lines[0].find("state")->value, "");
}

TEST_F(SlurmConf, AnEmptyFileHasNoLines) { EXPECT_TRUE(read("").empty()); }

TEST_F(SlurmConf, IncludedLinesStandInTheirPlace) {
  write("nodes.conf", "NodeName=n1\ninclude more.conf\n");
  write("more.conf", "NodeName=n2");
  const Lines lines = read("A=1\nInclude\tnodes.conf  # ours\nB=2\n");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1].first().where.file, path("nodes.conf"));
  EXPECT_EQ(lines[2].first().value, "n2");
  EXPECT_EQ(lines[3].first().key, "b");
}

TEST_F(SlurmConf, OneFileMayBeIncludedTwiceSideBySide) {
  write("once.conf", "A=1\n");
  EXPECT_EQ(read("Include once.conf\nInclude once.conf\n").size(), 2u);
}

TEST_F(SlurmConf, WhatIsNoSettingIsRefusedAtItsPlace) {
  EXPECT_EQ(error_of("A=1\nB=2 junk C=3\n"),
            "slurm.conf:2:5: expected KEY=VALUE, found \"junk C=3\"");
  EXPECT_EQ(error_of("A\n"), "slurm.conf:1:1: expected KEY=VALUE, found \"A\"");
  EXPECT_EQ(error_of("A=\n"), "slurm.conf:1:3: expected a value after \"=\"");
  EXPECT_EQ(error_of("=4\n"), "slurm.conf:1:1: expected KEY=VALUE, found \"=4\"");
  EXPECT_EQ(error_of("A=1 a=2\n"),
            "slurm.conf:1:5: the key \"a\" stands twice in the line, first at 1:1");
  EXPECT_EQ(error_of("A=1 \\"),
            "slurm.conf:1:1: the last line ends in \"\\\", expected a line "
            "after it");
}

TEST_F(SlurmConf, QuotesMustCloseAndStandAroundTheWholeValue) {
  EXPECT_EQ(error_of("A=1\nB=\"two\nC=\"3\"\n"),
            "slurm.conf:2:3: the quote of \"two is never closed");
  EXPECT_EQ(error_of("A=b\"c\"\n"),
            "slurm.conf:1:3: a quote inside the value b\"c\"; expected it "
            "around the whole value");
  EXPECT_EQ(error_of("A=\"b\"c\n"), "slurm.conf:1:6: expected a blank after the closing quote");
}

TEST_F(SlurmConf, AFileThatIncludesItselfIsRefused) {
  write("b.conf", "X=1\nInclude slurm.conf\n");
  EXPECT_EQ(error_of("Include b.conf\n"),
            "b.conf:2:1: cannot include slurm.conf: it would include itself");
}

TEST_F(SlurmConf, IncludesEndAtADepth) {
  for (int i = 1; i <= 20; ++i) {
    write(fmt::format("{}.conf", i), fmt::format("Include {}.conf\n", i + 1));
  }
  EXPECT_EQ(error_of("Include 1.conf\n"),
            "15.conf:1:1: cannot include 16.conf: more than 16 files inside each other");
}

TEST_F(SlurmConf, TooManyIncludesAreRefused) {
  write("a.conf", "");
  std::string text;
  for (int i = 0; i < 1100; ++i) text += "Include a.conf\n";
  EXPECT_EQ(error_of(text), "slurm.conf:1024:1: cannot include a.conf: more than 1024 files");
}

TEST_F(SlurmConf, IncludeNamesOneFileThatIsThere) {
  EXPECT_EQ(error_of("A=1\n  Include gone.conf\n"),
            "slurm.conf:2:3: cannot include gone.conf: No such file or directory");
  EXPECT_EQ(error_of("Include a b\n"), "slurm.conf:1:1: expected Include and one file name");
  EXPECT_EQ(error_of("Include .\n"), "slurm.conf:1:1: cannot include .: not a regular file");
  EXPECT_EQ(error_of("Include %c.conf\n"),
            "slurm.conf:1:1: the modifiers of \"Include %c.conf\" are not supported; write the "
            "file's name out");
}

TEST_F(SlurmConf, AMissingFileIsNamed) {
  EXPECT_EQ(shown_error(read_slurm_conf(path("slurm.conf"))),
            "slurm.conf: No such file or directory");
}

TEST_F(SlurmConf, InvalidTextIsRefusedAtTheByte) {
  EXPECT_EQ(error_of("A=1\nB=\xff\n"), "slurm.conf:2:3: byte 0xff is not valid UTF-8 text");
  EXPECT_EQ(error_of(std::string("A=\0", 3)), "slurm.conf:1:3: byte 0x00 is not valid UTF-8 text");
}

TEST_F(SlurmConf, TooMuchIsRefusedBeforeItIsRead) {
  const std::string large(10u << 20, 'x');
  EXPECT_EQ(error_of(large),
            "slurm.conf:1:1: more than the 8 MiB a Slurm configuration may have with all it "
            "includes");
  write("half.conf", std::string(5u << 20, '#'));
  EXPECT_EQ(error_of("Include half.conf\nInclude half.conf\n"),
            "half.conf:1:1: more than the 8 MiB a Slurm configuration may have with all it "
            "includes");
  std::string settings;
  for (int i = 0; i < 300; ++i) settings += fmt::format("k{}=1 ", i);
  EXPECT_NE(error_of(settings).find("more than 256 settings in a line"), std::string::npos);
}

TEST_F(SlurmConf, GarbageIsRefusedWithItsPlace) {
  Rng rng(20250611);
  for (int round = 0; round < 200; ++round) {
    std::string text = "NodeName=n[1-4] Gres=gpu:8\n";
    for (int i = 0; i < 40; ++i) text += static_cast<char>(rng.below(256));
    write("slurm.conf", text);
    Result<Lines> lines = read_slurm_conf(path("slurm.conf"));
    if (lines) continue;
    EXPECT_EQ(lines.error().kind, ErrorKind::kInput);
    EXPECT_GE(lines.error().where.line, 2) << lines.error().text();
  }
}

}  // namespace
}  // namespace orrery
