// perf/serving/serving_shape_test.cpp - the matrices add up to the parameters that the model
// counts.
#include "perf/serving/serving_shape.hpp"

#include <gtest/gtest.h>

#include "perf/runs/run_file_test.hpp"
#include "perf/serving/serving_test.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

double matrix_elements(const ServingShape& shape) {
  double elements = 0;
  for (const ServingLayer& layer : shape.kinds) {
    double one = 0;
    for (const ServingMatrix& matrix : layer.matrices) one += matrix.rows * matrix.columns;
    const ServingExperts& experts = layer.experts;
    one += experts.count * experts.outer * experts.ffn * experts.matrices;
    elements += layer.layers * one;
  }
  return elements;
}

TEST(ServingShape, TheMatricesOfEveryLanguageModelAreItsParametersButForVectors) {
  int models = 0;
  for (const CatalogModel& known : built_in().models.all()) {
    const Result<ServingShape> shape = serving_shape_of(known.model);
    if (!shape) continue;
    ++models;
    const ParameterCount count = count_parameters(known.model);
    const double tables = shape->embedding_tables * shape->vocab * shape->hidden;
    const auto& text_part = std::get<Transformer>(known.model.architecture);
    const double positions = static_cast<double>(text_part.learned_positions) * shape->hidden;
    const double text = count.total - count.vision - tables - positions;
    EXPECT_NEAR(matrix_elements(*shape) / text, 1, 0.01) << known.model.name;
  }
  EXPECT_GT(models, 30);
}

TEST(ServingShape, AModelThatGeneratesNothingIsRefused) {
  const CatalogModel* image = built_in().models.find("vit-l-16");
  ASSERT_NE(image, nullptr);
  EXPECT_FALSE(serving_shape_of(image->model));
}

TEST(ServingShape, LayersOfOneKindAreCountedTogether) {
  Transformer model = small_dense(6);
  model.window = 128;
  model.layers[1].mixer = Mixer::kSlidingAttention;
  model.layers[4].mixer = Mixer::kSlidingAttention;
  const ServingShape shape = serving_shape_of(model);
  ASSERT_EQ(shape.kinds.size(), 2U);
  EXPECT_EQ(shape.kinds[0].layers, 4);
  EXPECT_EQ(shape.kinds[1].layers, 2);
  EXPECT_EQ(shape.kinds[1].attention.window, 128);
}

TEST(ServingShape, LatentAttentionKeepsOneLatentAToken) {
  Transformer model = small_dense(2);
  model.latent = LatentAttention{.heads = 16,
                                 .kv_rank = 512,
                                 .query_rank = 1536,
                                 .nope_dim = 128,
                                 .rope_dim = 64,
                                 .value_dim = 128};
  for (Layer& layer : model.layers) layer.mixer = Mixer::kLatentAttention;
  const ServingAttention attention = serving_shape_of(model).kinds.front().attention;
  EXPECT_TRUE(attention.latent);
  EXPECT_EQ(attention.kv_elements, 576);
  EXPECT_EQ(attention.decode_width, 16 * (512 + 64 + 512));
  EXPECT_EQ(attention.prefill_width, 16 * (128 + 64 + 128));
}

}  // namespace
}  // namespace orrery
