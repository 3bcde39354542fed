#include "verbs/training/training_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/page/html_page.hpp"
#include "report/plot/plot.hpp"

namespace orrery {
namespace {

Line line_of(std::string name, const TrainingLog& log, double TrainedStep::* value) {
  Line line{.name = std::move(name), .x = {}, .y = {}};
  line.x.reserve(log.steps.size());
  line.y.reserve(log.steps.size());
  for (const TrainedStep& each : log.steps) {
    line.x.push_back(static_cast<double>(each.step));
    line.y.push_back(each.*value);
  }
  return line;
}

std::string loss_plot(const TrainingStory& story) {
  LinePlot plot{.x = {"step"}, .y = {"loss, nats per token"}, .lines = {}};
  plot.lines.push_back(line_of("this run", story.run, &TrainedStep::loss));
  if (story.unbroken) {
    plot.lines.push_back(line_of("unbroken run", *story.unbroken, &TrainedStep::loss));
  }
  return plot_html(plot);
}

std::string step_plot(const TrainingStory& story) {
  LinePlot plot{.x = {"step"}, .y = {"step time", AxisUnit::kDuration}, .lines = {}};
  plot.lines.push_back(line_of("this run", story.run, &TrainedStep::seconds));
  if (story.unbroken) {
    plot.lines.push_back(line_of("unbroken run", *story.unbroken, &TrainedStep::seconds));
  }
  return plot_html(plot);
}

std::string rank_plot(const TrainingLog& log) {
  Line ranks{.name = "ranks", .x = {}, .y = {}};
  for (const TrainedStep& each : log.steps) {
    ranks.x.push_back(static_cast<double>(each.step));
    ranks.y.push_back(each.ranks);
  }
  return plot_html(LinePlot{.x = {"step"}, .y = {"ranks"}, .lines = {std::move(ranks)}});
}

/// Plots the time from the first step to the end, as the leading rank measured it.
std::string time_plot(const TrainingLog& log) {
  if (log.generations.empty() || !log.ended_at) return plot_html(LinePlot{});
  const double whole = *log.ended_at - log.generations.front().at;
  double compute = 0;
  double waiting = 0;
  for (const TrainedStep& each : log.steps) {
    compute += each.compute_seconds;
    waiting += std::max(0.0, each.seconds - each.compute_seconds);
  }
  double recovering = 0;
  for (const double each : log.recoveries_s) recovering += each;
  const double rest = std::max(0.0, whole - compute - waiting - recovering);
  return plot_html(WaterfallPlot{.value = {"time of the leading rank", AxisUnit::kDuration},
                                 .whole = "from start to end",
                                 .amount = whole,
                                 .losses = {{"waiting for peers, reductions", waiting},
                                            {"detection and recovery", recovering},
                                            {"end of steps, checkpoints, evaluation", rest}},
                                 .rest = "gradients"});
}

std::string generation_table(const TrainingStory& story) {
  HtmlTable table({{"generation"}, {"attempt"}, {"from step"}, {"ranks"}, {"after"}, {"why"}});
  const double begin = story.run.generations.empty() ? 0 : story.run.generations.front().at;
  for (const TrainedGeneration& each : story.run.generations) {
    const std::string why = each.lost_at                            ? "a rank was lost"
                            : &each == story.run.generations.data() ? "start of the run"
                                                                    : "a rank joined or left";
    table.add({{fmt::format("{}", each.generation)},
               {fmt::format("{}", each.attempt)},
               {fmt::format("{}", each.step)},
               {fmt::format("{}", each.ranks)},
               {fmt::format("{:.1f} s", each.at - begin)},
               {why}});
  }
  return table.html();
}

std::string fact_table(const TrainingStory& story) {
  HtmlTable table({{""}, {"this run"}, {"unbroken run"}});
  const auto add = [&](const std::string& what, const auto& text_of) {
    table.add({{what}, {text_of(story.run)}, {story.unbroken ? text_of(*story.unbroken) : "-"}});
  };
  add("layout", [](const TrainingLog& log) { return log.layout_text(); });
  add("steps", [](const TrainingLog& log) { return fmt::format("{}", log.steps.size()); });
  add("last loss", [](const TrainingLog& log) {
    return log.steps.empty() ? "-" : fmt::format("{:.6f}", log.steps.back().loss);
  });
  add("held-out loss", [](const TrainingLog& log) {
    return log.held_out_loss ? fmt::format("{:.6f}", *log.held_out_loss) : "-";
  });
  add("step, median",
      [](const TrainingLog& log) { return fmt::format("{:.0f} ms", 1000 * log.median_step_s()); });
  if (story.predicted) {
    const std::uint32_t ranks = story.predicted->ranks;
    add(fmt::format("step of {} ranks, mean", ranks), [ranks](const TrainingLog& log) {
      return fmt::format("{:.0f} ms", 1000 * log.mean_step_s(ranks));
    });
    table.add({{"step time, predicted"},
               {fmt::format("{:.0f} ms ({:+.0f} %)", 1000 * story.predicted->seconds,
                            100 * story.prediction_error().value_or(0))},
               {""}});
  }
  add("state, SHA-256", [](const TrainingLog& log) {
    return log.state_sha256.empty() ? "-" : log.state_sha256.substr(0, 16) + "...";
  });
  for (const auto& [what, amount] : story.bill) table.add({{what}, {amount}, {""}});
  return table.html();
}

}  // namespace

bool TrainingStory::ended_equal() const {
  return unbroken && !run.state_sha256.empty() && run.state_sha256 == unbroken->state_sha256;
}

std::optional<double> TrainingStory::detect_s() const {
  if (!kill) return std::nullopt;
  for (const TrainedGeneration& each : run.generations) {
    if (each.lost_at && *each.lost_at >= kill->at) return *each.lost_at - kill->at;
  }
  return std::nullopt;
}

std::optional<double> TrainingStory::prediction_error() const {
  if (!predicted) return std::nullopt;
  const double measured = run.mean_step_s(predicted->ranks);
  if (measured <= 0) return std::nullopt;
  return predicted->seconds / measured - 1;
}

std::string training_html(const TrainingStory& story) {
  const std::string kill_note =
      story.kill ? fmt::format("{} was killed at step {}.", story.kill->node, story.kill->step)
                 : "";
  const std::vector<Figure> figures{
      {"Loss", "The lines coincide where both runs have the same loss.", loss_plot(story)},
      {"Step times", kill_note, step_plot(story)},
      {"Ranks over time", "", rank_plot(story.run)},
      {"Where the time went", "", time_plot(story.run)},
      {"Generations of the group", "", generation_table(story)}};
  return page_html(
      {story.title, figure_html({"Summary", "", fact_table(story)}) + figures_html(figures)});
}

}  // namespace orrery
