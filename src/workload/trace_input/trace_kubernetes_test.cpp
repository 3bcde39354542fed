// A made-up sample by the fields of the API of Kubernetes.
#include "workload/trace_input/trace_kubernetes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "workload/kubernetes_list.hpp"
#include "workload/kubernetes_pod.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

struct PodText {
  std::string name = "p";
  std::string metadata;  ///< more of it: R"(, "labels": {...})"
  std::string spec = R"("containers": [{"resources": {"requests": {"nvidia.com/gpu": "8"}}}])";
  std::string status =
      R"("phase": "Succeeded", "startTime": "2026-11-20T10:01:00Z", "containerStatuses": [
        {"state": {"terminated": {"finishedAt": "2026-11-20T11:00:00Z"}}}])";
};

std::string pod(const PodText& text) {
  return fmt::format(
      R"({{"kind": "Pod", "metadata": {{"name": "{}", "namespace": "team",
        "creationTimestamp": "2026-11-20T10:00:00Z"{}}}, "spec": {{{}}}, "status": {{{}}}}})",
      text.name, text.metadata, text.spec, text.status);
}

std::string job(const std::string& name, const std::string& status) {
  return fmt::format(
      R"({{"kind": "Job", "metadata": {{"name": "{}", "namespace": "team",
        "creationTimestamp": "2026-11-20T09:00:00Z"}}, "spec": {{"parallelism": 4, "template":
        {{"spec": {{"containers": [{{"resources": {{"limits": {{"nvidia.com/gpu": "2"}}}}}}]}}}}}},
        "status": {{{}}}}})",
      name, status);
}

std::string list(const std::string& items) {
  return "{\n\"apiVersion\": \"v1\",\n\"items\": [\n" + items +
         "\n],\n\"kind\": \"List\",\n\"metadata\": {\"resourceVersion\": \"\"}\n}\n";
}

Trace read(const std::string& items, const TraceOptions& options = {}) {
  Result<Trace> trace = read_trace(list(items), "k", options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace();
}

std::string error(const std::string& text) {
  const Result<Trace> trace = read_kubernetes_trace(text, "k", {});
  return trace ? "read" : trace.error().text();
}

TraceJob only(const Trace& trace) {
  EXPECT_EQ(trace.jobs.size(), 1u);
  return trace.jobs.empty() ? TraceJob() : trace.jobs.front();
}

TEST(KubernetesTrace, APodIsAJobOfItsNamespace) {
  const TraceJob made = only(read(pod({})));
  EXPECT_EQ(made.name, "p");
  EXPECT_EQ(made.tenant, "team");
  EXPECT_EQ(made.submit.text(), "2026-11-20T10:00:00Z");
  EXPECT_EQ(made.run, Duration::minutes(59)) << "from startTime on";
  EXPECT_EQ(made.accelerators, 8u);
  EXPECT_EQ(made.status, TraceStatus::kCompleted);
  EXPECT_EQ(made.line, 4);
}

TEST(KubernetesTrace, RequestsCountAsTheSchedulerCountsThem) {
  PodText text;
  text.spec = R"("overhead": {"cpu": "250m"},
    "initContainers": [
      {"resources": {"requests": {"cpu": "7", "memory": "1Gi"}}},
      {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1", "memory": "512Mi"}}},
      {"resources": {"requests": {"cpu": "6", "memory": "64Gi"}}}],
    "containers": [
      {"resources": {"requests": {"cpu": "2500m"}, "limits": {"nvidia.com/gpu": "4", "cpu": "9"}}},
      {"resources": {"requests": {"cpu": "2", "memory": "2G", "rdma/ib": "x"}}}])";
  const TraceJob made = only(read(pod(text)));
  EXPECT_EQ(made.accelerators, 4u) << "a limit without a request is one";
  EXPECT_EQ(made.cpu_millicores, 7250u) << "the largest init container, with its sidecar, and 250m";
  EXPECT_EQ(made.memory_mib, (64u << 10) + 512);
  text.spec += R"(, "resources": {"requests": {"cpu": "3"}})";
  EXPECT_EQ(only(read(pod(text))).cpu_millicores, 3250u) << "what the pod says as a whole counts";
}

TEST(KubernetesTrace, PodsOfOneJobAreAGang) {
  const auto labelled = [](const std::string& name, const std::string& label) {
    return pod({.name = name, .metadata = R"(, "labels": {")" + label + "\"}"});
  };
  for (const std::string label :
       {R"(jobset.sigs.k8s.io/jobset-name": "big)", R"(training.kubeflow.org/job-name": "big)",
        R"(job-name": "big)", R"(volcano.sh/job-name": "big)", R"(ray.io/cluster": "big)"}) {
    const TraceJob made = only(read(labelled("a", label) + ",\n" + labelled("b", label)));
    EXPECT_EQ(made.name, "big") << label;
    EXPECT_EQ(made.accelerators, 16u) << label;
  }
  EXPECT_EQ(read(labelled("a", "x\": \"big") + ",\n" + labelled("b", "x\": \"big")).jobs.size(),
            2u);
  const std::string owner = R"(, "ownerReferences": [{"kind": "Job", "name": "old"}])";
  EXPECT_EQ(only(read(pod({.metadata = owner}))).name, "old");
}

