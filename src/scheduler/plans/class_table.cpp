#include "scheduler/plans/class_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace orrery {
namespace {

/// Serializes values one after the other; lists begin with their length, so that different requests
/// have different keys.
class Key {
 public:
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void add(T value) {
    const auto bits = static_cast<std::uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(Duration value) { add(value.count_ns()); }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <class Tag>
  void add(Id<Tag> id) {
    add(id.value());
  }
  void add(Dollars value) { add(value.value()); }

  void add(const HostNeeds& host) {
    add(host.cpu);
    add(host.memory);
    add(host.cxl);
    add(host.disk);
  }
  void add(const GangRequest& gang) {
    add(gang.type);
    add(gang.devices);
    add(gang.node_devices);
    add(gang.share);
    add(gang.host);
    add(gang.required);
    add(gang.preferred);
    add(gang.segment);
    add(gang.exclusive);
    add(gang.rails_aligned);
    for (const std::uint32_t side : gang.slice) add(side);
    add(gang.sites);
  }
  void add_placement(const RoleRequest& role) {
    add(role.gangs);
    add(role.options.size());
    for (const GangOption& option : role.options) {
      add(option.gang);
      add(option.plan.has_value());
    }
    add(role.work);
    add(role.spread.has_value());
    if (role.spread) {
      add(role.spread->level);
      add(role.spread->most);
    }
  }
  void add(const RoleRequest& role) {
    add_placement(role);
    for (const GangOption& option : role.options) add(option.speed);
    add(role.steps);
  }

  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace

namespace {

std::string class_key(const JobRequest& request) {
  Key key;
  key.add(request.kind);
  key.add(request.preemptible);
  key.add(request.goal);
  key.add(request.budget);
  key.add(request.time_limit);
  key.add(request.estimate);
  key.add(request.checkpoint_interval);
  key.add(request.checkpoint_cost);
  key.add(request.restart);
  key.add(request.data.size());
  for (const DataRequest& data : request.data) {
    key.add(data.site);
    key.add(data.size.value());
  }
  key.add(request.roles.size());
  for (const RoleRequest& role : request.roles) key.add(role);
  return key.take();
}

}  // namespace

ClassId ClassTable::id_of(std::string key) {
  const auto [found, is_new] = ids_.emplace(std::move(key), ClassId::at(size_));
  if (is_new) ++size_;
  return found->second;
}

ClassId ClassTable::of(const JobRequest& request) { return id_of(class_key(request)); }

void ClassTable::take_up(const JobRequest& request) {
  ids_.emplace(class_key(request), request.class_id);
  size_ = std::max(size_, std::size_t{request.class_id.value()} + 1);
}

ClassId ClassTable::of_placement(const JobRequest& request) {
  Key key;
  key.add(request.preemptible);
  key.add(request.roles.size());
  for (const RoleRequest& role : request.roles) key.add_placement(role);
  return id_of(key.take());
}

}  // namespace orrery
