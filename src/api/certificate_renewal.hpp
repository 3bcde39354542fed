// api/certificate_renewal.hpp - an agent's certificate is replaced before it ends.
//
// Built by main() of orrery-agent, outlived by what it works on; on the loop. It asks at two thirds
// of the certificate's life and by chance up to a thirtieth later, so that nodes that joined
// together do not ask together; where that comes to nothing, again after about a three-hundredth
// of the life (of a year: a day). The time of day counts, so it is looked at once a day at least.
// Invariant: what lies in DIR/tls is a pair at any moment: the key stays, and the certificate is
// replaced in one step. A new key would keep out nobody who has a copy of the present one, which
// is good for another certificate just as well; joining anew makes one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/certificates.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "base/rng.hpp"

namespace orrery {

struct RenewalSetup {
  using Answer = std::function<void(const Result<std::string>& certificate)>;

  std::string directory;  ///< of the agent
  AgentTls tls;           ///< what it shows now
  /// Asks for a certificate as who shows `tls`; the answer comes later, on the loop.
  std::function<void(const AgentTls& tls, const std::string& request, Answer answer)> ask;
  /// There is a new one, and it is durable.
  std::function<void(const AgentTls& tls)> renewed;
};

class CertificateRenewal {
 public:
  /// The storage of `env` is one that outlives a loss of power. Errors: the certificate is none, or
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
  /// From now on the certificate is good for this.
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
  std::optional<TimerId> timer_;  ///< none: it has asked
};

}  // namespace orrery
