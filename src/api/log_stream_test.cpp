// Logs of tens of megabytes, read by clients that take them when the test says so. The node is a
// session of this test, which counts what it was asked for.
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "api/serving_test.hpp"

namespace orrery {
namespace {

/// Bytes that a client may leave waiting anywhere between the node and itself: buffers of sockets,
/// windows of HTTP/2, and two parts of the log.
constexpr std::uint64_t kWaitingMax = std::uint64_t{20} << 20;
constexpr std::size_t kPartBytes = std::size_t{256} << 10;

std::string numbered_lines(std::size_t bytes) {
  std::string text;
  text.reserve(bytes + 64);
  for (std::size_t line = 0; text.size() < bytes; ++line) {
    text += fmt::format("line {:09} of a log that is longer than any buffer\n", line);
  }
  return text;
}

/// The agent of node0: the ranks of whatever is launched there have written these logs.
class LogNode final : public AgentSession {
 public:
  using Logs = std::map<std::uint32_t, std::string>;  ///< by rank

  LogNode(Serving& serving, Logs logs) : serving_(serving), logs_(std::move(logs)) {
    serving_.run([this](Controller& controller) {
      AgentOpening opening{.node = "node0", .address = "10.0.0.1", .boot = 7, .incarnation = 1};
      opening.inventory = {.accelerator = "h100", .accelerators = 8};
      controller.sessions().open(opening, *this);
      report(controller, Heartbeat{1, Instant::from_ns(5), {}});
    });
  }

  void send(const ControllerMessage& message) override {
    if (const auto* ordered = std::get_if<NodeOrder>(&message)) {
      if (std::holds_alternative<LaunchRanks>(ordered->order.what)) launched_ = true;
      if (std::holds_alternative<Reconcile>(ordered->order.what)) {
        serving_.post([this, stamp = ordered->order.stamp] {
          serving_.run_here([&](Controller& controller) {
            report(controller, Hello{stamp, Instant::from_ns(6), {}});
          });
        });
      }
    } else if (const auto* asked = std::get_if<AttemptLogQuestion>(&message)) {
      serving_.run_here([&](Controller& controller) { answer(controller, *asked); });
    }
  }
  void close(const Error&) override {}
  /// The controller keeps the last bytes of rank 0 of the first attempt.
  void keep_end(std::uint64_t job, std::size_t bytes) {
    const std::size_t from = log().size() - bytes;
    serving_.run([&](Controller& controller) {
      controller.receive(NodeId(0), KeptLog{{JobId::at(job), 1}, 0, 0, {from, log().substr(from)}});
    });
  }
  /// Its stream is lost.
  void leave() {
    serving_.run([this](Controller& controller) { controller.sessions().close(*this); });
  }

  [[nodiscard]] bool launched() const { return launched_; }
  [[nodiscard]] const std::string& log(std::uint32_t rank = 0) const { return logs_.at(rank); }
  /// Bytes that it was asked for so far.
  [[nodiscard]] std::uint64_t told() const { return told_; }

 private:
  static void report(Controller& controller, const ReportKind& what) {
    controller.receive(NodeId(0), Report{{NodeId(0), 7, 1}, 0, what});
  }
  void answer(Controller& controller, const AttemptLogQuestion& asked) {
    AttemptLogPart part{.id = asked.id, .found = false, .size = 0, .part = {}};
    if (const auto found = logs_.find(asked.log.rank); found != logs_.end()) {
      const std::string& log = found->second;
      part.found = true;
      part.size = log.size();
      part.part.from = std::min<std::uint64_t>(asked.log.from, log.size());
      part.part.bytes = log.substr(part.part.from, kPartBytes);
      if (asked.since) part.since_from = since_from(*asked.since, log.size());
      told_ += part.part.bytes.size();
    }
    controller.receive(NodeId(0), part);
  }

