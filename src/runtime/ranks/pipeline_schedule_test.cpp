// runtime/ranks/pipeline_schedule_test.cpp - simulates stages that follow their schedules: no
// stage waits forever, and messages arrive in the order in which they are awaited.
#include "runtime/ranks/pipeline_schedule.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace orrery {
namespace {

using enum PipelineStep::Pass;

constexpr std::size_t kOnTheirWay = 2;  ///< messages from one rank to another

/// The input of a chunk of the model; chunks are counted over all stages.
struct Message {
  PipelineStep::Pass pass = kForward;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;

  friend bool operator==(const Message&, const Message&) = default;
};

/// Simulates the stages of a model, each a step at a time.
class Pipeline {
 public:
  Pipeline(std::uint32_t stages, std::uint32_t chunks, std::uint32_t micro_batches)
      : stages_(stages), chunks_(chunks), at_(stages) {
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      schedules_.push_back(pipeline_schedule(part(stage), micro_batches));
    }
  }

  [[nodiscard]] ModelPart part(std::uint32_t stage) const {
    return {.stage = stage, .stages = stages_, .chunks = chunks_};
  }
  [[nodiscard]] const std::vector<PipelineStep>& schedule(std::uint32_t stage) const {
    return schedules_[stage];
  }

  /// Runs until no stage can proceed. False: a message came while another one was awaited.
  [[nodiscard]] bool play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t stage = 0; stage < stages_; ++stage) {
        while (advance(stage)) moved = true;
        if (wrong_) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool done() const {
    for (std::uint32_t stage = 0; stage < stages_; ++stage) {
      if (at_[stage].step < schedules_[stage].size()) return false;
    }
    return true;
  }

 private:
  struct Place {
    std::size_t step = 0;
    bool received = false;
  };

  /// Does one receive or send of a stage; false: it has to wait, or all is done.
  bool advance(std::uint32_t stage) {
    Place& place = at_[stage];
    if (place.step == schedules_[stage].size()) return false;
    const PipelineStep& step = schedules_[stage][place.step];
    const std::uint32_t chunk = step.chunk * stages_ + stage;
    const bool forward = step.pass == kForward;
    const std::uint32_t all = stages_ * chunks_;
    if (!place.received) {
      const bool begins = forward ? chunk == 0 : chunk + 1 == all;
      if (!begins) {
        const std::uint32_t from =
            forward ? (stage + stages_ - 1) % stages_ : (stage + 1) % stages_;
        std::deque<Message>& channel = channels_[{from, stage}];
        if (channel.empty()) return false;
        wrong_ = channel.front() != Message{step.pass, step.micro_batch, chunk};
        channel.pop_front();
      }
      place.received = true;
      return !wrong_;
    }
    const bool ends = forward ? chunk + 1 == all : chunk == 0;
    if (!ends) {
      const std::uint32_t to = forward ? (stage + 1) % stages_ : (stage + stages_ - 1) % stages_;
      std::deque<Message>& channel = channels_[{stage, to}];
      if (channel.size() == kOnTheirWay) return false;
      channel.push_back({step.pass, step.micro_batch, forward ? chunk + 1 : chunk - 1});
    }
    place = {.step = place.step + 1};
    return true;
  }

  std::uint32_t stages_;
  std::uint32_t chunks_;
  std::vector<std::vector<PipelineStep>> schedules_;
  std::vector<Place> at_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Message>> channels_;
  bool wrong_ = false;
};

/// Returns all pipelines of these tests: stages, chunks, micro-batches.
std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> all_cases() {
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> cases;
  for (std::uint32_t stages = 1; stages <= 5; ++stages) {
    for (std::uint32_t chunks = 1; chunks <= (stages > 1 ? 4u : 1u); ++chunks) {
      for (std::uint32_t micro = 1; micro <= 16; ++micro) {
        if (chunks == 1 || micro % stages == 0) cases.emplace_back(stages, chunks, micro);
      }
    }
  }
  return cases;
}

TEST(PipelineSchedule, ComesToAnEndWithMessagesInTheOrderInWhichTheyAreAwaited) {
  for (const auto& [stages, chunks, micro] : all_cases()) {
    SCOPED_TRACE(testing::Message() << stages << " x " << chunks << ", " << micro);
    Pipeline pipeline(stages, chunks, micro);
    ASSERT_TRUE(pipeline.play()) << "another message";
    ASSERT_TRUE(pipeline.done()) << "all wait";
  }
}

TEST(PipelineSchedule, EachChunkSeesMicroBatchesInTheirOrderAndSlotsHoldWhatIsOnItsWay) {
  for (const auto& [stages, chunks, micro] : all_cases()) {
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      SCOPED_TRACE(testing::Message()
                   << stages << " x " << chunks << ", " << micro << ", " << stage);
      const Pipeline pipeline(stages, chunks, micro);
      const std::uint32_t slots = pipeline_slots(pipeline.part(stage), micro);
      EXPECT_GE(slots, std::min(chunks, micro * chunks));
      std::map<std::pair<PipelineStep::Pass, std::uint32_t>, std::uint32_t> next;
      std::map<std::uint32_t, PipelineStep> held;
      for (const PipelineStep& step : pipeline.schedule(stage)) {
        ASSERT_EQ(step.micro_batch, (next[{step.pass, step.chunk}]++));
        ASSERT_LT(step.slot, slots);
        if (step.pass == kForward) {
          ASSERT_TRUE(held.emplace(step.slot, step).second) << "the slot is taken";
          continue;
        }
        ASSERT_TRUE(held.contains(step.slot));
        ASSERT_EQ(held.at(step.slot).micro_batch, step.micro_batch);
        ASSERT_EQ(held.at(step.slot).chunk, step.chunk);
        held.erase(step.slot);
      }
      EXPECT_TRUE(held.empty());
      for (const auto& [of, count] : next) EXPECT_EQ(count, micro);
    }
  }
}

TEST(PipelineSchedule, TheModelsLastChunkGoesBackAtOnce) {
  for (const auto& [stages, chunks, micro] : all_cases()) {
    const Pipeline pipeline(stages, chunks, micro);
    const auto& steps = pipeline.schedule(stages - 1);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].pass != kForward || steps[i].chunk + 1 != chunks) continue;
      ASSERT_LT(i + 1, steps.size());
      EXPECT_EQ(steps[i + 1].pass, kBackward);
      EXPECT_EQ(steps[i + 1].micro_batch, steps[i].micro_batch);
      EXPECT_EQ(steps[i + 1].chunk, steps[i].chunk);
    }
  }
}

TEST(PipelineSchedule, OfOneChunkIsOneForwardOneBackward) {
  const std::vector<PipelineStep> steps = pipeline_schedule({.stage = 1, .stages = 3}, 3);
  const std::vector<PipelineStep> expected{{kForward, 0, 0, 0},  {kForward, 1, 0, 1},
                                           {kBackward, 0, 0, 0}, {kForward, 2, 0, 0},
                                           {kBackward, 1, 0, 1}, {kBackward, 2, 0, 0}};
  EXPECT_EQ(steps, expected);
}

}  // namespace
}  // namespace orrery
