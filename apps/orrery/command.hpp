// apps/orrery/command.hpp - how a verb of `orrery` joins the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/error.hpp"
#include "verbs/command_options.hpp"

namespace orrery {

/// The action of a verb that was called; its Status decides the exit code.
using Verb = std::function<Status()>;

void add_catalog_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_fleet_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
/// Adds the verb that changes a running cluster's fleet to `orrery fleet`.
void add_fleet_apply_command(CLI::App& fleet, const CommandOptions& options, Verb& chosen);
void add_plan_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_compare_commands(CLI::App& app, CommandOptions& options, Verb& chosen);

void add_estimate_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_schedule_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_simulate_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_study_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_design_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_replay_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_store_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_what_if_commands(CLI::App& app, CommandOptions& options, Verb& chosen);

void add_local_cluster_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_submit_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_service_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_exec_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_job_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_job_change_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_log_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_node_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_hold_command(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_power_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_tenant_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_user_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_top_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_doctor_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_calibrate_node_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_predict_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_report_commands(CLI::App& app, CommandOptions& options, Verb& chosen);
void add_completion_commands(CLI::App& app, CommandOptions& options, Verb& chosen);

/// Prints the candidates for `orrery __complete WORD..`: see completion_script(). A cluster that
/// does not answer soon contributes no names.
void print_completion(const CLI::App& app, CommandOptions options,
                      const std::vector<std::string>& words);

}  // namespace orrery