  /// Half of a log was written in the last hour.
  static std::uint64_t since_from(Instant since, std::uint64_t size) {
    return RealClock().now_wall() - since < Duration::seconds(3'600) ? size / 2 : 0;
  }

  Serving& serving_;
  Logs logs_;
  std::atomic<bool> launched_ = false;
  std::atomic<std::uint64_t> told_ = 0;
};

/// ReadLog over gRPC; a message leaves the connection when the test takes it.
class LogStream {
 public:
  LogStream(const Serving& serving, const v1::ReadLogRequest& request)
      : stub_(grpc::CreateChannel(serving.grpc,
                                  grpc::SslCredentials({serving.authority.certificate, "", ""}))) {
    context_.AddMetadata("authorization", "Bearer viewer");
    call_ = stub_.PrepareCall(&context_, "/orrery.v1.Orrery/ReadLog", &queue_);
    call_->StartCall(this);
    EXPECT_TRUE(next());
    const grpc::Slice slice(request.SerializeAsString());
    call_->WriteLast(grpc::ByteBuffer(&slice, 1), {}, this);
    EXPECT_TRUE(next());
  }
  ~LogStream() {
    context_.TryCancel();
    queue_.Shutdown();
    while (queue_.Next(&tag_, &good_)) {
    }
  }
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  /// None: the stream has ended, as `status` says.
  [[nodiscard]] std::optional<v1::LogChunk> take() {
    grpc::ByteBuffer bytes;
    call_->Read(&bytes, this);
    if (!next()) {
      call_->Finish(&status, this);
      (void)next();
      return std::nullopt;
    }
    v1::LogChunk chunk;
    EXPECT_TRUE(parse(bytes, chunk));
    return chunk;
  }
  grpc::Status status;

 private:
  bool next() { return queue_.Next(&tag_, &good_) && good_; }
  static bool parse(const grpc::ByteBuffer& bytes, v1::LogChunk& chunk) {
    grpc::Slice slice;
    return bytes.DumpToSingleSlice(&slice).ok() &&
           chunk.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  void* tag_ = nullptr;
  bool good_ = false;
};

class LogStreamTest : public ServerTest {
 protected:
  /// A job of one rank whose log has so many bytes, on node0.
  void begin(std::size_t bytes) { begin(1, {{0, numbered_lines(bytes)}}); }
  /// A job of so many accelerators on node0, some of whose ranks have written.
  void begin(int accelerators, LogNode::Logs logs) {
    node_ = std::make_unique<LogNode>(*serving_, std::move(logs));
    v1::SubmitJobRequest asked;
    asked.set_spec(
        fmt::format("apiVersion: orrery/v1\nkind: Batch\nname: some\n"
                    "roles: [{{accelerators: {}}}]\nlaunch: {{command: [\"true\"]}}\n",
                    accelerators));
    const auto answer = client().call<v1::SubmitJobResponse>("SubmitJob", asked);
    ASSERT_TRUE(answer) << answer.error().text();
    request_.set_id(answer->id());
    while (!node_->launched()) serving_->turn(1);
  }
  /// What a reading sends of each rank, and how it ends.
  [[nodiscard]] LogNode::Logs read(std::string* error = nullptr) const {
    LogNode::Logs logs;
    LogStream stream(*serving_, request_);
    while (const std::optional<v1::LogChunk> chunk = stream.take()) {
      logs[chunk->rank()] += chunk->bytes();
      EXPECT_EQ(chunk->node(), "node0");
    }
    if (error != nullptr) *error = stream.status.error_message();
    EXPECT_EQ(stream.status.ok(), error == nullptr) << stream.status.error_message();
    return logs;
  }
  void TearDown() override {
    if (node_) node_->leave();
    ServerTest::TearDown();
  }
  [[nodiscard]] std::string request_line() const {
    return fmt::format(
        "GET /v1/jobs/{}/log HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        "Authorization: Bearer viewer\r\n\r\n",
        request_.id());
  }

