// verbs/training/calibration_answer_test.cpp - the figures of a machine, by number of busy ranks.
#include "verbs/training/calibration_answer.hpp"

#include <gtest/gtest.h>

#include "base/format/document.hpp"
#include "verbs/training/calibrations_test.hpp"

namespace orrery {
namespace {

TEST(CalibrationAnswer, AFigureIsARowAndANumberOfRanksAColumn) {
  EXPECT_EQ(calibration_answer(some_calibration()).text,
            "Some CPU, 2 cores; oneDNN, float32\n\n"
            "per rank, by number of busy ranks            1               2\n"
            "products 512 x 64 x 32              90 GFLOP/s      90 GFLOP/s\n"
            "products 512 x 768 x 768           100 GFLOP/s     100 GFLOP/s\n"
            "memory copied                          10 GB/s         10 GB/s\n"
            "optimizer, per million weights            1 ms            2 ms\n"
            "all-reduce, shared memory                    -  3 us + 10 GB/s\n"
            "all-reduce, sockets                          -  30 us + 2 GB/s\n"
            "durable writes, all ranks             500 MB/s        500 MB/s\n");
}

TEST(CalibrationAnswer, TheJsonHasNumbersInBaseUnits) {
  const Json json = calibration_answer(some_calibration()).json;
  EXPECT_EQ(json["machine"]["processor"], "Some CPU");
  ASSERT_EQ(json["busy"].size(), 2u);
  EXPECT_EQ(json["busy"][1]["ranks"], 2);
}

TEST(CalibrationAnswer, TheFileIsReadBackAsItIs) {
  const std::string file = calibration_file(some_calibration());
  EXPECT_TRUE(file.starts_with("# Speed of each part of a training step on this machine"));
  const Result<Document> document = Document::parse(file, "node.yaml");
  ASSERT_TRUE(document) << document.error().text();
  const Result<NodeCalibration> read = read_node_calibration(*document);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(node_calibration_yaml(*read), node_calibration_yaml(some_calibration()));
}

}  // namespace
}  // namespace orrery
