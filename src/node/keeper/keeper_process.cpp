#include "node/keeper/keeper_process.hpp"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/format/checksum.hpp"
#include "base/format/field_writer.hpp"
#include "node/keeper/rank_process.hpp"
#include "node/machine/usable_cores.hpp"
#include "node/steps/step_secret.hpp"

namespace orrery {
namespace {

tl::unexpected<Error> system_error(std::string_view what) {
  return environment_error(
      fmt::format("cannot {}: {}", what, std::generic_category().message(errno)));
}

template <class T>
Status status_of(StorageResult<T> result) {
  if (!result) return forward_error(result);
  return {};
}

/// Runs a program of Orrery's own that is named without a path from beside the keeper, if it is
/// there.
Status find_program(std::string& program) {
  if (!program.starts_with("orrery-") || program.find('/') != program.npos) return {};
  std::error_code failed;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) {
    return environment_error(fmt::format("cannot find {}: {}", program, failed.message()));
  }
  const std::filesystem::path beside = own.parent_path() / program;
  if (std::filesystem::exists(beside, failed)) program = beside;
  return {};
}

}  // namespace

Result<std::unique_ptr<ControlGroup>> make_keeper_group(Storage& storage,
                                                        const KeeperFiles& files) {
  const auto read = [&](const char* path) {
    return storage.read_file(path, std::size_t{1} << 20).value_or("");
  };
  const std::string groups = read("/proc/self/cgroup");
  const std::string mounts = read("/proc/self/mounts");
  const Result<ControlGroupPlace> place = own_control_group({groups, mounts});
  if (!place) return tl::unexpected(place.error());
  // The directory's lock makes sure that there is one keeper of this name.
  return ControlGroup::make(*place,
                            fmt::format("{}{:016x}", kGroupPrefix, checksum(files.directory, 0)));
}

Result<std::unique_ptr<KeeperProcess>> KeeperProcess::open(RealEnv& real,
                                                           const KeeperFiles& files) {
  Result<KeeperLaunch> launch = read_keeper_launch(real.env().storage, files);
  if (!launch) return forward_error(launch);
  auto process = std::make_unique<KeeperProcess>(real, files, *std::move(launch));
  if (Status ready = process->prepare(); !ready) return forward_error(ready);
  return process;
}

KeeperProcess::KeeperProcess(RealEnv& real, KeeperFiles files, KeeperLaunch launch)
    : real_(real),
      files_(std::move(files)),
      launch_(std::move(launch)),
      keeper_(launch_.stamp, launch_.ranks, clock_.now_boot()),
      commands_(real_.loop(), [this](const KeeperOutput& output) { tell(output); }),
      saved_at_(clock_.now_boot()) {}

Status KeeperProcess::prepare() {
  Storage& storage = real_.env().storage;
  launch_.facts.progress = files_.progress();
  if (Status made = status_of(storage.make_directories(files_.logs)); !made) return made;
  if (launch_.directory.empty()) {
    launch_.directory = files_.work();
    if (Status made = status_of(storage.make_directories(files_.work())); !made) return made;
  }
  if (Status made = status_of(storage.make_directories(files_.scratch())); !made) return made;
  launch_.facts.environment.emplace_back("ORRERY_SCRATCH", files_.scratch());
  if (Status adopting = adopt_orphans(); !adopting) return adopting;
  join_group();
  auto stream = ProgressStream::open(real_.loop(), files_.progress(),
                                     [this](const ProgressLine& line) { on_line(line); });
  if (!stream) return forward_error(stream);
  stream_ = *std::move(stream);
  if (Status prepared = prepare_user(); !prepared) return prepared;
  if (launch_.facts.style == LaunchStyle::kSlurm) {
    if (Status written = write_script(); !written) return written;
  } else if (Status found = find_program(launch_.facts.command[0]); !found) {
    return found;
  }
  if (Status watching = watch_signals(); !watching) return watching;
  if (Status watching = watch_time(); !watching) return watching;
  const Result<Listening> listening = real_.env().transport.listen(files_.socket(), *this);
  if (!listening) return tl::unexpected(listening.error());
  return {};
}

void KeeperProcess::join_group() {
  Storage& storage = real_.env().storage;
  auto group = make_keeper_group(storage, files_);
  if (!group) note(group.error().message);
  ranks_ = std::make_unique<RankTable>(real_.loop(), storage, files_,
                                       group ? *std::move(group) : nullptr);
  ranks_->on_other_end([this](pid_t pid, int status) { commands_.note_end(pid, status); });
}

