#include "verbs/study/study_cell.hpp"

#include <algorithm>
#include <filesystem>

#include "twin/serving/service_run.hpp"
#include "verbs/plan/plan_request.hpp"
#include "verbs/service_simulation/modelled_service.hpp"
#include "verbs/simulate/simulate_request.hpp"

namespace orrery {
namespace {

/// Reads what one cell asks, and says where an error of its answer was written.
class CellReader {
 public:
  CellReader(const CellQuestion& question, Document document)
      : question_(question), document_(std::move(document)) {}

  template <class Options>
  Result<Options> options() const {
    Options options;
    Status status = read_struct(document_.root(), options, {});
    if (!status) return tl::unexpected(located(std::move(status.error())));
    options.files.directory = std::filesystem::path(question_.file).parent_path().string();
    for (const Study::InlineFile& file : question_.asked->files) {
      options.files.texts.emplace(file.name, file.text.text);
    }
    return options;
  }

  [[nodiscard]] Error located(Error error) const {
    if (error.where.file == document_.file()) return question_.asked->options.located(error);
    for (const Study::InlineFile& file : question_.asked->files) {
      if (error.where.file == file.name) return file.text.located(std::move(error));
    }
    if (!error.where.file.empty()) return error;
    error.where = position_of(option_of(error.message));
    return error;
  }

  /// Where the study gives that option; else where it begins to.
  [[nodiscard]] SourcePosition position_of(std::string_view option) const {
    const DocumentNode node = entry_of(document_.root(), option).value_or(document_.root());
    Error there;
    there.where = node.position();
    return question_.asked->options.located(std::move(there)).where;
  }

 private:
  /// The key that "--power-cap: 3: expected .." speaks of.
  static std::string option_of(const std::string& message) {
    if (!message.starts_with("--")) return {};
    std::string option = message.substr(2, message.find(':') - 2);
    std::replace(option.begin(), option.end(), '-', '_');
    return option;
  }

  const CellQuestion& question_;
  Document document_;
};

Result<std::vector<double>> simulate_cell(const CommandOptions& options, const CellReader& reader,
                                          std::uint32_t repeat) {
  Result<SimulateOptions> asked = reader.options<SimulateOptions>();
  if (!asked) return forward_error(asked);
  asked->world.seed += repeat;
  Result<std::unique_ptr<SimulateRequest>> request = SimulateRequest::load(options, *asked);
  if (!request) return forward_error(request);
  if (Status status = (*request)->check_prices(*asked); !status) return forward_error(status);
  if ((*request)->policies().size() != 1) {
    return input_error(reader.position_of("policy"),
                       "expected one policy: use an axis of the study for several policies");
  }
  Result<PolicyRun> run = run_policy((*request)->inputs((*request)->policies().front()));
  if (!run) return forward_error(run);
  return figures_of(*run);
}

Result<std::vector<double>> plan_cell(const CommandOptions& options, const CellReader& reader) {
  Result<PlanOptions> asked = reader.options<PlanOptions>();
  if (!asked) return forward_error(asked);
  Result<PlanRequest> request = plan_request(options, *asked);
  if (!request) return forward_error(request);
  Result<PlanAnswer> answer = plan(request->facts(), request->question);
  if (!answer) return forward_error(answer);
  return figures_of(*answer, request->question);
}

Result<std::vector<double>> serve_cell(const CommandOptions& options, const CellReader& reader,
                                       std::uint32_t repeat) {
  Result<ServiceSimulationOptions> asked = reader.options<ServiceSimulationOptions>();
  if (!asked) return forward_error(asked);
  asked->seed += repeat;
  Result<ModelledService> service = load_modelled_service(options, *asked);
  if (!service) return forward_error(service);
  if (service->policies.size() != 1) {
    return input_error(reader.position_of("policy"),
                       "expected one policy: use an axis of the study for several policies");
  }
  service->setup.router.policy = service->policies.front();
  return figures_of(run_service(service->trace, service->setup));
}

Result<std::vector<double>> figures_of_cell(const CommandOptions& options, const CellReader& reader,
                                            const CellQuestion& question) {
  switch (question.run) {
    case StudyRun::kPlan:
      return plan_cell(options, reader);
    case StudyRun::kServe:
      return serve_cell(options, reader, question.repeat);
    case StudyRun::kSimulate:
      break;
  }
  return simulate_cell(options, reader, question.repeat);
}

}  // namespace

Result<std::vector<double>> run_cell(const CommandOptions& options, const CellQuestion& question) {
  Result<Document> document = Document::parse(question.asked->options.text, "options of a cell");
  if (!document) return forward_error(document);
  const CellReader reader(question, *std::move(document));
  Result<std::vector<double>> figures = figures_of_cell(options, reader, question);
  if (!figures && figures.error().kind == ErrorKind::kInput) {
    return tl::unexpected(reader.located(std::move(figures.error())));
  }
  return figures;
}

}  // namespace orrery
