#include "scheduler/request/type_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace orrery {
namespace {

double peak16(const Accelerator& accelerator) {
  double peak = 0;
  for (const NumberFormat format : {NumberFormat::kBf16, NumberFormat::kFp16}) {
    if (const auto rate = accelerator.rate(format)) peak = std::max(peak, rate->value());
  }
  return peak;
}

class TypeChooser {
 public:
  TypeChooser(const JobSpec& job, const RoleSpec& role, const Topology& topology)
      : job_(job), role_(role), topology_(topology), catalog_(topology.catalog()) {}

  Result<TypeChoice> choose() {
    Status known = find_framework();
    if (known) known = check_export_classes();
    if (known) known = role_.types.empty() ? take_all() : take_named();
    if (!known) return forward_error(known);
    return std::move(choice_);
  }

 private:
  Status find_framework() {
    // What mpirun or a script starts is a program of its own, with unknown requirements.
    const std::string& name = job_.software.framework;
    if (name.empty() || name == "mpi" || name == "slurm") return {};
    Result<const Framework*> framework =
        catalog_.require<Framework>(job_.software.framework, job_.software.where);
    if (!framework) return forward_error(framework);
    framework_ = *framework;
    return {};
  }

  Status check_export_classes() const {
    for (const std::string& name : job_.permitted.export_classes) {
      Result<const ExportClass*> found = catalog_.require<ExportClass>(name, job_.where);
      if (!found) return forward_error(found);
    }
    return {};
  }

  Status take_named() {
    for (const TypeSpeed& named : role_.types) {
      Result<const Accelerator*> accelerator =
          catalog_.require<Accelerator>(named.type, named.where);
      if (!accelerator) return forward_error(accelerator);
      const std::optional<FleetTypeId> type = topology_.find_type(named.type);
      if (type && has_nodes(*type)) {
        take(*type, named.speed);
      } else {
        exclude(**accelerator, RejectionKind::kNever,
                fmt::format("types: the fleet has no {}; it has {}", (*accelerator)->id,
                            fmt::join(names_of_fleet(), ", ")));
      }
    }
    return {};
  }

  Status take_all() {
    std::vector<FleetTypeId> types;
    for (std::uint32_t i = 0; i < topology_.type_count(); ++i) {
      if (has_nodes(FleetTypeId(i))) types.emplace_back(i);
    }
    const auto is_cpu = [&](FleetTypeId type) {
      return topology_.accelerator(type).kind == AcceleratorKind::kCpu;
    };
    const auto order = [&](FleetTypeId type) {
      return std::pair(is_cpu(type), -peak16(topology_.accelerator(type)));
    };
    std::stable_sort(types.begin(), types.end(),
                     [&](FleetTypeId a, FleetTypeId b) { return order(a) < order(b); });
    const auto cpus = std::find_if(types.begin(), types.end(), is_cpu);
    for (auto type = types.begin(); type != cpus; ++type) take(*type, 1);
    if (!choice_.allowed.empty()) return {};
    for (auto type = cpus; type != types.end(); ++type) take(*type, 1);
    return {};
  }

  void take(FleetTypeId type, double speed) {
    const bool twice = std::any_of(choice_.allowed.begin(), choice_.allowed.end(),
                                   [&](const AllowedType& other) { return other.type == type; });
    if (twice) return;
    const Accelerator& accelerator = topology_.accelerator(type);
    if (!runs_on(accelerator)) {
      exclude(accelerator, RejectionKind::kStack, stack_reason(accelerator));
    } else if (!job_.permitted.export_classes.empty() && !class_allowed(accelerator)) {
      exclude(accelerator, RejectionKind::kNever, export_reason(accelerator));
    } else {
      choice_.allowed.push_back({type, speed});
    }
  }

  /// Whether the fleet has nodes of the type; of a type whose groups have count 0 it has none.
  [[nodiscard]] bool has_nodes(FleetTypeId type) const {
    return topology_.device_count(Topology::root(), type) > 0;
  }