TEST(KubernetesTrace, ARetryTakesThePlaceOfThePodBeforeIt) {
  const std::string label = R"(, "labels": {"job-name": "j"})";
  PodText failed{.name = "a", .metadata = label};
  failed.status = R"("phase": "Failed", "startTime": "2026-11-20T10:01:00Z", "containerStatuses": [
    {"restartCount": 3, "state": {"terminated": {"finishedAt": "2026-11-20T10:30:00Z"}}}])";
  PodText again{.name = "b", .metadata = label};
  again.status = R"("phase": "Succeeded", "startTime": "2026-11-20T10:30:00Z",
    "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-11-20T11:00:00Z"}}}])";
  const TraceJob made = only(read(pod(failed) + "," + pod(again)));
  EXPECT_EQ(made.accelerators, 8u);
  EXPECT_EQ(made.run, Duration::minutes(59));
  EXPECT_EQ(made.status, TraceStatus::kCompleted) << "as the last";
}

TEST(KubernetesTrace, AJobCountsWhereItsPodsAreGone) {
  const std::string done = R"("startTime": "2026-11-20T09:10:00Z",
    "completionTime": "2026-11-20T09:40:00Z")";
  const TraceJob made = only(read(job("j", done)));
  EXPECT_EQ(made.accelerators, 8u) << "four of two";
  EXPECT_EQ(made.run, Duration::minutes(30));
  EXPECT_EQ(made.submit.text(), "2026-11-20T09:00:00Z");
  const std::string failed = R"("startTime": "2026-11-20T09:10:00Z", "conditions": [
    {"type": "Failed", "status": "True", "lastTransitionTime": "2026-11-20T09:20:00Z"}])";
  EXPECT_EQ(only(read(job("j", failed))).status, TraceStatus::kFailed);
  const std::string own = pod({.metadata = R"(, "labels": {"job-name": "j"})"});
  EXPECT_EQ(only(read(job("j", done) + "," + own)).run, Duration::minutes(59));
}

TEST(KubernetesTrace, PodsThatStillRunEndWithTheList) {
  PodText running{.name = "r"};
  running.status = R"("phase": "Running", "startTime": "2026-11-20T10:10:00Z")";
  const Trace trace = read(pod({}) + "," + pod(running));
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[1].run, Duration::minutes(50));
  EXPECT_EQ(trace.jobs[1].status, TraceStatus::kUnknown);
  ASSERT_EQ(trace.notes.size(), 1u);
  EXPECT_EQ(trace.notes[0],
            "1 pod or Job still running ends with the latest time of the list, "
            "2026-11-20T11:00:00Z");
}

TEST(KubernetesTrace, WhatIsNoWorkOfTheClusterIsLeftOutAndCounted) {
  PodText pending{.name = "w"};
  pending.status = R"("phase": "Pending")";
  PodText daemon{.name = "d", .metadata = R"(, "ownerReferences": [{"kind": "DaemonSet"}])"};
  PodText claims{.name = "c", .spec = R"("resourceClaims": [{"name": "gpu"}])"};
  const Trace trace = read(pod(pending) + "," + pod(daemon) + "," + pod(claims) + "," +
                           R"({"kind": "Node"})" + "," + pod({}));
  EXPECT_EQ(trace.jobs.size(), 1u);
  ASSERT_EQ(trace.left_out.size(), 3u);
  EXPECT_EQ(trace.left_out[0].reason, "without a start");
  EXPECT_EQ(trace.left_out[1].reason, "that belong to a node or a DaemonSet");
  EXPECT_EQ(trace.left_out[2].reason, "whose devices are resource claims");
}

