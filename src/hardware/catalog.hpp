// hardware/catalog.hpp - every fact about machines, as typed immutable tables.
//
// Built once, by Catalog::load, from the documents compiled into the program and the files of an
// overlay directory; every cross-reference holds afterwards. A row of an overlay with a known id
// patches that row; a row with `like: ID` starts as a copy of ID; any other row is complete.
// Immutable and freely shared between threads. Look-ups by name are O(log rows).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "base/format/embedded_file.hpp"
#include "base/id.hpp"
#include "hardware/accelerator.hpp"
#include "hardware/facility.hpp"
#include "hardware/fact_overlay.hpp"
#include "hardware/failure_spec.hpp"
#include "hardware/fat_tree_vector.hpp"
#include "hardware/link.hpp"
#include "hardware/node_type.hpp"
#include "hardware/price.hpp"
#include "hardware/reliability.hpp"
#include "hardware/software_stack.hpp"
#include "hardware/system_type.hpp"

namespace orrery {

/// Position of a type in Catalog::nodes().
using NodeTypeId = Id<struct NodeTypeTag>;

/// A fact kept as its source gives it, without a table of its own: "checkpoint.bytes_per_parameter.
/// total_full" -> "14".
struct Evidence {
  std::string id;
  std::vector<std::pair<std::string, std::string>> values;
  SourcePosition where;
};

/// One table and the section of a catalog file it is read from.
template <class Row>
struct CatalogTable {
  std::string_view section;
  std::vector<Row> rows;
  /// Lower-case id or alias -> position, sorted.
  std::vector<std::pair<std::string, std::size_t>> names;
};

class Catalog {
 public:
  /// A catalog without rows.
  Catalog();
  // Defined in catalog.cpp: the implicit ones would make every source that holds or copies a
  // catalog compile the operations of each table.
  Catalog(const Catalog&);
  Catalog(Catalog&&) noexcept;
  Catalog& operator=(const Catalog&);
  Catalog& operator=(Catalog&&) noexcept;
  ~Catalog();

  /// `sources` first, then the overlays in their order, whose rows patch those of the same id.
  /// Errors: anything wrong in a file, with file:line:column.
  [[nodiscard]] static Result<Catalog> load(std::span<const EmbeddedFile> sources,
                                            std::span<const FactOverlay> overlays);

  template <class Row>
  [[nodiscard]] const std::vector<Row>& all() const {
    return table<Row>().rows;
  }
  [[nodiscard]] const std::vector<Evidence>& evidence() const { return evidence_; }

  /// Finds by id or alias, without regard to ASCII case; nullptr if there is none.
  template <class Row>
  [[nodiscard]] const Row* find(std::string_view name) const {
    const std::optional<std::size_t> at = position(table<Row>().names, name);
    return at ? &table<Row>().rows[*at] : nullptr;
  }

  /// Finds like find(), with an error (at `where`) that names the nearest candidates.
  template <class Row>
  [[nodiscard]] Result<const Row*> require(std::string_view name, SourcePosition where = {}) const {
    if (const Row* row = find<Row>(name); row != nullptr) return row;
    return unknown_name(table<Row>().names, table<Row>().section, name, std::move(where));
  }

  /// Position of a row in its table, for ids. Precondition: `row` belongs to this catalog.
  template <class Row>
  [[nodiscard]] std::size_t index_of(const Row& row) const {
    return static_cast<std::size_t>(&row - table<Row>().rows.data());
  }

  /// A copy with further node types (hardware/node_part.hpp). Errors: a name that is taken, a
  /// reference that does not hold. O(catalog).
  [[nodiscard]] Result<Catalog> with(std::span<const NodeType> nodes) const;

  /// The node type that "TYPE:N" stands for.
  [[nodiscard]] const NodeType& default_node(const Accelerator& accelerator) const;
  /// The fabric of the first reference system with this node; nullptr: none has one.
  [[nodiscard]] const ScaleOutFabric* default_fabric(const NodeType& node) const;
  /// Supply and price rows; a chip made with `like` has those of its model. nullptr: none known.
  [[nodiscard]] const Supply* supply(const Accelerator& accelerator) const;
  [[nodiscard]] const AcceleratorPrice* price(const Accelerator& accelerator) const;
  [[nodiscard]] const ServerCapex* server_capex(std::string_view node_or_system_id) const;

