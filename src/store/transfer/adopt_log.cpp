#include "store/transfer/adopt_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "store/etcd/etcd_writer.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {
namespace {

/// Holds off a controller that starts on this machine; a descriptor of nothing where none ever ran.
StorageResult<FileDescriptor> lock_local(const std::string& local) {
  const std::string archive = local + "/archive";
  std::error_code none;
  if (!std::filesystem::is_directory(archive, none)) return FileDescriptor();
  return SqliteStore::lock(archive);
}

Result<StoreTerm> claim_above(EtcdWriter& writer, const AdoptableLog& found) {
  StorageResult<StoreTerm> term = writer.claim({.seen = found.seen,
                                                .writer = "",
                                                .rule = ClaimRule::kUnlessWritten,
                                                .passed = found.marked.term});
  if (!term) return forward_error(term);
  return *term;
}

}  // namespace

Result<AdoptableLog> find_adoptable(const EtcdLocation& location, const std::string& local) {
  StorageResult<std::optional<HighWater>> mark = read_high_water(local);
  if (!mark) return forward_error(mark);
  if (!*mark) {
    return input_error({},
                       fmt::format("{}/{}: no such file: no controller of a log in etcd has run "
                                   "with this STATE",
                                   local, HighWaterFile::kName));
  }
  auto client = EtcdClient::make(location);
  if (!client) return forward_error(client);
  EtcdReader reader(**client);
  StorageResult<EtcdState> state = reader.state();
  if (!state) return forward_error(state);
  if (state->format_mark == 0) {
    return input_error(
        {},
        fmt::format("{}: no log here; the key {} is missing, so there is nothing to adopt: name "
                    "the store that this STATE belongs to, or restore its backup first with "
                    "`etcdctl snapshot restore`",
                    reader.name(), reader.keys().format()));
  }
  if (StorageStatus open = check_open(**client, *state); !open) return forward_error(open);
  AdoptableLog found{**mark, std::move(state->seen)};
  if (found.seen.newest >= found.marked.batch && found.seen.term >= found.marked.term) {
    return infeasible(fmt::format(
        "{}: has batch {} of term {}, and this machine has seen batch {} "
        "and term {}: nothing is lost here; start orreryd",
        reader.name(), found.seen.newest, found.seen.term, found.marked.batch, found.marked.term));
  }
  return found;
}

Result<StoreTerm> adopt_log(const EtcdLocation& location, const AdoptableLog& found,
                            const AdoptOrder& order) {
  StorageResult<FileDescriptor> lock = lock_local(order.local);
  if (!lock) return forward_error(lock);
  auto client = EtcdClient::make(location);
  if (!client) return forward_error(client);
  EtcdReader reader(**client);
  if (Status quiet = watch_quiet(reader, found.seen, order.watch); !quiet) {
    return forward_error(quiet);
  }
  EtcdWriter writer(**client, 0);
  Result<StoreTerm> term = claim_above(writer, found);
  if (!term) return term;
  if (StorageStatus put = writer.put_texts(*term, order.texts); !put) return forward_error(put);
  const HighWater mark{found.seen.newest, static_cast<std::uint64_t>(*term), found.marked.next_job};
  if (StorageStatus lowered = HighWaterFile::put(order.local, mark); !lowered) {
    return forward_error(lowered);
  }
  return term;
}

}  // namespace orrery
