#include "api/renewal/certificate_renewal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr double kAsk = 2.0 / 3;
constexpr double kSpread = 1.0 / 30;
constexpr double kPause = 1.0 / 300;
constexpr Duration kLook = Duration::hours(24);
constexpr const char* kRemedy = "join anew: orrery-agent --join TOKEN --ca FILE";

}  // namespace

Result<std::unique_ptr<CertificateRenewal>> CertificateRenewal::begin(const Env& env,
                                                                      const Log& log,
                                                                      RenewalSetup setup) {
  const Result<CertificateTerm> term = term_of(setup.tls.identity);
  if (!term) {
    return input_error({}, fmt::format("{}/tls/agent.pem: {}; {}", setup.directory,
                                       term.error().message, kRemedy));
  }
  auto renewal = std::make_unique<CertificateRenewal>(env, log, std::move(setup));
  renewal->count(*term);
  return renewal;
}

CertificateRenewal::CertificateRenewal(const Env& env, const Log& log, RenewalSetup setup)
    : env_(env), log_(log), setup_(std::move(setup)), rng_(env.entropy.draw()) {}

CertificateRenewal::~CertificateRenewal() {
  if (timer_) env_.timers.cancel(*timer_);
}

Duration CertificateRenewal::part(double of_life) const {
  return Duration::from_seconds((term_.until - term_.from).count_seconds() * of_life);
}

void CertificateRenewal::count(const CertificateTerm& term) {
  term_ = term;
  due_ = term_.from + part(kAsk + kSpread * rng_.uniform());
  arm();
}

void CertificateRenewal::arm() {
  const Duration left = due_ - env_.clock.now_wall();
  timer_ = env_.timers.call_after(std::clamp(left, Duration(), kLook), [this] { look(); });
}

void CertificateRenewal::look() {
  timer_.reset();
  if (env_.clock.now_wall() < due_) return arm();
  const Result<std::string> request = request_renewal(setup_.tls.identity.key);
  if (!request) return hear(request);
  setup_.ask(setup_.tls, *request, [this](const Result<std::string>& answer) { hear(answer); });
}

void CertificateRenewal::hear(const Result<std::string>& certificate) {
  const Instant now = env_.clock.now_wall();
  if (const Status taken = take(certificate); !taken) {
    const bool over = term_.until <= now;
    std::string why = taken.error().text();
    if (over) why += fmt::format("; {}", kRemedy);
    log_.error(now,
               over ? "the certificate of this node has ended"
                    : "the certificate of this node was not renewed",
               {{"until", term_.until.text()}, {"why", why}});
    due_ = now + part(kPause * (0.5 + rng_.uniform()));
    return arm();
  }
  log_.info(now, "the certificate of this node is renewed", {{"until", term_.until.text()}});
}

Status CertificateRenewal::take(const Result<std::string>& certificate) {
  if (!certificate) return tl::unexpected(certificate.error());
  AgentTls tls = setup_.tls;
  tls.identity.certificate = *certificate;
  const Result<CertificateTerm> term = term_of(tls.identity);
  if (!term) return tl::unexpected(term.error());
  if (term->until <= term_.until) {
    return environment_error("the controller's answer is good for no longer than the present one");
  }
  Status written = write_agent_tls(env_.storage, setup_.directory, tls);
  if (!written) return written;
  setup_.tls = std::move(tls);
  count(*term);
  setup_.renewed(setup_.tls);
  return {};
}

}  // namespace orrery