/// Gives what the ranks write to and begin in to their user; only root can do so.
Status KeeperProcess::prepare_user() {
  if (!launch_.user) return {};
  if (::geteuid() != 0) {
    return environment_error(fmt::format("cannot run the ranks as user {}: the keeper is user {}",
                                         launch_.user->uid, ::geteuid()));
  }
  give_to_user(files_.progress());
  give_to_user(files_.scratch());
  if (launch_.directory == files_.work()) give_to_user(files_.work());
  return {};
}

void KeeperProcess::give_to_user(const std::string& path) {
  // A job may exchange what lies in its own directories for a link: the link itself is given away.
  if (!launch_.user || ::lchown(path.c_str(), launch_.user->uid, launch_.user->gid) == 0) return;
  note(fmt::format("cannot give {} to user {}: {}", path, launch_.user->uid,
                   std::generic_category().message(errno)));
}

Status KeeperProcess::watch_signals() {
  // A process that does not read its input must not end the keeper.
  (void)std::signal(SIGPIPE, SIG_IGN);
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGTERM);
  FileDescriptor signals(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals.valid()) return system_error("watch signals");
  auto watch = DescriptorWatch::make(real_.loop(), std::move(signals),
                                     [this](std::string_view bytes) { on_signal(bytes); });
  if (!watch) return forward_error(watch);
  signals_ = *std::move(watch);
  return {};
}

Status KeeperProcess::watch_time() {
  FileDescriptor timer(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer.valid()) return system_error("make a timer");
  auto watch = DescriptorWatch::make(real_.loop(), std::move(timer), [this](std::string_view) {
    keeper_.on_timer(now());
    act();
  });
  if (!watch) return forward_error(watch);
  timer_ = *std::move(watch);
  return {};
}

void KeeperProcess::run() {
  act();
  real_.run_until([this] { return done_; });
}

// --- What comes in ------------------------------------------------------------------------------

void KeeperProcess::on_signal(std::string_view signals) {
  for (std::size_t at = 0; at + sizeof(signalfd_siginfo) <= signals.size();
       at += sizeof(signalfd_siginfo)) {
    signalfd_siginfo signal;
    std::memcpy(&signal, signals.data() + at, sizeof signal);
    if (signal.ssi_signo != SIGTERM) continue;
    ending_ = true;
    keeper_.on_signal(now());
  }
  stream_->drain();
  for (ProcessExit& exit : ranks_->reap()) {
    const bool wrong =
        std::find(wrong_slots_.begin(), wrong_slots_.end(), exit.slot) != wrong_slots_.end();
    if (wrong) exit.cause.layer = FaultLayer::kAccelerator;
    steps_.begin_anew();  // What the others do once one is done may take any time.
    keeper_.on_process_exit(exit, now());
  }
  act();
}

void KeeperProcess::on_line(const ProgressLine& line) {
  const FenceToken token = keeper_.report().token;
  if (line.epoch && *line.epoch < token.epoch) return;
  if (line.epoch && line.rank) {
    for (const RankSlot& slot : ranks_->slots_of(*line.rank)) {
      keeper_.on_process_up({slot, *line.epoch}, now());
    }
  }
  if (line.wrong) {
    wrong_ = *line.wrong;
    if (line.rank) wrong_slots_ = ranks_->slots_of(*line.rank);
    send_wrong();
  }
  if (line.replica) keeper_.on_replica(token, *line.replica);
  steps_.note(line, clock_.now_monotonic());
  await_hang();
  if (line.step) progress_.step = *line.step;
  if (line.loss) progress_.loss = *line.loss;
  if (line.tokens) progress_.tokens = *line.tokens;
  if (line.checkpoint) {
    progress_.checkpoint = *line.checkpoint;
    progress_.saved_step = progress_.step;
    saved_at_ = now();
  }
  report_soon();
  act();
}

void KeeperProcess::on_accept(const Accepted&) {}

void KeeperProcess::on_close(ConnectionId connection, const Closed&) {
  if (connection == agent_) lose_agent();
}

