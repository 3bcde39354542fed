#include "twin/study/study_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/assert.hpp"
#include "base/format/field_reader.hpp"
#include "base/text/name_check.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

/// Options that name a file of ours, which may be written in the study instead.
constexpr std::array<std::string_view, 6> kFileOptions = {"fleet",  "tenants", "failures",
                                                          "policy", "runtime", "trace"};

/// A ratio of numbers from which a logarithmic axis is easier to read.
constexpr double kLogFrom = 50;

struct ShowEntry {
  std::string figure;
  std::string x;
  std::string series;
  std::optional<StudyPlotKind> kind;
  SourcePosition where;
};

template <class Visitor, SameStruct<ShowEntry> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.sole("figure", s.figure);
  visitor.optional("x", s.x);
  visitor.optional("series", s.series);
  visitor.optional("kind", s.kind);
}

struct ValueEntry {
  std::string label;
  std::optional<double> at;
};

template <class Visitor, SameStruct<ValueEntry> Self>
void describe(Visitor& visitor, Self& v) {
  visitor.optional("label", v.label);
  visitor.optional("at", v.at);
  visitor.elsewhere("value");
  visitor.elsewhere("set");
}

struct AxisEntry {
  std::string name;
  std::string label;
  std::string option;
  SourcePosition where;
};

template <class Visitor, SameStruct<AxisEntry> Self>
void describe(Visitor& visitor, Self& a) {
  visitor.required("name", a.name);
  visitor.optional("label", a.label);
  visitor.optional("option", a.option);
  visitor.elsewhere("values");
}

struct StudyHead {
  std::string api_version;
  std::string kind;
  StudySpec spec;
  std::vector<ShowEntry> show;
};

template <class Visitor, SameStruct<StudyHead> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("apiVersion", s.api_version);
  visitor.required("kind", s.kind);
  visitor.required("name", s.spec.name);
  visitor.optional("title", s.spec.title);
  visitor.optional("question", s.spec.question);
  visitor.required("run", s.spec.run);
  visitor.elsewhere("base");
  visitor.elsewhere("axes");
  visitor.optional("seeds", s.spec.seeds);
  visitor.required("show", s.show);
}

template <class Struct>
Result<DocumentNode> needed(const DocumentNode& node, std::string_view key, NodeKind kind) {
  const std::optional<DocumentNode> entry = read_elsewhere<Struct>(node, key);
  if (!entry) return input_error(node.position(), fmt::format("missing key \"{}\"", key));
  if (entry->kind() == kind) return *entry;
  const Status wrong = unexpected_node(*entry, kind == NodeKind::kMapping ? "a mapping" : "a list");
  return tl::unexpected(wrong.error());
}

Result<std::vector<std::string>> path_of(const DocumentNode& option) {
  std::vector<std::string> path = patch_path(option.text());
  const bool holes =
      std::any_of(path.begin(), path.end(), [](const std::string& part) { return part.empty(); });
  if (holes || path.size() > Document::kDepthMax) {
    return input_error(option.position(),
                       "expected an option, or a path such as fleet.sites.0.pue");
  }
  return path;
}

/// A unit in which all values of an axis may be, and how it is drawn.
struct ValueUnit {
  const QuantityKind* kind;  ///< null: bare numbers
  double factor;             ///< ratio of the drawn unit to the base unit
  AxisUnit unit;
  std::string_view symbol;
};

std::vector<ValueUnit> value_units() {
  return {{nullptr, 1, AxisUnit::kCount, ""},
          {&kind_of<Seconds>(), 1, AxisUnit::kDuration, ""},
          {&kind_of<Watts>(), 1, AxisUnit::kPhysical, "W"},
          {&kind_of<BytesPerSecond>(), 1, AxisUnit::kPhysical, "B/s"},
          {&kind_of<Bytes>(), 1, AxisUnit::kPhysical, "B"},
          {&kind_of<Dollars>(), 1, AxisUnit::kMoney, ""},
          {&kind_of<DollarsPerJoule>(), 3.6e6, AxisUnit::kMoney, "kWh"}};
}

std::optional<double> number_in(const ValueUnit& unit, const DocumentNode& node) {
  const Result<double> number =
      unit.kind == nullptr ? read_number(node) : parse_quantity(node.text(), *unit.kind);
  if (!number) return std::nullopt;
  return *number * unit.factor;
}

