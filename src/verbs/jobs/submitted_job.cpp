#include "verbs/jobs/submitted_job.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "base/format/document.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/plan/planned_job.hpp"
#include "verbs/schedule/artifact_paths.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

std::string note_line(const std::string& note) {
  return note.empty() ? "" : fmt::format("note: {}\n", one_line(note));
}

Result<SubmittedSpec> spec_of_script(const SubmitOptions& asked, std::string_view script) {
  Result<ScriptSpec> spec = script_job_spec(asked, script);
  if (!spec) return forward_error(spec);
  std::string messages;
  for (const std::string& note : spec->notes) messages += fmt::format("note: {}\n", note);
  return SubmittedSpec{std::move(spec->text), asked.file.name, std::move(messages)};
}

Result<SubmittedSpec> spec_of_file(const CommandOptions& options, const SubmitOptions& asked,
                                   std::string text) {
  const SubmittedFile& file = asked.file;
  if (options.command) {
    return input_error(
        {}, fmt::format("both {} and a command after --: expected one of them", file.name));
  }
  if (!file.arguments.empty()) {
    return input_error({}, fmt::format("{}: expected no arguments after {}, which is not a script",
                                       file.arguments[0], file.name));
  }
  std::error_code failed;
  Result<std::string> placed = with_absolute_artifacts(
      std::move(text), file.name, std::filesystem::current_path(failed).string());
  if (!placed) return forward_error(placed);
  Result<std::string> spec = overruled_job_spec(asked, *std::move(placed));
  if (!spec) return forward_error(spec);
  if (file.calibration.empty()) return SubmittedSpec{*std::move(spec), file.name, ""};
  Result<PlannedJob> planned = plan_job(options, {*spec, file.name}, file.calibration);
  if (!planned) return forward_error(planned);
  return SubmittedSpec{std::move(planned->text), file.name, std::move(planned->why)};
}

}  // namespace

Result<SubmittedSpec> read_submitted_spec(const CommandOptions& options,
                                          const SubmitOptions& asked) {
  const std::string& file = asked.file.name;
  if (options.command && file.empty()) {
    Result<std::string> text = command_job_spec(asked, *options.command);
    if (!text) return forward_error(text);
    return SubmittedSpec{*std::move(text), "command line", ""};
  }
  if (file.empty()) {
    return input_error({}, "nothing to submit: expected a FILE, or a command after --");
  }
  Result<std::string> text = read_file(file, Document::kSizeMax);
  if (!text && !options.command) return forward_error(text);
  if (!text || !is_script(file, *text)) {
    return spec_of_file(options, asked, text ? *std::move(text) : "");
  }
  SubmitOptions with_command = asked;
  if (options.command) {
    with_command.file.arguments.insert(with_command.file.arguments.end(), options.command->begin(),
                                       options.command->end());
  }
  return spec_of_script(with_command, *text);
}

Result<std::string> checked_without_submitting(const CommandOptions& options,
                                               const SubmittedSpec& spec) {
  const Result<Document> document = Document::parse(spec.text, spec.file);
  if (!document) return tl::unexpected(document.error());
  const Result<JobSpec> job = read_job_spec(*document);
  if (!job) return tl::unexpected(job.error());
  if (!job->deadline && !job->budget) return "";
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) {
    return note_line("deadline and budget were not checked, no cluster was found: " +
                     session.error().message);
  }
  v1::SubmitJobRequest request;
  request.set_dry_run(true);
  request.set_spec(spec.text);
  request.set_file(spec.file);
  auto answer = (*session)->client().call<v1::SubmitJobResponse>("SubmitJob", request);
  if (!answer && answer.error().kind == ErrorKind::kEnvironment) {
    return note_line("deadline and budget were not checked, the cluster did not answer: " +
                     answer.error().message);
  }
  if (!answer) return forward_error(answer);
  return note_line(answer->note());
}

Result<v1::SubmitJobResponse> submit_job(LiveSession& session, const SubmittedSpec& spec) {
  v1::SubmitJobRequest request;
  request.set_request_id(session.request_id());
  request.set_spec(spec.text);
  request.set_file(spec.file);
  return session.client().call<v1::SubmitJobResponse>("SubmitJob", request);
}

LiveAnswer submitted_answer(const v1::SubmitJobResponse& job) {
  const std::string name = one_line(job.name());
  std::string text = job.array_size() < 2
                         ? fmt::format("job {} ({}) accepted\n", job.id(), name)
                         : fmt::format("jobs {} to {} ({}) accepted\n", job.array(0),
                                       job.array(job.array_size() - 1), name);
  LiveAnswer answer = live_answer(job, std::move(text));
  answer.after = note_line(job.note());
  return answer;
}

std::string key_note(const SubmittedSpec& spec, const v1::SubmitJobResponse& job) {
  const Result<Document> document = Document::parse(spec.text, spec.file);
  if (!document) return "";
  const Result<JobSpec> read = read_job_spec(*document);
  if (!read || read->service.revisions.empty()) return "";
  return fmt::format(
      "`orrery serve --key {}` makes a key for this service and shows how to call it\n", job.id());
}

std::vector<std::uint64_t> submitted_numbers(const v1::SubmitJobResponse& job) {
  std::vector<std::uint64_t> ids(job.array().begin(), job.array().end());
  if (ids.empty()) ids.push_back(job.id());
  return ids;
}

}  // namespace orrery
