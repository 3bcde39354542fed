// serving/routing/route_history.hpp - the newest decisions of a router and their reasons, for
// `explain`.
//
// A gateway adds each decision. A ring: at most `size` are kept, memory is reused. Cost: O(reasons)
// a decision, O(size) a question.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serving/routing/router.hpp"

namespace orrery {

/// One decision; a request that is tried again has several.
struct RouteRecord {
  std::string request;
  std::uint64_t service = 0;        ///< RoutedService::id
  std::uint64_t epoch = 0;          ///< of the table
  std::uint64_t tokens = 0;         ///< of its prompt and its answer, estimated
  std::uint64_t prompt_tokens = 0;  ///< of these, of its prompt
  bool continues = false;           ///< for the rest of a stream that broke off
  std::string_view tier;            ///< name_of() of a TierReason; empty: the service has one model
  Instant time;
  RouteDecision decision;
};

class RouteHistory {
 public:
  explicit RouteHistory(std::size_t size) : size_(size) {}

  void add(std::string_view request, RouteRecord record);
  /// The decisions about a request, oldest first. The pointers live until the next add().
  [[nodiscard]] std::vector<const RouteRecord*> find(std::string_view request) const;

 private:
  std::size_t size_;
  std::size_t next_ = 0;  ///< oldest record once the ring is full
  std::vector<RouteRecord> records_;
};

}  // namespace orrery
