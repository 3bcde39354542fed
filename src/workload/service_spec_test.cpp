// workload/service_spec_test.cpp - what a job spec says of a service: its revision, its engine and
// how replicas are replaced.
#include "workload/service_spec.hpp"

#include "workload/job_spec_test.hpp"

namespace orrery {
namespace {

/// A job of one role that is no service.
std::string batch(const std::string& keys = "") {
  return "apiVersion: orrery/v1\nkind: Batch\nname: j\nroles: [{accelerators: 1}]\n" + keys;
}

TEST(ServiceSpecTest, AServiceRunsTheEngineOfItsRevision) {
  const std::string text =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n"
      "revisions: [{model: gpt-small, artifact: /models/gpt, engine: {name: orrery, "
      "arguments: [--slots, '4']}}]\n";
  const JobSpec spec = accepted(text);
  ASSERT_EQ(spec.service.revisions.size(), 1u);
  EXPECT_EQ(spec.service.revisions[0].id, "r1");
  const std::optional<LaunchSpec> launch = launch_of(spec);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->command,
            (std::vector<std::string>{"orrery-serve", "--checkpoint", "/models/gpt", "--model",
                                      "gpt-small", "--slots", "4"}));
  EXPECT_EQ(launch->per, LaunchUnit::kNode);
  EXPECT_EQ(write_job_spec(accepted(write_job_spec(spec))), write_job_spec(spec));
  EXPECT_FALSE(launch_of(accepted(batch())));
}

TEST(ServiceSpecTest, TheLatenciesToKeepAreReadAndChecked) {
  const std::string head =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n";
  const JobSpec spec = accepted(head + "slo: {ttft_p99: 800 ms, tpot_p99: 0.05 s}\n");
  EXPECT_EQ(spec.service.slo.ttft.p99, Seconds(0.8));
  EXPECT_EQ(spec.service.slo.tpot.p99, Seconds(0.05));
  EXPECT_EQ(write_job_spec(accepted(write_job_spec(spec))), write_job_spec(spec));
  EXPECT_FALSE(accepted(head).service.slo.ttft.p99);
  EXPECT_EQ(refusal(head + "slo: {ttft_p99: 0 s, tpot_p99: 0 s}\n"),
            "job.yaml:5:6: ttft_p99 is 0 s, expected more than 0; tpot_p99 is 0 s, expected more "
            "than 0");
  EXPECT_EQ(refusal(batch("slo: {ttft_p99: 1 s}\n")),
            "job.yaml:5:6: slo with kind Batch, expected kind Serve");
}

TEST(ServiceSpecTest, LatenciesHaveSeveralQuantiles) {
  const std::string head =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n";
  const SloSpec slo = accepted(head + "slo: {ttft_p90: 2 s, ttft_p50: 1 s}\n").service.slo;
  const std::vector<LatencyTarget> targets = targets_of(slo.ttft);
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].quantile, 0.5);
  EXPECT_EQ(targets[1].time, Seconds(2));
  EXPECT_EQ(tail_of(slo.ttft), Seconds(2));
  EXPECT_FALSE(tail_of(slo.tpot));
  const SloSpec others =
      accepted(head + "slo: {ttft_p95: 3 s, tpot_p50: 10 ms, tpot_p90: 20 ms, tpot_p95: 30 ms}\n")
          .service.slo;
  EXPECT_EQ(tail_of(others.ttft), Seconds(3));
  ASSERT_EQ(targets_of(others.tpot).size(), 3u);
  EXPECT_EQ(targets_of(others.tpot)[1].time, Seconds(0.02));
  SloSpec typed;
  *target_named(typed, "tpot") = Seconds(0.05);
  EXPECT_EQ(typed.tpot.p99, Seconds(0.05));
  EXPECT_EQ(target_named(typed, "ttft_p50"), &typed.ttft.p50);
  for (const char* none : {"ttft_", "ttft_p98", "e2e", "_p99", ""}) {
    EXPECT_EQ(target_named(typed, none), nullptr) << none;
  }
}

