#include "node/steps/step_server.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "node/steps/step_environment.hpp"
#include "node/steps/step_secret.hpp"

namespace orrery {
namespace {

void complain(const std::string& what) { fmt::print(stderr, "orrery-srun: {}\n", what); }

}  // namespace

// --- One connection -----------------------------------------------------------------------------

struct StepServer::Session {
  struct Task {
    std::unique_ptr<StepTask> process;  ///< none: it has ended
    std::vector<std::string> devices;
  };

  ConnectionId connection = ConnectionId::kNone;  ///< none: it is closed
  std::string challenge;
  enum class Phase : std::uint8_t {
    kChallenged,
    kProven,
    kStep,
    kAttends
  } phase = Phase::kChallenged;
  std::optional<std::uint32_t> attends;  ///< this node of the gang
  StepOrder order;
  std::vector<Task> tasks;
  std::uint64_t ahead = 0;  ///< bytes sent and not yet taken
  bool paused = false;
  std::size_t reading = 0;  ///< tasks that have not taken the newest input
  bool told_to_end = false;

  [[nodiscard]] bool over() const {
    return std::ranges::all_of(tasks, [](const Task& task) { return task.process == nullptr; });
  }
  /// Passes SIGTERM on once: it comes from the keeper and by srun, and a second one ends many
  /// programs early.
  void signal(int number) {
    if (number == SIGTERM && std::exchange(told_to_end, true)) return;
    for (const Task& task : tasks) {
      if (task.process != nullptr) task.process->signal(number);
    }
  }
};

/// On the other nodes: waits at the first one for the script's end. A first node that is not there
/// yet, or not any more, is waited for: whether it is lost, and whose fault that is, is not known
/// here; this node is signalled to end once that is found out.
class StepServer::Attendance final : public ConnectionEvents {
 public:
  explicit Attendance(StepServer& server)
      : server_(server), late_(env().clock.now_monotonic() + server.settings_.patience) {
    connect();
  }
  ~Attendance() override {
    env().transport.close(connection_);
    if (again_) env().timers.cancel(*again_);
  }

  void on_frame(ConnectionId connection, std::string_view frame) override {
    const Result<StepReply> reply = decode_step_reply(frame);
    if (!reply) {
      env().transport.close(connection);
      return come_again(reply.error().message);
    }
    if (const auto* asked = std::get_if<StepChallenge>(&*reply)) {
      challenge_ = step_challenge(env().entropy);
      const StepQuestion question{StepEnd::kCaller, 0, asked->challenge};
      say(StepProof{step_proof(gang().secret, question), challenge_});
    } else if (const auto* welcome = std::get_if<StepWelcome>(&*reply)) {
      const StepQuestion question{StepEnd::kNode, 0, challenge_};
      attends_ = is_same_proof(welcome->proof, step_proof(gang().secret, question));
      if (!attends_) {
        env().transport.close(connection);
        return come_again("who listens there does not know the secret of this job");
      }
      complained_ = false;
      say(StepAttend{gang().here});
    } else if (attends_ && std::holds_alternative<StepJobEnd>(*reply)) {
      server_.done_ = 0;
    }
  }

  void on_close(ConnectionId, const Closed& closed) override { come_again(closed.error.message); }

 private:
  [[nodiscard]] Env env() const { return server_.real_.env(); }
  [[nodiscard]] const StepGang& gang() const { return server_.settings_.gang; }
  void say(const StepRequest& request) { (void)env().transport.send(connection_, encode(request)); }

  void connect() {
    again_.reset();
    const Result<std::string> address = gang().address_of(0);
    if (!address) return come_again(address.error().message);
    const auto connection = env().transport.connect(*address, *this);
    if (!connection) return come_again(connection.error().message);
    connection_ = *connection;
  }

  void come_again(const std::string& why) {
    const bool was_here = std::exchange(attends_, false);
    if ((was_here || env().clock.now_monotonic() > late_) && !std::exchange(complained_, true)) {
      complain(fmt::format("waits for {}, the job's first node: {}", gang().addresses[0], why));
    }
    again_ = env().timers.call_after(Duration::milliseconds(200), [this] { connect(); });
  }

