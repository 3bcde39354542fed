#include "node/controllers/controller_channels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace orrery {

/// The streams to one controller, one after the other.
class ControllerChannels::Stream final : public ChannelEvents {
 public:
  Stream(ControllerChannels& all, Controller controller)
      : all_(all), controller_(std::move(controller)) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() override { forget_timer(); }

  void open() {
    opened_ = all_.env_.clock.now_monotonic();
    controller_.channel.open(all_.opening_, *this);
  }
  void open_later(const Error& why);
  void send(AgentMessage message) { controller_.channel.send(std::move(message)); }
  void close() {
    forget_timer();
    controller_.channel.close();
    order_ = 0;
    refusal_.reset();
    backoff_ = kBackoffFirst;
  }

  [[nodiscard]] const std::string& address() const { return controller_.address; }
  /// Returns the number of the open stream's welcome among those of all streams; 0: it has none.
  [[nodiscard]] std::uint64_t order() const { return order_; }
  /// Precondition: order() > 0.
  [[nodiscard]] const AgentWelcome& welcome() const { return welcome_; }
  /// Returns how the last stream ended, if the controller refused this agent for good.
  [[nodiscard]] const std::optional<Error>& refusal() const { return refusal_; }
  void forget_refusal() { refusal_.reset(); }

  void on_welcome(const AgentWelcome& welcome) override {
    backoff_ = kBackoffFirst;
    welcome_ = welcome;
    order_ = ++all_.welcomes_;
    all_.welcome(*this);
  }
  void on_order(const NodeOrder& order) override {
    if (presented()) all_.events_->on_order(order);
  }
  void on_log_question(const AttemptLogQuestion& question) override {
    if (presented()) all_.events_->on_log_question(question);
  }
  void on_burn_in() override {
    if (presented()) all_.events_->on_burn_in();
  }
  void on_command(const AttemptExecOpen& asked) override {
    if (presented()) all_.events_->on_command(asked);
  }
  void on_command_input(const ExecInput& input) override {
    if (presented()) all_.events_->on_command_input(input);
  }
  void on_lost(const Error& why) override {
    refusal_.reset();
    if (why.kind == ErrorKind::kInput) refusal_ = why;
    all_.lose(*this, why);
  }

 private:
  [[nodiscard]] bool presented() const { return all_.presented_ == this; }
  void forget_timer() {
    if (timer_) all_.env_.timers.cancel(*timer_);
    timer_.reset();
  }

  ControllerChannels& all_;
  Controller controller_;
  Instant opened_;
  std::uint64_t order_ = 0;
  AgentWelcome welcome_;
  std::optional<Error> refusal_;
  Duration backoff_ = kBackoffFirst;  ///< before the next stream
  std::optional<TimerId> timer_;      ///< of the next stream
};

void ControllerChannels::Stream::open_later(const Error& why) {
  const Instant now = all_.env_.clock.now_monotonic();
  if (now - opened_ >= kLasting) backoff_ = kBackoffFirst;
  // Only the first of many failures in a row is logged.
  if (order_ > 0 || backoff_ == kBackoffFirst) {
    all_.log_.warning(all_.env_.clock.now_wall(), "controller out of reach",
                      {{"controller", address()}, {"why", why.text()}});
  }
  order_ = 0;
  const auto half = static_cast<std::uint64_t>(backoff_.count_ns() / 2);
  const std::uint64_t jitter = all_.env_.entropy.draw() % half;
  backoff_ = std::min(backoff_ * 2, kBackoffMax);
  const Duration delay = Duration::nanoseconds(static_cast<std::int64_t>(half + jitter));
  timer_ = all_.env_.timers.call_after(delay, [this] {
    timer_.reset();
    open();
  });
}

ControllerChannels::ControllerChannels(const Env& env, const Log& log,
                                       const std::vector<Controller>& controllers)
    : env_(env), log_(log) {
  ORRERY_ASSERT(!controllers.empty(), "an agent has a controller");
  streams_.reserve(controllers.size());
  for (const Controller& each : controllers) {
    streams_.push_back(std::make_unique<Stream>(*this, each));
  }
}

ControllerChannels::~ControllerChannels() = default;

void ControllerChannels::open(const AgentOpening& opening, ChannelEvents& events) {
  ORRERY_ASSERT(events_ == nullptr, "the streams are opened once");
  opening_ = opening;
  events_ = &events;
  for (const std::unique_ptr<Stream>& stream : streams_) stream->open();
}

void ControllerChannels::send(AgentMessage message) {
  if (presented_ != nullptr) presented_->send(std::move(message));
}

void ControllerChannels::close() {
  events_ = nullptr;
  presented_ = nullptr;
  for (const std::unique_ptr<Stream>& stream : streams_) stream->close();
}

void ControllerChannels::welcome(Stream& stream) {
  if (presented_ != nullptr && presented_ != &stream) {
    presented_ = nullptr;
    events_->on_lost({ErrorKind::kEnvironment,
                      fmt::format("the controller at {} leads now", stream.address()),
                      {}});
    if (events_ == nullptr) return;  // The user has closed the streams.
  }
  for (const std::unique_ptr<Stream>& each : streams_) each->forget_refusal();
  if (streams_.size() > 1) {
    log_.info(env_.clock.now_wall(), "controller leads", {{"controller", stream.address()}});
  }
  presented_ = &stream;
  events_->on_welcome(stream.welcome());
}

void ControllerChannels::lose(Stream& stream, const Error& why) {
  const bool was_presented = presented_ == &stream;
  if (was_presented) presented_ = nullptr;
  if (why.kind == ErrorKind::kInfeasible && presented_ == nullptr) {
    ChannelEvents& user = *events_;
    close();
    return user.on_lost(why);
  }
  stream.open_later(why);
  if (presented_ != nullptr) return;
  if (const std::optional<Error> refusal = refusal_by_all()) {
    events_->on_lost(*refusal);
  } else if (was_presented) {
    events_->on_lost({ErrorKind::kEnvironment, why.message, why.where});
  }
  if (events_ == nullptr) return;  // The user has closed the streams.
  if (Stream* next = newest_welcomed()) welcome(*next);
}

std::optional<Error> ControllerChannels::refusal_by_all() const {
  if (streams_.size() == 1) return streams_[0]->refusal();
  std::vector<std::string> reasons;
  reasons.reserve(streams_.size());
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (!stream->refusal()) return std::nullopt;
    reasons.push_back(fmt::format("{}: {}", stream->address(), stream->refusal()->text()));
  }
  return Error{ErrorKind::kInput, fmt::format("{}", fmt::join(reasons, "; ")), {}};
}

ControllerChannels::Stream* ControllerChannels::newest_welcomed() const {
  const auto newest =
      std::ranges::max_element(streams_, {}, [](const auto& stream) { return stream->order(); });
  return (*newest)->order() > 0 ? newest->get() : nullptr;
}

}  // namespace orrery