TEST(ServiceSpecTest, ASmallModelAnswersWithinAPromiseOnQuality) {
  const std::string head =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n";
  const JobSpec spec = accepted(
      head + "quality: {small: chat-1b, measure: judge, max_loss: 0.1, confidence: 0.9}\n");
  EXPECT_EQ(spec.service.quality.small, "chat-1b");
  EXPECT_EQ(spec.service.quality.measure, QualityMeasure::kJudge);
  EXPECT_EQ(spec.service.quality.max_loss, 0.1);
  EXPECT_EQ(spec.service.quality.confidence, 0.9);
  EXPECT_EQ(write_job_spec(accepted(write_job_spec(spec))), write_job_spec(spec));
  EXPECT_TRUE(accepted(head).service.quality.small.empty());
  EXPECT_EQ(write_job_spec(accepted(head)).find("quality"), std::string::npos);
  EXPECT_EQ(refusal(head + "quality: {small: s, audit_rate: 1}\n"),
            "job.yaml:5:10: quality: audit_rate is 1, expected more than 0 and less than 1");
  EXPECT_EQ(refusal(head + "quality: {small: s, max_loss: .nan}\n"),
            "job.yaml:5:31: expected a number, found \".nan\"");
  EXPECT_NE(refusal(head + "quality: {max_loss: 0.1}\n").find("small"), std::string::npos);
  EXPECT_EQ(refusal(head + "quality: {small: chat}\n"),
            "job.yaml:5:10: quality: small is the service itself, expected another one");
  EXPECT_EQ(refusal(batch("quality: {small: s}\n")),
            "job.yaml:5:10: quality with kind Batch, expected kind Serve");
}

TEST(ServiceSpecTest, ScalingSaysHowManyReplicasThereMayBe) {
  const auto text = [](const std::string& scaling, const std::string& role = "replicas: 2") {
    return "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1, " + role +
           "}]\nrevisions: [{model: m, artifact: /m}]\nscaling: " + scaling + "\n";
  };
  const JobSpec spec = accepted(text("{min: 0, max: 8, idle: 5 min, quantile: 0.9}"));
  ASSERT_TRUE(spec.service.scaling);
  EXPECT_EQ(spec.service.scaling->min, 0u);
  EXPECT_EQ(spec.service.scaling->max, 8u);
  EXPECT_EQ(spec.service.scaling->idle, Seconds(300));
  EXPECT_EQ(spec.service.scaling->quantile, 0.9);
  EXPECT_EQ(write_job_spec(accepted(write_job_spec(spec))), write_job_spec(spec));
  EXPECT_EQ(accepted(text("{max: 2}")).service.scaling->min, 1u);
  EXPECT_EQ(refusal(text("{min: 3, max: 2}")),
            "job.yaml:6:10: scaling: max is 2, expected 3 to 65536, as min is the least");
  EXPECT_EQ(refusal(text("{max: 1}")),
            "job.yaml:6:10: scaling: the role has 2 replicas, with which the service begins, "
            "expected 1 to 1");
  EXPECT_EQ(refusal(text("{max: 4, idle: 5 min}")),
            "job.yaml:6:10: scaling: idle with min 1, expected min: 0: replicas never rest "
            "otherwise");
  EXPECT_EQ(refusal(text("{min: 0, max: 4, idle: 0 s}")),
            "job.yaml:6:10: scaling: idle is 0 s, expected more than 0");
  EXPECT_EQ(refusal(text("{max: 4, quantile: 1}")),
            "job.yaml:6:10: scaling: quantile is 1, expected 0.5 to below 1");
  EXPECT_EQ(refusal(batch("scaling: {max: 4}\n")),
            "job.yaml:5:10: scaling with kind Batch, expected kind Serve");
}

