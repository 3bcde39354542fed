// node/agent/agent_parts_test.hpp - what stands around a part of the agent in a test: a directory,
// the loop, a channel that keeps what is sent, and a session that was welcomed.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "base/system/real_env.hpp"
#include "node/agent/controller_session.hpp"
#include "node/keeper/keeper_link.hpp"

namespace orrery {

/// A channel that keeps what is sent. Its test is the controller.
class KeptChannel final : public ControllerChannel {
 public:
  void open(const AgentOpening& opening, ChannelEvents& its) override {
    openings.push_back(opening);
    events = &its;
  }
  void send(AgentMessage message) override { sent.push_back(std::move(message)); }
  void close() override { events = nullptr; }

  /// Returns the messages of a type that were sent, in order.
  template <class Message>
  [[nodiscard]] std::vector<Message> all() const {
    std::vector<Message> found;
    for (const AgentMessage& each : sent) {
      if (const auto* message = std::get_if<Message>(&each)) found.push_back(*message);
    }
    return found;
  }
  /// Returns what the reports of a kind say, in order.
  template <class What>
  [[nodiscard]] std::vector<What> reports() const {
    std::vector<What> found;
    for (const Report& each : all<Report>()) {
      if (const auto* what = std::get_if<What>(&each.what)) found.push_back(*what);
    }
    return found;
  }

  std::vector<AgentOpening> openings;
  std::vector<AgentMessage> sent;
  ChannelEvents* events = nullptr;  ///< of the open stream; nullptr: closed
};

/// The user of a channel: keeps the names of what it hears.
class KeptEvents final : public ChannelEvents {
 public:
  void on_welcome(const AgentWelcome& welcome) override {
    heard.push_back(fmt::format("welcome {}", welcome.node.value()));
  }
  void on_order(const NodeOrder&) override { heard.emplace_back("order"); }
  void on_log_question(const AttemptLogQuestion&) override { heard.emplace_back("question"); }
  void on_burn_in() override { heard.emplace_back("burn-in"); }
  void on_command(const AttemptExecOpen&) override { heard.emplace_back("command"); }
  void on_command_input(const ExecInput&) override { heard.emplace_back("input"); }
  void on_lost(const Error& why) override {
    heard.push_back(fmt::format("lost: {}", why.message));
    lost.push_back(why.kind);
    if (during_loss) during_loss();
  }

  std::vector<std::string> heard;
  std::vector<ErrorKind> lost;
  std::function<void()> during_loss;
};

class KeptLines final : public LogSink {
 public:
  void write_line(std::string_view line) override { text += line; }
  [[nodiscard]] bool has(std::string_view words) const { return text.find(words) != text.npos; }

  std::string text;
};

class AgentPartTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kCluster = 7;
  static constexpr NodeId kNode{3};

  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_part_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    real_ = RealEnv::create({}, Durability::kUntilBoot).value();
    session_ = std::make_unique<ControllerSession>(channel_);
    ASSERT_TRUE(session_->accept({.cluster = kCluster, .node = kNode}));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// Runs the loop until the condition holds.
  void await(const std::function<bool()>& condition) { real_->run_until(condition); }
  [[nodiscard]] std::string read(const std::string& path) const {
    return real_->env().storage.read_file(path, std::size_t{1} << 20).value_or("");
  }

  std::string directory_;
  std::unique_ptr<RealEnv> real_;
  KeptChannel channel_;
  KeptLines lines_;
  Log log_{lines_};
  std::unique_ptr<ControllerSession> session_;
};

/// A keeper that keeps what it is told.
class KeptKeeper final : public KeeperHandle {
 public:
  [[nodiscard]] Status start() override {
    ++started;
    return start_outcome;
  }
  void adopt() override { ++adopted; }
  void tell(const KeeperInput& message) override { told.push_back(message); }
  [[nodiscard]] bool runs_commands() const override { return commands; }

  template <class Message>
  [[nodiscard]] std::vector<Message> all() const {
    std::vector<Message> found;
    for (const KeeperInput& each : told) {
      if (const auto* message = std::get_if<Message>(&each)) found.push_back(*message);
    }
    return found;
  }
  /// Returns the orders of a kind, in order.
  template <class What>
  [[nodiscard]] std::vector<What> orders() const {
    std::vector<What> found;
    for (const AgentOrder& each : all<AgentOrder>()) {
      if (const auto* what = std::get_if<What>(&each.order.what)) found.push_back(*what);
    }
    return found;
  }

  int started = 0;
  int adopted = 0;
  bool commands = true;
  Status start_outcome;
  std::vector<KeeperInput> told;
};

}  // namespace orrery
