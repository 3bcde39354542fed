#include "verbs/store/store_rescue_answer.hpp"

#include <fmt/format.h>

#include "base/format/field_writer.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/store/store_setup.hpp"

namespace orrery {
namespace {

/// The first job number that the salvaged log has not given out; read as a controller will read it,
/// so that a store that could not be started is told here.
Result<std::uint64_t> next_job_of(const CommandOptions& options, const std::string& from,
                                  const std::string& to) {
  auto store = SqliteStore::open_to_read(to);
  if (!store) return forward_error(store);
  Result<std::unique_ptr<StoredSetup>> setup =
      StoredSetup::load(with_catalog_of(options, from), **store);
  if (!setup) return forward_error(setup);
  return (*setup)->next_job(**store);
}

std::string lost_text(const SalvagedStore& salvaged, std::uint64_t next_job) {
  if (salvaged.damage.empty() && salvaged.lost_to == 0) return "nothing is lost\n";
  std::string text;
  if (!salvaged.damage.empty()) text += fmt::format("damage: {}\n", salvaged.damage);
  if (salvaged.lost_to > 0) {
    text += fmt::format("lost: batches {} to {}\n", salvaged.lost_from, salvaged.lost_to);
  }
  if (salvaged.mark && salvaged.mark->next_job > next_job) {
    text += fmt::format("lost: jobs {} to {}\n", next_job, salvaged.mark->next_job - 1);
  }
  if (!salvaged.mark)
    text += "the last acknowledged batch is unknown: the high_water file is lost\n";
  return text;
}

}  // namespace

VerbAnswer restored_answer(const std::string& directory, const RestoredStore& restored) {
  VerbAnswer answer{
      fmt::format("{}/store: restored up to batch {}\n", directory, restored.extent.newest),
      {{"store", directory + "/store"},
       {"newest_batch", restored.extent.newest},
       {"next_job", restored.next_job},
       {"kept", restored.kept}}};
  if (!restored.kept.empty()) {
    answer.text += fmt::format("previous store kept as: {}\n", restored.kept);
  }
  if (restored.next_job > 0) {
    answer.text += fmt::format("job numbers below {} will not be reused\n", restored.next_job);
  }
  return answer;
}

VerbAnswer salvaged_answer(const std::string& to, const SalvagedStore& salvaged,
                           std::uint64_t next_job) {
  VerbAnswer answer;
  answer.json = {{"store", to},
                 {"newest_batch", salvaged.extent.newest},
                 {"batches", salvaged.batches},
                 {"archived_jobs", salvaged.archived},
                 {"history_hash", fmt::format("{:016x}", salvaged.history_hash)},
                 {"next_job", next_job},
                 {"damage", salvaged.damage},
                 {"lost_batches", Json::array()},
                 {"lost_jobs", Json::array()}};
  if (salvaged.lost_to > 0) {
    answer.json["lost_batches"] = {salvaged.lost_from, salvaged.lost_to};
  }
  if (salvaged.mark && salvaged.mark->next_job > next_job) {
    answer.json["lost_jobs"] = {next_job, salvaged.mark->next_job - 1};
  }
  answer.text = fmt::format(
      "{}: {} batches up to batch {} and {} archived jobs are good, history {:016x}\n", to,
      salvaged.batches, salvaged.extent.newest, salvaged.archived, salvaged.history_hash);
  answer.text += lost_text(salvaged, next_job);
  answer.text += fmt::format("to use the salvaged store: orrery store restore {} --dir DIR\n", to);
  return answer;
}

Result<VerbAnswer> restore_backup(const CommandOptions& options, RestoreRequest request) {
  request.directory = cluster_directory(options);
  const Result<RestoredStore> restored = restore_store(request);
  if (!restored) return tl::unexpected(restored.error());
  return restored_answer(request.directory, *restored);
}

Result<VerbAnswer> salvage_damaged(const CommandOptions& options, const SalvageRequest& request) {
  const Result<SalvagedStore> salvaged = salvage_store(request.from, request.to);
  if (!salvaged) return tl::unexpected(salvaged.error());
  Result<std::uint64_t> next_job = next_job_of(options, request.from, request.to);
  if (!next_job) return forward_error(next_job);
  return salvaged_answer(request.to, *salvaged, *next_job);
}

}  // namespace orrery
