#include "node/keeper/keeper_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "base/format/little_endian.hpp"
#include "control/codec/decoder.hpp"
#include "control/codec/encoder.hpp"
#include "node/keeper/keeper_fields.hpp"

namespace orrery {
namespace {

// The file: magic with the version, the fields, a checksum of all before it.
constexpr std::string_view kMagic = "orrery-launch-5\n";
/// The version before lacks the last field, whose empty value is kNoCopies.
constexpr std::string_view kMagicBefore = "orrery-launch-4\n";
constexpr std::string_view kNoCopies("\0\0", 2);
constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;

std::vector<GangLayout>::const_iterator find_layout(std::uint32_t gang,
                                                    const std::vector<GangLayout>& gangs) {
  return std::find_if(gangs.begin(), gangs.end(),
                      [&](const GangLayout& layout) { return layout.gang == gang; });
}

}  // namespace

std::string launch_complaint(const LaunchRanks& ranks, const std::vector<GangLayout>& gangs) {
  if (ranks.shares.empty()) return "no ranks";
  for (const RankShare& share : ranks.shares) {
    const auto layout = find_layout(share.gang, gangs);
    if (layout == gangs.end() || layout->here >= layout->nodes.size()) {
      return fmt::format("no layout of gang {}", share.gang);
    }
    const auto devices = static_cast<std::size_t>(std::popcount(share.devices));
    if (devices == 0 || devices != share.ranks.size()) {
      return fmt::format("{} ranks of gang {} for {} devices", share.ranks.size(), share.gang,
                         devices);
    }
    for (const GangNode& node : layout->nodes) {
      if (node.ranks.empty()) return fmt::format("a node of gang {} without ranks", share.gang);
    }
  }
  return "";
}

const GangLayout& layout_of(std::uint32_t gang, const std::vector<GangLayout>& gangs) {
  const auto found = find_layout(gang, gangs);
  ORRERY_ASSERT(found != gangs.end(), "a launch was checked before it is followed");
  return *found;
}

GroupLimits limits_of(const std::vector<RankShare>& shares, const KeeperLaunch& launch) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  const std::vector<RankNeeds>& needs = launch.needs;
  const bool slowed =
      launch.device_cpu > 0 && std::any_of(shares.begin(), shares.end(),
                                           [](const RankShare& share) { return share.clock < 1; });
  GroupLimits sum;
  bool cpu = true;
  bool memory = true;
  for (const RankShare& share : shares) {
    const auto own = std::find_if(needs.begin(), needs.end(),
                                  [&](const RankNeeds& each) { return each.gang == share.gang; });
    RankNeeds asked = own == needs.end() ? RankNeeds{} : *own;
    if (slowed && asked.cpu == 0) asked.cpu = launch.device_cpu * share.share / kWholeDevice;
    cpu = cpu && asked.cpu > 0;
    memory = memory && asked.memory > 0;
    const auto full = static_cast<double>(share.ranks.size() * asked.cpu);
    sum.cpu += static_cast<std::uint64_t>(std::llround(slowed ? full * share.clock : full));
    sum.memory += share.ranks.size() * asked.memory * kMebibyte;
  }
  return {cpu ? sum.cpu : 0, memory ? sum.memory : 0};
}

std::vector<DeviceNumber> denied_devices(const NodeDeviceFiles& files,
                                         const std::vector<RankShare>& shares) {
  std::uint64_t own = 0;
  for (const RankShare& share : shares) own |= share.devices;
  std::vector<DeviceNumber> kept;
  std::vector<DeviceNumber> denied = files.others;
  for (std::size_t device = 0; device < files.own.size(); ++device) {
    const bool mine = (own >> device & 1) != 0;
    std::vector<DeviceNumber>& all = mine ? kept : denied;
    all.insert(all.end(), files.own[device].begin(), files.own[device].end());
  }
  std::erase_if(denied, [&](const DeviceNumber& each) {
    return std::find(kept.begin(), kept.end(), each) != kept.end();
  });
  std::sort(denied.begin(), denied.end());
  return denied;
}

std::string KeeperFiles::hostfile(std::uint32_t gang) const {
  return fmt::format("{}/hostfile-{}", run, gang);
}

std::string KeeperFiles::rankfile(std::uint32_t gang) const {
  return fmt::format("{}/rankfile-{}", run, gang);
}

std::string KeeperFiles::log(const RankStart& start) const {
  return fmt::format("{}/gang-{}-rank-{}.log", logs, start.slots.at(0).gang, start.rank);
}

std::string KeeperFiles::stack(const RankStart& start) const {
  return fmt::format("{}/gang-{}-rank-{}.txt", stacks(), start.slots.at(0).gang, start.rank);
}

Status write_keeper_launch(Storage& storage, const KeeperFiles& files, const KeeperLaunch& launch) {
  Encoder encoder;
  encoder.raw(kMagic);
  encoder(launch);
  encoder.fixed(checksum(encoder.bytes(), 0));
  auto written = storage.write_file(files.launch(), encoder.bytes());
  if (!written) return forward_error(written);
  return {};
}

Result<KeeperLaunch> read_keeper_launch(Storage& storage, const KeeperFiles& files) {
  auto bytes = storage.read_file(files.launch(), kFileBytesMax);
  if (!bytes) return forward_error(bytes);
  const auto wrong = [&](std::string_view what) {
    return environment_error(fmt::format("{}: {}", files.launch(), what));
  };
  const std::string_view all(*bytes);
  const bool before = all.starts_with(kMagicBefore);
  if (!before && !all.starts_with(kMagic)) return wrong("no launch file of this version");
  const std::size_t size = all.size() - sizeof(std::uint64_t);
  if (all.size() < kMagic.size() + sizeof(std::uint64_t) ||
      load_little_endian<std::uint64_t>(all.data() + size) != checksum(all.substr(0, size), 0)) {
    return wrong("torn or changed: its checksum is another");
  }
  std::string fields(all.substr(kMagic.size(), size - kMagic.size()));
  if (before) fields += kNoCopies;
  Decoder decoder(fields);
  KeeperLaunch launch;
  decoder(launch);
  if (const auto fault = decoder.finish()) {
    return wrong(fmt::format("byte {}: {}", kMagic.size() + fault->offset, fault->what));
  }
  if (launch.facts.command.empty() || launch.facts.command[0].empty()) return wrong("no program");
  if (const std::string what = launch_complaint(launch.ranks, launch.gangs); !what.empty()) {
    return wrong(what);
  }
  return launch;
}

}  // namespace orrery