  std::unique_ptr<LogNode> node_;
  v1::ReadLogRequest request_;
};

/// The body of an answer that came in chunks. `whole` tells whether the last chunk came.
std::string body_of(const std::string& answer, bool& whole) {
  std::string body;
  std::size_t at = answer.find("\r\n\r\n") + 4;
  whole = false;
  while (at < answer.size() && !whole) {
    const std::size_t end = answer.find("\r\n", at);
    if (end == std::string::npos) break;
    const std::size_t size = std::stoul(answer.substr(at, end - at), nullptr, 16);
    whole = size == 0;
    body += answer.substr(end + 2, size);
    at = end + 2 + size + 2;
  }
  return body;
}

/// The bytes of the log that server-sent events carry.
std::string log_of(const std::string& events) {
  std::string log;
  for (std::size_t at = events.find("data: "); at != std::string::npos;
       at = events.find("data: ", at)) {
    at += 6;
    const std::size_t end = events.find("\n\n", at);
    v1::LogChunk chunk;
    google::protobuf::util::JsonParseOptions lenient;
    lenient.ignore_unknown_fields = true;
    if (google::protobuf::util::JsonStringToMessage(events.substr(at, end - at), &chunk, lenient)
            .ok()) {
      log += chunk.bytes();
    }
  }
  return log;
}

TEST_F(LogStreamTest, AReaderThatPausesGetsALargeLogWholeOverGrpc) {
  begin(std::size_t{64} << 20);
  LogStream stream(*serving_, request_);
  std::string read;
  std::uint64_t waiting_max = 0;
  std::size_t paused_at = 0;
  serving_->turn(2'000);
  waiting_max = node_->told();
  while (const std::optional<v1::LogChunk> chunk = stream.take()) {
    EXPECT_EQ(chunk->skipped(), 0u);
    read += chunk->bytes();
    if (read.size() - paused_at > std::size_t{4} << 20) {
      paused_at = read.size();
      serving_->turn(500);
    }
    waiting_max = std::max(waiting_max, node_->told() - read.size());
  }
  EXPECT_TRUE(stream.status.ok()) << stream.status.error_message();
  EXPECT_EQ(read.size(), node_->log().size());
  EXPECT_EQ(sha256_text(read), sha256_text(node_->log()));
  EXPECT_LT(waiting_max, kWaitingMax);
}

TEST_F(LogStreamTest, AReaderThatPausesGetsALargeLogWholeOverHttp) {
  begin(std::size_t{32} << 20);
  TlsConnection connection(serving_->http, serving_->authority.certificate);
  connection.send(request_line());
  serving_->turn(2'000);
  EXPECT_LT(node_->told(), kWaitingMax);
  std::string answer;
  for (std::string block = connection.receive(); !block.empty(); block = connection.receive()) {
    answer += block;
  }
  bool whole = false;
  const std::string log = log_of(body_of(answer, whole));
  EXPECT_TRUE(whole);
  EXPECT_EQ(log.size(), node_->log().size());
  EXPECT_EQ(sha256_text(log), sha256_text(node_->log()));
}

TEST_F(LogStreamTest, ALogWhoseNodeIsLostHalfWayEndsInAnErrorOverBothWays) {
  begin(std::size_t{32} << 20);
  LogStream stream(*serving_, request_);
  TlsConnection connection(serving_->http, serving_->authority.certificate);
  connection.send(request_line());
  std::string answer = connection.receive();
  ASSERT_TRUE(stream.take());
  node_->keep_end(request_.id(), 1'000);
  node_->leave();
  std::string read;
  std::uint64_t skipped = 0;
  while (const std::optional<v1::LogChunk> chunk = stream.take()) {
    read += chunk->bytes();
    skipped += chunk->skipped();
  }
  EXPECT_LT(read.size(), node_->log().size());
  EXPECT_GT(skipped, 0u);
  EXPECT_TRUE(read.ends_with(node_->log().substr(node_->log().size() - 1'000)));
  EXPECT_FALSE(stream.status.ok());
  EXPECT_NE(stream.status.error_message().find("node0 is not connected"), std::string::npos)
      << stream.status.error_message();
  for (std::string block = connection.receive(); !block.empty(); block = connection.receive()) {
    answer += block;
  }
  bool whole = true;
  const std::string body = body_of(answer, whole);
  EXPECT_FALSE(whole) << "a client takes the answer for complete";
  EXPECT_NE(body.find("event: error\ndata: "), std::string::npos);
  node_.reset();
}

TEST_F(LogStreamTest, EveryRankIsReadWhereNoneIsNamed) {
  begin(4, {{0, numbered_lines(700'000)}, {1, "one\n"}, {3, numbered_lines(300'000)}});
  const LogNode::Logs logs = read();
  ASSERT_EQ(logs.size(), 3u);
  for (const auto& [rank, log] : logs) EXPECT_EQ(sha256_text(log), sha256_text(node_->log(rank)));
  request_.set_rank(3);
  EXPECT_EQ(read(), (LogNode::Logs{{3, node_->log(3)}}));
  request_.clear_rank();
  request_.set_node("node0");
  EXPECT_EQ(read().size(), 3u);
  request_.set_node("node7");
  std::string error;
  EXPECT_TRUE(read(&error).empty());
  EXPECT_NE(error.find("no node \"node7\""), std::string::npos) << error;
}

TEST_F(LogStreamTest, ARankThatDoesNotExistIsAnErrorThatListsTheOthers) {
  begin(4, {{0, "zero\n"}, {2, "two\n"}});
  request_.set_rank(7);
  std::string error;
  EXPECT_TRUE(read(&error).empty());
  EXPECT_NE(error.find("has no rank 7; it has ranks 0, 2"), std::string::npos) << error;
  const std::string path = fmt::format("GET /v1/jobs/{}/log?", request_.id());
  const std::string refused = ask(path + "rank=7");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 404")) << refused;
  EXPECT_NE(refused.find("it has ranks 0, 2"), std::string::npos) << refused;
  EXPECT_TRUE(ask(path + "attempt=9").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(path + "ranks=0").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(ask(path + "tail=many").starts_with("HTTP/1.1 400"));
}

TEST_F(LogStreamTest, TheTailIsTheLastLinesOfEachRank) {
  std::string open = numbered_lines(500'000);
  open += "without an end";
  const std::string long_line(200'000, 'x');
  begin(4, {{0, numbered_lines(900'000)},
            {1, "one\ntwo\n"},
            {2, open},
            {3, "a\n" + long_line + "\nb\n"}});
  request_.set_tail(3);
  LogNode::Logs logs = read();
  for (const std::uint32_t rank : {0u, 2u}) {
    const std::string& log = node_->log(rank);
    ASSERT_TRUE(log.ends_with(logs[rank])) << rank;
    EXPECT_EQ(std::ranges::count(logs[rank], '\n'), rank == 0 ? 3 : 2);
    EXPECT_EQ(log[log.size() - logs[rank].size() - 1], '\n');
  }
  EXPECT_EQ(logs[1], "one\ntwo\n");
  EXPECT_EQ(logs[3], node_->log(3));
  request_.set_tail(2);
  EXPECT_EQ(read()[3], long_line + "\nb\n");
  request_.set_tail(0);
  EXPECT_TRUE(read().empty());
  const std::string answer = ask(fmt::format("GET /v1/jobs/{}/log?tail=1&rank=1", request_.id()));
  bool whole = false;
  EXPECT_EQ(log_of(body_of(answer, whole)), "two\n");
  EXPECT_TRUE(whole);
}

TEST_F(LogStreamTest, SinceBeginsWithWhatWasWrittenThen) {
  begin(1, {{0, "old\nnew\n"}});
  request_.set_since("10m");
  EXPECT_EQ(read(), (LogNode::Logs{{0, "new\n"}}));
  request_.set_since("2h");
  EXPECT_EQ(read(), (LogNode::Logs{{0, "old\nnew\n"}}));
  request_.set_since("2001-01-01T00:00:00Z");
  EXPECT_EQ(read(), (LogNode::Logs{{0, "old\nnew\n"}}));
  request_.set_since("10m");
  request_.set_tail(5);
  EXPECT_EQ(read(), (LogNode::Logs{{0, "new\n"}})) << "no line from before";
  for (const char* wrong : {"5", "yesterday", "2001-13-01T00:00:00Z"}) {
    request_.set_since(wrong);
    std::string error;
    EXPECT_TRUE(read(&error).empty());
    EXPECT_NE(error.find("expected a time"), std::string::npos) << error;
  }
}

TEST_F(LogStreamTest, AReadingGoesOnWhereAnEarlierOneWasLost) {
  begin(2, {{0, "zero and more"}, {1, "one and more"}});
  request_.set_from_attempt(1);
  v1::LogPosition& position = *request_.add_positions();
  position.set_rank(1);
  position.set_from(4);
  EXPECT_EQ(read(), (LogNode::Logs{{0, "zero and more"}, {1, "and more"}}));
}

}  // namespace
}  // namespace orrery
