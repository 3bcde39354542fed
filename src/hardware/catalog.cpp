#include "hardware/catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "hardware/catalog_loader.hpp"

namespace orrery {
namespace {

// The fields that distinguish the rows of a table.
template <class Row>
std::span<const std::string_view> key_fields() {
  static constexpr std::string_view kId[] = {"id"};
  static constexpr std::string_view kStack[] = {"framework", "platform"};
  static constexpr std::string_view kException[] = {"accelerator", "framework"};
  static constexpr std::string_view kRepair[] = {"fault"};
  static constexpr std::string_view kOther[] = {
      "region",      "level",        "component", "path",
      "accelerator", "accelerators", "node",      "switch_radix_ports"};
  if constexpr (requires(Row row) { row.id; }) return kId;
  if constexpr (std::same_as<Row, SoftwareStack>) return kStack;
  if constexpr (std::same_as<Row, StackException>) return kException;
  if constexpr (std::same_as<Row, RepairTime>) return kRepair;
  return kOther;
}

// Refuses numbers that are invalid in any row; quantities were checked when they were read.
class NumberChecker {
 public:
  explicit NumberChecker(const SourcePosition& where) : where_(where) {}

  template <class T>
  void required(std::string_view key, const T& value) {
    check(key, value);
  }
  template <class T>
  void optional(std::string_view key, const T& value) {
    check(key, value);
  }

  [[nodiscard]] const Status& status() const { return status_; }

 private:
  template <class T>
  void check(std::string_view key, const T& value) {
    if constexpr (detail::IsOptional<T>::value) {
      if (value.has_value()) check(key, *value);
    } else if constexpr (detail::IsVector<T>::value) {
      for (const auto& item : value) check(key, item);
    } else if constexpr (std::same_as<T, int>) {
      check_range(key, value, 1 << 24);
    } else if constexpr (std::same_as<T, double>) {
      check_range(key, value, 1e15);
    } else if constexpr (Describable<T>) {
      describe(*this, value);
    }
  }

  void check_range(std::string_view key, double value, double high) {
    if (!status_ || (value >= 0 && value <= high)) return;
    status_ = input_error(where_, fmt::format("{} is {}, expected 0 to {}", key, value, high));
  }

