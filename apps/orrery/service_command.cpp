// orrery serve
#include <poll.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/jobs/submitted_job.hpp"
#include "verbs/services/service_request.hpp"
#include "verbs/services/service_start.hpp"
#include "verbs/services/service_update.hpp"

namespace orrery {
namespace {

struct ServiceVerbOptions {
  ServiceOptions service;
  std::optional<std::uint32_t> replicas;
  std::string key_of;     ///< a running service that gets another key; empty: none
  std::string update_of;  ///< a running service that is updated; empty: none
  std::string revision;   ///< id that it gets
  bool no_wait = false;
  bool dry_run = false;
};

constexpr int kPauseMs = 200;

ServiceWait waiting() {
  return {.pause = [] { (void)::poll(nullptr, 0, kPauseMs); }, .said = print_message};
}

/// Prints how the service is called, with a new key.
Status show_service(const CommandOptions& options, LiveSession& session, std::uint64_t job,
                    const v1::AddServiceKeyResponse& key) {
  const Result<v1::ServiceView> service = service_of_job(session, job);
  if (!service) return tl::unexpected(service.error());
  return print_live(options, service_answer(*service, key));
}

Status add_key(const CommandOptions& options, const ServiceVerbOptions& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<std::uint64_t> job = service_job(**session, asked.key_of);
  if (!job) return tl::unexpected(job.error());
  const Result<v1::AddServiceKeyResponse> key = add_service_key(**session, *job);
  if (!key) return tl::unexpected(key.error());
  return show_service(options, **session, *job, *key);
}

Status start_service(const CommandOptions& options, const ServiceVerbOptions& asked) {
  ServiceOptions service = asked.service;
  service.replicas = asked.replicas;
  const Result<std::string> spec =
      service_spec(service, options.command.value_or(std::vector<std::string>()));
  if (!spec) return tl::unexpected(spec.error());
  if (asked.dry_run) {
    print_bytes(*spec);
    return {};
  }
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const auto submitted =
      submit_job(**session, {.text = *spec, .file = "command line", .messages = {}});
  if (!submitted) return tl::unexpected(submitted.error());
  const LiveAnswer accepted = submitted_answer(*submitted);
  print_message("orrery: " + accepted.text + accepted.after);
  const std::uint64_t job = submitted->id();
  const Result<v1::AddServiceKeyResponse> key = add_service_key(**session, job);
  if (!key) return tl::unexpected(key.error());
  if (!asked.no_wait) {
    const auto ready = await_service(**session, job, waiting());
    if (!ready) return tl::unexpected(ready.error());
  }
  return show_service(options, **session, job, *key);
}

Status change_service(const CommandOptions& options, const ServiceVerbOptions& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<std::uint64_t> job = service_job(**session, asked.update_of);
  if (!job) return tl::unexpected(job.error());
  const bool back = asked.service.rollout.canary == std::vector<std::string>{"back"};
  const Result<PresentService> present =
      back ? service_before_canary(**session, *job) : present_service(**session, *job);
  if (!present) return tl::unexpected(present.error());
  const ServiceUpdateOptions changes{
      asked.service.artifact, asked.revision,    asked.replicas,     options.command,
      asked.service.rollout,  asked.service.slo, asked.service.scale};
  const Result<std::string> spec =
      back ? Result<std::string>(present->spec) : updated_service_spec(*present, changes);
  if (!spec) return tl::unexpected(spec.error());
  if (asked.dry_run) {
    print_bytes(*spec);
    return {};
  }
  const SubmittedSpec submitted{.text = *spec, .file = "command line", .messages = {}};
  const Result<AskedUpdate> update = asked_by(submitted);
  if (!update) return tl::unexpected(update.error());
  const Result<std::uint64_t> updated = update_service(**session, *job, submitted);
  if (!updated) return tl::unexpected(updated.error());
  const Result<v1::ServiceView> service = asked.no_wait || back
                                              ? service_of_job(**session, *job)
                                              : await_update(**session, *update, waiting());
  if (!service) return tl::unexpected(service.error());
  return print_live(options, updated_answer(*service));
}

Status serve(const CommandOptions& options, const ServiceVerbOptions& asked) {
  if (!asked.key_of.empty() && !asked.update_of.empty()) {
    return input_error({}, "--key and --update: expected one of them");
  }
  if (!asked.update_of.empty()) return change_service(options, asked);
  if (asked.service.artifact.empty() == asked.key_of.empty()) {
    return input_error({},
                       "expected the MODEL of a new service, or --key or --update of a running "
                       "one");
  }
  return asked.key_of.empty() ? start_service(options, asked) : add_key(options, asked);
}

void add_options(CLI::App& verb, ServiceVerbOptions& asked) {
  ServiceOptions& service = asked.service;
  verb.add_option(
          "model", service.artifact,
          "model: checkpoints of orrery-train, a directory of Hugging Face, a GGUF file, or what "
          "--engine reads; it must be there on every node")
      ->type_name("MODEL");
  verb.add_option("--name", service.name, "name of the service (default: that of the directory)");
  verb.add_option("--model", service.model,
                  "name by which clients ask for the model (default: that of the service)")
      ->type_name("NAME");
  verb.add_option("--engine", service.engine,
                  "inference engine of the replicas: orrery, vllm, sglang, trtllm or llamacpp")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--replicas", asked.replicas,
                  "number of replicas (default: 1, or as many as the service has)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 16));
  verb.add_option("-n,--accelerators", service.accelerators, "accelerators of each replica")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  verb.add_option("--type", service.types, "acceptable types of accelerators (default: any)")
      ->type_name("TYPE,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--tenant", service.tenant, "tenant that the service is charged to")
      ->type_name("PATH")
      ->capture_default_str();
}

/// Adds the options for services that run, and for how updates are made.
void add_update_options(CLI::App& verb, ServiceVerbOptions& asked) {
  ServiceOptions& service = asked.service;
  verb.add_option("--key", asked.key_of,
                  "make another key for a running service, named or by the job of a replica")
      ->type_name("SERVICE");
  verb.add_option("--update", asked.update_of,
                  "give a running service, named or by the job of a replica, another MODEL, other "
                  "arguments or --replicas, without a break")
      ->type_name("SERVICE");
  verb.add_option("--revision", asked.revision,
                  "id of the revision that --update makes (default: r2 after r1)")
      ->type_name("ID");
  verb.add_option("--slo", service.slo,
                  "latencies that 99 % of requests are to stay below, shown beside those measured: "
                  "ttft=800ms,tpot=50ms; ttft_p50, _p90, _p95 are those of other shares")
      ->type_name("KEY=TIME,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--scale", service.scale,
                  "let the number of replicas follow what clients ask for, between MIN and MAX; "
                  "MIN 0: the last one rests after 10 min without requests; none: the number stays "
                  "(default: as before, none at first)")
      ->type_name("MIN..MAX");
  verb.add_option("--surge", service.rollout.surge,
                  "replicas that an update may have beyond those wanted (default: as before, 1 at "
                  "first)")
      ->type_name("N");
  verb.add_option(
          "--unavailable", service.rollout.unavailable,
          "of the replicas wanted, how many need not be ready in an update (default: as before, "
          "0 at first)")
      ->type_name("N");
  verb.add_option("--canary", service.rollout.canary,
                  "try a new revision on these shares of the requests, stage by stage, before all "
                  "replicas follow: 1%,10%,50%; none: all follow at once; back: take the present "
                  "canary back (default: as before, none at first)")
      ->type_name("SHARES")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--bake", service.rollout.bake,
                  "the least time of each stage (default: as before, 10 min at first)")
      ->type_name("TIME");
  verb.add_option("--gates", service.rollout.gates,
                  "what may show that a canary is worse: errors, slo, quality (default: as before, "
                  "errors,slo at first)")
      ->type_name("GATES")
      ->delimiter(',')
      ->allow_extra_args(false);
  CLI::Option& update = *verb.get_option("--update");
  for (const char* kept :
       {"--name", "--model", "--engine", "--accelerators", "--type", "--tenant"}) {
    update.excludes(verb.get_option(kept));
  }
  verb.get_option("--revision")->needs(&update);
  verb.add_flag("--no-wait", asked.no_wait,
                "do not wait until a replica is ready, or the update has ended");
  verb.add_flag("--dry-run", asked.dry_run, "print the spec without submitting it");
}

}  // namespace

void add_service_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<ServiceVerbOptions>();
  CLI::App& verb = *app.add_subcommand(
      "serve", "serve a model with the OpenAI API; update a service, or make another key for it");
  verb.footer(
      "Examples:\n"
      "  orrery serve run/checkpoint --replicas 2 --name chat\n"
      "  orrery serve run/checkpoint -- --slots 4   (arguments of the inference engine)\n"
      "  orrery serve --key chat\n"
      "  orrery serve run2/checkpoint --update chat   (another model, replica by replica)\n"
      "  orrery serve run2/checkpoint --update chat --canary 1%,10%   (on a share of the requests "
      "first)\n"
      "  orrery serve --update chat --replicas 4\n"
      "  orrery job chat   (replicas, latencies, cost)\n"
      "  orrery cancel chat\n");
  add_options(verb, *asked);
  add_update_options(verb, *asked);
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return serve(options, *asked); };
  });
}

}  // namespace orrery
