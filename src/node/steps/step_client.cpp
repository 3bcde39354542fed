#include "node/steps/step_client.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "node/steps/step_secret.hpp"

namespace orrery {

StepClient::StepClient(RealEnv& real, StepClientSettings settings)
    : real_(real),
      settings_(std::move(settings)),
      late_(real.env().clock.now_monotonic() + settings_.patience),
      outputs_(settings_.options, {.job = settings_.gang.job, .step = settings_.step},
               settings_.layout.tasks - 1) {
  nodes_.reserve(settings_.layout.parts.size());
  for (const StepPart& part : settings_.layout.parts) {
    nodes_.push_back(
        {.part = part, .place = static_cast<std::uint32_t>(nodes_.size()), .running = part.tasks});
  }
}

StepClient::~StepClient() { stop_input(); }

int StepClient::run() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : kForwarded) sigaddset(&wanted, number);
  FileDescriptor signals(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  auto watch = DescriptorWatch::make(real_.loop(), std::move(signals),
                                     [this](std::string_view bytes) { on_signals(bytes); });
  if (!watch) {
    fail(watch.error().message);
    return status_;
  }
  signals_ = *std::move(watch);
  for (Node& node : nodes_) connect(node);
  real_.run_until([this] {
    return std::ranges::all_of(nodes_,
                               [](const Node& node) { return node.phase == Node::Phase::kOver; });
  });
  return status_;
}

// --- Nodes --------------------------------------------------------------------------------------

void StepClient::connect(Node& node) {
  const Result<std::string> address = settings_.gang.address_of(node.part.node);
  if (!address) return lose(node, address.error().message);
  const Result<ConnectionId> connection = real_.env().transport.connect(*address, *this);
  if (!connection) return lose(node, connection.error().message);
  node.connection = *connection;
}

StepClient::Node* StepClient::node_of(ConnectionId connection) {
  const auto found = std::ranges::find(nodes_, connection, &Node::connection);
  return found == nodes_.end() ? nullptr : &*found;
}

void StepClient::on_close(ConnectionId connection, const Closed& closed) {
  Node* node = node_of(connection);
  if (node == nullptr || node->phase == Node::Phase::kOver) return;
  node->connection = ConnectionId::kNone;
  const bool may_come =
      node->phase == Node::Phase::kConnecting && closed.reason == CloseReason::kConnectFailed;
  if (!may_come) return lose(*node, closed.error.message);
  if (real_.env().clock.now_monotonic() > late_ && !std::exchange(node->missed, true)) {
    fmt::print(stderr, "srun: waits for {}: {}\n", settings_.gang.addresses[node->part.node],
               closed.error.message);
  }
  (void)real_.env().timers.call_after(Duration::milliseconds(100), [this, node] {
    if (node->phase == Node::Phase::kConnecting) connect(*node);
  });
}

void StepClient::on_frame(ConnectionId connection, std::string_view frame) {
  Node* node = node_of(connection);
  if (node == nullptr) return;
  const Result<StepReply> reply = decode_step_reply(frame);
  if (!reply) return lose(*node, reply.error().message);
  if (const auto* asked = std::get_if<StepChallenge>(&*reply)) return prove(*node, *asked);
  if (const auto* welcome = std::get_if<StepWelcome>(&*reply)) return order(*node, *welcome);
  if (node->phase != Node::Phase::kRuns) return lose(*node, "it has not proved itself");
  if (const auto* output = std::get_if<StepOutput>(&*reply)) {
    answer(*node, *output);
  } else if (const auto* end = std::get_if<StepTaskEnd>(&*reply)) {
    answer(*node, *end);
  } else if (std::holds_alternative<StepInputTaken>(*reply)) {
    answer_input_taken();
  }
}

void StepClient::prove(Node& node, const StepChallenge& asked) {
  if (node.phase != Node::Phase::kConnecting) return;
  node.phase = Node::Phase::kProving;
  node.challenge = step_challenge(real_.env().entropy);
  const StepQuestion question{StepEnd::kCaller, node.part.node, asked.challenge};
  say(node, StepProof{step_proof(settings_.gang.secret, question), node.challenge});
}

/// Sends command and environment only to a node that has proved to be of the job.
void StepClient::order(Node& node, const StepWelcome& welcome) {
  if (node.phase != Node::Phase::kProving) return;
  const StepQuestion question{StepEnd::kNode, node.part.node, node.challenge};
  if (!is_same_proof(welcome.proof, step_proof(settings_.gang.secret, question))) {
    return lose(node, "who listens there does not know the secret of this job");
  }
  const SrunOptions& options = settings_.options;
  node.phase = Node::Phase::kRuns;
  say(node, StepOrder{.command = options.command,
                      .environment = settings_.environment,
                      .directory = settings_.directory,
                      .first = node.part.first,
                      .tasks = node.part.tasks,
                      .node = node.place,
                      .devices = options.task_devices,
                      .readers = options.readers,
                      .reader = options.reader});
  const bool all = std::ranges::all_of(
      nodes_, [](const Node& each) { return each.phase >= Node::Phase::kRuns; });
  if (all && options.readers != StepReaders::kNone) read_input();
}

void StepClient::answer(Node& node, const StepOutput& output) {
  note_written(outputs_.write(place_of(node, output.task), output.descriptor, output.bytes));
  say(node, StepTaken{output.bytes.size()});
}

