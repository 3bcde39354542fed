#include "runtime/elastic/member_group.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// A connection that is nobody's yet, to or from who joins.
constexpr MemberId kUnnamed{0xffff'fffe};
constexpr Duration kRound = Duration::milliseconds(50);
/// How long a stranger that answers a knock may take to say anything.
constexpr Duration kKnock = Duration::seconds(10);

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

MemberId after(MemberId id) { return static_cast<MemberId>(static_cast<std::uint32_t>(id) + 1); }

std::string endpoint_text(const std::string& address, std::uint32_t port) {
  return address.find(':') == std::string::npos ? fmt::format("tcp:{}:{}", address, port)
                                                : fmt::format("tcp:[{}]:{}", address, port);
}

RosterMember entry_of(MemberId id, const MemberHello& hello) {
  return {id, hello.endpoint, hello.workspace, hello.step};
}

}  // namespace

MemberGroup::MemberGroup(const Clock& clock, const GroupSettings& settings, PeerMesh mesh,
                         std::unique_ptr<ShmWorkspace> workspace)
    : clock_(clock),
      settings_(settings),
      mesh_(std::move(mesh)),
      workspace_(std::move(workspace)) {}

Result<std::unique_ptr<MemberGroup>> MemberGroup::make(const Clock& clock,
                                                       const GroupSettings& settings) {
  Result<ShmWorkspace> workspace = ShmWorkspace::make(settings.workspace_bytes, settings.cookie);
  if (!workspace) return forward_error(workspace);
  const std::uint32_t place = settings.ports == 0 ? 0 : settings.rank % settings.ports;
  const bool any = settings.port == 0;
  Result<PeerMesh> mesh =
      PeerMesh::listen({.address = settings.address,
                        .first = static_cast<std::uint16_t>(any ? 0 : settings.port + place),
                        .count = static_cast<std::uint16_t>(settings.ports - place)});
  if (!mesh) return forward_error(mesh);
  return std::make_unique<MemberGroup>(clock, settings, std::move(*mesh),
                                       std::make_unique<ShmWorkspace>(std::move(*workspace)));
}

// --- The first meeting --------------------------------------------------------------------------

Result<std::unique_ptr<MemberGroup>> MemberGroup::found(const Clock& clock,
                                                        const GroupSettings& settings,
                                                        std::uint64_t step) {
  Result<std::unique_ptr<MemberGroup>> group = make(clock, settings);
  if (!group) return group;
  MemberGroup& self = **group;
  self.self_ = static_cast<MemberId>(settings.rank);
  Result<Roster> first =
      settings.rank == 0 ? self.lead_first_meeting(step) : self.come_to_first_meeting(step);
  if (!first) return forward_error(first);
  if (!first->has(self.self_)) return environment_error("the first meeting was without this rank");
  if (!self.enter(std::move(*first))) {
    if (Status again = self.regroup(step); !again) return forward_error(again);
  }
  return group;
}

