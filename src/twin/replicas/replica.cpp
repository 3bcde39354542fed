#include "twin/replicas/replica.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace orrery {
namespace {

constexpr Duration kStartAgain = Duration::seconds(1);
constexpr std::size_t kProcessesMax = 1'000;  ///< of one machine

/// Why a process may end: it was replaced, cut off while it began to lead, or its log was restored
/// from a backup or compacted.
constexpr std::array<std::string_view, 6> kGoodReasons{
    "may write no more", "another writer has claimed",   "was restored from a backup",
    "were dropped",      "another controller has taken", "no answer"};
constexpr std::string_view kRefusal = "this machine has seen";

}  // namespace

void Replica::TraceSink::write_line(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (context_.traces()) context_.note(fmt::format("{}: {}", name_, line));
}

Replica::Replica(const ReplicaParts& parts, std::size_t number)
    : parts_(parts),
      name_(fmt::format("replica-{}", number)),
      sink_(parts.context, name_),
      log_(sink_),
      machine_{.number = number} {}

// --- The process --------------------------------------------------------------------------------

void Replica::start() {
  if (lives()) return;
  ended_ = false;
  const std::size_t number = (machine_.number + 1) * kProcessesMax + ++processes_;
  parts_.context.note(fmt::format("{} starts process {}", name_, number));
  process_ = std::make_unique<Process>(parts_, machine_, number, log_);
  process_->options.emplace(make_options());
  auto standby = Standby::begin(process_->env.env(), log_, *process_->options, events());
  if (!standby) return fail(standby.error());
  process_->standby = *std::move(standby);
}

Replica::Process::Process(const ReplicaParts& parts, ReplicaMachine& machine, std::size_t number,
                          const Log& log)
    : env(parts.context, machine.files, Rng::stream(parts.seed, fmt::format("process {}", number))),
      handle{parts.etcd, machine, env, number, log} {}

ControllerOptions Replica::make_options() {
  const auto archive = [this]() -> StorageResult<std::unique_ptr<StoreReader>> {
    return std::make_unique<MemoryStore>(machine_.archive);
  };
  const auto open = [this]() -> StorageResult<std::unique_ptr<SharedStore>> {
    auto store = VirtualStore::open(process_->handle);
    if (!store) return forward_failure(store);
    return *std::move(store);
  };
  return {.directory = name_,
          .setup = parts_.setup,
          .facts = parts_.facts,
          .settings = parts_.settings,
          .archived_form = [](const EndedJob& job) { return job.state.job(job.job).name; },
          .shared = SharedLog{.open = open,
                              .open_log = archive,
                              .open_archive = archive,
                              .writer = name_,
                              .claims_after = parts_.claims_after},
          .failed = [this](const Error& why) { fail(why); }};
}

Standby::Events Replica::events() {
  return {.texts = [](const StoreTexts&) {},
          .leader = [](const std::string&) {},
          .claimed = [](Store&, StoreTerm) {},
          .lead = [this](LiveStart start) { lead(std::move(start)); },
          .failed = [this](const Error& why) { fail(why); }};
}

void Replica::lead(LiveStart start) {
  if (process_->standby->newest() > 0) {
    parts_.promises.applied(start.history.newest, start.history.history_hash);
  }
  parts_.context.note(name_ + " leads");
  ReplicaProcess& handle = process_->handle;
  process_->leader = std::make_unique<ReplicaLeader>(
      handle, *process_->options, std::move(start),
      ReplicaLeader::Outside{.send =
                                 [this](const Order& order) {
                                   speak();
                                   parts_.send(order);
                                 },
                             .failed = [this](const Error& why) { fail(why); }});
  process_->env.env().post([this] { process_->standby.reset(); });
}

void Replica::fail(const Error& why) {
  if (std::exchange(ended_, true)) return;
  const std::string text = why.text();
  parts_.context.note(fmt::format("{} ends: {}", name_, text));
  const bool good = std::ranges::any_of(
      kGoodReasons, [&](std::string_view reason) { return text.find(reason) != text.npos; });
  if (!good) parts_.context.wrong(fmt::format("{} ends: {}", name_, text));
  if (text.find(kRefusal) != text.npos) ++refusals_;
  process_->env.end();
  VirtualTime& time = parts_.context.time();
  time.after(Duration(), [this, of = processes_] {
    if (of == processes_) destroy();
  });
  time.after(kStartAgain, [this, of = processes_] {
    if (of == processes_) start();
  });
}

void Replica::destroy() {
  if (!lives()) return;
  process_->env.end();
  process_->leader.reset();
  process_->standby.reset();
  process_.reset();
}

// --- Messages -----------------------------------------------------------------------------------

void Replica::receive(Call call) {
  if (!lives()) return;
  process_->env.arrive(
      [this, call = std::move(call)] { call(leads() ? process_->leader.get() : nullptr); });
}

void Replica::speak() { parts_.promises.spoke(process_->handle.number, process_->env.world_now()); }

// --- Faults -------------------------------------------------------------------------------------

void Replica::kill(const std::string& why) {
  if (!lives()) return;
  parts_.context.note(fmt::format("{} is killed {}", name_, why));
  process_->handle.killed = true;
  destroy();
}

void Replica::pause() {
  if (!lives()) return;
  parts_.context.note(name_ + " pauses");
  process_->env.pause();
}

void Replica::resume() {
  if (!is_paused()) return;
  parts_.context.note(name_ + " goes on");
  process_->env.resume();
}

// --- Promises -----------------------------------------------------------------------------------

void Replica::check() {
  if (!lives() || ended_) return;
  if (leads()) return check_leader();
  const Standby* const standby = process_->standby.get();
  if (standby != nullptr && standby->newest() > 0) {
    parts_.promises.applied(standby->newest(), standby->history_hash());
  }
}

void Replica::check_leader() {
  ReplicaLeader& leader = *process_->leader;
  if (const std::string halted = leader.halted(); !halted.empty()) {
    return parts_.context.wrong(halted);
  }
  if (!leader.settled() || leader.newest() == compared_) return;
  compared_ = leader.newest();
  parts_.promises.settled(compared_, leader.state());
}

}  // namespace orrery