/// Commands beside the ranks belong to clients of the agent and end with it. Their end is deferred,
/// because this may be called while a command reports its output.
void KeeperProcess::lose_agent() {
  agent_ = ConnectionId::kNone;
  real_.loop().post([this] { commands_.hang_up_all(); });
}

void KeeperProcess::on_frame(ConnectionId connection, std::string_view frame) {
  Result<KeeperInput> message = decode_keeper_input(frame);
  if (!message) {
    note(fmt::format("a message was not understood: {}", message.error().message));
    real_.env().transport.close(connection);
    if (connection == agent_) lose_agent();
    return;
  }
  if (auto* order = std::get_if<AgentOrder>(&*message)) {
    follow(connection, std::move(*order));
  } else if (const auto* question = std::get_if<LogQuestion>(&*message)) {
    answer(connection, *question);
  } else if (const auto* open = std::get_if<ExecOpen>(&*message)) {
    answer(connection, *open);
  } else {
    answer(connection, std::get<ExecInput>(*message));
  }
}

void KeeperProcess::follow(ConnectionId connection, AgentOrder order) {
  if (connection != agent_ && agent_ != ConnectionId::kNone) {
    real_.env().transport.close(agent_);
    commands_.hang_up_all();
  }
  if (std::exchange(agent_, connection) != connection) {
    tell(KeeperAbilities{.commands = true});
    said_paces_.clear();
    send_wrong();
  }
  if (const auto* launch = std::get_if<LaunchRanks>(&order.order.what)) {
    const std::vector<GangLayout>& gangs = order.gangs.empty() ? launch_.gangs : order.gangs;
    if (const std::string wrong = launch_complaint(*launch, gangs); !wrong.empty()) {
      note(fmt::format("an order was not followed: {}", wrong));
      return send_status();
    }
    if (!order.gangs.empty() && launch->token >= keeper_.report().token) {
      launch_.gangs = std::move(order.gangs);
    }
  }
  keeper_.on_order(order.order, now());
  act();
  send_paces();
}

void KeeperProcess::answer(ConnectionId connection, const LogQuestion& question) {
  LogTail tail{.question = question};
  if (const RankLog* log = ranks_->log(question.gang, question.rank); log != nullptr) {
    tail.found = true;
    tail.part = log->read(question.from);
  }
  (void)real_.env().transport.send(connection, encode(KeeperOutput(std::move(tail))));
}

void KeeperProcess::answer(ConnectionId connection, const ExecOpen& open) {
  if (connection == agent_) commands_.open(open, *ranks_, launch_);
}

void KeeperProcess::answer(ConnectionId connection, const ExecInput& input) {
  if (connection == agent_) commands_.take(input);
}

void KeeperProcess::tell(const KeeperOutput& output) {
  if (agent_ == ConnectionId::kNone) return;
  if (real_.env().transport.send(agent_, encode(output)) == SendOutcome::kQueued) return;
  real_.env().transport.close(agent_);
  lose_agent();
}

// --- What is done -------------------------------------------------------------------------------

void KeeperProcess::act() {
  for (std::vector<KeeperEffect> effects = keeper_.take(); !effects.empty();
       effects = keeper_.take()) {
    for (const KeeperEffect& effect : effects) {
      std::visit([this](const auto& what) { apply(what); }, effect);
    }
  }
  if (ending_ && keeper_.stage() == RankStage::kGone) done_ = true;
  arm_timer();
}

void KeeperProcess::apply(const StartProcesses& start) {
  shares_ = start.shares;
  steps_.begin_anew();
  limit_ranks();
  fence_ranks();
  write_membership(start.token.epoch);
  for (const RankShare& share : start.shares) start_share(start, share);
}

void KeeperProcess::start_share(const StartProcesses& start, const RankShare& share) {
  const GangLayout& layout = layout_of(share.gang, launch_.gangs);
  launch_.facts.hostfile = files_.hostfile(share.gang);
  launch_.facts.rankfile = files_.rankfile(share.gang);
  const std::vector<RankStart> starts = rank_starts(launch_.facts, layout, share);
  if (starts.empty()) return hold_share(share, start.token.epoch);
  if (launch_.facts.style == LaunchStyle::kMpi) write_mpi_files(layout);
  for (const RankStart& each : starts) {
    const bool fresh = std::any_of(each.slots.begin(), each.slots.end(), [&](const RankSlot& slot) {
      return std::binary_search(start.fresh.begin(), start.fresh.end(), slot);
    });
    const bool runs = ranks_->runs(each);
    if (!fresh && !runs) continue;  // its exit is on its way
    const Status started = runs ? Status() : ranks_->start(each, launch_);
    for (const RankSlot& slot : each.slots) {
      // What its program does after its start is not observed, so it counts as up.
      if (started) {
        keeper_.on_process_up({slot, start.token.epoch}, now());
      } else {
        const Blame cause{.layer = FaultLayer::kProgram, .evidence = started.error().message};
        keeper_.on_process_exit({slot, 127, cause}, now());
      }
    }
  }
}