  StepServer& server_;
  Instant late_;
  ConnectionId connection_ = ConnectionId::kNone;
  std::optional<TimerId> again_;
  std::string challenge_;  ///< ours
  bool attends_ = false;
  bool complained_ = false;
};

// --- Its life -----------------------------------------------------------------------------------

StepServer::StepServer(RealEnv& real, StepServerSettings settings)
    : real_(real), settings_(std::move(settings)) {
  for (std::string& device : devices_of(settings_.environment)) device_use_[std::move(device)] = 0;
}

StepServer::~StepServer() = default;

Result<std::unique_ptr<StepServer>> StepServer::open(RealEnv& real, StepServerSettings settings) {
  auto server = std::make_unique<StepServer>(real, std::move(settings));
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&wanted, number);
  FileDescriptor signals(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals.valid()) return environment_error("cannot watch signals");
  // Makes the ends of processes in the script's group visible to this process.
  if (Status adopting = adopt_orphans(); !adopting) return forward_error(adopting);
  auto watch =
      DescriptorWatch::make(real.loop(), std::move(signals),
                            [at = server.get()](std::string_view bytes) { at->on_signals(bytes); });
  if (!watch) return forward_error(watch);
  server->signals_ = *std::move(watch);
  const Result<Listening> listening =
      real.env().transport.listen(server->settings_.gang.listening_address(), *server);
  if (!listening) return tl::unexpected(listening.error());
  for (auto& [name, value] : server->settings_.environment) {
    if (name != "ORRERY_STEP_PORT" || server->settings_.gang.addresses.size() > 1) continue;
    value = listening->address.substr(listening->address.rfind(':') + 1);
  }
  return server;
}

int StepServer::run() {
  const StepServerSettings& with = settings_;
  if (with.gang.here > 0) {
    attendance_ = std::make_unique<Attendance>(*this);
  } else {
    const Variables environment =
        script_environment(with.environment, with.gang.addresses.size(), with.tools);
    const Result<pid_t> script = start_process({.command = with.script,
                                                .environment = environment,
                                                .directory = with.directory,
                                                .user = {},
                                                .output = 1,
                                                .errors = 2,
                                                .groups = {}});
    if (script) {
      script_group_ = *script;
    } else {
      complain(script.error().message);
      script_ended(127);
      finish_if_over();
    }
  }
  real_.run_until([this] { return done_.has_value(); });
  end_all(SIGKILL);
  return *done_;
}

void StepServer::on_signals(std::string_view signals) {
  for (std::size_t at = 0; at + sizeof(signalfd_siginfo) <= signals.size();
       at += sizeof(signalfd_siginfo)) {
    signalfd_siginfo signal;
    std::memcpy(&signal, signals.data() + at, sizeof signal);
    if (signal.ssi_signo == SIGCHLD) continue;
    told_to_end_ = static_cast<int>(signal.ssi_signo);
    end_all(*told_to_end_);
  }
  reap();
}

void StepServer::end_all(int number) {
  if (script_group_ >= 0) (void)::kill(-script_group_, number);
  for (const auto& [connection, session] : sessions_) session->signal(number);
  for (const auto& session : leaving_) session->signal(number);
}

void StepServer::reap() {
  while (true) {
    siginfo_t child{};
    // An ended process that is not yet reaped: its number names no other process.
    if (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 || child.si_pid == 0) break;
    const int status = child.si_code == CLD_EXITED ? child.si_status : 128 + child.si_status;
    if (child.si_pid == script_group_ && !script_status_) script_ended(status);
    for (const auto& [connection, session] : sessions_) task_ended(*session, child.si_pid, status);
    for (const auto& session : leaving_) task_ended(*session, child.si_pid, status);
    (void)::waitpid(child.si_pid, nullptr, 0);
  }
  std::erase_if(leaving_, [](const auto& session) { return session->over(); });
  finish_if_over();
}

/// Kills what the script left behind; after a SIGTERM that may end by itself instead.
void StepServer::script_ended(int status) {
  script_status_ = status;
  if (told_to_end_) return;
  if (script_group_ >= 0) (void)::kill(-std::exchange(script_group_, -1), SIGKILL);
  (void)real_.env().timers.call_after(settings_.patience, [this] {
    if (!done_) complain("the script has ended; waits for nodes of the job that were not heard of");
  });
}