TEST(KubernetesTrace, TypesAreThoseAskedOfNodes) {
  PodText text;
  text.spec += R"(, "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})";
  EXPECT_EQ(only(read(pod(text))).types, "NVIDIA-H100-80GB-HBM3");
  text = {};
  text.spec += R"(, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "cloud.google.com/gke-accelerator",
    "operator": "In", "values": ["nvidia-tesla-t4", "nvidia-tesla-v100"]}]}]}}})";
  EXPECT_EQ(only(read(pod(text))).types, "nvidia-tesla-t4|nvidia-tesla-v100");
}

TEST(KubernetesTrace, SlicesAreSeventhsOfAnAccelerator) {
  PodText text;
  text.spec = R"("containers": [{"resources": {"requests": {"nvidia.com/mig-3g.40gb": "1"}}}])";
  const TraceJob made = only(read(pod(text)));
  EXPECT_EQ(made.accelerators, 1u);
  EXPECT_EQ(made.share, 428);
}

TEST(KubernetesTrace, NamesOfTheSameDevicesCountOnce) {
  PodText text;
  text.spec = R"("containers": [{"resources": {"requests":
    {"aws.amazon.com/neuron": "16", "aws.amazon.com/neurondevice": "16"}}}])";
  EXPECT_EQ(only(read(pod(text))).accelerators, 16u);
  text.spec = R"("containers": [
    {"resources": {"requests": {"aws.amazon.com/neuron": "2"}}},
    {"resources": {"requests": {"aws.amazon.com/neurondevice": "2", "nvidia.com/gpu": "1"}}}])";
  EXPECT_EQ(only(read(pod(text))).accelerators, 5u) << "containers and vendors are added";
}

TEST(KubernetesTrace, AListMayBeginWithAByteOrderMark) {
  const std::string text = "\xEF\xBB\xBF" + list(pod({}));
  const Result<Trace> trace = read_trace(text, "k", {});
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(trace->jobs.size(), 1u);
}

