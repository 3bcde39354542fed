// tests/fuzz/fuzz_series.cpp - any text as a file of failures, of prices, of carbon and as a study:
// what is read keeps its promises.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "tests/fuzz/fleet_of_text.hpp"
#include "twin/faults/failure_file.hpp"
#include "twin/faults/failure_model.hpp"
#include "twin/series_csv.hpp"
#include "twin/study/study_run.hpp"

namespace orrery {
namespace {

const Topology& fleet() {
  static const Topology kTopology = fleet_of_text(kTwoTypes);
  return kTopology;
}

void draw_faults(const Document& document) {
  const Result<FailureSpec> spec = read_failure_spec(document, fleet().catalog());
  if (!spec) return;
  Result<FailureModel> model = FailureModel::make(fleet(), *spec, {.seed = 1});
  ORRERY_ASSERT(model, "a spec that is read makes a model");
  Instant before;
  for (int i = 0; i < 300; ++i) {
    const std::optional<Fault> fault = model->next(Instant() + Duration::hours(24) * 365);
    if (!fault) break;
    ORRERY_ASSERT(fault->at >= before, "faults come in order");
    ORRERY_ASSERT(fault->repair >= Duration() && fault->detection >= Duration(),
                  "no time runs backward");
    ORRERY_ASSERT(fault->slowdown >= 1, "slow is not fast");
    before = fault->at;
  }
}

void ask_cells(Document document) {
  const Result<std::unique_ptr<Study>> study = Study::read(std::move(document));
  if (!study) {
    ORRERY_ASSERT(study.error().where.line >= 1, "a refusal says where");
    return;
  }
  const std::vector<StudyCell> cells = study_cells((*study)->spec());
  for (const StudyCell& cell : {cells.front(), cells.back()}) {
    const Result<Study::CellFiles> asked = (*study)->cell(cell.values);
    if (!asked) continue;
    const PatchedText& options = asked->options;
    const Result<Document> read = Document::parse(options.text, "options");
    ORRERY_ASSERT(!read || read->root().kind() == NodeKind::kMapping, "options are a mapping");
    const auto lines = std::count(options.text.begin(), options.text.end(), '\n');
    ORRERY_ASSERT(static_cast<std::size_t>(lines) == options.lines.size(), "a place for each line");
  }
}

template <class Value>
void play(const Result<CsvSeries<Value>>& series) {
  if (!series) {
    ORRERY_ASSERT(series.error().where.line >= 1, "a refusal says where");
    return;
  }
  ORRERY_ASSERT(series->filled < series->steps.size(), "not all can be missing");
  for (std::size_t i = 1; i < series->steps.size(); ++i) {
    ORRERY_ASSERT(series->steps[i - 1].from < series->steps[i].from, "times ascend");
  }
  const SeriesShift shift{.from = Instant::from_ns(1'700'000'000'000'000'000),
                          .at = Instant(),
                          .length = series->period * 3};
  const Result<StepSeries<Value>> played = repeated(*series, shift);
  if (!played) return;  // too many steps
  const Value mean = played->mean(Instant(), Instant() + shift.length);
  ORRERY_ASSERT(std::isfinite(mean.value()), "a mean of numbers is one");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (Result<Document> document = Document::parse(text, "failures.yaml"); document) {
    draw_faults(*document);
    ask_cells(*std::move(document));
  }
  play(read_price_series(text, "price.csv"));
  play(read_carbon_series(text, "carbon.csv"));
  return 0;
}