Result<Roster> MemberGroup::lead_first_meeting(std::uint64_t step) {
  std::vector<RosterMember> members(settings_.world);
  members[0] = entry_of(self_, hello(self_, step));
  const Instant deadline = clock_.now_monotonic() + settings_.meeting;
  const auto here = [](const RosterMember& member) { return member.id != MemberId::kNobody; };
  while (!std::all_of(members.begin(), members.end(), here)) {
    if (clock_.now_monotonic() > deadline) {
      const auto came = std::count_if(members.begin(), members.end(), here);
      return environment_error(fmt::format("{} of {} ranks came to {} within {} s", came,
                                           settings_.world, mesh_.endpoint(),
                                           settings_.meeting.count_ns() / 1'000'000'000));
    }
    mesh_.pump(kRound);
    hear_first_hellos(members);
  }
  Roster roster{.generation = 1, .members = std::move(members)};
  for (const RosterMember& member : roster.members) {
    if (member.id != self_) say(member.id, MessageKind::kRoster, to_text(roster));
  }
  return roster;
}

void MemberGroup::hear_first_hellos(std::vector<RosterMember>& members) {
  for (const PeerMesh::Stranger& stranger : mesh_.strangers()) {
    const std::optional<MemberHello> hello = read_hello(stranger.hello);
    const auto id = hello && hello->member ? *hello->member : MemberId::kNobody;
    const auto rank = static_cast<std::uint32_t>(id);
    if (!hello || hello->gang != settings_.gang || rank == 0 || rank >= members.size()) {
      mesh_.adopt(stranger.key, std::nullopt);
      continue;
    }
    mesh_.adopt(stranger.key, id);
    members[rank] = entry_of(id, *hello);
  }
}

Result<Roster> MemberGroup::come_to_first_meeting(std::uint64_t step) {
  const std::string master = endpoint_text(settings_.master, settings_.port);
  const std::string text = to_text(hello(self_, step));
  const MemberId first{0};
  const Instant deadline = clock_.now_monotonic() + settings_.meeting;
  std::string why = "nobody answered";
  while (clock_.now_monotonic() < deadline) {
    if (!mesh_.connected(first)) {
      Status met = mesh_.connect(first, master, bytes_of(text));
      if (!met) why = met.error().message;
    }
    mesh_.pump(kRound);
    const auto message = mesh_.take(first, MessageKind::kRoster);
    if (!message) continue;
    if (auto roster = read_roster(message->bytes)) return std::move(*roster);
    return environment_error(fmt::format("{} sent what is no roster", master));
  }
  return environment_error(fmt::format("rank 0 did not gather the ranks at {}: {}", master, why));
}

// --- Joining later ------------------------------------------------------------------------------

Result<std::unique_ptr<MemberGroup>> MemberGroup::join(const Clock& clock,
                                                       const GroupSettings& settings) {
  Result<std::unique_ptr<MemberGroup>> group = make(clock, settings);
  if (!group) return group;
  MemberGroup& self = **group;
  Result<Roster> roster = self.ask_for_place();
  if (!roster) return forward_error(roster);
  if (!self.enter(std::move(*roster))) {
    if (Status again = self.regroup(std::nullopt); !again) return forward_error(again);
  }
  return group;
}

Result<Roster> MemberGroup::ask_for_place() {
  const Instant deadline = clock_.now_monotonic() + settings_.meeting;
  while (clock_.now_monotonic() < deadline) {
    for (const std::string& knock : candidates()) {
      std::optional<Roster> roster = ask_at(knock, deadline);
      // Who does not lead says who does.
      if (roster && self_ == MemberId::kNobody)
        roster = ask_at(roster->members[0].endpoint, deadline);
      if (roster && self_ != MemberId::kNobody) return std::move(*roster);
    }
    if (settings_.over && settings_.over()) {
      return environment_error(fmt::format("nobody of {} is left to join", settings_.gang));
    }
    mesh_.pump(kRound);
  }
  return environment_error(fmt::format("no member of {} gave this rank a place within {} s",
                                       settings_.gang,
                                       settings_.meeting.count_ns() / 1'000'000'000));
}

std::vector<std::string> MemberGroup::candidates() const {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < settings_.ports; ++i) {
    for (const std::string& address : settings_.addresses) {
      std::string endpoint = endpoint_text(address, settings_.port + i);
      if (endpoint != mesh_.endpoint()) all.push_back(std::move(endpoint));
    }
  }
  return all;
}

/// The roster that this rank is in, which names it; or one that it is not in.
std::optional<Roster> MemberGroup::ask_at(const std::string& endpoint, Instant deadline) {
  const std::string text = to_text(hello(std::nullopt, std::nullopt));
  if (!mesh_.connect(kUnnamed, endpoint, bytes_of(text))) return std::nullopt;
  const Instant silent = clock_.now_monotonic() + std::max(kKnock, settings_.patience);
  while (mesh_.connected(kUnnamed) && clock_.now_monotonic() < std::min(silent, deadline)) {
    mesh_.pump(kRound);
    for (const PeerMesh::Stranger& stranger : mesh_.strangers()) {
      // Others that ask for a place, too: there is none here.
      const auto hello = read_hello(stranger.hello);
      if (!hello || !hello->member) mesh_.adopt(stranger.key, std::nullopt);
    }
    const auto message = mesh_.take(kUnnamed, MessageKind::kRoster);
    if (!message) continue;
    std::optional<Roster> roster = read_roster(message->bytes);
    if (!roster) break;
    for (const RosterMember& member : roster->members) {
      if (member.workspace == workspace_->address()) self_ = member.id;
    }
    if (self_ != MemberId::kNobody) {
      mesh_.rename(kUnnamed, roster->members[0].id);
    } else {
      mesh_.drop(kUnnamed);
    }
    return roster;
  }
  mesh_.drop(kUnnamed);
  return std::nullopt;
}

bool MemberGroup::tend() {
  mesh_.pump(Duration());
  for (const PeerMesh::Stranger& stranger : mesh_.strangers()) {
    const std::optional<MemberHello> hello = read_hello(stranger.hello);
    if (!hello || hello->gang != settings_.gang) {
      mesh_.adopt(stranger.key, std::nullopt);
    } else if (!hello->member) {
      answer_joiner(stranger, *hello);
    }
  }
  std::erase_if(joiners_, [this](const RosterMember& joiner) { return mesh_.lost(joiner.id); });
  return !joiners_.empty();
}

void MemberGroup::answer_joiner(const PeerMesh::Stranger& stranger, const MemberHello& hello) {
  if (leader() != self_) {
    mesh_.adopt(stranger.key, kUnnamed);
    say(kUnnamed, MessageKind::kRoster, to_text(roster_));
    mesh_.drop(kUnnamed);
    return;
  }
  MemberId next = MemberId{0};
  for (const RosterMember& member : roster_.members) next = std::max(next, after(member.id));
  for (const RosterMember& joiner : joiners_) next = std::max(next, after(joiner.id));
  mesh_.adopt(stranger.key, next);
  joiners_.push_back(entry_of(next, hello));
}

// --- The next generation ------------------------------------------------------------------------

Status MemberGroup::regroup(std::optional<std::uint64_t> step) {
  for (;;) {
    const MemberId leads = leader();
    const std::vector<MemberId> gone = gone_in_peace();
    std::optional<Roster> next = leads == self_ ? lead(step) : follow(leads, step);
    if (!next) continue;  // who led is lost
    if (!next->has(self_)) {
      return environment_error(
          fmt::format("the others went on without this rank in generation {}", next->generation));
    }
    if (!enough(*next, gone)) {
      return environment_error(fmt::format(
          "{} of {} ranks are left, too few to be sure that the others do not go on as well",
          next->members.size(), roster_.members.size()));
    }
    if (enter(std::move(*next))) return {};
  }
}

MemberId MemberGroup::leader() const {
  for (const RosterMember& member : roster_.members) {
    if (member.id == self_ || mesh_.connected(member.id)) return member.id;
  }
  return self_;
}

std::vector<MemberId> MemberGroup::gone_in_peace() const {
  std::vector<MemberId> gone;
  for (const RosterMember& member : roster_.members) {
    if (mesh_.left(member.id)) gone.push_back(member.id);
  }
  return gone;
}

bool MemberGroup::enough(const Roster& next, const std::vector<MemberId>& gone) const {
  std::size_t all = 0;
  std::size_t left = 0;
  std::optional<MemberId> lowest;
  for (const RosterMember& member : roster_.members) {
    if (std::find(gone.begin(), gone.end(), member.id) != gone.end()) continue;
    if (!lowest) lowest = member.id;
    ++all;
    if (next.has(member.id)) ++left;
  }
  return 2 * left > all || (2 * left == all && lowest && next.has(*lowest));
}

Roster MemberGroup::lead(std::optional<std::uint64_t> step) {
  std::vector<std::optional<MemberReport>> reports(roster_.members.size());
  reports[rank()] = MemberReport{roster_.generation, step, {}};
  const Instant deadline = clock_.now_monotonic() + settings_.patience;
  while (!hear_reports(reports) && clock_.now_monotonic() < deadline) mesh_.pump(kRound);
  Roster next = next_roster(reports);
  for (const RosterMember& member : roster_.members) {
    if (!next.has(member.id)) mesh_.drop(member.id);
  }
  for (const RosterMember& member : next.members) {
    if (member.id != self_) say(member.id, MessageKind::kRoster, to_text(next));
  }
  joiners_.clear();
  return next;
}

/// True when all that live have reported.
bool MemberGroup::hear_reports(std::vector<std::optional<MemberReport>>& reports) {
  bool all = true;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const MemberId id = roster_.members[rank].id;
    if (id == self_) continue;
    while (const auto message = mesh_.take(id, MessageKind::kReport)) {
      std::optional<MemberReport> report = read_report(message->bytes);
      if (report && report->generation >= roster_.generation) reports[rank] = std::move(report);
    }
    all = all && (reports[rank].has_value() || !mesh_.connected(id));
  }
  return all;
}

Roster MemberGroup::next_roster(const std::vector<std::optional<MemberReport>>& reports) {
  Roster next{.generation = roster_.generation, .members = {}};
  std::vector<MemberId> lost;
  for (const auto& report : reports) {
    if (!report) continue;
    next.generation = std::max(next.generation, report->generation);
    lost.insert(lost.end(), report->lost.begin(), report->lost.end());
  }
  ++next.generation;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    RosterMember member = roster_.members[rank];
    const bool lives = member.id == self_ || mesh_.connected(member.id);
    const bool missed = std::find(lost.begin(), lost.end(), member.id) != lost.end();
    if (!reports[rank] || !lives || missed) continue;
    member.step = reports[rank]->step;
    next.members.push_back(std::move(member));
  }
  for (const RosterMember& joiner : joiners_) {
    if (mesh_.connected(joiner.id)) next.members.push_back(joiner);
  }
  return next;
}

std::optional<Roster> MemberGroup::follow(MemberId leads, std::optional<std::uint64_t> step) {
  MemberReport report{roster_.generation, step, {}};
  for (const RosterMember& member : roster_.members) {
    if (member.id != self_ && !mesh_.connected(member.id)) report.lost.push_back(member.id);
  }
  say(leads, MessageKind::kReport, to_text(report));
  const Instant deadline = clock_.now_monotonic() + settings_.patience + settings_.patience;
  while (clock_.now_monotonic() < deadline) {
    while (const auto message = mesh_.take(leads, MessageKind::kRoster)) {
      std::optional<Roster> next = read_roster(message->bytes);
      if (next && next->generation > roster_.generation) return next;
    }
    if (!mesh_.connected(leads)) return std::nullopt;
    mesh_.pump(kRound);
  }
  mesh_.drop(leads);
  return std::nullopt;
}

// --- Within a generation ------------------------------------------------------------------------

bool MemberGroup::enter(Roster next) {
  for (const RosterMember& member : roster_.members) {
    if (!next.has(member.id)) mesh_.drop(member.id);
  }
  communicator_.reset();
  exchange_.reset();
  roster_ = std::move(next);
  mesh_.forget_before(roster_.generation);
  if (!meet_all()) return false;
  return open_exchange();
}

/// Who came later connects to who was there before.
bool MemberGroup::meet_all() {
  for (const RosterMember& member : roster_.members) {
    if (member.id >= self_ || mesh_.connected(member.id)) continue;
    const std::string text = to_text(hello(self_, std::nullopt));
    if (!mesh_.connect(member.id, member.endpoint, bytes_of(text))) return false;
  }
  const Instant deadline = clock_.now_monotonic() + settings_.patience;
  const auto here = [this](const RosterMember& member) {
    return member.id == self_ || mesh_.connected(member.id);
  };
  while (!std::all_of(roster_.members.begin(), roster_.members.end(), here)) {
    for (const RosterMember& member : roster_.members) {
      if (mesh_.lost(member.id)) return false;
    }
    if (clock_.now_monotonic() > deadline) return false;
    mesh_.pump(kRound);
    take_in_newcomers();
  }
  return true;
}

void MemberGroup::take_in_newcomers() {
  for (const PeerMesh::Stranger& stranger : mesh_.strangers()) {
    const std::optional<MemberHello> hello = read_hello(stranger.hello);
    if (!hello || hello->gang != settings_.gang) {
      mesh_.adopt(stranger.key, std::nullopt);
    } else if (hello->member && roster_.has(*hello->member)) {
      mesh_.adopt(stranger.key, *hello->member);
    }
  }
}

bool MemberGroup::open_exchange() {
  std::vector<MemberId> members;
  std::vector<SegmentAddress> workspaces;
  members.reserve(size());
  workspaces.reserve(size());
  for (const RosterMember& member : roster_.members) {
    members.push_back(member.id);
    workspaces.push_back(member.workspace);
  }
  auto sockets =
      std::make_unique<TcpExchange>(mesh_, TcpExchange::Seat{members, rank(), roster_.generation});
  std::unique_ptr<ShmExchange> memory;
  if (settings_.share_memory && size() > 1) {
    auto opened = ShmExchange::open(mesh_, *workspace_,
                                    {members, std::move(workspaces), rank(), roster_.generation});
    if (opened) memory = std::move(*opened);
  }
  // All share memory, or none does.
  std::int32_t can = memory == nullptr ? 0 : 1;
  const Elements vote(std::as_writable_bytes(std::span(&can, 1)), SumType::kInt32);
  if (!Communicator(*sockets).all_reduce(vote)) return false;
  shares_memory_ = size() > 1 && can == static_cast<std::int32_t>(size());
  if (shares_memory_) {
    exchange_ = std::move(memory);
  } else {
    exchange_ = std::move(sockets);
  }
  communicator_ = std::make_unique<Communicator>(*exchange_);
  return true;
}

void MemberGroup::farewell() {
  for (const RosterMember& member : roster_.members) {
    if (member.id != self_) say(member.id, MessageKind::kFarewell, {});
  }
  const Instant deadline = clock_.now_monotonic() + kKnock;
  const auto idle = [this](const RosterMember& member) { return mesh_.idle(member.id); };
  while (!std::all_of(roster_.members.begin(), roster_.members.end(), idle) &&
         clock_.now_monotonic() < deadline) {
    mesh_.pump(kRound);
  }
}

MemberHello MemberGroup::hello(std::optional<MemberId> as,
                               std::optional<std::uint64_t> step) const {
  return {settings_.gang, as, mesh_.endpoint(), workspace_->address(), step};
}

void MemberGroup::say(MemberId to, MessageKind kind, const std::string& text) {
  mesh_.send_copy(to, {kind, roster_.generation, bytes_of(text)});
}

}  // namespace orrery
