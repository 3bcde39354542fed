// workload/node_calibration_test.cpp - a machine's calibration as a file: read back as written, and
// what is refused.
#include "workload/node_calibration.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

NodeCalibration calibration_of(const std::vector<std::uint32_t>& counts) {
  NodeCalibration node{.machine = {.processor = "Some CPU",
                                   .cores = 2,
                                   .products = "oneDNN",
                                   .precision = "float32",
                                   .measured = Instant::from_ns(1'700'000'000'000'000'000)}};
  for (const std::uint32_t ranks : counts) {
    BusyRanks busy{
        .ranks = ranks,
        .products = {{512, 64, 64, FlopsPerSecond(9e10)}, {512, 768, 768, FlopsPerSecond(1e11)}},
        .attention = {{128, 8, 32, Seconds(3e-4), Seconds(6e-4)},
                      {128, 4, 64, Seconds(2e-4), Seconds(5e-4)}},
        .optimizer = Seconds(1e-3),
        .copy = BytesPerSecond(1e10),
        .durable_write = BytesPerSecond(5e8)};
    busy.models.push_back(
        {.shape = {.gated = true, .tied = false}, .sequences = 4, .gradient = Seconds(0.03)});
    if (ranks > 1) {
      busy.shared_memory = {Seconds(3e-6), BytesPerSecond(1e10)};
      busy.sockets = {Seconds(3e-5), BytesPerSecond(2e9)};
    }
    node.busy.push_back(std::move(busy));
  }
  return node;
}

Result<NodeCalibration> read(const std::string& text) {
  const auto document = Document::parse(text, "node.yaml");
  EXPECT_TRUE(document) << (document ? "" : document.error().text());
  return read_node_calibration(*document);
}

std::string error_of(const std::string& text) {
  const auto node = read(text);
  return node ? "" : node.error().text();
}

TEST(NodeCalibration, IsReadBackAsItWasWritten) {
  const std::string text = node_calibration_yaml(calibration_of({1, 2, 4}));
  const auto node = read(text);
  ASSERT_TRUE(node) << node.error().text();
  EXPECT_EQ(node_calibration_yaml(*node), text);
  ASSERT_EQ(node->busy.size(), 3u);
  EXPECT_EQ(node->machine.processor, "Some CPU");
  EXPECT_FALSE(node->busy[0].sockets);
  EXPECT_DOUBLE_EQ(node->busy[2].sockets->bandwidth.value(), 2e9);
  EXPECT_TRUE(node->busy[2].models[0].shape.gated);
}

TEST(NodeCalibration, AnotherFileIsToldByItsKind) {
  EXPECT_EQ(error_of("apiVersion: orrery/v1\nkind: Training\n"),
            "node.yaml:2:7: expected kind NodeCalibration, as `orrery calibrate-node` writes it, "
            "found Training");
}

TEST(NodeCalibration, RefusesWhatNoStepCouldBePricedWith) {
  const std::string good = node_calibration_yaml(calibration_of({1, 2}));
  const auto with = [&](const std::string& old, const std::string& wrong) {
    std::string text = good;
    const std::size_t at = text.find(old);
    EXPECT_NE(at, text.npos) << old;
    return error_of(text.replace(at, old.size(), wrong));
  };
  EXPECT_NE(with("- ranks: 2", "- ranks: 1").find("ranks ascend"), std::string::npos);
  EXPECT_NE(with("- ranks: 1", "- ranks: 0").find("ranks ascend"), std::string::npos);
  EXPECT_NE(with("rows: 512", "rows: 0").find("1 ranks: products"), std::string::npos);
  EXPECT_NE(with("head_width: 32", "head_width: 0").find("1 ranks: attention"), std::string::npos);
  EXPECT_NE(with("durable_write: 500", "durable_write: 0").find("figures are above 0"),
            std::string::npos);
  EXPECT_NE(with("optimizer: ", "optimiser: ").find("\"optimizer\""), std::string::npos);
  NodeCalibration alone = calibration_of({2});
  alone.busy[0].sockets.reset();
  EXPECT_NE(error_of(node_calibration_yaml(alone)).find("sockets are missing"), std::string::npos);
}

TEST(NodeCalibration, AModelHasTheWeightsOfTheTrainersOwn) {
  // 4 x 12 x 192^2 of the products, 13 x 192 of norms and biases a layer, the embeddings and the
  // last norm.
  const Model gpt = model_of({.layers = 4, .width = 192, .heads = 6, .kv_heads = 6, .ffn = 768});
  EXPECT_EQ(count_parameters(gpt).total,
            4 * (12 * 192 * 192 + 13 * 192) + (256 + 128) * 192 + 2 * 192);
}

}  // namespace
}  // namespace orrery
