// api/renewal/certificate_renewal.hpp - replaces an agent's certificate before it expires.
//
// Built by main() of orrery-agent; the objects it works on outlive it; on the loop. It asks at two
// thirds of the certificate's life and by chance up to a thirtieth later, so that nodes that joined
// together do not ask together; after a failure it asks again after about a three-hundredth of the
// life (of a year: a day). The time of day counts, so it is checked at least once a day.
// Invariant: DIR/tls holds a matching pair at any moment: the key stays, and the certificate is
// replaced in one step. A new key would not keep out a holder of a copy of the present one, which
// serves to obtain another certificate just as well; joining anew makes a new key.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/agents/certificates.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "base/numbers/rng.hpp"

namespace orrery {

struct RenewalSetup {
  using Answer = std::function<void(const Result<std::string>& certificate)>;

  std::string directory;  ///< of the agent
  AgentTls tls;           ///< its present identity
  /// Asks for a certificate with the identity `tls`; the answer comes later, on the loop.
  std::function<void(const AgentTls& tls, const std::string& request, Answer answer)> ask;
  /// Called when a new certificate is durable.
  std::function<void(const AgentTls& tls)> renewed;
};

class CertificateRenewal {
 public:
  /// The storage of `env` survives a loss of power. Errors: an invalid certificate, or one that is
  /// not of its key.
  [[nodiscard]] static Result<std::unique_ptr<CertificateRenewal>> begin(const Env& env,
                                                                         const Log& log,
                                                                         RenewalSetup setup);
  CertificateRenewal(const Env& env, const Log& log, RenewalSetup setup);
  CertificateRenewal(const CertificateRenewal&) = delete;
  CertificateRenewal& operator=(const CertificateRenewal&) = delete;
  ~CertificateRenewal();

 private:
  [[nodiscard]] Duration part(double of_life) const;
  /// Notes the term of the present certificate.
  void count(const CertificateTerm& term);
  void arm();
  void look();
  void hear(const Result<std::string>& certificate);
  [[nodiscard]] Status take(const Result<std::string>& certificate);

  Env env_;
  Log log_;
  RenewalSetup setup_;
  Rng rng_;
  CertificateTerm term_;
  Instant due_;                   ///< by the time of day
  std::optional<TimerId> timer_;  ///< none: a request is pending
};

}  // namespace orrery
