#include "api/access/spec_redaction.hpp"

#include "base/format/document.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

std::string without_environment(const std::string& spec) {
  if (spec.empty()) return spec;
  constexpr const char* kUnreadable = "# This version cannot read the spec, so it is not shown.\n";
  const Result<Document> document = Document::parse(spec, "spec");
  if (!document) return kUnreadable;
  Result<JobSpec> read = read_job_spec(*document);
  if (!read) return kUnreadable;
  bool masked = false;
  const auto mask = [&masked](std::vector<std::pair<std::string, std::string>>& environment) {
    for (auto& [name, value] : environment) value = "***";
    masked = masked || !environment.empty();
  };
  if (read->launch) mask(read->launch->environment);
  for (RevisionSpec& revision : read->service.revisions) mask(revision.engine.environment);
  return masked ? write_job_spec(*read) : spec;
}

std::string shown_refusal(const Error& error) {
  if (error.kind != ErrorKind::kInput) return error.text();
  const std::string text = error.text();
  const std::string first = text.substr(0, text.find(' '));
  return (first.ends_with(':') ? first + " " : "") + "the spec is not accepted";
}

const std::string& SpecRedaction::of(const std::string& spec) {
  if (spec != spec_) {
    spec_ = spec;
    redacted_ = without_environment(spec);
  }
  return redacted_;
}

}  // namespace orrery