  const SourcePosition& where_;
  Status status_;
};

template <class Row>
Status check_numbers(const Row& row, const SourcePosition& where) {
  NumberChecker checker(where);
  describe(checker, row);
  return checker.status();
}

// The row with that id or alias, without regard to case; of a table without an index yet.
template <class Row>
const Row* find_named(const std::vector<Row>& rows, std::string_view name) {
  const std::string wanted = lower_case(name);
  const auto named = [&](const Row& row) {
    if (lower_case(row.id) == wanted) return true;
    if constexpr (requires { row.aliases; }) {
      return std::any_of(row.aliases.begin(), row.aliases.end(),
                         [&](const std::string& alias) { return lower_case(alias) == wanted; });
    }
    return false;
  };
  const auto found = std::find_if(rows.begin(), rows.end(), named);
  return found == rows.end() ? nullptr : &*found;
}

void flatten(const DocumentNode& node, const std::string& path, Evidence& evidence) {
  const auto join = [&](const std::string& part) {
    return path.empty() ? part : path + "." + part;
  };
  if (node.kind() == NodeKind::kScalar) evidence.values.emplace_back(path, node.text());
  for (const auto& entry : node.entries()) {
    flatten(entry.value, join(std::string(entry.key.text())), evidence);
  }
  const auto items = node.items();
  for (std::size_t i = 0; i < items.size(); ++i)
    flatten(items[i], join(std::to_string(i)), evidence);
}

Status check_header(FieldReader& reader, const DocumentNode& root) {
  std::string api_version;
  std::string kind;
  std::string name;
  reader.required("apiVersion", api_version);
  reader.required("kind", kind);
  reader.required("name", name);
  if (!reader.ok()) return reader.finish();
  if (api_version != "orrery/v1" || kind != "Catalog") {
    return input_error(
        root.position(),
        fmt::format("expected apiVersion orrery/v1 and kind Catalog, found {} and {}", api_version,
                    kind));
  }
  return {};
}

}  // namespace

Catalog::Catalog()
    : tables_{{"accelerators", {}, {}},
              {"nodes", {}, {}},
              {"systems", {}, {}},
              {"scaleout_fabrics", {}, {}},
              {"scaleup_links", {}, {}},
              {"host_links", {}, {}},
              {"memory_tiers", {}, {}},
              {"cooling", {}, {}},
              {"power_levels", {}, {}},
              {"grid_carbon_g_per_kwh", {}, {}},
              {"electricity_usd_per_kwh", {}, {}},
              {"storage_systems", {}, {}},
              {"accelerator_prices", {}, {}},
              {"server_capex", {}, {}},
              {"failure_profiles", {}, {}},
              {"component_failure_rates", {}, {}},
              {"detection_times", {}, {}},
              {"restart_times", {}, {}},
              {"repair_times", {}, {}},
              {"fault_models", {}, {}},
              {"platforms", {}, {}},
              {"frameworks", {}, {}},
              {"stacks", {}, {}},
              {"accelerator_stacks", {}, {}},
              {"export_classes", {}, {}},
              {"supply", {}, {}},
              {"fat_tree_vectors", {}, {}}} {}
Catalog::Catalog(const Catalog&) = default;
Catalog::Catalog(Catalog&&) noexcept = default;
Catalog& Catalog::operator=(const Catalog&) = default;
Catalog& Catalog::operator=(Catalog&&) noexcept = default;
Catalog::~Catalog() = default;

Result<Catalog> Catalog::load(std::span<const EmbeddedFile> sources,
                              std::span<const FactOverlay> overlays) {
  CatalogLoader loader;
  for (const EmbeddedFile& source : sources) {
    Result<Document> document = Document::parse(source.text, std::string(source.file));
    if (!document) return forward_error(document);
    if (Status added = loader.add(*document, 0); !added) return forward_error(added);
  }
  int layer = 0;
  for (const FactOverlay& overlay : overlays) {
    ++layer;
    for (const Document& document : overlay.catalogs) {
      if (Status added = loader.add(document, layer); !added) return forward_error(added);
    }
  }
  return loader.finish();
}

Result<Catalog> Catalog::with(std::span<const NodeType> nodes) const {
  CatalogLoader loader(*this);
  for (const NodeType& node : nodes) {
    if (Status added = loader.add(node); !added) return forward_error(added);
  }
  return loader.finish();
}

Status CatalogLoader::add(const NodeType& node) {
  std::get<CatalogTable<NodeType>>(catalog_.tables_).rows.push_back(node);
  return check_numbers(node, node.where);
}

Status CatalogLoader::add(const Document& document, int layer) {
  const DocumentNode root = document.root();
  if (root.kind() != NodeKind::kMapping) return unexpected_node(root, "a catalog (a mapping)");
  FieldReader reader(root, {});
  if (Status header = check_header(reader, root); !header) return header;
  for (const auto& [key, value] : root.entries()) {
    const std::string_view name = key.text();
    if (name == "apiVersion" || name == "kind" || name == "name") continue;
    if (Status added = add_section(key, value, layer); !added) return added;
  }
  return {};
}

Status CatalogLoader::add_section(const DocumentNode& key, const DocumentNode& value, int layer) {
  if (key.text() == "evidence") return add_evidence(value);
  bool known = false;
  Status status;
  std::vector<std::string_view> sections = {"evidence"};
  std::apply(
      [&](auto&... table) {
        const auto offer = [&](auto& one) {
          sections.push_back(one.section);
          if (one.section != key.text()) return;
          known = true;
          status = add_rows(one, value, layer);
        };
        (offer(table), ...);
      },
      catalog_.tables_);
  if (known) return status;
  return input_error(key.position(),
                     fmt::format("unknown section {}{}; known: {}", key.shown(),
                                 did_you_mean(key.text(), sections), fmt::join(sections, ", ")));
}

Status CatalogLoader::add_evidence(const DocumentNode& value) {
  if (value.kind() != NodeKind::kMapping) return unexpected_node(value, "a mapping");
  for (const auto& entry : value.entries()) {
    Evidence evidence{std::string(entry.key.text()), {}, entry.key.position()};
    flatten(entry.value, "", evidence);
    catalog_.evidence_.push_back(std::move(evidence));
  }
  return {};
}

template <class Row>
Status CatalogLoader::add_rows(CatalogTable<Row>& table, const DocumentNode& list, int layer) {
  if (list.kind() == NodeKind::kNull) return {};
  if (list.kind() != NodeKind::kSequence) return unexpected_node(list, "a list of rows");
  for (const DocumentNode& node : list.items()) {
    if (node.kind() != NodeKind::kMapping) return unexpected_node(node, "a mapping");
    if (Status added = add_row(table, node, layer); !added) return added;
  }
  return {};
}

// The key that distinguishes the row in its table. References are compared by the id they stand
// for, so that an overlay may name an accelerator by its alias and still patch the accelerator's
// row.
template <class Row>
std::string CatalogLoader::key_of(const DocumentNode& row) const {
  const auto id_of = [&](const auto& rows, std::string_view name) {
    const auto* found = find_named(rows, name);
    return lower_case(found == nullptr ? name : std::string_view(found->id));
  };
  const auto meant = [&](std::string_view field, std::string_view name) {
    if (field == "accelerator") return id_of(catalog_.all<Accelerator>(), name);
    if (field == "node") return id_of(catalog_.all<NodeType>(), name);
    if (field == "framework") return id_of(catalog_.all<Framework>(), name);
    if (field == "platform") return id_of(catalog_.all<Platform>(), name);
    return lower_case(name);
  };
  std::string key;
  for (const std::string_view field : key_fields<Row>()) {
    for (const auto& entry : row.entries()) {
      if (entry.key.text() == field) key += "/" + meant(field, entry.value.text());
    }
  }
  return key;
}

template <class Row>
Status CatalogLoader::add_row(CatalogTable<Row>& table, const DocumentNode& node, int layer) {
  const std::string key = std::string(table.section) + key_of<Row>(node);
  const auto known = origins_.find(key);
  if (known == origins_.end()) {
    Row row;
    if (Status read = read_new(table, node, row); !read) return read;
    origins_.emplace(key, Origin{table.rows.size(), layer});
    table.rows.push_back(std::move(row));
    return {};
  }
  Row& row = table.rows[known->second.row];
  if (known->second.layer == layer) {
    return input_error(node.position(),
                       fmt::format("\"{}\" stands twice in {}, first at {}", name_of_row(row),
                                   table.section, row.where.text()));
  }
  known->second.layer = layer;
  if constexpr (requires { row.like; }) {
    for (const auto& entry : node.entries()) {
      if (entry.key.text() != "like") continue;
      return input_error(entry.key.position(),
                         fmt::format("\"{}\" is known already; like is for new rows", row.id));
    }
  }
  Status read = read_struct(node, row, {Units::kInTextOrKey, FieldReader::Options::Mode::kPatch});
  return read ? check_numbers(row, node.position()) : read;
}

template <class Row>
Status CatalogLoader::read_new(const CatalogTable<Row>& table, const DocumentNode& node,
                               Row& row) const {
  using Mode = FieldReader::Options::Mode;
  if (Status copied = copy_like(table, node, row); !copied) return copied;
  std::string like;
  if constexpr (requires { row.like; }) like = row.like;
  const Mode mode = like.empty() ? Mode::kWhole : Mode::kPatch;
  if (Status read = read_struct(node, row, {Units::kInTextOrKey, mode}); !read) return read;
  if constexpr (requires { row.like; }) row.like = like;  // the id, whatever it was called
  if constexpr (requires { row.id; }) {
    if (row.id.empty()) return input_error(node.position(), "the key \"id\" is missing");
  }
  return check_numbers(row, node.position());
}

template <class Row>
Status CatalogLoader::copy_like(const CatalogTable<Row>& table, const DocumentNode& node,
                                Row& row) const {
  if constexpr (requires { row.like; }) {
    const std::optional<DocumentNode> like = read_elsewhere<Row>(node, "like");
    if (!like || like->kind() == NodeKind::kNull) return {};
    const Row* model = find_named(table.rows, like->text());
    if (model == nullptr) {
      CatalogTable<Row> named{table.section, table.rows, {}};
      if (Status indexed = index_names(named); !indexed) return indexed;
      return Catalog::unknown_name(named.names, table.section, like->text(), like->position());
    }
    row = *model;
    row.like = row.id;
    row.id.clear();
    row.aliases.clear();
    if constexpr (requires { row.default_node; }) row.default_node.clear();
  }
  return {};
}

template <class Row>
Status CatalogLoader::index_names(CatalogTable<Row>& table) {
  if constexpr (kNamedRows<Row>) {
    table.names.clear();
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const Row& row = table.rows[i];
      table.names.emplace_back(lower_case(name_of_row(row)), i);
      if constexpr (requires { row.aliases; }) {
        for (const std::string& alias : row.aliases) {
          table.names.emplace_back(lower_case(alias), i);
        }
      }
    }
    std::sort(table.names.begin(), table.names.end());
    table.names.erase(std::unique(table.names.begin(), table.names.end()), table.names.end());
    for (std::size_t i = 1; i < table.names.size(); ++i) {
      if (table.names[i].first != table.names[i - 1].first) continue;
      const Row& first = table.rows[table.names[i - 1].second];
      const Row& second = table.rows[table.names[i].second];
      return input_error(second.where,
                         fmt::format("the name \"{}\" of \"{}\" is also a name of \"{}\" ({})",
                                     table.names[i].first, name_of_row(second), name_of_row(first),
                                     first.where.text()));
    }
  }
  return {};
}