/// After SIGTERM the server ends when no process is left: the keeper kills those that take longer
/// than the job's grace. Else it ends with the script, once all other nodes know: a node that does
/// not would wait for ever.
void StepServer::finish_if_over() {
  if (done_) return;
  if (told_to_end_) {
    if (script_status_ && script_group_ >= 0 && ::kill(-script_group_, 0) != 0) script_group_ = -1;
    // An srun closes its connection when it has received the end of all tasks.
    const bool idle = leaving_.empty() && std::ranges::none_of(sessions_, [](const auto& each) {
                        return each.second->phase == Session::Phase::kStep;
                      });
    if (script_group_ >= 0 || !idle) return;
    done_ = script_status_.value_or(128 + *told_to_end_);
  } else if (script_status_ && all_attend()) {
    done_ = script_status_;
  }
  if (!done_) return;
  for (const auto& [connection, session] : sessions_) {
    if (session->attends) say(*session, StepJobEnd{});
  }
}

bool StepServer::all_attend() const {
  std::set<std::uint32_t> present = {0};
  for (const auto& [connection, session] : sessions_) {
    if (session->attends) present.insert(*session->attends);
  }
  return present.size() == settings_.gang.addresses.size();
}

void StepServer::task_ended(Session& session, pid_t process, int status) {
  for (std::uint32_t local = 0; local < session.tasks.size(); ++local) {
    Session::Task& task = session.tasks[local];
    if (task.process == nullptr || task.process->pid() != process) continue;
    task.process->finish();
    const PipeWriter* input = task.process->input();
    if (input != nullptr && input->waits() && --session.reading == 0) {
      say(session, StepInputTaken{});
    }
    task.process.reset();
    give_back(task.devices);
    say(session, StepTaskEnd{session.order.first + local, static_cast<std::uint32_t>(status)});
  }
}

// --- Connections --------------------------------------------------------------------------------

void StepServer::on_accept(const Accepted& accepted) {
  constexpr Duration kProofTime = Duration::seconds(30);
  auto session = std::make_unique<Session>();
  session->connection = accepted.connection;
  session->challenge = step_challenge(real_.env().entropy);
  say(*session, StepChallenge{session->challenge});
  sessions_.emplace(accepted.connection, std::move(session));
  (void)real_.env().timers.call_after(kProofTime, [this, id = accepted.connection] {
    const auto found = sessions_.find(id);
    if (found != sessions_.end() && found->second->phase == Session::Phase::kChallenged) drop(id);
  });
}

void StepServer::on_frame(ConnectionId connection, std::string_view frame) {
  const auto found = sessions_.find(connection);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  Result<StepRequest> request = decode_step_request(frame);
  const bool proves = request && std::holds_alternative<StepProof>(*request);
  if (!request || proves != (session.phase == Session::Phase::kChallenged)) return drop(connection);
  std::visit([&](auto& what) { answer(session, std::move(what)); }, *request);
}

void StepServer::on_close(ConnectionId connection, const Closed&) {
  const auto found = sessions_.find(connection);
  if (found == sessions_.end()) return;
  std::unique_ptr<Session> session = std::move(found->second);
  sessions_.erase(found);
  session->connection = ConnectionId::kNone;
  session->signal(SIGKILL);
  if (!session->over()) leaving_.push_back(std::move(session));
  finish_if_over();
}

void StepServer::drop(ConnectionId connection) {
  real_.env().transport.close(connection);
  on_close(connection, {});
}

void StepServer::answer(Session& session, const StepProof& proof) {
  const StepGang& gang = settings_.gang;
  const std::string expected =
      step_proof(gang.secret, {StepEnd::kCaller, gang.here, session.challenge});
  if (!is_same_proof(proof.proof, expected)) return drop(session.connection);
  session.phase = Session::Phase::kProven;
  say(session, StepWelcome{step_proof(gang.secret, {StepEnd::kNode, gang.here, proof.challenge})});
}

void StepServer::answer(Session& session, StepOrder order) {
  constexpr std::uint32_t kTasksMax = 4096;
  const bool fits = session.phase == Session::Phase::kProven && !order.command.empty() &&
                    order.tasks <= kTasksMax;
  if (!fits) return drop(session.connection);
  session.phase = Session::Phase::kStep;
  session.order = std::move(order);
  session.tasks.resize(session.order.tasks);
  for (std::uint32_t local = 0; local < session.order.tasks; ++local) start_task(session, local);
}

