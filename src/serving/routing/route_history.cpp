#include "serving/routing/route_history.hpp"

#include <utility>

namespace orrery {

void RouteHistory::add(std::string_view request, RouteRecord record) {
  if (size_ == 0) return;
  if (records_.size() < size_) {
    record.request = request;
    records_.push_back(std::move(record));
    return;
  }
  RouteRecord& oldest = records_[next_];
  next_ = (next_ + 1) % size_;
  std::string kept = std::move(oldest.request);
  kept.assign(request);
  oldest = std::move(record);
  oldest.request = std::move(kept);
}

std::vector<const RouteRecord*> RouteHistory::find(std::string_view request) const {
  std::vector<const RouteRecord*> found;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const RouteRecord& each = records_[(next_ + i) % records_.size()];
    if (each.request == request) found.push_back(&each);
  }
  return found;
}

}  // namespace orrery