TEST(ServiceSpecTest, TenantsHaveSharesPrioritiesAndLimits) {
  const std::string head =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n";
  const JobSpec spec =
      accepted(head +
               "tenants: [lab/a, {name: key-1, weight: 2.5, priority: -3, tokens_per_s: 1200}]\n"
               "slo: {batch_deadline: 6 h}\n");
  ASSERT_EQ(spec.service.tenants.size(), 2u);
  const ServiceTenantSpec& plain = spec.service.tenants[0];
  EXPECT_EQ(plain.name, "lab/a");
  EXPECT_EQ(plain.weight, 1);
  EXPECT_EQ(plain.priority, 0);
  EXPECT_FALSE(plain.tokens_per_s);
  const ServiceTenantSpec& key = spec.service.tenants[1];
  EXPECT_EQ(key.weight, 2.5);
  EXPECT_EQ(key.priority, -3);
  EXPECT_EQ(key.tokens_per_s, 1200.0);
  EXPECT_EQ(spec.service.slo.batch_deadline, Seconds(6 * 3600.0));
  EXPECT_EQ(write_job_spec(accepted(write_job_spec(spec))), write_job_spec(spec));
  EXPECT_NE(write_job_spec(spec).find("tokens_per_s"), std::string::npos);
}

TEST(ServiceSpecTest, RefusesTenantsThatAreNoneWithTheirPlace) {
  const auto tenants = [](const std::string& list) {
    return refusal(
        "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n"
        "tenants: [" +
        list + "]\n");
  };
  EXPECT_EQ(tenants("{name: a, weight: 0}"),
            "job.yaml:5:11: tenant a: weight is 0, expected more than 0, at most 1000000");
  EXPECT_EQ(tenants("{name: a, weight: 2e6}"),
            "job.yaml:5:11: tenant a: weight is 2000000, expected more than 0, at most 1000000");
  EXPECT_EQ(tenants("{name: a, priority: 1001}"),
            "job.yaml:5:11: tenant a: priority is 1001, expected -1000 to 1000");
  EXPECT_EQ(tenants("{name: a, tokens_per_s: 0}"),
            "job.yaml:5:11: tenant a: tokens_per_s is 0, expected more than 0");
  EXPECT_EQ(tenants("a, b, a"),
            "job.yaml:5:17: a second tenant named \"a\", the first is at job.yaml:5:11");
  EXPECT_TRUE(tenants("lab//a").starts_with("job.yaml:5:11: ")) << tenants("lab//a");
  EXPECT_NE(tenants("{weight: 1}").find("name"), std::string::npos);
  EXPECT_EQ(refusal(batch("tenants: [a]\n")),
            "job.yaml:5:11: tenants with kind Batch, expected kind Serve");
  EXPECT_EQ(refusal(batch("slo: {batch_deadline: 0 s}\n")).substr(0, 14), "job.yaml:5:6: ");
}