void StepServer::start_task(Session& session, std::uint32_t local) {
  const StepOrder& order = session.order;
  const std::uint32_t number = order.first + local;
  Session::Task& task = session.tasks[local];
  task.devices = take_devices(order.devices);
  const bool reads = order.readers == StepReaders::kAll ||
                     (order.readers == StepReaders::kOne && order.reader == number);
  const Variables environment =
      task_environment(order, settings_.environment, settings_.tools, {local, task.devices});
  auto started = StepTask::start(
      real_.loop(),
      {.command = order.command,
       .environment = environment,
       .directory = order.directory,
       .input = reads ? TaskInput::kPipe : TaskInput::kNone,
       .wrote =
           [this, &session, number](std::uint32_t descriptor, std::string_view bytes) {
             wrote(session, {number, descriptor, std::string(bytes)});
           },
       .taken =
           [this, &session] {
             if (session.reading == 0) return;
             --session.reading;
             if (session.reading == 0) say(session, StepInputTaken{});
           }});
  if (started) {
    task.process = *std::move(started);
    return;
  }
  give_back(task.devices);
  wrote(session, {number, 2, fmt::format("srun: error: {}\n", started.error().message)});
  say(session, StepTaskEnd{number, 127});
}

/// Takes the devices with the fewest tasks, in the node's order.
std::vector<std::string> StepServer::take_devices(std::size_t count) {
  std::vector<std::string> order = devices_of(settings_.environment);
  std::ranges::stable_sort(order, [&](const std::string& a, const std::string& b) {
    return device_use_[a] < device_use_[b];
  });
  order.resize(std::min(order.size(), count));
  for (const std::string& device : order) ++device_use_[device];
  return order;
}

void StepServer::give_back(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) --device_use_[device];
}

void StepServer::answer(Session& session, const StepInput& input) {
  std::vector<PipeWriter*> readers;
  for (const Session::Task& task : session.tasks) {
    if (task.process != nullptr && task.process->input() != nullptr) {
      readers.push_back(task.process->input());
    }
  }
  session.reading = readers.size() + 1;  // one for here, so that it is said once and at the end
  for (PipeWriter* reader : readers) {
    if (input.bytes.empty()) {
      --session.reading;
      reader->finish();
    } else {
      reader->put(input.bytes);
    }
  }
  if (--session.reading == 0) say(session, StepInputTaken{});
}

void StepServer::answer(Session& session, const StepSignal& signal) {
  // After SIGTERM, tasks have the job's grace, however long srun waits for them.
  if (told_to_end_ && signal.number == SIGKILL) return;
  if (signal.number > 0 && signal.number < NSIG) session.signal(static_cast<int>(signal.number));
}

void StepServer::answer(Session& session, const StepTaken& taken) {
  session.ahead -= std::min(session.ahead, taken.bytes);
  if (!session.paused || session.ahead > kStepBytesAhead / 2) return;
  session.paused = false;
  for (const Session::Task& task : session.tasks) {
    if (task.process != nullptr) task.process->resume();
  }
}

void StepServer::answer(Session& session, const StepAttend& attend) {
  const bool fits =
      session.phase == Session::Phase::kProven && attend.node < settings_.gang.addresses.size();
  if (!fits) return drop(session.connection);
  session.phase = Session::Phase::kAttends;
  session.attends = attend.node;
  finish_if_over();
}

void StepServer::wrote(Session& session, StepOutput output) {
  session.ahead += output.bytes.size();
  say(session, std::move(output));
  if (session.paused || session.ahead < kStepBytesAhead) return;
  session.paused = true;
  for (const Session::Task& task : session.tasks) {
    if (task.process != nullptr) task.process->pause();
  }
}

void StepServer::say(Session& session, const StepReply& reply) {
  if (session.connection == ConnectionId::kNone) return;
  const SendOutcome outcome = real_.env().transport.send(session.connection, encode(reply));
  if (outcome == SendOutcome::kQueued || outcome == SendOutcome::kClosed) return;
  // srun would wait for ever for a message that it never receives, so it must see that this node is
  // lost. The connection is dropped later, because the caller goes on with the session.
  const ConnectionId connection = std::exchange(session.connection, ConnectionId::kNone);
  (void)real_.env().timers.call_after(Duration(), [this, connection] { drop(connection); });
}

}  // namespace orrery
