#include "runtime/elastic/roster.hpp"

#include <nlohmann/json.hpp>
#include <set>

namespace orrery {
namespace {

using nlohmann::json;

json to_json(const SegmentAddress& at) {
  return {{"host", at.host},
          {"process", at.process},
          {"descriptor", at.descriptor},
          {"bytes", at.bytes},
          {"cookie", at.cookie}};
}

SegmentAddress segment_of(const json& from) {
  return {.host = from.at("host").get<std::string>(),
          .process = from.at("process").get<std::int32_t>(),
          .descriptor = from.at("descriptor").get<std::int32_t>(),
          .bytes = from.at("bytes").get<std::uint64_t>(),
          .cookie = from.at("cookie").get<std::uint64_t>()};
}

std::uint32_t number(MemberId id) { return static_cast<std::uint32_t>(id); }

MemberId member_id(const json& from) { return static_cast<MemberId>(from.get<std::uint32_t>()); }

json numbers(const std::vector<MemberId>& ids) {
  json list = json::array();
  for (const MemberId id : ids) list.push_back(number(id));
  return list;
}

std::vector<MemberId> member_ids(const json& from) {
  std::vector<MemberId> ids;
  ids.reserve(from.size());
  for (const json& id : from) ids.push_back(member_id(id));
  return ids;
}

std::optional<std::uint64_t> step_of(const json& from) {
  if (!from.contains("step")) return std::nullopt;
  return from.at("step").get<std::uint64_t>();
}

void write_step(json& to, std::optional<std::uint64_t> step) {
  if (step) to["step"] = *step;
}

/// Returns the result of `read` for the text; nothing if it throws.
template <class Read>
auto read_text(std::span<const std::byte> text, const Read& read)
    -> std::optional<decltype(read(std::declval<const json&>()))> {
  const auto* begin = reinterpret_cast<const char*>(text.data());
  const json parsed = json::parse(begin, begin + text.size(), nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  try {
    return read(parsed);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

RosterMember member_of(const json& from) {
  return {.id = member_id(from.at("id")),
          .endpoint = from.at("endpoint").get<std::string>(),
          .workspace = segment_of(from.at("workspace")),
          .step = step_of(from)};
}

}  // namespace

std::uint32_t Roster::rank_of(MemberId id) const {
  std::uint32_t rank = 0;
  while (rank < members.size() && members[rank].id != id) ++rank;
  return rank;
}

std::uint32_t Roster::source() const {
  std::uint32_t best = 0;
  for (std::uint32_t rank = 1; rank < members.size(); ++rank) {
    if (members[rank].step > members[best].step) best = rank;
  }
  return best;
}

std::string to_text(const MemberHello& hello) {
  json text{
      {"gang", hello.gang}, {"endpoint", hello.endpoint}, {"workspace", to_json(hello.workspace)}};
  if (hello.member) text["member"] = number(*hello.member);
  write_step(text, hello.step);
  return text.dump();
}

std::string to_text(const MemberReport& report) {
  json text{{"generation", report.generation}, {"lost", numbers(report.lost)}};
  write_step(text, report.step);
  return text.dump();
}

std::string to_text(const Roster& roster) {
  json members = json::array();
  for (const RosterMember& member : roster.members) {
    json each{{"id", number(member.id)},
              {"endpoint", member.endpoint},
              {"workspace", to_json(member.workspace)}};
    write_step(each, member.step);
    members.push_back(std::move(each));
  }
  return json{{"generation", roster.generation},
              {"members", std::move(members)},
              {"gone", numbers(roster.gone)}}
      .dump();
}

std::optional<MemberHello> read_hello(std::span<const std::byte> text) {
  return read_text(text, [](const json& from) {
    MemberHello hello{.gang = from.at("gang").get<std::string>(),
                      .member = std::nullopt,
                      .endpoint = from.at("endpoint").get<std::string>(),
                      .workspace = segment_of(from.at("workspace")),
                      .step = step_of(from)};
    if (from.contains("member")) hello.member = member_id(from.at("member"));
    return hello;
  });
}

std::optional<MemberReport> read_report(std::span<const std::byte> text) {
  return read_text(text, [](const json& from) {
    MemberReport report{.generation = from.at("generation").get<std::uint32_t>(),
                        .step = step_of(from),
                        .lost = {}};
    report.lost = member_ids(from.at("lost"));
    return report;
  });
}

std::optional<Roster> read_roster(std::span<const std::byte> text) {
  std::optional<Roster> roster = read_text(text, [](const json& from) {
    Roster read{.generation = from.at("generation").get<std::uint32_t>(),
                .members = {},
                .gone = member_ids(from.at("gone"))};
    for (const json& each : from.at("members")) read.members.push_back(member_of(each));
    return read;
  });
  if (!roster) return roster;
  std::set<MemberId> ids;
  for (const RosterMember& member : roster->members) ids.insert(member.id);
  if (roster->members.empty() || ids.size() != roster->members.size()) return std::nullopt;
  return roster;
}

}  // namespace orrery
