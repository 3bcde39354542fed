// store/store.cpp - the checks that all backends share.
#include "store/store.hpp"

#include <algorithm>

namespace orrery {

tl::unexpected<StorageError> store_error(StorageFailure failure, std::string message) {
  return tl::unexpected<StorageError>(
      StorageError{Error{ErrorKind::kEnvironment, std::move(message), {}}, failure});
}

StorageStatus check_term(const std::string& name, const TermPair& terms) {
  if (terms.held == terms.given && terms.given != StoreTerm::kNone) return {};
  const auto number = [](StoreTerm term) { return static_cast<std::uint64_t>(term); };
  std::string why = fmt::format("term {} was claimed", number(terms.held));
  if (terms.held == StoreTerm::kNone) {
    why = "no term was claimed here: the store was emptied, or is another one";
  } else if (terms.held < terms.given) {
    why = fmt::format(
        "the newest claim here is of term {}: the store was restored from a backup, "
        "or is another one",
        number(terms.held));
  }
  return store_error(StorageFailure::kSuperseded,
                     fmt::format("{}: the writer of term {} may write no more: {}", name,
                                 number(terms.given), why));
}

StorageStatus check_next(const std::string& name, const BatchPair& numbers) {
  if (numbers.given == numbers.newest + 1) return {};
  return store_error(StorageFailure::kOther, fmt::format("{}: expected batch {}, was given {}",
                                                         name, numbers.newest + 1, numbers.given));
}

StorageStatus check_covered(const std::string& name, const BatchPair& numbers) {
  if (numbers.given <= numbers.newest) return {};
  return store_error(StorageFailure::kOther,
                     fmt::format("{}: a snapshot up to batch {}, but the newest batch is {}", name,
                                 numbers.given, numbers.newest));
}

StorageStatus drop_before_previous(Store& store, StoreTerm term) {
  StorageResult<std::vector<std::uint64_t>> there = store.snapshots();
  if (!there) return forward_failure(there);
  if (there->size() < 2) return {};
  return store.drop_covered(term, (*there)[1]);
}

StorageResult<CompactedLog> drop_to(Store& store, StoreTerm term, const Batch& covers) {
  const StorageResult<StoreExtent> before = store.extent();
  if (!before) return tl::unexpected(before.error());
  StorageStatus done = store.drop_covered(term, covers.number);
  if (done) done = store.shrink();
  if (!done) return tl::unexpected(done.error());
  const std::uint64_t after = covers.number + 1;
  return CompactedLog{covers.number, covers.bytes.size(), after - std::min(after, before->oldest)};
}

StorageResult<CompactedLog> compact_to(Store& store, StoreTerm term, const Batch& covers) {
  if (StorageStatus put = store.put_snapshot(term, covers); !put) return forward_failure(put);
  return drop_to(store, term, covers);
}

tl::unexpected<StorageError> no_snapshot(const std::string& name, std::uint64_t covers) {
  return store_error(StorageFailure::kNotFound,
                     fmt::format("{}: no snapshot up to batch {}", name, covers));
}

}  // namespace orrery