/// Reads one axis.
class AxisReader {
 public:
  Result<StudyAxis> read(const DocumentNode& node) {
    AxisEntry entry;
    if (Status status = read_struct(node, entry, {}); !status) return forward_error(status);
    if (Status named = check_name(entry.name, entry.where); !named) return forward_error(named);
    axis_.name = entry.name;
    axis_.axis.title = entry.label.empty() ? entry.name : entry.label;
    const std::optional<DocumentNode> option = read_elsewhere<AxisEntry>(node, "option");
    option_ = option ? option : entry_of(node, "name");
    Result<DocumentNode> values = needed<AxisEntry>(node, "values", NodeKind::kSequence);
    if (!values) return forward_error(values);
    if (values->size() == 0) return input_error(values->position(), "an axis needs a value");
    axis_.values.reserve(values->size());
    for (const DocumentNode& value : values->items()) {
      if (Status status = add(value); !status) return forward_error(status);
    }
    place();
    return std::move(axis_);
  }

 private:
  Status add(const DocumentNode& node) {
    ValueEntry entry;
    std::optional<DocumentNode> value = node;
    std::optional<DocumentNode> set;
    if (node.kind() == NodeKind::kMapping) {
      if (Status status = read_struct(node, entry, {}); !status) return status;
      value = read_elsewhere<ValueEntry>(node, "value");
      set = read_elsewhere<ValueEntry>(node, "set");
    }
    if (value.has_value() == set.has_value()) {
      return input_error(node.position(),
                         "expected a value, {value: ..} or {label: .., set: {..}}");
    }
    StudyValue& out = axis_.values.emplace_back();
    out.label = entry.label;
    at_.push_back(entry.at);
    scalars_.push_back(value && value->kind() == NodeKind::kScalar ? value : std::nullopt);
    if (out.label.empty() && scalars_.back()) out.label = std::string(value->text());
    if (out.label.empty()) return input_error(node.position(), "missing key \"label\"");
    for (const StudyValue& other : std::span(axis_.values).first(axis_.values.size() - 1)) {
      if (other.label != out.label) continue;
      return input_error(node.position(), fmt::format("duplicate value \"{}\"", out.label));
    }
    if (value) return add_patch(*option_, *value, out);
    if (set->kind() != NodeKind::kMapping) return unexpected_node(*set, "a mapping");
    out.set.reserve(set->size());
    for (const auto& [key, item] : set->entries()) {
      if (Status status = add_patch(key, item, out); !status) return status;
    }
    return {};
  }

  static Status add_patch(const DocumentNode& option, const DocumentNode& value, StudyValue& out) {
    Result<std::vector<std::string>> path = path_of(option);
    if (!path) return forward_error(path);
    out.set.push_back({*std::move(path), value, option.position()});
    return {};
  }

  /// Places the values: as stated, or by their numbers in one unit.
  void place() {
    const auto told = [](const std::optional<double>& at) { return at.has_value(); };
    if (std::all_of(at_.begin(), at_.end(), told)) {
      for (std::size_t i = 0; i < at_.size(); ++i) axis_.values[i].at = *at_[i];
      axis_.numeric = true;
    }
    for (const ValueUnit& unit : value_units()) {
      if (!axis_.numeric) axis_.numeric = fits(unit);
    }
    double low = INFINITY;
    double high = 0;
    for (const StudyValue& value : axis_.values) {
      low = std::min(low, value.at);
      high = std::max(high, value.at);
    }
    if (axis_.numeric && low > 0 && high / low >= kLogFrom) axis_.axis.scale = AxisScale::kLog;
  }

  bool fits(const ValueUnit& unit) {
    std::vector<double> numbers;
    numbers.reserve(scalars_.size());
    for (const std::optional<DocumentNode>& node : scalars_) {
      const std::optional<double> number = node ? number_in(unit, *node) : std::nullopt;
      if (!number) return false;
      numbers.push_back(*number);
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) axis_.values[i].at = numbers[i];
    axis_.axis.unit = unit.unit;
    axis_.axis.symbol = unit.symbol;
    return true;
  }

  StudyAxis axis_;
  std::optional<DocumentNode> option_;
  std::vector<std::optional<double>> at_;
  std::vector<std::optional<DocumentNode>> scalars_;
};