// Whether it would be printed, copied or passed over. The second line of the item has it.
TEST(KubernetesTrace, AValueThatNestsTooDeepIsRefused) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const std::string wrong = "k:5:1: the value nests deeper than 64, expected at most that";
  PodText text;
  text.metadata = R"(, "creationTimestamp": )" + nested(200'000);
  EXPECT_EQ(error(list(pod(text))), wrong);
  text = {.spec = R"("containers": [{"resources": {"requests": {"cpu": )" + nested(200'000) +
                  R"(}, "limits": {"cpu": "1"}}}])"};
  EXPECT_EQ(error(list(pod(text))), wrong);
  text = {.metadata = R"(, "annotations": )" + nested(62)};
  EXPECT_EQ(error(list(pod(text))), "read") << "the item and its metadata are the other two";
  text = {.metadata = R"(, "annotations": )" + nested(63)};
  EXPECT_EQ(error(list(pod(text))), wrong);
  EXPECT_EQ(error("{\"metadata\": " + nested(200'000) + ", \"items\": []}"),
            "k:1:1: the value nests deeper than 64, expected at most that");
}

TEST(KubernetesTrace, KeepsWhatIsAskedFor) {
  const std::string two = pod({}) + "," + pod({.name = "q"});
  EXPECT_EQ(only(read(two, {.where = {{"name", "q"}}})).name, "q");
  EXPECT_TRUE(read(two, {.to = Instant()}).jobs.empty());
  const TraceOptions unknown{.where = {{"namespace", "team"}}};
  EXPECT_EQ(read_trace(list(two), "k", unknown).error().text().substr(0, 46),
            "k: there is no column \"namespace\" to compare; ");
}

TEST(KubernetesTrace, APodThatIsWrongIsNamedWithItsLine) {
  PodText text;
  text.status = R"("phase": "Done")";
  EXPECT_EQ(error(list(pod({.name = "a"}) + ",\n" + pod(text))),
            "k:7:1: Pod team/p: status.phase is \"Done\", expected Pending, Running, Succeeded, "
            "Failed or Unknown");
  text.status = R"("phase": "Running", "startTime": "2026-11-20T09:01:00Z")";
  EXPECT_EQ(error(list(pod(text))),
            "k:4:1: Pod team/p: status.startTime is 2026-11-20T09:01:00Z, expected a time not "
            "before its creation, 2026-11-20T10:00:00Z");
  text.status = R"("phase": "Running", "startTime": "2026-11-20T09:59:30Z")";
  EXPECT_EQ(error(list(pod(text))), "read") << "clocks differ by seconds";
  text.status = R"("phase": "Running", "startTime": "yesterday")";
  EXPECT_EQ(error(list(pod(text))),
            "k:4:1: Pod team/p: startTime is \"yesterday\", expected a time such as "
            "\"2026-11-20T10:00:00Z\"");
  text.status = R"("phase": "Succeeded", "startTime": "2026-11-20T10:01:00Z", "containerStatuses": [
        {"state": {"terminated": {"finishedAt": "2199-11-20T11:00:00Z"}}}])";
  EXPECT_EQ(error(list(pod(text))),
            "k:4:1: Pod team/p: ran from 2026-11-20T10:01:00Z to 2199-11-20T11:00:00Z, expected at "
            "most 100 years");
  text = {.spec = R"("containers": [{"resources": {"requests": {"cpu": "-1"}}}])"};
  EXPECT_EQ(error(list(pod(text))),
            "k:4:1: Pod team/p: cpu is \"-1\", expected a quantity such as \"8\" or \"64Gi\"");
  const Trace skipped =
      read(pod({.name = "a"}) + "," + pod(text), {.bad_rows = TraceOptions::BadRows::kSkip});
  EXPECT_EQ(skipped.jobs.size(), 1u);
  EXPECT_EQ(skipped.skipped.size(), 1u);
}

TEST(KubernetesTrace, WhatIsNoListIsRefused) {
  EXPECT_EQ(error("NAME READY\n"),
            "k:1:1: \"NAME READY\" is no such JSON, expected a List in JSON, as \"kubectl get ... "
            "-o json\" prints it");
  EXPECT_EQ(error(R"({"kind": "Pod"})"),
            "k:1:1: \"}\" is no such JSON, expected a List with \"items\"");
  EXPECT_EQ(error(list("")),
            "k: the list has no Pod and no Job, expected what \"kubectl get pods,jobs -A -o json\" "
            "prints");
  EXPECT_EQ(error("{\"items\": [\n{\"kind\": \"Pod\""),
            "k:2:1: the text ends, expected the end of a value");
  EXPECT_EQ(error("{\"items\": [\n{\"kind\" \"Pod\"}]}"), "k:2:1: the item is no JSON object");
  EXPECT_EQ(error("{\"items\": []} x"),
            "k:1:1: \"x\" is no such JSON, expected nothing behind the "
            "List");
}

TEST(KubernetesQuantity, HasTheSuffixesOfTheApi) {
  EXPECT_EQ(kubernetes_quantity("8"), 8);
  EXPECT_EQ(kubernetes_quantity("500m"), 0.5);
  EXPECT_EQ(kubernetes_quantity("4Gi"), 4 * 0x1p30);
  EXPECT_EQ(kubernetes_quantity("2G"), 2e9);
  EXPECT_EQ(kubernetes_quantity("1e3"), 1000);
  EXPECT_EQ(kubernetes_quantity("1E"), 1e18);
  for (const char* text : {"", "-1", "m", "1 Gi", "1gi", "nan", "inf", "0x10", "1mm"}) {
    EXPECT_FALSE(kubernetes_quantity(text)) << text;
  }
}

TEST(KubernetesAccelerators, AreThoseOfDevicePlugins) {
  EXPECT_EQ(accelerator_thousandths("nvidia.com/gpu"), 1000u);
  EXPECT_EQ(accelerator_thousandths("amd.com/gpu"), 1000u);
  EXPECT_EQ(accelerator_thousandths("google.com/tpu"), 1000u);
  EXPECT_EQ(accelerator_thousandths("aws.amazon.com/neuron"), 1000u);
  EXPECT_EQ(accelerator_thousandths("nvidia.com/mig-1g.10gb"), 142u);
  EXPECT_EQ(accelerator_thousandths("nvidia.com/mig-9g"), 0u);
  EXPECT_EQ(accelerator_thousandths("ephemeral-storage"), 0u);
}

}  // namespace
}  // namespace orrery
