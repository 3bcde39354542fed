#include "perf/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

struct CalibrationFile {
  std::string api_version;
  std::string kind;
  std::string name;
  CalibrationHeader calibration;
  std::vector<CalibrationConstant> constants;
  std::vector<ResidualKind> residuals;
};

template <class Visitor, SameStruct<CalibrationFile> Self>
void describe(Visitor& visitor, Self& file) {
  visitor.required("apiVersion", file.api_version);
  visitor.required("kind", file.kind);
  visitor.required("name", file.name);
  visitor.optional("calibration", file.calibration);
  visitor.required("constants", file.constants);
  visitor.optional("residuals", file.residuals);
}

Status check_constant(const CalibrationConstant& c) {
  if (c.low <= c.value && c.value <= c.high && c.low <= c.prior && c.prior <= c.high) return {};
  return input_error(c.where, fmt::format("constant {}: value {} and prior {} must lie in [{}, {}]",
                                          c.id, c.value, c.prior, c.low, c.high));
}

}  // namespace

Result<Calibration> Calibration::load(std::span<const EmbeddedFile> sources,
                                      std::span<const FactOverlay> overlays) {
  Calibration calibration;
  for (const EmbeddedFile& source : sources) {
    Result<Document> document = Document::parse(source.text, std::string(source.file));
    if (!document) return forward_error(document);
    if (Status added = calibration.add(*document, 0); !added) {
      return forward_error(added);
    }
  }
  int layer = 0;
  for (const FactOverlay& overlay : overlays) {
    ++layer;
    for (const Document& document : overlay.calibrations) {
      if (Status added = calibration.add(document, layer); !added) return forward_error(added);
    }
  }
  return calibration;
}

Status Calibration::add(const Document& document, int layer) {
  CalibrationFile file;
  if (Status read = read_struct(document.root(), file, {}); !read) return read;
  if (file.api_version != "orrery/v1" || file.kind != "Calibration") {
    return input_error(document.root().position(),
                       fmt::format("expected apiVersion orrery/v1 and kind Calibration, found {} "
                                   "and {}",
                                   file.api_version, file.kind));
  }
  if (file.name.empty()) return input_error(document.root().position(), "the name is empty");
  for (const CalibrationConstant& constant : file.constants) {
    if (Status checked = check_constant(constant); !checked) return checked;
    if (layer > 0) {
      if (Status patched = patch(constant, layer); !patched) return patched;
      continue;
    }
    const auto at = std::lower_bound(names_.begin(), names_.end(), constant.id,
                                     [](const auto& a, const auto& id) { return a.first < id; });
    if (at != names_.end() && at->first == constant.id) {
      return input_error(constant.where, fmt::format("constant {} stands twice", constant.id));
    }
    names_.insert(at, {constant.id, constants_.size()});
    constants_.push_back(constant);
    layers_.push_back(layer);
  }
  headers_.push_back(std::move(file.calibration));
  if (layer > 0) {
    std::erase_if(residuals_, [&](const ResidualKind& known) {
      return std::ranges::find(file.residuals, known.kind, &ResidualKind::kind) !=
             file.residuals.end();
    });
  }
  residuals_.insert(residuals_.end(), file.residuals.begin(), file.residuals.end());
  return {};
}

Status Calibration::patch(const CalibrationConstant& constant, int layer) {
  if (const std::optional<std::size_t> at = position(constant.id)) {
    if (layers_[*at] == layer) {
      return input_error(constant.where, fmt::format("constant {} stands twice, first at {}",
                                                     constant.id, constants_[*at].where.text()));
    }
    constants_[*at] = constant;
    layers_[*at] = layer;
    return {};
  }
  std::vector<std::string_view> known;
  known.reserve(names_.size());
  for (const auto& [name, at] : names_) known.push_back(name);
  return input_error(constant.where, fmt::format("unknown constant \"{}\"{}", constant.id,
                                                 did_you_mean(constant.id, known)));
}

std::optional<std::size_t> Calibration::position(std::string_view id) const {
  const auto at = std::lower_bound(names_.begin(), names_.end(), id,
                                   [](const auto& a, const auto& b) { return a.first < b; });
  if (at == names_.end() || at->first != id) return std::nullopt;
  return at->second;
}

std::optional<double> Calibration::find(std::string_view id) const {
  const std::optional<std::size_t> at = position(id);
  if (!at) return std::nullopt;
  return constants_[*at].value;
}

double Calibration::first_of(std::initializer_list<std::string_view> ids) const {
  for (const std::string_view id : ids) {
    if (const std::optional<double> value = find(id)) return *value;
  }
  ORRERY_ASSERT(false, "the last, most general id is in catalog/calibration.yaml");
  return 0;
}

ResidualKind Calibration::unknown_kind() {
  return {.kind = "unknown", .rows = 0, .mape = 0.3, .low = 0.6, .high = 1.6};
}

ResidualKind Calibration::residual_of(std::initializer_list<std::string_view> kinds) const {
  ResidualKind widest = unknown_kind();
  for (const std::string_view kind : kinds) {
    for (const ResidualKind& residual : residuals_) {
      if (residual.kind == kind) return residual;
    }
  }
  for (const ResidualKind& residual : residuals_) {
    widest.low = std::min(widest.low, residual.low);
    widest.high = std::max(widest.high, residual.high);
  }
  return widest;
}

}  // namespace orrery