Result<std::size_t> figure_named(const StudySpec& spec, const ShowEntry& entry) {
  std::vector<std::string_view> names;
  std::string list;
  for (const StudyFigure& figure : spec.figures) {
    if (figure.name == entry.figure) return names.size();
    names.push_back(figure.name);
    list += (list.empty() ? "" : ", ") + figure.name;
  }
  return input_error(entry.where, fmt::format("no figure \"{}\"{}; there are: {}", entry.figure,
                                              did_you_mean(entry.figure, names), list));
}

Result<std::size_t> axis_named(const StudySpec& spec, std::string_view name,
                               const SourcePosition& where) {
  std::vector<std::string_view> names;
  for (const StudyAxis& axis : spec.axes) {
    if (axis.name == name) return names.size();
    names.push_back(axis.name);
  }
  return input_error(where, fmt::format("no axis \"{}\"{}", name, did_you_mean(name, names)));
}

Status add_show(StudySpec& spec, const ShowEntry& entry) {
  Result<std::size_t> figure = figure_named(spec, entry);
  if (!figure) return forward_error(figure);
  StudyShow show{.figure = *figure};
  for (const auto& [name, target] :
       {std::pair{&entry.x, &show.x}, std::pair{&entry.series, &show.series}}) {
    if (name->empty()) continue;
    Result<std::size_t> axis = axis_named(spec, *name, entry.where);
    if (!axis) return forward_error(axis);
    *target = *axis;
  }
  if ((show.series || entry.kind) && !show.x) {
    return input_error(entry.where, "a plot needs an axis x");
  }
  if (show.x && show.x == show.series) {
    return input_error(entry.where, "x and series are the same axis");
  }
  if (show.x) {
    const bool numeric = spec.axes[*show.x].numeric;
    show.kind = entry.kind.value_or(numeric ? StudyPlotKind::kLines : StudyPlotKind::kBars);
    if (show.kind == StudyPlotKind::kLines && !numeric) {
      return input_error(entry.where, fmt::format("axis \"{}\" has no numbers to draw lines over: "
                                                  "give each value an at, or say kind: bars",
                                                  spec.axes[*show.x].name));
    }
  }
  spec.show.push_back(show);
  return {};
}

Status read_axes(const DocumentNode& list, StudySpec& spec) {
  double cells = spec.seeds;
  spec.axes.reserve(list.size());
  for (const DocumentNode& node : list.items()) {
    Result<StudyAxis> axis = AxisReader().read(node);
    if (!axis) return forward_error(axis);
    for (const StudyAxis& other : spec.axes) {
      if (other.name != axis->name) continue;
      return input_error(node.position(), fmt::format("duplicate axis \"{}\"", other.name));
    }
    cells *= static_cast<double>(axis->values.size());
    if (cells > static_cast<double>(kStudyCellsMax)) {
      return input_error(node.position(),
                         fmt::format("more than {} cells with this axis", kStudyCellsMax));
    }
    spec.axes.push_back(*std::move(axis));
  }
  return {};
}

Status check_head(const StudyHead& head, const DocumentNode& root) {
  if (head.api_version != "orrery/v1" || head.kind != "Study") {
    return input_error(root.position(), "expected apiVersion orrery/v1 and kind Study");
  }
  if (Status status = check_name(head.spec.name, root.position()); !status) return status;
  const SourcePosition where = entry_of(root, "seeds").value_or(root).position();
  if (head.spec.seeds < 1 || head.spec.seeds > kStudySeedsMax) {
    return input_error(where, fmt::format("expected 1 to {} seeds", kStudySeedsMax));
  }
  if (head.spec.seeds > 1 && head.spec.run == StudyRun::kPlan) {
    return input_error(where, "plans have no random part: expected no seeds");
  }
  return {};
}

Result<StudySpec> read_spec(const DocumentNode& root) {
  StudyHead head;
  if (Status status = read_struct(root, head, {}); !status) return forward_error(status);
  if (Status status = check_head(head, root); !status) return forward_error(status);
  StudySpec& spec = head.spec;
  if (spec.title.empty()) spec.title = spec.name;
  spec.figures = study_figures(spec.run);
  const Result<DocumentNode> base = needed<StudyHead>(root, "base", NodeKind::kMapping);
  if (!base) return tl::unexpected(base.error());
  const Result<DocumentNode> axes = needed<StudyHead>(root, "axes", NodeKind::kSequence);
  if (!axes) return tl::unexpected(axes.error());
  if (Status status = read_axes(*axes, spec); !status) return forward_error(status);
  spec.show.reserve(head.show.size());
  for (const ShowEntry& entry : head.show) {
    if (Status status = add_show(spec, entry); !status) return forward_error(status);
  }
  if (spec.show.empty()) return input_error(root.position(), "show needs a figure");
  return std::move(spec);
}

}  // namespace

