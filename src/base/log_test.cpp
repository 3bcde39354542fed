// base/log_test.cpp - both encodings, hostile values, levels, and whole lines from many threads.
#include "base/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/system/file_descriptor.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

const Instant kTime = Instant() + Duration::seconds(1'769'903'999);  // 2026-01-31T23:59:59Z

std::string text(std::string_view message, LogFields fields = {}) {
  return encode(LogEncoding::kText, {kTime, LogLevel::kInfo, message}, fields);
}

std::string json(std::string_view message, LogFields fields = {}) {
  return encode(LogEncoding::kJson, {kTime, LogLevel::kInfo, message}, fields);
}

class MemorySink final : public LogSink {
 public:
  void write_line(std::string_view line) override { lines_.emplace_back(line); }
  std::vector<std::string> lines_;
};

TEST(Log, TextIsTimeLevelMessageAndFields) {
  EXPECT_EQ(text("agent registered", {{"node", 17}, {"address", "tcp:10.0.0.7:7000"}}),
            "2026-01-31T23:59:59Z info agent registered node=17 address=\"tcp:10.0.0.7:7000\"\n");
  EXPECT_EQ(text("started"), "2026-01-31T23:59:59Z info started\n");
}

TEST(Log, JsonIsOneFlatObjectALine) {
  EXPECT_EQ(json("agent registered", {{"node", 17}, {"address", "a"}}),
            "{\"time\":\"2026-01-31T23:59:59Z\",\"level\":\"info\",\"event\":\"agent registered\","
            "\"node\":17,\"address\":\"a\"}\n");
}

TEST(Log, ValuesKeepTheirTypeAndTheirEveryDigit) {
  const std::string name = "n";
  EXPECT_EQ(text("m", {{"a", true},
                       {"b", std::numeric_limits<std::int64_t>::min()},
                       {"c", std::numeric_limits<std::uint64_t>::max()},
                       {"d", 0.1},
                       {"e", name},
                       {"f", "17"}}),
            "2026-01-31T23:59:59Z info m a=true b=-9223372036854775808 c=18446744073709551615 "
            "d=0.1 e=\"n\" f=\"17\"\n");
}

TEST(Log, JsonHasNoWordForNanAndInfinity) {
  const std::string line =
      json("m", {{"nan", std::nan("")}, {"inf", std::numeric_limits<double>::infinity()}});
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_TRUE(parsed.at("nan").is_null());
  EXPECT_TRUE(parsed.at("inf").is_null());
}

TEST(Log, HostileTextStaysOneLineAndComesBackFromJson) {
  const std::string hostile =
      "a\"b\\c\nd\re\tf\x1b[31mg\x7f\xc2\x85h\xe2\x80\xa8i\xe2\x80\xa9j\xc3\xa9";
  const std::string line = json(hostile, {{"value", hostile}});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed.at("event").get<std::string>(), hostile);
  EXPECT_EQ(parsed.at("value").get<std::string>(), hostile);

  EXPECT_EQ(text("m", {{"value", hostile}}),
            "2026-01-31T23:59:59Z info m value=\"a\\\"b\\\\c\\nd\\re\\tf\\u001b[31mg\\u007f\\u0085h"
            "\\u2028i\\u2029j\xc3\xa9\"\n");
}

TEST(Log, AMessageCannotForgeAnotherRecord) {
  EXPECT_EQ(text("bad\n2026-01-31T23:59:59Z info forged"),
            "2026-01-31T23:59:59Z info bad\\n2026-01-31T23:59:59Z info forged\n");
}

TEST(Log, EveryByteStringGivesOneLineOfValidUtf8) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string value = {static_cast<char>(first), static_cast<char>(second), 'x'};
      for (const LogEncoding encoding : {LogEncoding::kText, LogEncoding::kJson}) {
        const std::string line = encode(encoding, {kTime, LogLevel::kInfo, value}, {{"v", value}});
        ASSERT_EQ(first_invalid_utf8(line), std::string::npos) << first << " " << second;
        ASSERT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << first << " " << second;
      }
    }
  }
}

