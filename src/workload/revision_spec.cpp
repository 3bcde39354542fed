#include "workload/revision_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "base/text/name_check.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// Whether clients can name a model so: a name as on model hubs, "meta-llama/Llama-3.1-8B".
bool is_model_name(std::string_view name) {
  constexpr std::size_t kLengthMax = 128;
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.:/").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLengthMax && std::ranges::all_of(name, in_name);
}

}  // namespace

Status check_revision(const RevisionSpec& revision) {
  if (Status named = check_name(revision.id, revision.where); !named) {
    return input_error(revision.where, fmt::format("id: {}", named.error().message));
  }
  if (!is_model_name(revision.model)) {
    return input_error(revision.where,
                       fmt::format("model is \"{}\", expected 1 to 128 letters, digits and -_.:/",
                                   printable(revision.model, 60)));
  }
  const auto has_zero = [](const std::string& text) { return text.find('\0') != text.npos; };
  if (revision.artifact.empty() || has_zero(revision.artifact)) {
    return input_error(revision.where,
                       fmt::format("artifact is \"{}\", expected the path of a model",
                                   printable(revision.artifact, 60)));
  }
  if (std::ranges::any_of(revision.engine.arguments, has_zero) ||
      has_zero(revision.engine.program)) {
    return input_error(revision.engine.where,
                       "arguments or program hold a zero byte, expected text");
  }
  return {};
}

std::vector<std::string> engine_command(const RevisionSpec& revision, EnginePart duty) {
  const EngineSpec& engine = revision.engine;
  std::vector<std::string> command;
  if (engine.name == EngineName::kOrrery) {
    command = {engine.program.empty() ? "orrery-serve" : engine.program, "--checkpoint",
               revision.artifact, "--model", revision.model};
  } else {
    command = {"orrery-engine", "--engine",        std::string(word_of(engine.name)),
               "--artifact",    revision.artifact, "--model",
               revision.model};
    if (!engine.program.empty()) command.insert(command.end(), {"--program", engine.program});
    if (duty != EnginePart::kWhole) {
      command.insert(command.end(), {"--duty", std::string(word_of(duty))});
    }
    command.emplace_back("--");
  }
  command.insert(command.end(), engine.arguments.begin(), engine.arguments.end());
  return command;
}

}  // namespace orrery
