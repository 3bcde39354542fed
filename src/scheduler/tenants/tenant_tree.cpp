#include "scheduler/tenants/tenant_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

TenantTree TenantTree::with_room(TenantId tenant, FleetTypeId type, std::int64_t devices) const {
  TenantTree tree = *this;
  for (TenantId id = tenant; id.valid(); id = parent(id)) {
    tree.tenants_[id.value()].borrow = true;
    for (const FleetTypeId column : {type, kAllTypes}) {
      std::int64_t& limit = tree.limits_[cell(id, column)];
      if (limit != kUnlimited) limit += devices;
    }
  }
  return tree;
}

TenantId TenantTree::common_ancestor(TenantId a, TenantId b) const {
  while (a != b) (a > b ? a : b) = parent(std::max(a, b));
  return a;
}

std::optional<TenantId> TenantTree::find(std::string_view path) const {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  return found->second;
}

Result<TenantId> TenantTree::job_tenant(std::string_view path, const SourcePosition& where) const {
  const std::optional<TenantId> id = find(path);
  if (id && is_leaf(*id)) return *id;
  std::vector<std::string_view> names;
  if (id) {
    const std::size_t first = first_child(*id).value();
    for (std::size_t i = first; i < first + children(*id); ++i) {
      names.push_back(tenants_[i].path);
    }
    return input_error(where, fmt::format("tenant: \"{}\" is shared by {}; name one of them", path,
                                          fmt::join(names, ", ")));
  }
  for (const auto& [known, unused] : by_path_) names.push_back(known);
  return input_error(where, fmt::format("tenant: there is no tenant \"{}\"{}", printable(path, 60),
                                        did_you_mean(path, names)));
}

class TenantTreeBuilder {
 public:
  TenantTreeBuilder(const TenantsSpec& spec, const Topology& topology)
      : spec_(spec), topology_(topology) {
    tree_.columns_ = topology.type_count() + 1;
    tree_.half_life_ = Duration::from_seconds(spec.half_life.value());
  }

  Result<TenantTree> build() {
    Result<std::vector<TenantPlace>> places = place_tenants(spec_);
    if (!places) return forward_error(places);
    for (const TenantPlace& place : *places) {
      if (Status added = add(place); !added) return forward_error(added);
    }
    // Children before their parents, the root last.
    for (std::uint32_t id = tree_.size(); id-- > 0;) {
      Status checked = id == 0 ? fit_into_fleet() : fit_children(TenantId(id));
      if (checked) checked = settle_limits(TenantId(id));
      if (!checked) return forward_error(checked);
    }
    return std::move(tree_);
  }

 private:
  using Amount = std::optional<DeviceCount>;

  // A tenant's stated counts by column, and what must be kept for it and all tenants below it.
  struct Draft {
    const TenantSpec* spec = nullptr;
    std::vector<Amount> guarantee;
    std::vector<Amount> limit;
    std::vector<Amount> borrow_limit;
    std::vector<std::int64_t> kept;
  };

  Status add(const TenantPlace& place) {
    const bool is_root = drafts_.empty();
    const TenantId id = TenantId::at(drafts_.size());
    TenantTree::Tenant tenant{.path = place.path};
    Draft draft{.kept = std::vector<std::int64_t>(tree_.columns_, 0)};
    if (!is_root) {
      draft.spec = &spec_.tenants[place.entry];
      Status read = resolve(draft.spec->guarantee, "guarantee", draft.guarantee);
      if (read) read = resolve(draft.spec->limit, "limit", draft.limit);
      if (read) read = resolve(draft.spec->borrow_limit, "borrow_limit", draft.borrow_limit);
      if (!read) return read;
      tenant.parent = TenantId::at(place.parent);
      tenant.weight = draft.spec->weight;
      tenant.borrow = draft.spec->borrow;
      const std::string& own = draft.spec->run_as;
      tenant.run_as = own.empty() ? tree_.tenants_[place.parent].run_as : own;
      tree_.by_path_.emplace(place.path, id);
      TenantTree::Tenant& parent = tree_.tenants_[place.parent];
      if (parent.children++ == 0) parent.first_child = id;
    }
    tree_.tenants_.push_back(std::move(tenant));
    drafts_.push_back(std::move(draft));
    tree_.guarantees_.resize(tree_.guarantees_.size() + tree_.columns_);
    tree_.limits_.resize(tree_.limits_.size() + tree_.columns_, kUnlimited);
    return {};
  }

