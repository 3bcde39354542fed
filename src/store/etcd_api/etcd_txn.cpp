#include "store/etcd_api/etcd_txn.hpp"

#include <utility>

namespace orrery {

EtcdKeyRange keys_under(std::string prefix) {
  std::string end = prefix;
  ++end.back();
  return {std::move(prefix), std::move(end)};
}

etcd::RangeRequest range_request(const EtcdKeyRange& keys) {
  etcd::RangeRequest request;
  request.set_key(keys.from);
  request.set_range_end(keys.end);
  return request;
}

EtcdTxn& EtcdTxn::if_written_at(const std::string& key, std::int64_t revision) {
  etcd::Compare& compare = *request_.add_compare();
  compare.set_target(etcd::Compare::MOD);
  compare.set_key(key);
  compare.set_mod_revision(revision);
  return *this;
}

EtcdTxn& EtcdTxn::if_exists(const std::string& key) {
  etcd::Compare& compare = *request_.add_compare();
  compare.set_target(etcd::Compare::VERSION);
  compare.set_result(etcd::Compare::GREATER);
  compare.set_key(key);
  compare.set_version(0);
  return *this;
}

EtcdTxn& EtcdTxn::if_value(const std::string& key, std::string value) {
  etcd::Compare& compare = *request_.add_compare();
  compare.set_target(etcd::Compare::VALUE);
  compare.set_key(key);
  compare.set_value(std::move(value));
  return *this;
}

EtcdTxn& EtcdTxn::put(const std::string& key, std::string value) {
  etcd::PutRequest& put = *request_.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(std::move(value));
  return *this;
}

EtcdTxn& EtcdTxn::erase(const EtcdKeyRange& keys) {
  etcd::DeleteRangeRequest& erased = *request_.add_success()->mutable_request_delete_range();
  erased.set_key(keys.from);
  erased.set_range_end(keys.end);
  return *this;
}

EtcdTxn& EtcdTxn::get(etcd::RangeRequest keys) {
  *request_.add_success()->mutable_request_range() = std::move(keys);
  return *this;
}

EtcdTxn& EtcdTxn::else_get(const std::string& key) {
  request_.add_failure()->mutable_request_range()->set_key(key);
  return *this;
}

EtcdTxn& EtcdTxn::in_order(const std::string& key) {
  // A step that writes, in the branch that is never taken: only such transactions go into the log.
  // It deletes, because a full etcd refuses one that puts.
  request_.add_failure()->mutable_request_delete_range()->set_key(key);
  return *this;
}

EtcdTxn EtcdTxn::else_branch(const std::string& key) const {
  EtcdTxn read;
  *read.request_.mutable_success() = request_.failure();
  read.in_order(key);
  return read;
}

}  // namespace orrery