/// A process on another node uses these devices: the part here counts as done, and keeps its
/// devices until the whole attempt is over.
void KeeperProcess::hold_share(const RankShare& share, std::uint32_t epoch) {
  std::vector<RankSlot> slots;
  slots.reserve(share.ranks.size());
  for (std::uint64_t left = share.devices; left != 0; left &= left - 1) {
    slots.push_back({share.gang, static_cast<std::uint32_t>(std::countr_zero(left))});
  }
  for (const RankSlot& slot : slots) keeper_.on_process_up({slot, epoch}, now());
  for (const RankSlot& slot : slots) keeper_.on_process_exit({slot, 0, {}}, now());
}

/// Writes the script and the secret of its steps. The secret is in no environment: scripts print
/// theirs into logs, which others read.
Status KeeperProcess::write_script() {
  const std::filesystem::path script = files_.script();
  const std::string place = script.parent_path();
  if (Status made = status_of(real_.env().storage.make_directories(place)); !made) return made;
  std::error_code failed;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed)
    return environment_error(fmt::format("cannot find orrery-srun: {}", failed.message()));
  std::vector<std::string>& command = launch_.facts.command;
  if (Status written = write_for_user(script, command[0]); !written) return written;
  for (auto& [name, value] : launch_.facts.environment) {
    if (name != kStepSecretVariable) continue;
    if (Status written = write_for_user(files_.step_secret(), value); !written) return written;
    name = kStepSecretFileVariable;
    value = files_.step_secret();
  }
  give_to_user(place);
  command[0] = script;
  command.insert(command.begin(), own.parent_path() / "orrery-srun");
  return {};
}

void KeeperProcess::write_mpi_files(const GangLayout& layout) {
  const LaunchFacts& facts = launch_.facts;
  write_or_note(facts.hostfile, mpi_hostfile(layout, facts.per));
  const std::uint32_t cores = physical_cores(real_.env().storage);
  write_or_note(facts.rankfile, mpi_rankfile(layout, facts.per, cores));
}

void KeeperProcess::write_membership(std::uint32_t epoch) {
  Json gangs = Json::array();
  for (const GangLayout& layout : launch_.gangs) {
    Json nodes = Json::array();
    for (const GangNode& node : layout.nodes) {
      nodes.push_back({{"address", node.address}, {"ranks", node.ranks}});
    }
    gangs.push_back({{"gang", layout.gang}, {"nodes", std::move(nodes)}});
  }
  write_or_note(files_.membership(), Json{{"epoch", epoch}, {"gangs", std::move(gangs)}}.dump());
}

Status KeeperProcess::write_for_user(const std::string& path, std::string_view text) {
  if (Status written = status_of(real_.env().storage.write_file(path, text)); !written) {
    return written;
  }
  give_to_user(path);
  return {};
}

void KeeperProcess::write_or_note(const std::string& path, std::string_view text) {
  if (const Status written = write_for_user(path, text); !written) note(written.error().message);
}

void KeeperProcess::apply(const SignalProcesses& signal) {
  ranks_->signal(signal.signal, signal.slots);
}

void KeeperProcess::apply(const CapClock& cap) {
  for (RankShare& share : shares_) {
    if (share.gang == cap.share.gang) share.clock = cap.share.clock;
  }
  limit_ranks();
}

/// Devices with a driver are left out: their clocks are the agent's report.
void KeeperProcess::limit_ranks() {
  const Status limited = ranks_->limit(limits_of(shares_, launch_));
  if (limited) return;
  note(limited.error().message);
  for (const RankShare& share : shares_) {
    if (launch_.device_cpu > 0 && share.clock < 1) keeper_.on_clock(share.gang, 1);
  }
}

