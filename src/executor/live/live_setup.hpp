// executor/live/live_setup.hpp - the setup of a live core, made of the texts that are kept beside
// its log: fleet, tenants and policy, every text that brought new work, and the job numbers that a
// lost part of the log gave out.
//
// Made by the controller at its start, and by a replay of a record; it must not move, because cores
// refer to it. One thread. Cost: that of building the fleet and reading the texts.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "control/control_facts.hpp"
#include "executor/controller_settings.hpp"
#include "executor/jobs/job_intake.hpp"
#include "executor/jobs/request_renewal.hpp"
#include "perf/facts.hpp"
#include "store/setup_texts.hpp"
#include "store/stored_facts.hpp"

namespace orrery {

class LiveSetup {
 public:
  /// Errors: of the texts, with their names; work that this program cannot read any more.
  [[nodiscard]] static Result<std::unique_ptr<LiveSetup>> make(const Facts& facts,
                                                               const StoreTexts& texts,
                                                               const ControllerSettings& settings);
  LiveSetup(const Facts& base, StoredFacts stored, const SetupTexts& texts);
  LiveSetup(const LiveSetup&) = delete;
  LiveSetup& operator=(const LiveSetup&) = delete;

  [[nodiscard]] const SetupTexts& texts() const { return texts_; }
  /// The facts of the fleet in use.
  [[nodiscard]] ControlFacts& facts() { return *in_use_; }
  [[nodiscard]] JobIntake& intake() { return intake_; }
  /// The jobs to be resolved again after a change of the fleet.
  [[nodiscard]] RequestRenewal& renewal() { return renewal_; }
  /// The setup that the log was begun with. Its FleetSource makes those of changed fleets.
  [[nodiscard]] const ControlSetup& control() const { return control_; }
  /// The setup of the fleet in use.
  [[nodiscard]] const ControlSetup& in_use() const;
  /// Makes the fleet of a state the one in use, and registers its jobs. Earlier fleets stay,
  /// because passes and plan searches on them may still run. `change`: its number; they increase.
  void use(const State& state, std::uint32_t change = 0);
  /// Forgets the fleets that were left by a change. Precondition: nothing that began before that
  /// change runs any more.
  void forget_left(std::uint32_t change);

  /// Takes up work and lost job numbers of `texts`, all those of the store, that came since make()
  /// or the last call: another controller has put them. Errors: of the texts.
  [[nodiscard]] Status take_up(const StoreTexts& texts);

  /// Returns the next text that brought new work in the form to be stored.
  [[nodiscard]] StoreTexts work_text(const std::string& text);
  /// Makes control skip job numbers that a lost part of the log gave out; returns the text that
  /// records this, to be stored. Precondition: none of them is below that of a known job.
  [[nodiscard]] StoreTexts lose_jobs(const JobNumbers& lost);

 private:
  /// A fleet that the cluster was asked to change to.
  struct Version {
    StoredFacts stored;
    ControlSetup control;
    std::optional<std::uint32_t> used_by;  ///< the last change that made it the fleet in use
  };
  [[nodiscard]] Version* known(const std::string& fleet);
  [[nodiscard]] Result<const ControlSetup*> version_of(const std::string& fleet);
  void note_lost(const JobNumbers& lost);
  [[nodiscard]] Status take_up_lost(const std::string& name, const std::string& text);

  const Facts& base_;  ///< facts that those of a fleet overlay
  SetupTexts texts_;
  StoredFacts stored_;
  JobIntake intake_;
  RequestRenewal renewal_;
  ControlSetup control_;
  ControlFacts* in_use_;
  std::deque<std::unique_ptr<Version>> versions_;  ///< the one asked for last is at the end
  std::uint32_t works_ = 0;                        ///< number of texts that brought new work
};

}  // namespace orrery
