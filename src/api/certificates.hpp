// api/certificates.hpp - the cluster's own authority, and the certificates it gives to its server
// and to agents.
//
// The authority is made by orreryd at its first start and lives in DIR/tls; whoever can read its
// key can be any node. Everything here is PEM: keys of the curve P-256, signed with SHA-256.
// Functions and values, any thread. Cost: a signature, well below a millisecond.
// Invariant: an agent's certificate names one node and lets nobody serve; a server's lets nobody be
// an agent.
#pragma once

#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/time.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// A private key, and the certificate that says whose it is.
struct TlsIdentity {
  std::string certificate;
  std::string key;
};

/// What a server shows, and the certificate of the authority whose agents it lets in.
struct ServerTls {
  TlsIdentity identity;
  std::string authority;
};

/// A private key, and the request to certify it.
struct CertificateRequest {
  std::string request;
  std::string key;
};

/// Valid for 10 years.
[[nodiscard]] Result<TlsIdentity> make_authority(Instant now);

/// DIR/tls/ca.pem and ca.key, made where neither is there. Errors: the files; one without the
/// other.
[[nodiscard]] Result<TlsIdentity> open_authority(const Env& env, const std::string& directory);

/// For a server that is reached by each of `names` (host names and numbers), and on this machine;
/// valid as long as the authority. A key of its own each time.
[[nodiscard]] Result<ServerTls> certify_server(const TlsIdentity& authority,
                                               const std::vector<std::string>& names, Instant now);

[[nodiscard]] Result<CertificateRequest> request_certificate();
/// The request alone, for a key that is there. Errors: kInput: it is none.
[[nodiscard]] Result<std::string> request_renewal(const std::string& key);

/// What an agent's certificate says, whatever the request has in its place.
struct NodeCertificate {
  std::string node;
  std::string request;
};
/// Valid for a year. Errors: kInput: no request, or one whose sender does not hold the key.
[[nodiscard]] Result<std::string> certify_node(const TlsIdentity& authority,
                                               const NodeCertificate& asked, Instant now);

/// When a certificate is good, by the time of day.
struct CertificateTerm {
  Instant from;
  Instant until;
};
/// Errors: no certificate, or not of this key.
[[nodiscard]] Result<CertificateTerm> term_of(const TlsIdentity& identity);

/// The public key of a certificate, as SHA-256 in hexadecimal digits, and when it was issued. The
/// hash is empty where that is no certificate.
[[nodiscard]] ShownKey shown_key(const std::string& certificate);

/// Where an agent of `directory` keeps what it shows: DIR/tls/agent.pem, agent.key, ca.pem.
struct AgentTls {
  TlsIdentity identity;
  std::string authority;
};
[[nodiscard]] Status write_agent_tls(Storage& storage, const std::string& directory,
                                     const AgentTls& tls);
/// Errors: the files; kInput where there are none, because the agent has not joined.
[[nodiscard]] Result<AgentTls> read_agent_tls(Storage& storage, const std::string& directory);

}  // namespace orrery
