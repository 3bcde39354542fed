#include "verbs/catalog/controllers_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

using enum CheckVerdict;

constexpr const char* kCheck = "controllers";
constexpr double kBehindSecondsMax = 5;
constexpr std::uint64_t kBehindBatchesMax = 1'000;

Result<v1::ControllerState> ask(const LiveSession& session, const std::string& address) {
  return session.client_of(address)->call<v1::ControllerState>("GetController",
                                                               v1::GetControllerRequest());
}

CheckFinding leader_finding(const std::string& address, const v1::ControllerState& state) {
  return {
      .check = kCheck,
      .found = fmt::format("{} leads: term {}, batch {}", address, state.term(), state.batch())};
}

CheckFinding standby_finding(const std::string& address, const v1::ControllerState& state,
                             std::uint64_t newest) {
  const std::uint64_t missing = newest - std::min(newest, state.batch());
  const std::uint64_t batches = std::max(missing, state.behind_batches());
  CheckFinding finding{.check = kCheck,
                       .found = fmt::format("{} stands by: {} batches and {:.1f} s behind", address,
                                            batches, state.behind_s())};
  if (batches <= kBehindBatchesMax && state.behind_s() <= kBehindSecondsMax) return finding;
  finding.verdict = kWarning;
  finding.advice =
      "it can take over only once it has every batch: check its log, its way to etcd and the load "
      "of its machine";
  return finding;
}

CheckFinding silent_finding(const std::string& address, const Error& why) {
  return {.check = kCheck,
          .verdict = kWarning,
          .found = fmt::format("{} does not answer: {}", address, why.message),
          .advice = "start it again; the others go on without it"};
}

}  // namespace

std::vector<AskedController> ask_controllers(const LiveSession& session) {
  std::vector<AskedController> asked;
  if (session.controllers().size() < 2) return asked;
  asked.reserve(session.controllers().size());
  for (const std::string& address : session.controllers()) {
    asked.push_back({address, ask(session, address)});
  }
  const auto leads = [](const AskedController& each) { return each.state && each.state->leads(); };
  const auto standbys = std::ranges::stable_partition(asked, leads);
  // A standby that was asked before the leader may have had less than it has now.
  for (AskedController& each : standbys) {
    if (each.state) each.state = ask(session, each.address);
  }
  return asked;
}

std::vector<CheckFinding> check_controllers(const std::vector<AskedController>& controllers) {
  std::vector<CheckFinding> findings;
  findings.reserve(controllers.size() + 1);
  std::uint64_t newest = 0;
  bool led = false;
  for (const AskedController& each : controllers) {
    if (!each.state) {
      findings.push_back(silent_finding(each.address, each.state.error()));
    } else if (each.state->leads()) {
      newest = std::max(newest, each.state->batch());
      led = true;
      findings.push_back(leader_finding(each.address, *each.state));
    } else {
      findings.push_back(standby_finding(each.address, *each.state, newest));
    }
  }
  if (!controllers.empty() && !led) {
    findings.push_back({.check = kCheck,
                        .verdict = kProblem,
                        .found = "none leads",
                        .advice = "a standby leads 2 to 3 s after the leader died, once etcd "
                                  "answers: see the logs of the standbys"});
  }
  return findings;
}

}  // namespace orrery
