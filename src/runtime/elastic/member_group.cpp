#include "runtime/elastic/member_group.hpp"

#include <algorithm>
#include <array>

#include "base/format/checksum.hpp"

namespace orrery {
namespace {

/// A connection without a member id yet, to or from a process that joins.
constexpr MemberId kUnnamed{0xffff'fffe};
constexpr Duration kRound = Duration::milliseconds(50);
/// How long a member that accepts a connection may take to send its first message.
constexpr Duration kKnock = Duration::seconds(10);
/// How long places of the first meeting are kept for its founders while none of them is lost.
constexpr Duration kFoundersFirst = Duration::seconds(30);

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

/// Whether a hello is from a process that has a place already.
bool names_member(const Roster& roster, const MemberHello& hello) {
  if (!hello.member || !roster.has(*hello.member)) return false;
  return roster.members[roster.rank_of(*hello.member)].workspace == hello.workspace;
}

}  // namespace

MemberGroup::MemberGroup(const Clock& clock, const GroupSettings& settings, PeerMesh mesh,
                         std::unique_ptr<ShmWorkspace> workspace)
    : clock_(clock),
      settings_(settings),
      mesh_(std::move(mesh)),
      workspace_(std::move(workspace)) {}

/// Listens at the port of a rank, or the first free one after it.
Result<std::unique_ptr<MemberGroup>> MemberGroup::make(const Clock& clock,
                                                       const GroupSettings& settings,
                                                       std::uint32_t first_rank) {
  Result<ShmWorkspace> workspace =
      ShmWorkspace::make(settings.workspace_bytes, settings.cookie, settings.memory_domain);
  if (!workspace) return forward_error(workspace);
  const std::uint32_t place = settings.ports == 0 ? 0 : first_rank % settings.ports;
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
  const bool leads = settings.rank == 0;
  GroupSettings own = settings;
  // The others know only one port of the leader.
  if (leads) own.ports = 1;
  Result<std::unique_ptr<MemberGroup>> group = make(clock, own, settings.rank);
  if (!group) return group;
  MemberGroup& self = **group;
  self.settings_.ports = settings.ports;
  Result<Roster> first = leads ? self.lead_first_meeting(step) : self.come_to_first_meeting(step);
  if (!first) return forward_error(first);
  self.count_against(*first);
  if (!self.enter(std::move(*first))) {
    if (Status again = self.regroup(step); !again) return forward_error(again);
  }
  return group;
}

Result<Roster> MemberGroup::lead_first_meeting(std::uint64_t step) {
  self_ = MemberId{0};
  FirstMeeting meeting{std::vector<RosterMember>(settings_.world),
                       clock_.now_monotonic() + kFoundersFirst};
  std::vector<RosterMember>& members = meeting.members;
  members[0] = entry_of(self_, hello(self_, step));
  const Instant deadline = clock_.now_monotonic() + settings_.meeting;
  const auto came = [](const RosterMember& member) { return member.id != MemberId::kNobody; };
  while (!std::all_of(members.begin(), members.end(), came)) {
    if (clock_.now_monotonic() > deadline) {
      const auto count = std::count_if(members.begin(), members.end(), came);
      return environment_error(fmt::format("{} of {} ranks came to {} within {} s", count,
                                           settings_.world, mesh_.endpoint(),
                                           settings_.meeting.count_ns() / 1'000'000'000));
    }
    mesh_.pump(kRound);
    for (RosterMember& member : members) {
      if (!mesh_.lost(member.id)) continue;
      mesh_.drop(member.id);
      member = {};
      meeting.open = clock_.now_monotonic();
    }
    hear_first_hellos(meeting);
  }
  Roster roster{.generation = 1, .members = std::move(members), .gone = {}};
  for (const RosterMember& member : roster.members) {
    if (member.id != self_) say(member.id, MessageKind::kRoster, to_text(roster));
  }
  return roster;
}

/// A founder gets the place of its rank, also when it comes again; a process that replaces a lost
/// one gets any free place.
void MemberGroup::hear_first_hellos(FirstMeeting& meeting) {
  std::vector<RosterMember>& members = meeting.members;
  const auto free = [](const RosterMember& member) { return member.id == MemberId::kNobody; };
  const bool open = clock_.now_monotonic() >= meeting.open;
  for (const PeerMesh::Stranger& stranger : mesh_.strangers()) {
    const std::optional<MemberHello> hello = read_hello(stranger.hello);
    const bool ours = hello && hello->gang == settings_.gang;
    auto place = open ? std::find_if(members.begin(), members.end(), free) : members.end();
    const auto wanted = ours && hello->member ? static_cast<std::uint32_t>(*hello->member) : 0u;
    for (std::uint32_t rank = 1; ours && rank < members.size(); ++rank) {
      const bool own = rank == wanted && free(members[rank]);
      const bool again = !free(members[rank]) && members[rank].workspace == hello->workspace;
      if (own || again) place = members.begin() + rank;
    }
    if (!ours || place == members.end()) {
      mesh_.adopt(stranger.key, std::nullopt);
      continue;
    }
    const auto id = static_cast<MemberId>(place - members.begin());
    mesh_.adopt(stranger.key, id);
    *place = entry_of(id, *hello);
    say(id, MessageKind::kReport, to_text(MemberReport{}));
  }
}

Result<Roster> MemberGroup::come_to_first_meeting(std::uint64_t step) {
  const std::string master = endpoint_text(settings_.master, settings_.port);
  const std::string text = to_text(hello(static_cast<MemberId>(settings_.rank), step));
  const MemberId first{0};
  const Instant deadline = clock_.now_monotonic() + settings_.meeting;
  std::string why = "no other rank answered";
  while (clock_.now_monotonic() < deadline) {
    if (!mesh_.connected(first)) {
      if (settings_.over && settings_.over()) {
        return environment_error(fmt::format("rank 0 at {} was lost before all met", master));
      }
      Status met = mesh_.connect(first, master, bytes_of(text));
      if (!met) why = met.error().message;
    }
    mesh_.pump(kRound);
    send_askers_away();
    std::optional<Roster> roster = roster_from(first);
    if (roster && self_ != MemberId::kNobody) return std::move(*roster);
  }
  return environment_error(fmt::format("rank 0 did not gather the ranks at {}: {}", master, why));
}

// --- Joining later ------------------------------------------------------------------------------

Result<std::unique_ptr<MemberGroup>> MemberGroup::join(const Clock& clock,
                                                       const GroupSettings& settings) {
  Result<std::unique_ptr<MemberGroup>> group = make(clock, settings, settings.rank);
  if (!group) return group;
  MemberGroup& self = **group;
  Result<Roster> roster = self.ask_for_place();
  if (!roster) return forward_error(roster);
  self.count_against(*roster);
  if (!self.enter(std::move(*roster))) {
    if (Status again = self.regroup(std::nullopt); !again) return forward_error(again);
  }
  return group;
}

Result<Roster> MemberGroup::ask_for_place() {
  Instant deadline = clock_.now_monotonic() + settings_.meeting;
  while (clock_.now_monotonic() < deadline) {
    for (const std::string& knock : candidates()) {
      std::optional<Roster> roster = ask_at(knock, deadline);
      // A member that does not lead names the leader.
      if (roster && self_ == MemberId::kNobody) {
        roster = ask_at(roster->members[0].endpoint, deadline);
      }
      if (roster && self_ != MemberId::kNobody) return std::move(*roster);
    }
    if (settings_.over && settings_.over()) {
      return environment_error(fmt::format("no rank of {} is left to join", settings_.gang));
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

/// Returns the roster that this rank is in; a member that does not lead returns one without it. The
/// leader confirms the request at once, and may take its time after that.
std::optional<Roster> MemberGroup::ask_at(const std::string& endpoint, Instant& deadline) {
  const std::string text = to_text(hello(std::nullopt, std::nullopt));
  if (!mesh_.connect(kUnnamed, endpoint, bytes_of(text))) return std::nullopt;
  const Instant silent = clock_.now_monotonic() + std::max(kKnock, settings_.patience);
  bool heard = false;
  std::optional<Roster> roster;
  while (!roster && mesh_.connected(kUnnamed) &&
         (heard || clock_.now_monotonic() < std::min(silent, deadline))) {
    mesh_.pump(kRound);
    send_askers_away();
    heard = heard || mesh_.take(kUnnamed, MessageKind::kReport);
    if (heard) deadline = clock_.now_monotonic() + settings_.meeting;
    roster = roster_from(kUnnamed);
  }
  if (roster && self_ != MemberId::kNobody) {
    mesh_.rename(kUnnamed, roster->members[0].id);
  } else {
    mesh_.drop(kUnnamed);
  }
  return roster;
}

/// Takes a roster that a peer has sent; it also sets the id of this process.
std::optional<Roster> MemberGroup::roster_from(MemberId peer) {
  const auto message = mesh_.take(peer, MessageKind::kRoster);
  if (!message) return std::nullopt;
  std::optional<Roster> roster = read_roster(message->bytes);
  if (!roster) return roster;
  for (const RosterMember& member : roster->members) {
    if (member.workspace == workspace_->address()) self_ = member.id;
  }
  return roster;
}

/// Refuses processes that ask for a place, since this one has no place to give.
void MemberGroup::send_askers_away() {
  for (const PeerMesh::Stranger& stranger : mesh_.strangers()) {
    const auto hello = read_hello(stranger.hello);
    if (!hello || !hello->member) mesh_.adopt(stranger.key, std::nullopt);
  }
}

bool MemberGroup::tend() {
  mesh_.pump(Duration());
  for (const PeerMesh::Stranger& stranger : mesh_.strangers()) {
    const std::optional<MemberHello> hello = read_hello(stranger.hello);
    if (!hello || hello->gang != settings_.gang) {
      mesh_.adopt(stranger.key, std::nullopt);
    } else if (hello->member && !hello->step) {
      // A hello of a member that is not in this generation is from an earlier one.
      if (!names_member(roster_, *hello)) mesh_.adopt(stranger.key, std::nullopt);
    } else if (!names_member(roster_, *hello)) {
      answer_joiner(stranger, *hello);
    }
  }
  std::erase_if(joiners_, [this](const RosterMember& joiner) { return mesh_.lost(joiner.id); });
  const auto there = [this](const RosterMember& member) { return here(member.id); };
  const auto& members = roster_.members;
  const auto count = std::count_if(members.begin(), members.end(), there);
  return room_beside(static_cast<std::size_t>(count)) > 0;
}

/// Returns for how many waiting processes there is room beside `members`.
std::size_t MemberGroup::room_beside(std::size_t members) const {
  std::size_t all = members + joiners_.size();
  if (settings_.members_max > 0) all = std::min<std::size_t>(all, settings_.members_max);
  all -= all % settings_.members_unit;
  return all > members ? all - members : 0;
}

void MemberGroup::answer_joiner(const PeerMesh::Stranger& stranger, const MemberHello& hello) {
  if (leader() != self_) {
    mesh_.adopt(stranger.key, kUnnamed);
    say(kUnnamed, MessageKind::kRoster, to_text(roster_));
    mesh_.drop(kUnnamed);
    return;
  }
  std::erase_if(joiners_, [&](const RosterMember& joiner) {
    const bool again = joiner.workspace == hello.workspace;
    if (again) mesh_.drop(joiner.id);
    return again;
  });
  MemberId next = MemberId{0};
  for (const RosterMember& member : roster_.members) next = std::max(next, after(member.id));
  for (const RosterMember& joiner : joiners_) next = std::max(next, after(joiner.id));
  mesh_.adopt(stranger.key, next);
  say(next, MessageKind::kReport, to_text(MemberReport{}));
  joiners_.push_back(entry_of(next, hello));
}

// --- The next generation ------------------------------------------------------------------------

Status MemberGroup::regroup(std::optional<std::uint64_t> step) {
  for (;;) {
    Roster next = agree(step);
    if (!next.has(self_)) {
      return environment_error(
          fmt::format("the others went on without this rank in generation {}", next.generation));
    }
    if (!enough(next)) {
      return environment_error(fmt::format(
          "{} of {} ranks are left, too few to be sure that the others do not go on as well",
          std::count_if(settled_.members.begin(), settled_.members.end(),
                        [&](const RosterMember& member) { return next.has(member.id); }),
          settled_.members.size()));
    }
    gone_.insert(gone_.end(), next.gone.begin(), next.gone.end());
    if (enter(std::move(next))) return {};
  }
}

bool MemberGroup::here(MemberId member) const {
  return member == self_ || (mesh_.connected(member) && !mesh_.left(member));
}

MemberId MemberGroup::leader() const {
  for (const RosterMember& member : roster_.members) {
    if (here(member.id)) return member.id;
  }
  return self_;
}

/// Others may know that the generation which this member has confirmed (promised_) is settled.
bool MemberGroup::enough(const Roster& next) const {
  return enough_of(settled_, next) && (!promised_ || enough_of(*promised_, next));
}

bool MemberGroup::enough_of(const Roster& before, const Roster& next) const {
  std::size_t all = 0;
  std::size_t left = 0;
  std::optional<MemberId> lowest;
  const auto among = [](const std::vector<MemberId>& ids, MemberId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  for (const RosterMember& member : before.members) {
    if (among(next.gone, member.id) || among(gone_, member.id)) continue;
    if (!lowest) lowest = member.id;
    ++all;
    if (next.has(member.id)) ++left;
  }
  return 2 * left > all || (2 * left == all && lowest && next.has(*lowest));
}

/// The next generation, as this member or another names it.
Roster MemberGroup::agree(std::optional<std::uint64_t> step) {
  mesh_.pump(Duration());
  Reports reports(size());
  std::vector<Roster> named;
  std::optional<MemberId> told;
  Instant deadline;
  for (;;) {
    const MemberId leads = leader();
    if (told != leads) {
      told = leads;
      reports[rank()] = tell_all(step);
      const Duration patience = settings_.patience;
      deadline = clock_.now_monotonic() + (leads == self_ ? patience : patience + patience);
    }
    if (std::optional<Roster> next = hear(reports, named)) return std::move(*next);
    const bool late = clock_.now_monotonic() > deadline;
    if (leads == self_ && (late || all_reported(reports))) return lead(reports);
    if (late) miss(leads);
    mesh_.pump(kRound);
  }
}

void MemberGroup::miss(MemberId member) {
  mesh_.drop(member);
  missed_.push_back(member);
}

MemberReport MemberGroup::tell_all(std::optional<std::uint64_t> step) {
  MemberReport report{roster_.generation, step, {}};
  report.lost = missed_;
  for (const RosterMember& member : roster_.members) {
    if (mesh_.lost(member.id)) report.lost.push_back(member.id);
  }
  const std::string text = to_text(report);
  for (const RosterMember& member : roster_.members) {
    if (member.id != self_) say(member.id, MessageKind::kReport, text);
  }
  return report;
}

/// Sends the present roster to members that do not have it. Accepts a newer roster that others
/// send, at once or, if this member has another leader, once that leader is lost.
std::optional<Roster> MemberGroup::hear(Reports& reports, std::vector<Roster>& named) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const MemberId id = roster_.members[rank].id;
    while (const auto message = mesh_.take(id, MessageKind::kRoster)) {
      std::optional<Roster> next = read_roster(message->bytes);
      if (next && next->generation > roster_.generation) named.push_back(std::move(*next));
    }
    while (const auto message = mesh_.take(id, MessageKind::kReport, roster_.generation)) {
      std::optional<MemberReport> report = read_report(message->bytes);
      if (!report) continue;
      if (report->generation == roster_.generation) {
        reports[rank] = std::move(report);
      } else {
        say(id, MessageKind::kRoster, to_text(roster_));
      }
    }
  }
  const auto next = std::find_if(named.begin(), named.end(),
                                 [this](const Roster& each) { return follows(each); });
  return next == named.end() ? std::nullopt : std::optional(std::move(*next));
}

/// If two members both lead because they have lost each other, this one accepts its own leader's.
bool MemberGroup::follows(const Roster& next) const {
  const MemberId author = next.members[0].id;
  return author == leader() || !here(author);
}

bool MemberGroup::all_reported(const Reports& reports) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!reports[rank] && here(roster_.members[rank].id)) return false;
  }
  return true;
}

std::vector<bool> MemberGroup::who_stays(const Reports& reports) const {
  std::vector<bool> stays;
  stays.reserve(reports.size());
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    stays.push_back(reports[rank] && here(roster_.members[rank].id));
  }
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!stays[rank]) continue;
    for (const MemberId missed : reports[rank]->lost) {
      const std::uint32_t other = roster_.rank_of(missed);
      if (other < size() && stays[rank] && stays[other]) stays[std::max(rank, other)] = false;
    }
  }
  return stays;
}