  void exclude(const Accelerator& accelerator, RejectionKind kind, std::string reason) {
    choice_.excluded.push_back({accelerator.id, {kind, {}, std::move(reason)}});
  }

  [[nodiscard]] bool runs_on(const Accelerator& accelerator) const {
    if (framework_ == nullptr) return true;
    const Catalog::StackAnswer stack = catalog_.stack(*framework_, accelerator);
    return stack.platform == nullptr || stack.support_for(use_of_job()) != Support::kNo;
  }

  /// A batch job may be anything: a type that can only infer runs it.
  [[nodiscard]] FrameworkUse use_of_job() const {
    const bool trains = job_.kind == JobKind::kTrain || job_.kind == JobKind::kFineTune;
    return trains ? FrameworkUse::kTraining : FrameworkUse::kInference;
  }

  [[nodiscard]] bool class_allowed(const Accelerator& accelerator) const {
    const Supply* supply = catalog_.supply(accelerator);
    return supply != nullptr &&
           std::find(job_.permitted.export_classes.begin(), job_.permitted.export_classes.end(),
                     supply->export_class) != job_.permitted.export_classes.end();
  }

  [[nodiscard]] std::string stack_reason(const Accelerator& accelerator) const {
    const Catalog::StackAnswer stack = catalog_.stack(*framework_, accelerator);
    const bool infers = stack.support != Support::kNo;
    std::string text = fmt::format("software.framework: {} does not {} on {} ({})", framework_->id,
                                   infers ? "train" : "run", accelerator.id, stack.platform->name);
    if (stack.exception == nullptr && stack.stack != nullptr && stack.stack->through) {
      text += fmt::format("; the package for it would be {}", *stack.stack->through);
    }
    const Accelerator* nearest = nearest_that_runs(accelerator);
    if (nearest != nullptr) text += fmt::format("; it runs on {}", nearest->id);
    return text;
  }

  /// The type of the fleet, else of the catalog, with the nearest 16-bit peak; ties go to the
  /// first.
  [[nodiscard]] const Accelerator* nearest_that_runs(const Accelerator& wanted) const {
    const Accelerator* nearest = nullptr;
    const auto offer = [&](const Accelerator& other) {
      if (!runs_on(other) || catalog_.stack(*framework_, other).platform == nullptr) return;
      const auto distance = [&](const Accelerator& a) {
        return std::abs(peak16(a) - peak16(wanted));
      };
      if (nearest == nullptr || distance(other) < distance(*nearest)) nearest = &other;
    };
    for (std::uint32_t i = 0; i < topology_.type_count(); ++i) {
      offer(topology_.accelerator(FleetTypeId(i)));
    }
    if (nearest != nullptr) return nearest;
    for (const Accelerator& other : catalog_.all<Accelerator>()) offer(other);
    return nearest;
  }

  [[nodiscard]] std::string export_reason(const Accelerator& accelerator) const {
    const Supply* supply = catalog_.supply(accelerator);
    return fmt::format("export_classes: {} is of class {}, asked is {}", accelerator.id,
                       supply == nullptr ? "unknown" : supply->export_class,
                       fmt::join(job_.permitted.export_classes, " or "));
  }

  [[nodiscard]] std::vector<std::string_view> names_of_fleet() const {
    std::vector<std::string_view> names;
    for (std::uint32_t i = 0; i < topology_.type_count(); ++i) {
      if (has_nodes(FleetTypeId(i))) names.push_back(topology_.accelerator(FleetTypeId(i)).id);
    }
    return names;
  }

  const JobSpec& job_;
  const RoleSpec& role_;
  const Topology& topology_;
  const Catalog& catalog_;
  const Framework* framework_ = nullptr;
  TypeChoice choice_;
};

}  // namespace

Result<TypeChoice> choose_types(const JobSpec& job, const RoleSpec& role,
                                const Topology& topology) {
  return TypeChooser(job, role, topology).choose();
}

}  // namespace orrery