Status CatalogLoader::index_all() {
  Status status;
  std::apply(
      [&](auto&... table) {
        const auto index = [&](auto& one) {
          if (status) status = index_names(one);
        };
        (index(table), ...);
      },
      catalog_.tables_);
  return status;
}

Result<Catalog> CatalogLoader::finish() {
  Status status = index_all();
  if (status) status = CatalogChecker(catalog_).run();
  if (status) status = index_all();  // references are ids now: those rows got their final names
  if (!status) return forward_error(status);
  return std::move(catalog_);
}

std::optional<std::size_t> Catalog::position(
    const std::vector<std::pair<std::string, std::size_t>>& names, std::string_view name) {
  const std::string wanted = lower_case(name);
  const auto found = std::lower_bound(
      names.begin(), names.end(), wanted,
      [](const auto& entry, const std::string& value) { return entry.first < value; });
  if (found == names.end() || found->first != wanted) return std::nullopt;
  return found->second;
}

tl::unexpected<Error> Catalog::unknown_name(
    const std::vector<std::pair<std::string, std::size_t>>& names, std::string_view section,
    std::string_view name, SourcePosition where) {
  const std::string wanted = lower_case(name);
  std::vector<std::string_view> all;
  std::vector<std::string_view> beginning;
  for (const auto& entry : names) {
    all.push_back(entry.first);
    if (!wanted.empty() && entry.first.starts_with(wanted)) beginning.push_back(entry.first);
  }
  std::string hint = did_you_mean(name, all);
  constexpr std::size_t kShown = 8;
  if (!beginning.empty()) {
    if (beginning.size() > kShown) beginning.resize(kShown);
    hint = fmt::format("; it could be: {}", fmt::join(beginning, ", "));
  }
  if (hint.empty()) hint = fmt::format("; `orrery catalog list {}` shows what there is", section);
  return input_error(std::move(where), fmt::format("\"{}\" is not in the catalog's {}{}",
                                                   printable(name, 60), section, hint));
}

