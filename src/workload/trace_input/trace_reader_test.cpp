#include "workload/trace_input/trace_reader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "workload/job_spec.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Trace read(std::string_view text, const TraceOptions& options = {}) {
  Result<Trace> trace = read_trace(text, "t", options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace();
}

std::string error(std::string_view text, const TraceOptions& options = {}) {
  const Result<Trace> trace = read_trace(text, "t", options);
  return trace ? "read" : trace.error().text();
}

Instant at_seconds(std::int64_t s) { return Instant::from_ns(s * kSecond); }

TEST(TraceReader, PhillyKeepsTheOrderOfTheFileAndItsDuplicates) {
  const Trace trace = read(
      "timestamp,duration,num_gpus,gpu_time,cluster\n"
      "2020-01-01 00:01:00,90.5,8,724.0,vc1\n"
      "2020-01-01 00:00:30,7.0,1,7.0,vc2\n"
      "2020-01-01 00:00:30,7.0,1,7.0,vc2\n");
  ASSERT_EQ(trace.jobs.size(), 3u);
  EXPECT_EQ(trace.jobs[0].submit.text(), "2020-01-01T00:01:00Z");
  EXPECT_EQ(trace.jobs[0].run, Duration::milliseconds(90'500));
  EXPECT_EQ(trace.jobs[0].accelerators, 8u);
  EXPECT_EQ(trace.jobs[0].tenant, "vc1");
  EXPECT_EQ(trace.jobs[0].name, "1");
  EXPECT_EQ(trace.jobs[0].line, 2);
  EXPECT_EQ(trace.jobs[2].name, "3");
  EXPECT_EQ(trace.jobs[2].submit, trace.jobs[1].submit);
  EXPECT_EQ(trace.first_submit(), trace.jobs[1].submit);
  EXPECT_EQ(trace.last_submit(), trace.jobs[0].submit);
  EXPECT_DOUBLE_EQ(trace.accelerator_seconds(), 90.5 * 8 + 14);
}

TEST(TraceReader, HeliosColumnsAreReadAsPhilly) {
  const Trace trace = read(
      "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
      "duration,queue\n"
      "77,u1,vcA,n,16,96,2,CANCELLED,2020-04-01 05:00:00,2020-04-01 05:00:01,2020-04-01 05:01:01,"
      "60,1\n"
      "78,u2,vcA,n,0,4,1,COMPLETED,2020-04-01 05:00:00,2020-04-01 05:00:01,2020-04-01 05:01:01,"
      "60,1\n");
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].name, "77");
  EXPECT_EQ(trace.jobs[0].user, "u1");
  EXPECT_EQ(trace.jobs[0].tenant, "vcA");
  EXPECT_EQ(trace.jobs[0].accelerators, 16u);
  EXPECT_EQ(trace.jobs[0].cpu_millicores, 96'000u);
  EXPECT_EQ(trace.jobs[0].status, TraceStatus::kCancelled);
  EXPECT_EQ(trace.jobs[1].accelerators, 0u) << "a job of CPUs is kept";
}

TEST(TraceReader, TellsWallClocksSecondsAndMillisecondsApart) {
  const auto submit = [](const std::string& header, const std::string& time) {
    const Trace trace = read(header + ",duration,num_gpus\n" + time + ",1,1\n");
    return trace.jobs.empty() ? Instant() : trace.jobs[0].submit;
  };
  const Result<Instant> wall = Instant::parse("2017-10-09T06:13:03Z");
  ASSERT_TRUE(wall);
  EXPECT_EQ(submit("timestamp", "2017-10-09 06:13:03"), *wall);
  EXPECT_EQ(submit("timestamp", "2017-10-09T08:13:03+02:00"), *wall);
  EXPECT_EQ(submit("timestamp", "1507529583"), *wall);
  EXPECT_EQ(submit("timestamp", "1507529583000"), *wall);
  EXPECT_EQ(submit("timestamp (ms)", "1500"), Instant::from_ns(1'500'000'000));
  EXPECT_EQ(submit("submit_time_ms", "1500"), Instant::from_ns(1'500'000'000));
  EXPECT_EQ(submit("submit_time (s)", "1.5"), Instant::from_ns(1'500'000'000));
  EXPECT_EQ(error("timestamp,duration,num_gpus\n99999999999,1,1\n"),
            "t:2:1: timestamp is \"99999999999\", expected a time such as \"2017-10-09 06:13:03\", "
            "or seconds from 0")
      << "a second beyond 2262, not a millisecond of 1973";
}

TEST(TraceReader, TheFirstNumberDecidesTheUnitOfAFile) {
  const std::string head = "timestamp,duration,num_gpus\n";
  EXPECT_EQ(read(head + "1507529583000,1,1\n5,1,1\n").jobs[1].submit.ns(), 5'000'000);
  EXPECT_NE(error(head + "5,1,1\n1507529583000,1,1\n"), "read");
}

TEST(TraceReader, AUnitThatIsSaidHoldsWhereNoColumnNamesOne) {
  const TraceOptions options{.unit = TimeUnit::kMilliseconds};
  const Trace trace = read("timestamp,duration_s,num_gpus\n1500,2,1\n", options);
  ASSERT_EQ(trace.jobs.size(), 1u);
  EXPECT_EQ(trace.jobs[0].submit.ns(), 1'500'000'000);
  EXPECT_EQ(trace.jobs[0].run, Duration::seconds(2));
  EXPECT_EQ(read("timestamp,duration,num_gpus\n1500,2000,1\n", options).jobs[0].run,
            Duration::seconds(2));
}

TEST(TraceReader, SwfTakesWhatWasAskedForAndItsStatusCodes) {
  const Trace trace = read(
      "; Version: 2.2\n;\n"
      "  1   10  3  100  8 -1 2048 16 200 -1  1  7  2 -1 1 -1 -1 -1\r\n"
      "  2   20 -1   -1 -1 -1   -1  4  -1 -1  5  8  2 -1 1 -1 -1 -1\n"
      "  3 20.5 -1    7  2 -1   -1 -1  -1 -1  0 -1 -1 -1 1 -1 -1 -1\n"
      "\n; behind\n");
  ASSERT_EQ(trace.jobs.size(), 3u);
  const TraceJob& first = trace.jobs[0];
  EXPECT_EQ(first.name, "1");
  EXPECT_EQ(first.accelerators, 16u);
  EXPECT_EQ(first.limit, Duration::seconds(200));
  EXPECT_EQ(first.memory_mib, 32u) << "2,048 KiB for each of 16";
  EXPECT_EQ(first.user, "7");
  EXPECT_EQ(first.tenant, "2");
  EXPECT_EQ(first.status, TraceStatus::kCompleted);
  EXPECT_EQ(first.line, 3);
  EXPECT_EQ(trace.jobs[1].status, TraceStatus::kCancelled) << "and never ran";
  EXPECT_EQ(trace.jobs[1].run, Duration());
  EXPECT_FALSE(trace.jobs[1].limit);
  EXPECT_EQ(trace.jobs[2].submit.ns(), 20'500'000'000);
  EXPECT_EQ(trace.jobs[2].accelerators, 2u) << "those it had, as it did not say what it wants";
  EXPECT_EQ(trace.jobs[2].status, TraceStatus::kFailed);
}

TEST(TraceReader, GavelNeedsAThroughputForItsRunTimes) {
  const Trace trace = read(
      "LM (batch size 80)\tpython3 main.py, \"quoted\"\tlm\t--steps\t1\t3600\t2\t1.5\t1.2\t7.25\n"
      "A3C\tpython3 main.py\trl\t--steps\t0\t10\t1\t1\t-1.000000\t0\n");
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].model, "LM (batch size 80)");
  EXPECT_EQ(trace.jobs[0].batch_size, 80u);
  EXPECT_EQ(trace.jobs[0].steps, 3600u);
  EXPECT_EQ(trace.jobs[0].accelerators, 2u);
  EXPECT_EQ(trace.jobs[0].weight, 1.5);
  EXPECT_EQ(trace.jobs[0].slo, 1.2);
  EXPECT_EQ(trace.jobs[0].submit.ns(), 7'250'000'000);
  EXPECT_EQ(trace.jobs[0].run, Duration());
  EXPECT_EQ(trace.jobs[1].slo, 0);
  EXPECT_EQ(trace.jobs[1].batch_size, 0u);
}

TEST(TraceReader, OpenbKeepsFractionsAndPodsOfCpusAlone) {
  const Trace trace = read(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
      "deletion_time,scheduled_time\n"
      "a,6000,12288,1,460,V100M16|V100M32,LS,Succeeded,10,110,12\n"
      "b,4000,1024,0,0,,BE,Failed,20,30,25\n"
      "c,4000,1024,2,1000,,BE,Pending,20,30,\n");
  ASSERT_EQ(trace.jobs.size(), 3u);
  EXPECT_EQ(trace.jobs[0].share, 460);
  EXPECT_EQ(trace.jobs[0].types, "V100M16|V100M32");
  EXPECT_EQ(trace.jobs[0].run, Duration::seconds(98)) << "from when it was placed";
  EXPECT_EQ(trace.jobs[0].cpu_millicores, 6000u);
  EXPECT_EQ(trace.jobs[0].memory_mib, 12'288u);
  EXPECT_EQ(trace.jobs[1].accelerators, 0u);
  EXPECT_EQ(trace.jobs[1].status, TraceStatus::kFailed);
  EXPECT_EQ(trace.jobs[2].status, TraceStatus::kCancelled) << "never placed";
  EXPECT_EQ(trace.jobs[2].run, Duration());
}

// A made-up sample by the columns of AcmeTrace's description.
constexpr std::string_view kKalos =
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,"
    "start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "k1,u1,8,64,960,1000,100.0,SFT,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
    "2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"
    "k2,u1,1,0,4,,,Eval,CANCELLED,2023-05-17 11:28:42+00:00,,,,2023-05-17 11:30:04+00:00,82,,0\n"
    "k3,u2,1,8,96,,,Other,NODE_FAIL,2023-05-17 19:28:42+08:00,2023-05-17 19:28:42+08:00,"
    "2023-05-17 19:30:00+08:00,,,78,0,624\n";

TEST(TraceReader, AcmeCountsRunTimesFromTheStart) {
  const Trace trace = read(kKalos);
  ASSERT_EQ(trace.jobs.size(), 3u);
  const TraceJob& first = trace.jobs[0];
  EXPECT_EQ(first.name, "k1");
  EXPECT_EQ(first.user, "u1");
  EXPECT_EQ(first.submit.text(), "2023-05-17T11:00:58Z");
  EXPECT_EQ(first.run, Duration::seconds(8)) << "the column duration has 18 s, from the submit on";
  EXPECT_EQ(first.accelerators, 64u);
  EXPECT_EQ(first.cpu_millicores, 960'000u);
  EXPECT_EQ(first.memory_mib, 8'000'000'000'000u >> 20) << "of eight pods";
  EXPECT_EQ(first.kind, JobKind::kFineTune);
  EXPECT_EQ(first.status, TraceStatus::kFailed);
  EXPECT_EQ(trace.jobs[1].run, Duration());
  EXPECT_EQ(trace.jobs[1].status, TraceStatus::kCancelled) << "before it ran";
  EXPECT_EQ(trace.jobs[1].kind, JobKind::kBatch);
  EXPECT_EQ(trace.jobs[1].memory_mib, 0u);
  EXPECT_EQ(trace.jobs[2].submit.text(), "2023-05-17T11:28:42Z") << "the zone counts";
  EXPECT_EQ(trace.jobs[2].kind, std::nullopt);
  EXPECT_EQ(trace.jobs[2].status, TraceStatus::kFailed);
}

TEST(TraceReader, AcmeRefusesTimesThatRunBackwards) {
  const std::string head =
      "job_id,node_num,gpu_num,mem_per_pod_GB,type,state,submit_time,"
      "start_time,end_time\n";
  EXPECT_EQ(error(head + "a,1,8,,Eval,FAILED,2023-05-01 00:00:10,2023-05-01 00:00:09,"
                         "2023-05-01 00:00:20\n"),
            "t:2:40: start_time is \"2023-05-01 00:00:09\", expected a time not before "
            "submit_time");
  EXPECT_EQ(error(head + "a,1,8,,Eval,FAILED,2023-05-01 00:00:10,2023-05-01 00:00:19,"
                         "2023-05-01 00:00:18\n"),
            "t:2:60: end_time is \"2023-05-01 00:00:18\", expected a time not before start_time");
  EXPECT_EQ(error(head + "a,1,8,,Eval,FAILED,2023-05-01 00:00:10,2023-05-01 00:00:19,"
                         "2123-05-03 00:00:00\n"),
            "t:2:60: end_time is \"2123-05-03 00:00:00\", expected a time at most 100 years after "
            "start_time");
  EXPECT_EQ(error(head + "a,1,8,,Eval,FAILED,2023-05-01 00:00:10,2023-05-01 00:00:19,\n"),
            "t:2:60: end_time is \"\", expected a time such as \"2017-10-09 06:13:03\", or seconds "
            "from 0");
  EXPECT_EQ(error(head + "a,1,8,-3,Eval,FAILED,2023-05-01 00:00:10,,\n"),
            "t:2:7: mem_per_pod_GB is \"-3\", expected 0 or more, and at most 4 PiB for all pods");
  EXPECT_EQ(error(head + "a,1,8,Eval,FAILED,2023-05-01 00:00:10,,\n"),
            "t:2:40: the row has 8 cells, expected 9");
}

// A made-up sample by the columns of the description of cluster-trace-gpu-v2020.
constexpr std::string_view kPaiTasks =
    "j1,ps,1.0,Terminated,1000.0,1500.0,600.0,29.296875,,\n"
    "j2,tensorflow,1.0,Failed,1200.0,1260.5,600.0,29.296875,50.0,MISC\n"
    "j1,worker,2.0,Terminated,1010.0,1490.0,400.0,10.0,50.0,T4\n"
    "j3,worker,4.0,Failed,2000.0,2100.0,800.0,64.0,200.0,V100\n"
    "j3,evaluator,1.0,Terminated,2000.0,2200.0,100.0,4.0,,\n"
    "j4,worker,1.0,Waiting,,,400.0,10.0,100.0,T4\n"
    "j5,worker,1.0,Running,3000.0,,400.0,10.0,100.0,T4\n"
    "j6,worker,1.0,Waiting,,,400.0,10.0,100.0,T4\n";

TEST(TraceReader, PaiJoinsTheTasksOfAJob) {
  const std::string named =
      "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,"
      "gpu_type\n" +
      std::string(kPaiTasks);
  for (const std::string& text : {std::string(kPaiTasks), named}) {
    const Trace trace = read(text);
    ASSERT_EQ(trace.jobs.size(), 3u);
    const TraceJob& first = trace.jobs[0];
    EXPECT_EQ(first.name, "j1");
    EXPECT_EQ(first.submit, at_seconds(1000));
    EXPECT_EQ(first.run, Duration::seconds(500));
    EXPECT_EQ(first.accelerators, 1u) << "two halves";
    EXPECT_EQ(first.share, 1000);
    EXPECT_EQ(first.cpu_millicores, 14'000u) << "600 % + 2 x 400 %";
    EXPECT_EQ(first.memory_mib, 30'000u + 2 * 10'240u);
    EXPECT_EQ(first.types, "T4");
    EXPECT_EQ(first.status, TraceStatus::kCompleted);
    EXPECT_EQ(trace.jobs[1].share, 500);
    EXPECT_EQ(trace.jobs[1].types, "") << "of several older types";
    EXPECT_EQ(trace.jobs[1].run, Duration::milliseconds(60'500));
    EXPECT_EQ(trace.jobs[2].accelerators, 8u) << "four of two";
    EXPECT_EQ(trace.jobs[2].status, TraceStatus::kFailed);
    ASSERT_EQ(trace.left_out.size(), 2u);
    EXPECT_EQ(trace.left_out[0].reason, "without a start");
    EXPECT_EQ(trace.left_out[0].rows, 2u);
    EXPECT_EQ(trace.left_out[1].reason, "without an end");
  }
}

TEST(TraceReader, PaiKeepsTheTasksAndJobsThatAreAskedFor) {
  EXPECT_EQ(read(kPaiTasks, {.where = {{"gpu_type", "V100"}}}).jobs.size(), 1u);
  const Trace late = read(kPaiTasks, {.from = at_seconds(1005)});
  ASSERT_EQ(late.jobs.size(), 2u) << "a job is asked, not its tasks";
  EXPECT_EQ(late.jobs[0].name, "j2");
}

TEST(TraceReader, PaiRefusesWhatIsNoTask) {
  EXPECT_EQ(error("j,w,1.0,Terminated,10.0,9.0,600.0,1.0,50.0,T4\n"),
            "t:1:25: end_time is \"9.0\", expected a time not before start_time");
  EXPECT_EQ(error("j,w,1.0,Terminated,10.0,19.0,600.0,1.0,-50.0,T4\n"),
            "t:1:40: plan_gpu is \"-50.0\", expected 0 or more, and at most what a job may have "
            "for all instances");
  EXPECT_EQ(error("j,w,0.5,Terminated,10.0,19.0,600.0,1.0,50.0,T4\n"),
            "t:1:5: inst_num is \"0.5\", expected a whole number from 1 to 1048576");
  EXPECT_EQ(error("j,w,1048576,Terminated,10.0,19.0,,,10000.0,T4\n").substr(0, 29),
            "t:1:36: plan_gpu is \"10000.0\"");
  EXPECT_EQ(error(",w,1,Terminated,10.0,19.0,,,100.0,T4\n"),
            "t:1:1: job_name is \"\", expected the name of a job");
  EXPECT_EQ(error("j,w,1.0,Terminated,10.0,19.0,600.0,1.0,50.0\n", {.format = TraceFormat::kPai}),
            "t:1:40: the row has 9 cells, expected 10");
}

TEST(TraceReader, ThePaiSimulatorsListHasInstancesOfEqualSize) {
  const Trace trace = read(
      "job_id,user,num_inst,submit_time,num_gpu,num_cpu,duration,wait_time,gpu_type,group_dur\n"
      "0,ae8ed1,1,10,0.25,6.0,300.0,2.0,T4,\n"
      "1,ae8ed1,20,11,8,96,1000.0,2.0,V100,5\n"
      "2,b,,12,,4.0,7,,CPU,\n");
  ASSERT_EQ(trace.jobs.size(), 3u);
  EXPECT_EQ(trace.jobs[0].share, 250);
  EXPECT_EQ(trace.jobs[0].cpu_millicores, 6000u);
  EXPECT_EQ(trace.jobs[0].types, "T4");
  EXPECT_EQ(trace.jobs[0].user, "ae8ed1");
  EXPECT_EQ(trace.jobs[1].accelerators, 160u);
  EXPECT_EQ(trace.jobs[1].cpu_millicores, 1'920'000u);
  EXPECT_EQ(trace.jobs[1].run, Duration::seconds(1000));
  EXPECT_EQ(trace.jobs[2].accelerators, 0u);
  EXPECT_EQ(trace.jobs[2].types, "");
}

TEST(TraceReader, MuriIsInMillisecondsAndTiresiasInSeconds) {
  const Trace muri = read(
      "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
      "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n"
      "5,8,1500,1000,vgg16,16,214000,1,214,82,75.5,66,1\n");
  ASSERT_EQ(muri.jobs.size(), 1u);
  EXPECT_EQ(muri.jobs[0].submit.ns(), 1'500'000'000);
  EXPECT_EQ(muri.jobs[0].run, Duration::seconds(214));
  EXPECT_EQ(muri.jobs[0].steps, 1000u);
  EXPECT_EQ(muri.jobs[0].step_time, Duration::milliseconds(214));
  EXPECT_EQ(muri.jobs[0].stage_times[1].count_ns(), 75'500'000);
  EXPECT_EQ(muri.jobs[0].priority, 0);

  const Trace tiresias = read(
      "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
      "0,1,30,606,vgg19,164,30\n");
  ASSERT_EQ(tiresias.jobs.size(), 1u);
  EXPECT_EQ(tiresias.jobs[0].submit, at_seconds(30));
  EXPECT_EQ(tiresias.jobs[0].run, Duration::seconds(164));
}

TEST(TraceReader, SiaTimesAreExactToTheNanosecond) {
  const Trace trace =
      read("name,time,application,num_replicas,batch_size\nx-0,487.661836,bert,8,320\n");
  ASSERT_EQ(trace.jobs.size(), 1u);
  EXPECT_EQ(trace.jobs[0].submit.ns(), 487'661'836'000);
  EXPECT_EQ(trace.jobs[0].model, "bert");
  EXPECT_EQ(trace.jobs[0].accelerators, 8u);
}

TEST(TraceReader, ByteOrderMarkCarriageReturnsAndQuotesAreNoObstacle) {
  const Trace trace = read(
      "\xEF\xBB\xBF\"timestamp\", duration ,num_gpus,user\r\n\r\n"
      "5,1,1,\"a, b\"\r\n   \r\n6,1,1,c");
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].user, "a, b");
  EXPECT_EQ(trace.jobs[1].submit, at_seconds(6));
}

TEST(TraceReader, KeepsTheRowsThatWhereAndTheWindowLetThrough) {
  const std::string text =
      "timestamp,duration,num_gpus,cluster\n1,1,1,a\n2,1,1,b\n3,1,2,a\n4,x,1,b\n5,1,1,a\n";
  const auto names = [&](const TraceOptions& options) {
    std::string all;
    for (const TraceJob& job : read(text, options).jobs) all += job.name;
    return all;
  };
  EXPECT_EQ(names({.where = {{"cluster", "a"}}}), "135") << "the rest is not even looked at";
  EXPECT_EQ(names({.where = {{"cluster", "a"}, {"num_gpus", "2"}}}), "3");
  EXPECT_EQ(names({.where = {{"cluster", "a"}}, .from = at_seconds(1), .to = at_seconds(3)}), "13");
  EXPECT_EQ(names({.where = {{"cluster", "a"}}, .from = at_seconds(2), .to = at_seconds(2)}), "");
  EXPECT_EQ(error(text, {.where = {{"clutser", "a"}}}),
            "t: there is no column \"clutser\" to compare, did you mean \"cluster\"?; the columns "
            "are: timestamp, duration, num_gpus, cluster");
  EXPECT_EQ(error("; x\n", {.where = {{"usr", "1"}}}).substr(0, 60),
            "t: there is no column \"usr\" to compare, did you mean \"user\"?");
}

TEST(TraceReader, BadRowsAreErrorsUnlessTheyAreToBeSkipped) {
  const std::string text = "timestamp,duration,num_gpus\n1,1,1\n2,-1,1\n3,1\n4,1,1\n";
  EXPECT_EQ(error(text),
            "t:3:3: duration is \"-1\", expected a number of seconds from 0 to 100 years");
  const Trace trace = read(text, {.bad_rows = TraceOptions::BadRows::kSkip});
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[1].name, "4") << "rows keep their numbers";
  ASSERT_EQ(trace.skipped.size(), 2u);
  EXPECT_EQ(trace.skipped[1].where.text(), "t:4:3");
  EXPECT_EQ(trace.skipped[1].reason, "the row has 2 cells, expected 3");
}

TEST(TraceReader, NumbersThatAreNoneAreRefusedWhereTheyStand) {
  const auto with_run = [](const std::string& run) {
    return error("timestamp,duration,num_gpus\n1," + run + ",1\n");
  };
  for (const char* run : {"", "-0.5", "nan", "inf", "1e300", "1e", "0x10", "1,5", "9999999999",
                          "99999999999999999999", "1.5.2", ".", "--1", "1 2", "1e-"}) {
    EXPECT_NE(with_run(run), "read") << run;
  }
  for (const char* run : {"0", "1e3", ".5", "5.", "2.5e+2", "0.0000000001", "-0"}) {
    EXPECT_EQ(with_run(run), "read") << run;
  }
  const std::string head = "timestamp,duration,num_gpus\n";
  EXPECT_EQ(error(head + "1,1,1.5\n"),
            "t:2:5: num_gpus is \"1.5\", expected a whole number from 0 to 1048576");
  EXPECT_EQ(read(head + "1,1,2.0\n").jobs[0].accelerators, 2u);
  EXPECT_NE(error(head + "1,1,-1\n"), "read");
  EXPECT_NE(error(head + "1,1,4294967297\n"), "read");
  EXPECT_NE(error(head + "2017-02-30 00:00:00,1,1\n"), "read");
  EXPECT_NE(error(head + "-5,1,1\n"), "read");
}

TEST(TraceReader, WhatIsNoTextIsRefused) {
  const std::string head = "timestamp,duration,num_gpus,user\n";
  EXPECT_EQ(error(head + std::string("1,1,1,a\0b\n", 10)),
            "t:2:8: byte 0x00 is not valid UTF-8 text");
  EXPECT_EQ(error(head + "1,1,1,\xff\n"), "t:2:7: byte 0xff is not valid UTF-8 text");
  EXPECT_EQ(error(head + "1,1,1,\"a\n"),
            "t:2:1: a quotation mark is not closed, or text stands behind it");
  EXPECT_EQ(error(head + "1,1,1," + std::string(70'000, 'x') + "\n"),
            "t:2:1: the line has 70006 bytes, expected at most 65536");
}

TEST(TraceReader, ColumnsMustBeThereOnce) {
  EXPECT_EQ(error("timestamp,duraton,num_gpus\n", {.format = TraceFormat::kPhilly}),
            "t:1:1: the column duration is missing, did you mean \"duraton\"?");
  EXPECT_EQ(error("timestamp,duration,num_gpus,duration\n", {.format = TraceFormat::kPhilly}),
            "t:1:1: the column duration is there twice, expected it once");
  EXPECT_EQ(error("", {.format = TraceFormat::kPhilly}),
            "t:1:1: the file is empty, expected names of columns");
}

TEST(TraceReader, AFormatThatIsNotKnownIsNamed) {
  EXPECT_EQ(
      error("a,b\n1,2\n"),
      "t:1:1: \"a,b\" is the first line of no known format of traces; expected one of philly, "
      "swf, gavel, openb, muri, tiresias, sia, acme, pai, pai-jobs, sacct, kubernetes, orrery, or "
      "a "
      "format said "
      "beside the file");
  EXPECT_EQ(error(" \n\n"), "t:1:1: the file is empty, expected a trace");
  EXPECT_EQ(
      trace_format("phily").error().message,
      "\"phily\" is no format of traces, did you mean \"philly\"?; expected one of philly, "
      "swf, gavel, openb, muri, tiresias, sia, acme, pai, pai-jobs, sacct, kubernetes, orrery");
  for (const std::string_view word : kTraceFormatWords)
    EXPECT_EQ(word_of(*trace_format(word)), word);
}

TEST(TraceReader, JsonOfOneLongLineIsKnownByItsBegin) {
  std::string text = R"({"apiVersion": "orrery/v1", "kind": "Trace", "name": "long", "jobs": [)";
  constexpr std::size_t kJobs = 3000;
  for (std::size_t i = 0; i < kJobs; ++i) {
    text += i == 0 ? "" : ",";
    text += R"({"submit": "0 s", "run": "1 h"})";
  }
  text += "]}";
  ASSERT_GT(text.size(), std::size_t{64} << 10);
  for (const std::string& begin :
       {std::string(), std::string("\xEF\xBB\xBF"), std::string("\n ")}) {
    const Result<Trace> trace = read_trace(begin + text, "t.json", {});
    ASSERT_TRUE(trace) << trace.error().text();
    EXPECT_EQ(trace->jobs.size(), kJobs);
  }
}

TEST(TraceReader, AFileWithoutJobsIsATrace) {
  const Trace trace = read("timestamp,duration,num_gpus\n");
  EXPECT_TRUE(trace.jobs.empty());
  EXPECT_EQ(trace.first_submit(), Instant());
  EXPECT_TRUE(read("; only comments\n").jobs.empty());
}

TEST(TraceReader, TimesOfOptionsAreWallClocksOrSeconds) {
  const Result<Instant> wall = Instant::parse("2017-10-01T00:00:00Z");
  ASSERT_TRUE(wall);
  for (const char* text :
       {"2017-10-01T00:00:00", "2017-10-01 00:00:00", "2017-10-01T00:00:00Z",
        "2017-10-01 02:00:00+02:00", "2017-10-01", "1506816000", "1506816000.0"}) {
    const Result<Instant> time = parse_trace_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(*time, *wall) << text;
  }
  EXPECT_EQ(parse_trace_time("soon").error().message,
            "\"soon\" is not a time; expected \"2017-10-01T00:00:00\" or seconds since the trace's "
            "epoch");
  EXPECT_FALSE(parse_trace_time("2017-13-01 00:00:00"));
}

}  // namespace
}  // namespace orrery