/// A refusal of the kernel becomes a note of the job; its ranks run without that limit.
void KeeperProcess::fence_ranks() {
  const Status fenced =
      ranks_->fence(launch_.processes_max, denied_devices(launch_.devices, shares_));
  if (!fenced) note(fenced.error().message);
}

void KeeperProcess::apply(const AttemptReport&) { send_status(); }

void KeeperProcess::apply(const ExitKeeper&) { done_ = true; }

void KeeperProcess::arm_timer() {
  const Instant due = keeper_.next_due();
  itimerspec setting{};
  if (due != Instant::max()) {
    const std::int64_t ns = std::max<std::int64_t>(due.ns(), 1);  // Zero would disarm it.
    setting.it_value.tv_sec = ns / 1'000'000'000;
    setting.it_value.tv_nsec = ns % 1'000'000'000;
  }
  (void)::timerfd_settime(timer_->get(), TFD_TIMER_ABSTIME, &setting, nullptr);
}

void KeeperProcess::await_hang() {
  constexpr Duration kLook = Duration::seconds(5);
  const Instant due = steps_.due();
  if (hang_timer_ || due == Instant::max()) return;
  const Instant present = clock_.now_monotonic();
  const Duration delay = std::clamp(due - present, Duration(), kLook);
  hang_timer_ = real_.env().timers.call_after(
      delay, [this, expected = present + delay] { look_for_hang(expected); });
}

void KeeperProcess::look_for_hang(Instant expected) {
  constexpr Duration kLate = Duration::seconds(5);
  hang_timer_.reset();
  const Instant present = clock_.now_monotonic();
  // The keeper was held still, and so were the ranks.
  if (present - expected > kLate) steps_.excuse(present);
  if (present < steps_.due()) return await_hang();
  const StepWatch::Hang hang = steps_.hang(present);
  const Status saved = ranks_->save_stacks();
  if (!saved) note(saved.error().message);
  keeper_.on_hang(
      fmt::format("no progress for {}: {} told step {} last, a step takes {}; {}",
                  hang.silent.text(), hang.rank ? fmt::format("rank {}", *hang.rank) : "the ranks",
                  hang.step, hang.usual.text(),
                  saved ? "stacks are in " + files_.stacks() : "no stacks were saved"),
      now());
  act();
}

/// Ranks may write a thousand lines a second; the agent gets the first report at once, then one per
/// second.
void KeeperProcess::report_soon() {
  if (quiet_) {
    unsaid_ = true;
    return;
  }
  quiet_ = true;
  unsaid_ = false;
  send_status();
  send_paces();
  (void)real_.env().timers.call_after(Duration::seconds(1), [this] {
    quiet_ = false;
    if (unsaid_) report_soon();
  });
}

void KeeperProcess::send_status() {
  if (agent_ == ConnectionId::kNone) return;
  progress_.bad_lines = stream_->bad_lines();
  Progress progress;
  if (launch_.work_steps > 0) {
    progress.done = std::min(
        1.0, static_cast<double>(progress_.saved_step) / static_cast<double>(launch_.work_steps));
  }
  progress.lost = now() - saved_at_;
  keeper_.on_progress(keeper_.report().token, progress);
  const KeeperStatus status{keeper_.report(), progress_, notes_};
  if (real_.env().transport.send(agent_, encode(KeeperOutput(status))) != SendOutcome::kQueued) {
    // The agent does not read: once it connects again it is sent the whole state.
    real_.env().transport.close(agent_);
    lose_agent();
  }
}

void KeeperProcess::send_paces() {
  std::vector<RankPace> paces = steps_.paces();
  if (agent_ == ConnectionId::kNone || paces.empty() || paces == said_paces_) return;
  said_paces_ = paces;
  // A lost message is made good by the next one.
  (void)real_.env().transport.send(agent_, encode(KeeperOutput(RankPaces{std::move(paces)})));
}

void KeeperProcess::send_wrong() {
  if (agent_ == ConnectionId::kNone || wrong_.empty()) return;
  (void)real_.env().transport.send(agent_, encode(KeeperOutput(WrongResults{wrong_})));
}

void KeeperProcess::note(std::string text) {
  constexpr std::size_t kNotesMax = 32;
  const bool known = std::find(notes_.begin(), notes_.end(), text) != notes_.end();
  if (!known && notes_.size() < kNotesMax) notes_.push_back(std::move(text));
}

}  // namespace orrery