const NodeType& Catalog::default_node(const Accelerator& accelerator) const {
  return *find<NodeType>(accelerator.default_node);
}

const ScaleOutFabric* Catalog::default_fabric(const NodeType& node) const {
  for (const SystemType& system : all<SystemType>()) {
    if (system.node == node.id && system.fabric) return find<ScaleOutFabric>(*system.fabric);
  }
  return nullptr;
}

const Accelerator* Catalog::model_of(const Accelerator& accelerator) const {
  return accelerator.like.empty() ? nullptr : find<Accelerator>(accelerator.like);
}

template <class Row>
const Row* Catalog::own_or_models(const Accelerator& accelerator) const {
  for (const Accelerator* at = &accelerator; at != nullptr; at = model_of(*at)) {
    if (const Row* row = find<Row>(at->id); row != nullptr) return row;
  }
  return nullptr;
}

const Supply* Catalog::supply(const Accelerator& accelerator) const {
  return own_or_models<Supply>(accelerator);
}

const AcceleratorPrice* Catalog::price(const Accelerator& accelerator) const {
  return own_or_models<AcceleratorPrice>(accelerator);
}

const ServerCapex* Catalog::server_capex(std::string_view node_or_system_id) const {
  return find<ServerCapex>(node_or_system_id);
}

std::optional<FrameworkUse> Catalog::StackAnswer::use() const {
  if (exception != nullptr && exception->use) return exception->use;
  return stack != nullptr ? stack->use : std::nullopt;
}

Support Catalog::StackAnswer::support_for(FrameworkUse wanted) const {
  const std::optional<FrameworkUse> only = use();
  if (only && *only != FrameworkUse::kBoth && *only != wanted) return Support::kNo;
  return support;
}

Catalog::StackAnswer Catalog::stack(const Framework& framework,
                                    const Accelerator& accelerator) const {
  StackAnswer answer;
  const Supply* row = supply(accelerator);
  if (row == nullptr) return answer;
  answer.platform = find<Platform>(row->platform);
  for (const SoftwareStack& stack : all<SoftwareStack>()) {
    if (stack.framework != framework.id || stack.platform != row->platform) continue;
    answer.stack = &stack;
    answer.support = stack.support;
  }
  for (const Accelerator* at = &accelerator; at != nullptr; at = model_of(*at)) {
    for (const StackException& exception : all<StackException>()) {
      if (exception.accelerator != at->id || exception.framework != framework.id) continue;
      answer.exception = &exception;
      answer.support = exception.support;
      return answer;
    }
  }
  return answer;
}

}  // namespace orrery