std::optional<DocumentNode> entry_of(const DocumentNode& node, std::string_view key) {
  for (const auto& [name, value] : node.entries()) {
    if (name.text() == key) return value;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Study>> Study::load(const std::string& path) {
  Result<Document> document = Document::load(path);
  if (!document) return forward_error(document);
  return read(*std::move(document));
}

Result<std::unique_ptr<Study>> Study::read(Document document) {
  auto study = std::make_unique<Study>(std::move(document));
  Result<StudySpec> spec = read_spec(study->document_.root());
  if (!spec) return forward_error(spec);
  study->spec_ = *std::move(spec);
  return study;
}

DocumentNode Study::base() const { return *entry_of(document_.root(), "base"); }

Result<DocumentNode> Study::file_at(const DocumentNode& path) {
  std::string file(path.text());
  if (file.empty() || file == "-") {
    return input_error(path.position(), "expected the name of a file");
  }
  const auto beside = std::filesystem::path(document_.file()).parent_path() / file;
  std::error_code error;
  if (std::filesystem::is_regular_file(beside, error)) file = beside.string();
  std::unique_ptr<const Document>& known = files_[file];
  if (known == nullptr) {
    Result<Document> loaded = Document::load(file);
    if (!loaded && loaded.error().where.line == 0) loaded.error().where = path.position();
    if (!loaded) return forward_error(loaded);
    known = std::make_unique<const Document>(*std::move(loaded));
  }
  return known->root();
}

DocumentNode Study::literal(const std::string& name) {
  std::unique_ptr<const Document>& known = literals_[name];
  if (known == nullptr) {
    Result<Document> document = Document::parse(name, document_.file());
    ORRERY_ASSERT(document, "the name of an inline file is a scalar");
    known = std::make_unique<const Document>(*std::move(document));
  }
  return known->root();
}

Status Study::move_inline(std::string_view option, std::vector<DocumentPatch>& patches,
                          CellFiles& cell) {
  std::optional<DocumentNode> node = entry_of(base(), option);
  std::vector<DocumentPatch> inside;
  for (const DocumentPatch& patch : patches) {
    if (patch.path.front() != option) continue;
    if (patch.path.size() == 1) {
      node = patch.value;
      inside.clear();
    } else {
      inside.push_back(patch);
    }
  }
  if (!node && !inside.empty()) {
    return input_error(inside.front().where,
                       fmt::format("\"{}\" is not given: expected it in the base options", option));
  }
  if (!node || (node->kind() != NodeKind::kMapping && inside.empty())) return {};
  const SourcePosition where = node->position();
  if (node->kind() == NodeKind::kScalar) {
    Result<DocumentNode> file = file_at(*node);
    if (!file) return forward_error(file);
    node = *file;
  }
  Result<PatchedText> text = patched_text(*node, inside, 1);
  if (!text) return forward_error(text);
  // The suffix tells a policy or failure model of a file from one of the catalog.
  const std::string name = fmt::format("inline-{}.yaml", option);
  cell.files.push_back({name, *std::move(text)});
  std::erase_if(patches, [&](const DocumentPatch& p) { return p.path.front() == option; });
  patches.push_back({{std::string(option)}, literal(name), where});
  return {};
}

Result<Study::CellFiles> Study::cell(const std::vector<std::size_t>& values) {
  ORRERY_ASSERT(values.size() == spec_.axes.size(), "a cell has a value of each axis");
  std::vector<DocumentPatch> patches;
  for (std::size_t a = 0; a < values.size(); ++a) {
    const std::vector<DocumentPatch>& set = spec_.axes[a].values[values[a]].set;
    patches.insert(patches.end(), set.begin(), set.end());
  }
  CellFiles cell;
  cell.files.reserve(kFileOptions.size());
  for (const std::string_view option : kFileOptions) {
    if (Status status = move_inline(option, patches, cell); !status) return forward_error(status);
  }
  Result<PatchedText> options = patched_text(base(), patches);
  if (!options) return forward_error(options);
  cell.options = *std::move(options);
  return cell;
}

}  // namespace orrery
