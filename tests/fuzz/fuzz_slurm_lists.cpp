// tests/fuzz/fuzz_slurm_lists.cpp - any bytes as what Slurm's programs print; the first byte picks
// the program. In a list of squeue a '~' stands for the separator.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "executor/slurm/sbatch_answer.hpp"
#include "executor/slurm/slurm_lists.hpp"
#include "executor/slurm/slurm_names.hpp"
#include "executor/slurm/squeue_list.hpp"
#include "tests/fuzz/first_byte.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kCluster = 0xab;
constexpr std::uint32_t kUid = 1000;
constexpr std::size_t kNameMax = 60;
const Instant kNow = Instant::from_ns(1'764'352'720'000'000'000);

bool is_one_line(std::string_view text) { return text.find('\n') == text.npos; }

void check_holds(const std::vector<HoldSeen>& holds, const std::string& list) {
  for (const HoldSeen& hold : holds) {
    ORRERY_ASSERT(is_slurm_job_id(hold.id) && is_one_line(hold.reason), "what is read is plain");
    ORRERY_ASSERT(hold.phase != HoldPhase::kWaiting || hold.nodes.empty(), "nothing is lent yet");
    ORRERY_ASSERT(!hold.left || *hold.left >= Duration(), "no time before now");
    ORRERY_ASSERT(!hold.starts_in || *hold.starts_in >= Duration(), "no time before now");
    ORRERY_ASSERT(list.find(slurm_job_name(kCluster, hold.key)) != list.npos, "it has its name");
    const bool waits = hold.phase == HoldPhase::kWaiting;
    const bool over = hold.phase == HoldPhase::kEnded || hold.phase == HoldPhase::kEndedDirty;
    ORRERY_ASSERT(!hold.started || !waits, "what waits has not started");
    ORRERY_ASSERT(!hold.ended || (over && !hold.nodes.empty()), "only what ran has ended");
  }
}

void check_foreign(const SqueueList& list, std::size_t holds) {
  ORRERY_ASSERT(list.holds.size() == holds, "holds are those of a list without others");
  ORRERY_ASSERT(list.foreign.has_value(), "it was asked for");
  for (const ForeignWork& work : *list.foreign) {
    ORRERY_ASSERT(!work.nodes.empty(), "work has nodes");
    ORRERY_ASSERT(is_one_line(work.id) && work.id.size() <= kNameMax, "what is read is plain");
    ORRERY_ASSERT(is_one_line(work.user) && work.user.size() <= kNameMax, "what is read is plain");
    ORRERY_ASSERT(!work.left || *work.left >= Duration(), "no time before now");
  }
}

void read_jobs(std::string_view bytes) {
  const std::string separator = squeue_separator(7);
  std::string list;
  for (const char c : bytes) {
    if (c == '~') {
      list += separator;
    } else {
      list += c;
    }
  }
  SqueueReading reading{.separator = separator, .cluster = kCluster, .uid = kUid, .now_wall = kNow};
  const auto own = read_squeue(list, reading);
  reading.foreign = true;
  const auto all = read_squeue(list, reading);
  ORRERY_ASSERT(own || !all, "more is read with the work of others, not less");
  if (!own) return;
  check_holds(own->holds, list);
  ORRERY_ASSERT(!own->foreign, "it was not asked for");
  if (all) check_foreign(*all, own->holds.size());
  ORRERY_ASSERT(!read_squeue(list + "x", reading), "a list with a rest is none");
}

void read_nodes(std::string_view bytes) {
  const auto nodes = read_slurm_nodes(bytes);
  if (!nodes) return;
  HoldSeen hold{.phase = HoldPhase::kEnded};
  for (const SlurmNode& node : *nodes) {
    ORRERY_ASSERT(!node.name.empty() && is_one_line(node.reason), "what is read is plain");
    if (node.may_keep_processes) hold.nodes = {node.name};
  }
  const bool dirty = !hold.nodes.empty();
  const ManagerListing listing = join_slurm_lists({.holds = {hold}}, *nodes);
  ORRERY_ASSERT(listing.nodes.size() == nodes->size(), "no node is lost");
  ORRERY_ASSERT((listing.holds[0].phase == HoldPhase::kEndedDirty) == dirty,
                "a node without an answer proves nothing");
}

void read_answer(std::string_view bytes) {
  const Result<std::string> id = read_sbatch(bytes);
  if (id) ORRERY_ASSERT(is_slurm_job_id(*id) && bytes.starts_with(*id), "the answer begins so");
  ORRERY_ASSERT(is_one_line(read_sbatch_errors(bytes).text), "a message is one line");
}

void read_labels(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == bytes.npos) return;
  const auto key =
      slurm_hold_key(kCluster, {.name = bytes.substr(0, end), .comment = bytes.substr(end + 1)});
  if (!key) return;
  ORRERY_ASSERT(bytes == slurm_job_name(kCluster, *key) + "\n" + slurm_job_comment(kCluster, *key),
                "a hold is named in one way");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  static constexpr std::array<TaggedReader, 4> kReaders{
      {{'j', read_jobs}, {'n', read_nodes}, {'l', read_labels}, {'a', read_answer}}};
  return read_by_first_byte(data, size, kReaders);
}
