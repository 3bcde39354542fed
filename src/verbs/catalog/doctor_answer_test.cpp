// verbs/catalog/doctor_answer_test.cpp - findings as a table, as JSON and as a verdict.
#include "verbs/catalog/doctor_answer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

const CheckFinding kFine{.check = "kernel", .found = "6.1"};

TEST(DoctorAnswer, NothingWrongIsASuccess) {
  const JudgedAnswer report = doctor_report({kFine}, Colour::kOff);
  EXPECT_TRUE(report.verdict);
  EXPECT_EQ(report.shown.text, "ok  kernel  6.1\n");
  EXPECT_EQ(report.shown.json, Json::parse(R"({"problems": 0, "warnings": 0, "findings": [
                            {"check": "kernel", "verdict": "ok", "found": "6.1", "advice": "",
                             "nodes": []}]})"))
      << report.shown.json.dump(2);
}

TEST(DoctorAnswer, AWarningIsNoFailureAndAProblemIs) {
  const CheckFinding warning{.check = "disk", .verdict = CheckVerdict::kWarning, .found = "slow"};
  const CheckFinding problem{.check = "agents", .verdict = CheckVerdict::kProblem, .found = "gone"};
  EXPECT_TRUE(doctor_report({warning, kFine}, Colour::kOff).verdict);
  const JudgedAnswer one = doctor_report({warning, problem}, Colour::kOff);
  ASSERT_FALSE(one.verdict);
  EXPECT_EQ(one.verdict.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(one.verdict.error().message, "1 problem");
  EXPECT_EQ(one.shown.json["problems"], 1);
  EXPECT_EQ(one.shown.json["warnings"], 1);
  EXPECT_EQ(doctor_report({problem, problem}, Colour::kOff).verdict.error().message, "2 problems");
}

TEST(DoctorAnswer, AdviceAndNodesStandBelowTheirFinding) {
  CheckFinding finding{.check = "agents",
                       .verdict = CheckVerdict::kProblem,
                       .found = "1 of 10 connected",
                       .advice = std::string(70, 'a') + " " + std::string(70, 'b')};
  for (int i = 0; i < 9; ++i) finding.nodes.push_back(fmt::format("n{}", i));
  EXPECT_EQ(doctor_report({finding}, Colour::kOff).shown.text,
            "problem  agents  1 of 10 connected\n"
            "                   n0, n1, n2, n3, n4, n5, n6, n7, 1 more\n"
            "                   " +
                std::string(70, 'a') + "\n                   " + std::string(70, 'b') + "\n");
  finding.nodes.pop_back();
  EXPECT_NE(doctor_report({finding}, Colour::kOff).shown.text.find("n6, n7\n"), std::string::npos)
      << "eight are shown whole";
}

TEST(DoctorAnswer, ANameCannotSteerATerminal) {
  const CheckFinding finding{.check = "agents",
                             .verdict = CheckVerdict::kWarning,
                             .found = "x\x1b[2J",
                             .nodes = {"\x1b]0"}};
  const JudgedAnswer plain = doctor_report({finding}, Colour::kOff);
  EXPECT_EQ(plain.shown.text.find('\x1b'), std::string::npos);
  const std::string coloured = doctor_report({finding}, Colour::kOn).shown.text;
  EXPECT_NE(coloured.find('\x1b'), std::string::npos) << "the colour of the verdict";
  EXPECT_EQ(coloured.find("\x1b[2J"), std::string::npos);
  EXPECT_EQ(coloured.find("\x1b]0"), std::string::npos);
}

}  // namespace
}  // namespace orrery
