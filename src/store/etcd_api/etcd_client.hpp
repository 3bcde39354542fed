// store/etcd_api/etcd_client.hpp - calls of etcd over the members of its cluster: the next member
// is asked where one does not answer.
//
// Made by what reads or writes a store in etcd; a follower has one of its own. Any thread may call;
// a call blocks. Each client has its own connections. Invariants: all answers come from one etcd
// cluster, that of the first answer; and none is older than an answer that came before the call
// (etcd 3.4 answers with an old state around a change of its leader).
// Cost: a call takes one round trip; without any answer about 300 ms a member, and 1 s where there
// is one only. Large messages get 1 ms more for each 16 KiB.
#pragma once

#include <grpcpp/channel.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "orrery/etcd.pb.h"
#include "store/etcd_api/etcd_location.hpp"

namespace orrery {

class EtcdClient {
 public:
  /// Connects when the first call is made. Errors: a file of the location cannot be read.
  [[nodiscard]] static StorageResult<std::unique_ptr<EtcdClient>> make(
      const EtcdLocation& location);
  EtcdClient(EtcdLocation location, std::vector<std::shared_ptr<grpc::Channel>> members)
      : location_(std::move(location)), name_(location_.text()), members_(std::move(members)) {}

  [[nodiscard]] const EtcdLocation& location() const { return location_; }
  /// The location, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t member_count() const { return members_.size(); }
  [[nodiscard]] const std::shared_ptr<grpc::Channel>& channel(std::size_t member) const {
    return members_[member];
  }

  // Errors of all calls: kUnavailable, after each member was asked: a call that writes may have
  // done so; kFull: etcd's space is used up; kNotFound: the revision was compacted; kOther: etcd
  // refuses the call, or the answer is of another etcd cluster.

  /// A failover repeats the transaction, so a comparison must keep it from being applied twice, or
  /// that must do no harm.
  [[nodiscard]] StorageResult<etcd::TxnResponse> txn(const etcd::TxnRequest& request);
  /// `answer_bytes`: size of the answer, about.
  [[nodiscard]] StorageResult<etcd::RangeResponse> range(const etcd::RangeRequest& request,
                                                         std::size_t answer_bytes = 0);
  /// Drops what etcd keeps of revisions before this one. A revision that was compacted already is
  /// fine.
  [[nodiscard]] StorageStatus compact(std::int64_t revision);

 private:
  template <class Request, class Response>
  [[nodiscard]] StorageResult<Response> call(const char* method, const Request& request,
                                             std::size_t bytes);
  [[nodiscard]] StorageStatus check_cluster(const etcd::ResponseHeader& header);
  void note_revision(std::int64_t revision);

  EtcdLocation location_;
  std::string name_;
  std::vector<std::shared_ptr<grpc::Channel>> members_;
  std::atomic<std::size_t> current_ = 0;    ///< member that answered last
  std::atomic<std::uint64_t> cluster_ = 0;  ///< 0: there was no answer yet
  std::atomic<std::int64_t> revision_ = 0;  ///< newest that an answer had
};

}  // namespace orrery
