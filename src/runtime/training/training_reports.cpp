#include "runtime/training/training_reports.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

constexpr std::string_view kHeader =
    "step,loss,rate,gradient_norm,seconds,compute_seconds,ranks,generation";
constexpr std::string_view kMoeColumn = ",router_loss";
constexpr std::size_t kTailBytes = 4096;
constexpr std::uint64_t kLogBytesMax = std::uint64_t{1} << 30;

/// Returns the step of the last complete line; 0: there is none.
std::uint64_t last_step_of(const File& file) {
  const std::uint64_t size = file.size();
  const std::uint64_t from = size > kTailBytes ? size - kTailBytes : 0;
  const auto text = file.read({from, static_cast<std::size_t>(size - from)});
  if (!text || text->empty()) return 0;
  const std::size_t end = text->rfind('\n');
  if (end == std::string::npos || end == 0) return 0;
  const std::size_t begin = text->rfind('\n', end - 1);
  const char* first = text->data() + (begin == std::string::npos ? 0 : begin + 1);
  std::uint64_t step = 0;
  (void)std::from_chars(first, text->data() + end, step);
  return step;
}

double seconds(Duration duration) { return duration.count_seconds(); }

}  // namespace

TrainingReports::TrainingReports(const TrainingSpec& spec, Env env, const std::string& progress)
    : spec_(spec), env_(env) {
  if (progress.empty()) return;
  progress_ = FileDescriptor(::open(progress.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

void TrainingReports::lead(Before before) {
  if (losses_ != nullptr) return;
  if (!env_.storage.make_directories(spec_.output)) return;
  events_ = open_log("events.jsonl", before);
  losses_ = open_log("loss.csv", before);
  if (losses_ == nullptr) return;
  if (losses_->size() == 0) {
    (void)losses_->append(fmt::format("{}{}\n", kHeader, moe() ? kMoeColumn : ""));
  }
  last_step_ = last_step_of(*losses_);
}

std::unique_ptr<File> TrainingReports::open_log(const std::string& name, Before before) {
  const std::string path = spec_.output + "/" + name;
  auto text = env_.storage.read_file(path, kLogBytesMax);
  if (text && !text->empty() && (before == Before::kOfAnother || text->back() != '\n')) {
    const std::size_t whole = before == Before::kOfAnother ? 0 : text->rfind('\n') + 1;
    (void)env_.storage.write_file(path, text->substr(0, whole));
  }
  auto file = env_.storage.open(path, OpenMode::kAppend);
  return file ? std::move(*file) : nullptr;
}

void TrainingReports::step(const StepReport& report, std::uint32_t rank) {
  tell_keeper(fmt::format(
      R"({{"step": {}, "loss": {:.6g}, "tokens": {}, "rank": {}, "compute": {:.6g}}})", report.step,
      report.loss, report.step * spec_.tokens_per_step(), rank, seconds(report.compute)));
  if (rank != 0) return;
  if (losses_ != nullptr && report.step > last_step_) {
    last_step_ = report.step;
    std::string line =
        fmt::format("{},{:.9g},{:.6g},{:.6g},{:.6f},{:.6f},{},{}", report.step, report.loss,
                    report.rate, report.gradient_norm, seconds(report.took),
                    seconds(report.compute), report.ranks, report.generation);
    if (moe()) line += fmt::format(",{:.6g}", report.router_loss);
    (void)losses_->append(line + "\n");
  }
  const double rate = static_cast<double>(spec_.tokens_per_step()) / seconds(report.took);
  const std::string router = moe() ? fmt::format("  router {:.3f}", report.router_loss) : "";
  say(fmt::format("step {:>5}/{}  loss {:.4f}{}  {:>6.0f} tokens/s  {:.3f} s a step  {} ranks",
                  report.step, spec_.steps, report.loss, router, rate, seconds(report.took),
                  report.ranks));
}

void TrainingReports::saved(std::uint64_t step, const std::string& path) {
  tell_keeper(nlohmann::json{{"step", step}, {"checkpoint", path}}.dump());
}

void TrainingReports::wrong(const std::string& evidence, std::uint32_t rank) {
  if (!progress_.valid()) return;
  // No later line repeats this, so it waits for a full pipe.
  constexpr int kWaitMs = 5000;
  pollfd ready{progress_.get(), POLLOUT, 0};
  if (::poll(&ready, 1, kWaitMs) != 1) return;
  tell_keeper(nlohmann::json{{"wrong", evidence}, {"rank", rank}}.dump());
}

void TrainingReports::event(std::string_view name, const std::string& more) {
  const auto at = static_cast<double>(env_.clock.now_wall().ns()) / 1e9;
  const std::string line = fmt::format(R"({{"event": "{}", "at": {:.3f}, {}}})", name, at, more);
  if (events_ != nullptr) (void)events_->append(line + "\n");
  say(line);
}

void TrainingReports::say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void TrainingReports::tell_keeper(const std::string& json) {
  if (!progress_.valid()) return;
  const std::string line = json + "\n";
  // A full or closed pipe is ignored: the next line is newer anyway.
  if (::write(progress_.get(), line.data(), line.size()) < 0) return;
}

}  // namespace orrery
