// store/etcd/etcd_reader.hpp - reads a log in etcd.
//
// Made by what opens or follows a store, for as long as its client lives. One thread at a time.
// Invariant: what a call returns was all there at one revision, or is a run of batches that each
// were; every byte was checked. The archive of jobs is not in etcd: archived() returns none.
// Cost: one round trip for up to 48 batches of any size, or 1,024 small ones.
#pragma once

#include <memory>

#include "store/etcd/etcd_state.hpp"
#include "store/store.hpp"

namespace orrery {

class EtcdReader final : public StoreReader {
 public:
  explicit EtcdReader(EtcdClient& client) : client_(client), keys_(client.location().prefix()) {}
  /// A reader that owns its client.
  explicit EtcdReader(std::unique_ptr<EtcdClient> client)
      : own_(std::move(client)), client_(*own_), keys_(client_.location().prefix()) {}

  [[nodiscard]] const std::string& name() const override { return client_.name(); }
  [[nodiscard]] StorageResult<StoreExtent> extent() override;
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override;
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override;
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override;
  [[nodiscard]] StorageResult<StoreTexts> texts() override;
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override;
  [[nodiscard]] StorageStatus check() override;

  [[nodiscard]] const EtcdKeys& keys() const { return keys_; }
  [[nodiscard]] StorageResult<EtcdState> state() { return read_state(client_, keys_); }
  /// Returns the batch whose head was found, with its parts as they are at `revision`.
  [[nodiscard]] StorageResult<Batch> batch_of(const etcd::KeyValue& found, std::int64_t revision);

 private:
  struct Window {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] StorageResult<etcd::RangeResponse> heads(const Window& window);
  /// Returns the number of the oldest batch from `first` on; 0: there is none.
  [[nodiscard]] StorageResult<std::uint64_t> oldest_from(std::uint64_t first);
  [[nodiscard]] StorageResult<StoreTexts> texts_now();
  [[nodiscard]] StorageStatus check_batches();

  std::unique_ptr<EtcdClient> own_;  ///< none: the client is borrowed
  EtcdClient& client_;
  EtcdKeys keys_;
};

}  // namespace orrery
