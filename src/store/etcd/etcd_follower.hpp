// store/etcd/etcd_follower.hpp - follows a log in etcd on a thread of its own.
//
// Made by EtcdStore::follow() on the loop, which also destroys it. The thread reads what is there,
// then watches from the next revision on. A watch is not trusted (etcd 3.4 loses and reorders
// events): batches have to be numbered without gaps, and after a second without an event the state
// is read and compared. After any doubt the thread reads what is missing and watches another
// member. Invariants:
//   1. Batches are delivered in order, each once and whole.
//   2. `seen` comes after the batches that it includes, and its marks are those of etcd.
//   3. At most 32 MiB of batches wait for the loop.
//   4. Once the object is destroyed nothing calls back.
// Cost: one connection a member; each batch is copied twice. The end waits for a call of etcd that
// is under way: about 300 ms a member at most.
#pragma once

#include <memory>
#include <thread>

#include "store/etcd_api/etcd_location.hpp"
#include "store/shared_store.hpp"

namespace orrery {

class EtcdFollower final : public StoreFollower {
 public:
  EtcdFollower(const EtcdLocation& location, FollowOptions options);
  ~EtcdFollower() override;
  EtcdFollower(const EtcdFollower&) = delete;
  EtcdFollower& operator=(const EtcdFollower&) = delete;

 private:
  class Run;

  std::unique_ptr<Run> run_;
  std::thread thread_;
};

}  // namespace orrery