  // Converts counts by name to counts by column.
  Status resolve(const DeviceCounts& counts, std::string_view key, std::vector<Amount>& out) {
    out.resize(tree_.columns_);
    for (const auto& [name, amount] : counts) {
      const std::optional<FleetTypeId> type =
          name == "*" ? std::optional(kAllTypes) : topology_.find_type(name);
      if (!type) {
        return input_error(amount.where, fmt::format("{}: {}", key, unknown_type(name)));
      }
      Amount& slot = out[tree_.column(*type)];
      if (slot) {
        return input_error(
            amount.where, fmt::format("{}: \"{}\" is a second name of what stands at {}", key, name,
                                      slot->where.text()));
      }
      slot = amount;
    }
    return {};
  }

  [[nodiscard]] std::string unknown_type(const std::string& name) const {
    std::vector<std::string_view> known;
    std::vector<std::string_view> ids;
    for (std::uint32_t i = 0; i < topology_.type_count(); ++i) {
      const Accelerator& accelerator = topology_.accelerator(FleetTypeId(i));
      ids.push_back(accelerator.id);
      known.push_back(accelerator.id);
      known.insert(known.end(), accelerator.aliases.begin(), accelerator.aliases.end());
    }
    return fmt::format("the fleet has no accelerators \"{}\"{}; it has: {}", printable(name, 60),
                       did_you_mean(name, known), fmt::join(ids, ", "));
  }

  [[nodiscard]] std::uint32_t all() const { return tree_.columns_ - 1; }

  [[nodiscard]] std::string name_of(std::uint32_t column) const {
    return column == all() ? "accelerators" : topology_.accelerator(FleetTypeId(column)).id;
  }

  [[nodiscard]] const SourcePosition& place_of(TenantId id, std::uint32_t column) const {
    const Draft& draft = drafts_[id.value()];
    const Amount& stated = draft.guarantee[column];
    return stated ? stated->where : draft.spec->where;
  }

  std::optional<std::int64_t>& guarantee(TenantId id, std::uint32_t column) {
    return tree_.guarantees_[std::size_t{id.value()} * tree_.columns_ + column];
  }

  template <class Visit>
  void for_each_child(TenantId id, Visit&& visit) const {
    const TenantTree::Tenant& tenant = tree_.at(id);
    for (std::uint32_t i = 0; i < tenant.children; ++i) {
      visit(TenantId(tenant.first_child.value() + i));
    }
  }

  // Sums what is kept for the children; a sum above `most` is an error at the child that exceeds.
  Status sum_children(TenantId id, std::uint32_t column, std::int64_t most) {
    std::int64_t& sum = drafts_[id.value()].kept[column];
    Status status;
    for_each_child(id, [&](TenantId child) {
      sum += drafts_[child.value()].kept[column];
      if (!status || sum <= most) return;
      const std::string whose = id == TenantTree::root()
                                    ? fmt::format("what the fleet has, {}", most)
                                    : fmt::format("the {} of \"{}\"", most, tree_.path(id));
      status = input_error(place_of(child, column),
                           fmt::format("guarantee: with the {} of \"{}\", the {} guaranteed here "
                                       "come to {}, above {}",
                                       drafts_[child.value()].kept[column], tree_.path(child),
                                       name_of(column), sum, whose));
    });
    return status;
  }

  // Whether any child has a guarantee of the column.
  [[nodiscard]] std::optional<TenantId> guaranteed_child(TenantId id, std::uint32_t column) {
    std::optional<TenantId> first;
    for_each_child(id, [&](TenantId child) {
      if (!first && guarantee(child, column).value_or(0) > 0) first = child;
    });
    return first;
  }