void StepClient::note_written(const Status& written) {
  if (written || ending_) return;
  fail(written.error().message);
  end_all();
}

void StepClient::answer(Node& node, const StepTaskEnd& end) {
  const TaskPlace place = place_of(node, end.task);
  note_written(outputs_.finish(place));
  const int status = static_cast<int>(end.status);
  status_ = std::max(status_, status);
  if (status > 128 && status < 128 + NSIG) {
    fail(fmt::format("{}: task {}: {}", place.host, end.task, ::strsignal(status - 128)));
  } else if (status != 0) {
    fail(fmt::format("{}: task {}: Exited with exit code {}", place.host, end.task, status));
  }
  if (node.running > 0) --node.running;
  if (node.running == 0) {
    node.phase = Node::Phase::kOver;
    real_.env().transport.close(std::exchange(node.connection, ConnectionId::kNone));
    answer_input_taken();
  }
  if (status != 0 && settings_.options.bad_exit == SrunOptions::BadExit::kEndAll) end_all();
}

void StepClient::lose(Node& node, const std::string& why) {
  fail(fmt::format("{}: {}", settings_.gang.addresses[node.part.node], why));
  node.phase = Node::Phase::kOver;
  // A step without one of its nodes has no defined result.
  for (Node& other : nodes_) {
    other.phase = Node::Phase::kOver;
    if (other.connection != ConnectionId::kNone) real_.env().transport.close(other.connection);
    other.connection = ConnectionId::kNone;
  }
}

TaskPlace StepClient::place_of(const Node& node, std::uint32_t task) const {
  return {task, node.place, settings_.gang.addresses[node.part.node]};
}

void StepClient::say(Node& node, const StepRequest& request) {
  const std::string frame = encode(request);
  switch (real_.env().transport.send(node.connection, frame)) {
    case SendOutcome::kQueued:
    case SendOutcome::kClosed:  // on_close() comes
      return;
    case SendOutcome::kTooLarge:
      return lose(node, fmt::format("the command and its environment have {} bytes, more than can "
                                    "be sent",
                                    frame.size()));
    case SendOutcome::kOverflow:
      return lose(node, "it does not take what is sent to it");
  }
}

void StepClient::fail(const std::string& what) {
  fmt::print(stderr, "srun: error: {}\n", what);
  status_ = std::max(status_, 1);
}

// --- Signals ------------------------------------------------------------------------------------

void StepClient::on_signals(std::string_view signals) {
  for (std::size_t at = 0; at + sizeof(signalfd_siginfo) <= signals.size();
       at += sizeof(signalfd_siginfo)) {
    signalfd_siginfo signal;
    std::memcpy(&signal, signals.data() + at, sizeof signal);
    const auto number = static_cast<int>(signal.ssi_signo);
    if (number == SIGTERM || number == SIGHUP) {
      end_all();
    } else if (number == SIGINT && ++interrupts_ > 1) {
      send_signal(SIGKILL);
    } else {
      send_signal(number);
    }
  }
}

void StepClient::send_signal(int number) {
  for (Node& node : nodes_) {
    if (node.phase == Node::Phase::kRuns) {
      say(node, StepSignal{static_cast<std::uint32_t>(number)});
    } else if (node.phase != Node::Phase::kOver && number != SIGUSR1 && number != SIGUSR2) {
      // The node's tasks have not begun, and must not begin any more.
      node.phase = Node::Phase::kOver;
      real_.env().transport.close(std::exchange(node.connection, ConnectionId::kNone));
      status_ = std::max(status_, 128 + number);
    }
  }
}

void StepClient::end_all() {
  if (std::exchange(ending_, true)) return;
  send_signal(SIGTERM);
  (void)real_.env().timers.call_after(settings_.kill_after, [this] { send_signal(SIGKILL); });
}

// --- Input --------------------------------------------------------------------------------------

/// Files and /dev/null cannot be polled, and need not be.
void StepClient::read_input() {
  if (input_ == Input::kOver) return;
  if (input_ == Input::kWaits) {
    const Result<WatchId> watch = real_.loop().watch(0, EPOLLIN, *this);
    input_ = watch ? Input::kWatched : Input::kAtOnce;
    if (watch) input_watch_ = *watch;
  } else if (input_ == Input::kWatched && input_watch_ == WatchId::kNone) {
    const Result<WatchId> watch = real_.loop().watch(0, EPOLLIN, *this);
    if (watch) input_watch_ = *watch;
  }
  if (input_ == Input::kAtOnce) on_ready(EPOLLIN);
}

void StepClient::on_ready(std::uint32_t) {
  std::array<char, std::size_t{64} << 10> bytes;
  const ssize_t got = ::read(0, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  stop_input();
  const StepInput input{std::string(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0)};
  if (got <= 0) input_ = Input::kOver;
  reading_ = 0;
  for (Node& node : nodes_) {
    if (node.phase != Node::Phase::kRuns) continue;
    ++reading_;
    say(node, input);
  }
}

void StepClient::answer_input_taken() {
  if (reading_ == 0) return;
  --reading_;
  if (reading_ == 0) read_input();
}

void StepClient::stop_input() {
  if (input_watch_ != WatchId::kNone) {
    real_.loop().unwatch(std::exchange(input_watch_, WatchId::kNone));
  }
}

}  // namespace orrery
