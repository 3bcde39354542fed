#include "node/health/node_burn_in.hpp"

#include <utility>

namespace orrery {
namespace {

constexpr std::string_view kBurnInFailed = "the burn-in failed";
constexpr std::size_t kComplaintMax = std::size_t{1} << 20;

}  // namespace

NodeBurnIn::NodeBurnIn(RealEnv& real, const Log& log, Setup setup, Ended ended)
    : real_(real),
      log_(log),
      setup_(std::move(setup)),
      ended_(std::move(ended)),
      complaint_(real.env().storage.read_file(setup_.file, kComplaintMax).value_or("")),
      state_(complaint_) {}

void NodeBurnIn::run() {
  const HookStart start{setup_.spec.command,
                        {{"ORRERY_NODE", setup_.node}},
                        Duration::from_seconds(setup_.spec.timeout.value())};
  began_ = now();
  state_ = "runs";
  process_ = std::make_unique<HookProcess>(
      real_, start, [this](const std::string& failure) { note_end(failure); });
}

void NodeBurnIn::note_end(const std::string& failure) {
  const std::unique_ptr<HookProcess> ended = std::move(process_);  // whose call this is
  const std::string after = (now() - began_).text();
  if (failure.empty()) {
    state_ = fmt::format("passed, in {}", after);
    complaint_.clear();
    write();
    log_.info(clock_.now_wall(), "burn-in passed", {{"after", after}});
  } else {
    state_ = fmt::format("failed after {}: {}", after, failure);
    complaint_ = fmt::format("{}: {}", kBurnInFailed, failure);
    write();
  }
  ended_();
}

void NodeBurnIn::write() const {
  const auto written = real_.env().storage.write_file(setup_.file, complaint_);
  if (written) return;
  log_.error(clock_.now_wall(), "the burn-in file is not written",
             {{"why", written.error().message}});
}

bool NodeBurnIn::stop() {
  if (!process_) return false;
  process_.reset();
  state_ = fmt::format("stopped after {}: work came", (now() - began_).text());
  return true;
}

void NodeBurnIn::claim(const std::string& evidence) {
  if (!failed()) complaint_ = evidence;
  write();
}

bool NodeBurnIn::failed() const { return complaint_.starts_with(kBurnInFailed); }

}  // namespace orrery
