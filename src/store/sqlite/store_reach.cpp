#include "store/sqlite/store_reach.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/system/real_storage.hpp"
#include "store/store.hpp"

namespace orrery {
namespace {

/// What the file of a closed store begins with; the place of its copy follows.
constexpr std::string_view kMoved = "moved to ";

std::string wal_path(const std::string& directory) { return directory + "/store.db-wal"; }
std::string moved_path(const std::string& directory) { return directory + "/moved"; }

std::string text_of(const std::string& directory, const WalBreak& found) {
  if (found.frame == 0) return fmt::format("{}: byte 0: its head is damaged", wal_path(directory));
  return fmt::format("{}: byte {}: frame {} is damaged or cut off", wal_path(directory),
                     found.offset, found.frame);
}

tl::unexpected<StorageError> lost(const std::string& directory, const std::string& what) {
  return store_error(StorageFailure::kOther, what + repair_commands(directory));
}

std::string print_missing(const DatabaseReach& reach, const HighWater& mark) {
  if (reach.newest + 1 == mark.batch) return fmt::format("batch {} is missing", mark.batch);
  if (reach.newest < mark.batch) {
    return fmt::format("batches {} to {} are missing", reach.newest + 1, mark.batch);
  }
  return fmt::format("its newest term is {}, but term {} was claimed", reach.term, mark.term);
}

}  // namespace

std::string repair_commands(const std::string& directory) {
  const bool named = directory.ends_with("/store");
  const std::string cluster = named ? directory.substr(0, directory.size() - 6) : "DIR";
  return fmt::format(
      "\nnothing was changed. To go on with a backup:   orrery store restore BACKUP --dir {}\n"
      "To go on with all that is good in this log:     orrery store salvage {} --out NEW",
      cluster, directory);
}

StorageResult<StoreFiles> look_at_files(const std::string& directory) {
  StoreFiles files;
  StorageResult<std::optional<HighWater>> mark = read_high_water(directory);
  if (!mark) return lost(directory, mark.error().message);
  files.mark = *mark;
  std::error_code none;
  if (files.mark && files.mark->term > 0 &&
      !std::filesystem::is_regular_file(directory + "/store.db", none)) {
    StorageStatus missing = check_reach(directory, files, {.empty = true});
    return forward_failure(missing);
  }
  StorageResult<std::optional<WalBreak>> found = scan_wal(wal_path(directory));
  if (!found) return forward_failure(found);
  files.wal_break = *found;
  if (files.wal_break && files.wal_break->later_transaction) {
    return lost(directory, text_of(directory, *files.wal_break) +
                               ", and whole transactions follow it that were acknowledged");
  }
  return files;
}

StorageStatus check_reach(const std::string& directory, const StoreFiles& files,
                          const DatabaseReach& reach) {
  const std::string database = directory + "/store.db";
  if (!files.mark) {
    if (!reach.marked) return {};
    return lost(directory,
                fmt::format("{}/{}: is missing; it says how far the log was acknowledged",
                            directory, HighWaterFile::kName));
  }
  const HighWater& mark = *files.mark;
  if (reach.newest >= mark.batch && reach.term >= mark.term) return {};
  std::string what =
      fmt::format("{}: {}: {}/{} says that batches up to {} were acknowledged", database,
                  reach.empty ? "is empty or missing" : print_missing(reach, mark), directory,
                  HighWaterFile::kName, mark.batch);
  if (files.wal_break) what += "; " + text_of(directory, *files.wal_break);
  return lost(directory, what);
}

StorageStatus close_moved(const std::string& directory, const std::string& place) {
  RealStorage storage;
  return storage.write_file(moved_path(directory), fmt::format("{}{}\n", kMoved, place));
}

StorageStatus check_not_moved(const std::string& directory) {
  constexpr std::size_t kBytesMax = 65'536;
  const std::string path = moved_path(directory);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  RealStorage storage;
  StorageResult<std::string> text = storage.read_file(path, kBytesMax);
  if (!text) return forward_failure(text);
  std::string place = text->starts_with(kMoved) ? text->substr(kMoved.size()) : *text;
  while (place.ends_with('\n')) place.pop_back();
  const std::string start =
      place.starts_with("etcd://")
          ? fmt::format("start the controllers with --store '{}' and its files", place)
          : "start the controller with --dir DIR, where DIR/store is this copy";
  return store_error(
      StorageFailure::kOther,
      fmt::format("{}: is closed: `orrery store copy` moved the log to {}; {}. If no controller "
                  "has ever run on that copy, this log is opened again by: rm {}",
                  directory, place, start, path));
}

}  // namespace orrery
