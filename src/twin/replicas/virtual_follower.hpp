// twin/replicas/virtual_follower.hpp - follows the virtual etcd as store/etcd/etcd_follower.hpp
// follows a real one: in bursts, late, and with batches that come twice.
//
// Made by VirtualStore::follow(). Keeps what the contract of FollowOptions says: batches in order
// and whole, `seen` after the batches that it includes. One thread.
#pragma once

#include <memory>

#include "store/shared_store.hpp"
#include "twin/replicas/virtual_etcd.hpp"

namespace orrery {

class VirtualFollower final : public StoreFollower {
 public:
  VirtualFollower(VirtualEtcd& etcd, std::size_t machine, FollowOptions options);
  VirtualFollower(const VirtualFollower&) = delete;
  VirtualFollower& operator=(const VirtualFollower&) = delete;
  ~VirtualFollower() override;

 private:
  /// There may be something new: hears it in a while.
  void poke();
  void hear();
  void hear_batches();
  void fail(const StorageError& why);
  /// Posts a call to the loop, if the follower still lives by then.
  template <class Call>
  void post(Call call);

  VirtualEtcd& etcd_;
  std::size_t machine_;
  FollowOptions options_;
  std::uint64_t key_ = 0;    ///< at etcd
  std::uint64_t newest_;     ///< newest batch that was delivered
  std::uint64_t texts_ = 0;  ///< mark of the texts that were told
  WriterSeen told_;
  bool first_ = true;
  bool due_ = false;       ///< it hears in a while
  bool reported_ = false;  ///< that etcd gives no answer
  bool ended_ = false;
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
};

}  // namespace orrery