  // A tenant's guarantees: as stated, in which its children's must fit, or else their sum.
  Status fit_children(TenantId id) {
    const bool stated = !drafts_[id.value()].spec->guarantee.empty();
    if (stated) return fit_into_stated(id);
    for (std::uint32_t column = 0; column < tree_.columns_; ++column) {
      if (Status summed = sum_children(id, column, kUnlimited); !summed) return summed;
      if (guaranteed_child(id, column)) guarantee(id, column) = drafts_[id.value()].kept[column];
    }
    return {};
  }

  Status fit_into_stated(TenantId id) {
    Draft& draft = drafts_[id.value()];
    const Amount& in_all = draft.guarantee[all()];
    std::int64_t of_types = 0;
    for (std::uint32_t column = 0; column < tree_.columns_; ++column) {
      const Amount& own = draft.guarantee[column];
      if (own) guarantee(id, column) = own->devices;
      if (column == all()) break;
      const std::int64_t devices = own ? own->devices : 0;
      const std::int64_t most = own ? devices : in_all ? in_all->devices : 0;
      if (Status summed = sum_children(id, column, most); !summed) return summed;
      draft.kept[column] = std::max(draft.kept[column], devices);
      of_types += devices;
    }
    if (in_all && in_all->devices < of_types) {
      return input_error(in_all->where,
                         fmt::format("guarantee: '*' is {}, less than the {} of its types",
                                     in_all->devices, of_types));
    }
    if (const auto child = guaranteed_child(id, all()); child && !in_all) {
      return input_error(place_of(*child, all()),
                         fmt::format("guarantee: '*', of which \"{}\" has none", tree_.path(id)));
    }
    const std::int64_t total = in_all ? in_all->devices : of_types;
    if (Status summed = sum_children(id, all(), total); !summed) return summed;
    draft.kept[all()] = total;
    return {};
  }

  Status fit_into_fleet() {
    for (std::uint32_t column = 0; column < all(); ++column) {
      const std::int64_t most = topology_.device_count(Topology::root(), FleetTypeId(column));
      if (Status summed = sum_children(TenantTree::root(), column, most); !summed) return summed;
    }
    return sum_children(TenantTree::root(), all(), topology_.device_count());
  }

  // The lower of the stated limit and of what may be borrowed, neither below what is guaranteed.
  Status settle_limits(TenantId id) {
    const Draft& draft = drafts_[id.value()];
    if (id == TenantTree::root()) return {};
    for (std::uint32_t column = 0; column < tree_.columns_; ++column) {
      std::int64_t& limit = tree_.limits_[std::size_t{id.value()} * tree_.columns_ + column];
      const Amount& borrowed = draft.borrow_limit[column];
      if (borrowed) limit = draft.kept[column] + borrowed->devices;
      const Amount& stated = draft.limit[column];
      if (!stated) continue;
      if (draft.kept[column] > stated->devices) {
        return input_error(stated->where,
                           fmt::format("limit: {} {}, below the {} guaranteed", stated->devices,
                                       name_of(column), draft.kept[column]));
      }
      limit = std::min(limit, stated->devices);
    }
    return {};
  }

  const TenantsSpec& spec_;
  const Topology& topology_;
  TenantTree tree_;
  std::vector<Draft> drafts_;
};

Result<TenantTree> build_tenant_tree(const TenantsSpec& spec, const Topology& topology) {
  return TenantTreeBuilder(spec, topology).build();
}

TenantTree default_tenant_tree(const Topology& topology) {
  TenantsSpec spec;
  spec.tenants.push_back(TenantSpec{.name = "default"});
  Result<TenantTree> tree = build_tenant_tree(spec, topology);
  ORRERY_ASSERT(tree, "a tenant without any guarantee fits every fleet");
  return *std::move(tree);
}

}  // namespace orrery