TEST(Log, LongTextIsCutBetweenCodePoints) {
  const std::string longer = "x" + std::string(kLogTextBytesMax - 2, 'y') + "\xc3\xa9 and more";
  const auto parsed = nlohmann::json::parse(json("m", {{"v", longer}}));
  EXPECT_EQ(parsed.at("v").get<std::string>(),
            "x" + std::string(kLogTextBytesMax - 2, 'y') + "...");
  const std::string fits(kLogTextBytesMax, 'y');
  EXPECT_EQ(nlohmann::json::parse(json("m", {{"v", fits}})).at("v").get<std::string>(), fits);
}

TEST(Log, RecordsBelowTheMinimumAreNotWritten) {
  MemorySink sink;
  const Log log(sink, {.minimum = LogLevel::kWarning, .encoding = LogEncoding::kText});
  log.info(kTime, "i");
  log.warning(kTime, "w");
  log.error(kTime, "e");
  EXPECT_EQ(sink.lines_, (std::vector<std::string>{"2026-01-31T23:59:59Z warning w\n",
                                                   "2026-01-31T23:59:59Z error e\n"}));
  EXPECT_FALSE(log.enabled(LogLevel::kInfo));
  EXPECT_TRUE(log.enabled(LogLevel::kWarning));
}

TEST(Log, AKeyThatIsNoPlainNameIsABug) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(text("m", {{"a b", 1}}), "log keys are plain names");
  EXPECT_DEATH(text("m", {{"level", 1}}), "log keys are plain names");
}

struct Pipe {
  FileDescriptor reader;
  FileDescriptor writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::string read_all(int fd) {
  std::string all;
  std::array<char, 4096> chunk{};
  ssize_t got = 0;
  while ((got = ::read(fd, chunk.data(), chunk.size())) > 0) {
    all.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return all;
}

TEST(Log, LinesOfManyThreadsStayWholeEvenOnANonBlockingPipe) {
  Pipe pipe = make_pipe();
  ASSERT_EQ(::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK), 0);
  DescriptorLogSink sink(pipe.writer.get());
  const Log log(sink);
  constexpr int kThreads = 4;
  constexpr int kLines = 20;
  const std::string filler(7000, 'x');  // longer than what a pipe takes in one piece
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kLines; ++i) {
        log.info(kTime, "m", {{"thread", thread}, {"a", filler}, {"b", filler}});
      }
    });
  }
  std::string all;
  std::thread reader([&] { all = read_all(pipe.reader.get()); });
  for (std::thread& thread : threads) thread.join();
  pipe.writer.reset();
  reader.join();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), kThreads * kLines);
  for (int thread = 0; thread < kThreads; ++thread) {
    const std::string line = text("m", {{"thread", thread}, {"a", filler}, {"b", filler}});
    int found = 0;
    for (std::size_t at = all.find(line); at != std::string::npos; at = all.find(line, at + 1)) {
      ++found;
    }
    EXPECT_EQ(found, kLines);
  }
}

TEST(Log, ALineIsOneWrite) {
  // A datagram socket keeps the borders between writes.
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  DescriptorLogSink sink(writer.get());
  Log(sink).info(kTime, "m", {{"a", std::string(3000, 'x')}, {"b", 1}});
  std::array<char, 8192> datagram{};
  const ssize_t got = ::recv(reader.get(), datagram.data(), datagram.size(), 0);
  ASSERT_GT(got, 0);
  EXPECT_EQ(std::string_view(datagram.data(), static_cast<std::size_t>(got)),
            text("m", {{"a", std::string(3000, 'x')}, {"b", 1}}));
}

TEST(Log, StandardErrorIsTheDefaultSink) {
  ::testing::internal::CaptureStderr();
  DescriptorLogSink sink;
  Log(sink).warning(kTime, "m");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "2026-01-31T23:59:59Z warning m\n");
}

}  // namespace
}  // namespace orrery