TEST(ServiceSpecTest, ARolloutSaysHowReplicasAreReplaced) {
  const std::string head =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n";
  const JobSpec spec = accepted(head + "rollout: {surge: 0, unavailable: 2}\n");
  EXPECT_EQ(spec.service.rollout.surge, 0u);
  EXPECT_EQ(spec.service.rollout.unavailable, 2u);
  EXPECT_EQ(accepted(head).service.rollout.surge, 1u);
  EXPECT_EQ(refusal(head + "rollout: {surge: 0}\n"),
            "job.yaml:5:10: rollout has surge 0 and unavailable 0, expected one of them above 0: "
            "no replica could be replaced");
  EXPECT_EQ(
      refusal(head + "rollout: {canary: [1%, 1%]}\n"),
      "job.yaml:5:10: rollout: canary has 1% after 1%, expected a larger share in each stage");
  for (const char* wrong : {"5", "0%", "101%", "0.001%", "x%", "-1%", "5 %"}) {
    EXPECT_EQ(refusal(head + "rollout: {canary: ['" + wrong + "']}\n"),
              "job.yaml:5:10: rollout: canary has \"" + std::string(wrong) +
                  "\", expected a percentage from 0.01% to 100%, such as 5%");
  }
  EXPECT_EQ(canary_shares({"0.07%", "0.29%", "1.1%", "2.2%", "33.3%", "100%"}).value(),
            (std::vector<std::uint32_t>{7, 29, 110, 220, 3330, 10'000}));
  EXPECT_EQ(refusal(head + "rollout: {canary: [1%], gates: [slo]}\n"),
            "job.yaml:5:10: rollout has the gate slo, expected slo with ttft_p99 or tpot_p99");
  EXPECT_EQ(refusal(head + "rollout: {bake: 1 min}\n"),
            "job.yaml:5:10: rollout has bake or gates, which are those of a canary: expected "
            "canary, too");
  EXPECT_EQ(refusal(batch("rollout: {surge: 2}\n")),
            "job.yaml:5:10: rollout with kind Batch, expected kind Serve");
}

TEST(ServiceSpecTest, AnEngineOfOthersRunsUnderOnesOwnProgramWithItsEnvironment) {
  const std::string head = "apiVersion: orrery/v1\nkind: Serve\nname: chat\n";
  const std::string roles = "roles: [{accelerators: 1}]\n";
  const std::string text =
      head + roles +
      "revisions: [{model: lab/gpt, artifact: /models/gpt, engine: {name: vllm, program: "
      "/opt/vllm/bin/vllm, arguments: [--max-num-seqs, '4'], environment: {HF_HUB_OFFLINE: "
      "'1'}}}]\n";
  const JobSpec spec = accepted(text);
  const std::optional<LaunchSpec> launch = launch_of(spec);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->command,
            (std::vector<std::string>{"orrery-engine", "--engine", "vllm", "--artifact",
                                      "/models/gpt", "--model", "lab/gpt", "--program",
                                      "/opt/vllm/bin/vllm", "--", "--max-num-seqs", "4"}));
  ASSERT_EQ(launch->environment.size(), 1u);
  EXPECT_EQ(launch->environment[0].first, "HF_HUB_OFFLINE");
  EXPECT_EQ(write_job_spec(accepted(write_job_spec(spec))), write_job_spec(spec));
  for (const char* engine : {"sglang", "trtllm", "llamacpp"}) {
    const JobSpec other = accepted(head + roles + "revisions: [{model: m, artifact: /m, engine: " +
                                   std::string(engine) + "}]\n");
    EXPECT_EQ(launch_of(other)->command[2], engine);
  }
  const std::string wrong = refusal(head + roles +
                                    "revisions: [{model: m, artifact: /m, engine: {name: vllm, "
                                    "environment: {ORRERY_JOB: b}}}]\n");
  EXPECT_NE(wrong.find("environment sets ORRERY_JOB"), std::string::npos) << wrong;
}

/// A service of these roles, whose engine has this name.
std::string apart(const std::string& roles, const std::string& engine,
                  const std::string& transfer = "{token: 128 KiB, rate: 25 GB/s}") {
  return "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [" + roles +
         "]\nrevisions: [{model: m, artifact: /m, engine: " + engine + "}]\ntransfer: " + transfer +
         "\n";
}

constexpr std::string_view kApartRoles =
    "{name: prefill, replicas: 2, accelerators: 1}, {name: decode, accelerators: 1}";

TEST(ServiceSpecTest, ReplicasOfTheRolesPrefillAndDecodeHandPromptsOver) {
  const JobSpec spec = accepted(apart(std::string(kApartRoles), "vllm"));
  ASSERT_TRUE(spec.service.transfer);
  EXPECT_EQ(spec.service.transfer->token, Bytes(131'072));
  EXPECT_EQ(spec.service.transfer->rate, BytesPerSecond(25e9));
  EXPECT_EQ(duty_in(spec.service, "prefill"), EnginePart::kPrompts);
  EXPECT_EQ(duty_in(spec.service, "decode"), EnginePart::kAnswers);
  EXPECT_EQ(duty_in(spec.service, "main"), EnginePart::kWhole);
  EXPECT_EQ(duty_in({}, "prefill"), EnginePart::kWhole) << "a role of that name is one as any";
  EXPECT_EQ(launch_of(spec, "prefill")->command,
            (std::vector<std::string>{"orrery-engine", "--engine", "vllm", "--artifact", "/m",
                                      "--model", "m", "--duty", "prefill", "--"}));
  EXPECT_EQ(launch_of(spec, "decode")->command[8], "decode");
  EXPECT_EQ(launch_of(spec, "main")->command[7], "--");
  EXPECT_EQ(write_job_spec(accepted(write_job_spec(spec))), write_job_spec(spec));
}

TEST(ServiceSpecTest, ATransferNeedsAnEngineThatHandsOverAndBothRoles) {
  const std::string both(kApartRoles);
  for (const char* engine : {"orrery", "sglang", "trtllm", "llamacpp"}) {
    EXPECT_EQ(refusal(apart(both, engine)),
              "job.yaml:6:11: transfer with engine " + std::string(engine) +
                  ", expected vllm: caches of other engines are not handed from replica to "
                  "replica");
  }
  EXPECT_EQ(refusal(apart("{name: prefill, accelerators: 1}", "vllm")),
            "job.yaml:6:11: transfer without a role named decode, expected roles named prefill and "
            "decode");
  EXPECT_EQ(refusal(apart("{name: decode, accelerators: 1}", "vllm")),
            "job.yaml:6:11: transfer without a role named prefill, expected roles named prefill "
            "and decode");
  EXPECT_EQ(refusal(apart(both, "vllm", "{token: 0 B, rate: 1 GB/s}")),
            "job.yaml:6:11: transfer: token is 0, expected more than 0");
  EXPECT_EQ(refusal(apart(both, "vllm", "{token: 1 B, rate: 0 GB/s}")),
            "job.yaml:6:11: transfer: rate is 0, expected more than 0");
  EXPECT_NE(refusal(apart(both, "{name: vllm, arguments: ['--kv-transfer-config={}']}"))
                .find("arguments have --kv-transfer-config beside transfer"),
            std::string::npos);
  EXPECT_EQ(refusal(batch("transfer: {token: 1 B, rate: 1 B/s}\n")),
            "job.yaml:5:11: transfer with kind Batch, expected kind Serve");
}

TEST(ServiceSpecTest, RefusesRevisionsThatAreNoneWithTheirPlace) {
  const auto revisions = [](const std::string& kind, const std::string& rest) {
    return refusal("apiVersion: orrery/v1\nkind: " + kind +
                   "\nname: chat\nroles: [{accelerators: 1}]\n" + rest);
  };
  const std::string one = "revisions: [{model: m, artifact: /m}]\n";
  EXPECT_EQ(revisions("Batch", one),
            "job.yaml:5:13: revisions with kind Batch, expected kind Serve");
  EXPECT_EQ(revisions("Serve", one + "launch: {command: [a]}\n"),
            "job.yaml:5:13: revisions beside launch, expected one of them: the engine follows from "
            "a revision");
  EXPECT_EQ(revisions("Serve",
                      "revisions: [{model: m, artifact: /m}, {id: b, model: m, artifact: "
                      "/m}]\n"),
            "job.yaml:5:13: there are 2 revisions, expected one");
  EXPECT_EQ(revisions("Serve", "revisions: [{model: 'a b', artifact: /m}]\n"),
            "job.yaml:5:13: model is \"a b\", expected 1 to 128 letters, digits and -_.:/");
  EXPECT_NE(revisions("Serve", "revisions: [{id: a b, model: m, artifact: /m}]\n").find("id: "),
            std::string::npos);
  EXPECT_EQ(revisions("Serve", "revisions: [{model: m, artifact: ''}]\n"),
            "job.yaml:5:13: artifact is \"\", expected the path of a model");
  EXPECT_NE(revisions("Serve", "revisions: [{model: m, artifact: /m, engine: vlm}]\n").find("vlm"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