Roster MemberGroup::lead(const Reports& reports) {
  Roster next{.generation = roster_.generation + 1, .members = {}, .gone = gone_};
  const std::vector<bool> stays = who_stays(reports);
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    RosterMember member = roster_.members[rank];
    if (mesh_.left(member.id)) next.gone.push_back(member.id);
    if (!stays[rank]) continue;
    member.step = reports[rank]->step;
    next.members.push_back(std::move(member));
  }
  std::erase_if(joiners_, [this](const RosterMember& each) { return !mesh_.connected(each.id); });
  const auto room = static_cast<std::ptrdiff_t>(room_beside(next.members.size()));
  next.members.insert(next.members.end(), joiners_.begin(), joiners_.begin() + room);
  joiners_.erase(joiners_.begin(), joiners_.begin() + room);
  for (const RosterMember& member : next.members) {
    if (member.id != self_) say(member.id, MessageKind::kRoster, to_text(next));
  }
  return next;
}

// --- Within a generation ------------------------------------------------------------------------

bool MemberGroup::enter(Roster next) {
  for (const RosterMember& member : roster_.members) {
    if (!next.has(member.id)) mesh_.drop(member.id);
  }
  communicator_.reset();
  exchange_.reset();
  roster_ = std::move(next);
  missed_.clear();
  mesh_.forget_before(roster_.generation);
  if (!meet_all()) return false;
  return open_exchange();
}