  /// Whether a framework runs on an accelerator, through what, and why (not).
  struct StackAnswer {
    Support support = Support::kNo;
    const Platform* platform = nullptr;
    const SoftwareStack* stack = nullptr;       ///< the platform's row
    const StackException* exception = nullptr;  ///< overrides it

    /// What a framework does there if that is not all it can do: an inference part has stacks that
    /// do not train.
    [[nodiscard]] std::optional<FrameworkUse> use() const;
    /// `support`, or kNo for a use that the framework does not have there.
    [[nodiscard]] Support support_for(FrameworkUse wanted) const;
  };
  [[nodiscard]] StackAnswer stack(const Framework& framework, const Accelerator& accelerator) const;

  /// Calls visit(const CatalogTable<Row>&) for every table, in a fixed order.
  template <class Visitor>
  void for_each_table(Visitor&& visit) const {
    std::apply([&](const auto&... each) { (visit(each), ...); }, tables_);
  }

 private:
  friend class CatalogLoader;
  friend class CatalogChecker;

  using Tables = std::tuple<
      CatalogTable<Accelerator>, CatalogTable<NodeType>, CatalogTable<SystemType>,
      CatalogTable<ScaleOutFabric>, CatalogTable<ScaleUpLink>, CatalogTable<HostLink>,
      CatalogTable<MemoryTier>, CatalogTable<CoolingClass>, CatalogTable<PowerLevel>,
      CatalogTable<GridCarbon>, CatalogTable<ElectricityPrice>, CatalogTable<StorageSystem>,
      CatalogTable<AcceleratorPrice>, CatalogTable<ServerCapex>, CatalogTable<FailureProfile>,
      CatalogTable<ComponentFailureRate>, CatalogTable<DetectionTime>, CatalogTable<RestartTime>,
      CatalogTable<RepairTime>, CatalogTable<FailureSpec>, CatalogTable<Platform>,
      CatalogTable<Framework>, CatalogTable<SoftwareStack>, CatalogTable<StackException>,
      CatalogTable<ExportClass>, CatalogTable<Supply>, CatalogTable<FatTreeVector>>;

  /// The accelerator from which this one was copied; nullptr: none.
  [[nodiscard]] const Accelerator* model_of(const Accelerator& accelerator) const;

  /// The row about the accelerator, else about its model, or the model's model.
  template <class Row>
  [[nodiscard]] const Row* own_or_models(const Accelerator& accelerator) const;

  template <class Row>
  [[nodiscard]] const CatalogTable<Row>& table() const {
    return std::get<CatalogTable<Row>>(tables_);
  }

  [[nodiscard]] static std::optional<std::size_t> position(
      const std::vector<std::pair<std::string, std::size_t>>& names, std::string_view name);
  [[nodiscard]] static tl::unexpected<Error> unknown_name(
      const std::vector<std::pair<std::string, std::size_t>>& names, std::string_view section,
      std::string_view name, SourcePosition where);

  Tables tables_;
  std::vector<Evidence> evidence_;
};

/// The name of a row: its id, or the thing it is about.
template <class Row>
[[nodiscard]] std::string_view name_of_row(const Row& row) {
  if constexpr (requires { row.id; }) {
    return row.id;
  } else if constexpr (requires { row.region; }) {
    return row.region;
  } else if constexpr (requires { row.level; }) {
    return row.level;
  } else if constexpr (requires { row.component; }) {
    return row.component;
  } else if constexpr (requires { row.path; }) {
    return row.path;
  } else if constexpr (std::same_as<Row, RepairTime>) {
    return word_of_fault(row.fault);
  } else if constexpr (requires { row.framework; }) {
    return row.framework;
  } else if constexpr (std::same_as<Row, Supply> || std::same_as<Row, AcceleratorPrice>) {
    return row.accelerator;
  } else if constexpr (requires { row.node; }) {
    return row.node;
  } else {
    return "";
  }
}

/// Whether rows of a table are distinguished by name_of_row alone.
template <class Row>
inline constexpr bool kNamedRows =
    !std::same_as<Row, SoftwareStack> && !std::same_as<Row, StackException> &&
    !std::same_as<Row, RestartTime> && !std::same_as<Row, FatTreeVector>;

}  // namespace orrery