/// Each member connects to those that came before it.
bool MemberGroup::meet_all() {
  for (const RosterMember& member : roster_.members) {
    if (mesh_.lost(member.id)) return false;
    if (member.id >= self_ || mesh_.connected(member.id)) continue;
    const std::string text = to_text(hello(self_, std::nullopt));
    if (!mesh_.connect(member.id, member.endpoint, bytes_of(text))) miss(member.id);
  }
  if (!missed_.empty()) return false;
  const Instant deadline = clock_.now_monotonic() + settings_.patience;
  const auto met = [this](const RosterMember& member) { return here(member.id); };
  while (!std::all_of(roster_.members.begin(), roster_.members.end(), met)) {
    for (const RosterMember& member : roster_.members) {
      if (mesh_.lost(member.id) || mesh_.left(member.id)) return false;
      if (mesh_.reported(member.id, roster_.generation)) return false;
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
    } else if (names_member(roster_, *hello)) {
      mesh_.adopt(stranger.key, hello->member);
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
  const ExchangeSeat seat{std::move(members), rank(), roster_.generation};
  std::unique_ptr<ShmExchange> memory;
  if (settings_.share_memory && size() > 1 && size() <= ShmBoard::kRanksMax) {
    memory = std::make_unique<ShmExchange>(mesh_, *workspace_, seat);
    memory->open(workspaces);
  }
  if (!settle(seat, memory != nullptr ? memory->opened() : 0)) return false;
  exchange_ = std::make_unique<TcpExchange>(mesh_, seat);
  if (memory != nullptr) {
    memory->share_by(machines_);
    exchange_ = std::move(memory);
  }
  communicator_ = std::make_unique<Communicator>(*exchange_);
  return true;
}

/// Returns true when all members have this roster, and know which of them share memory.
bool MemberGroup::settle(ExchangeSeat seat, std::uint64_t opened) {
  seat.unsettled = true;
  promised_ = roster_;
  TcpExchange sockets(mesh_, std::move(seat));
  const std::array<std::uint64_t, 2> own{checksum(to_text(roster_), 0), opened};
  std::vector<std::array<std::uint64_t, 2>> all(size());
  const auto heard_all = std::as_writable_bytes(std::span(all));
  if (!Communicator(sockets).all_gather(std::as_bytes(std::span(own)), heard_all)) return false;
  std::vector<std::uint64_t> opened_by_rank;
  opened_by_rank.reserve(all.size());
  for (const auto& [heard, open] : all) {
    if (heard != own[0]) return false;
    opened_by_rank.push_back(open);
  }
  machines_ = machines_of(opened_by_rank);
  settled_ = roster_;
  promised_.reset();
  gone_.clear();
  return true;
}

/// A member that joins later does not count when the earlier ones decide whether to continue.
void MemberGroup::count_against(const Roster& first) {
  settled_ = first;
  if (first.generation == 1) return;
  std::erase_if(settled_.members, [](const RosterMember& member) { return !member.step; });
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
