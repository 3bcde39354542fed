// api/agents/certificates.hpp - the cluster's own authority, and the certificates it issues to its
// server and to agents.
//
// The authority is made by orreryd at its first start and lives in DIR/tls; a reader of its key can
// act as any node. Everything here is PEM: keys of the curve P-256, signed with SHA-256. Functions
// and values, any thread. Cost: a signature, well below a millisecond.
// Invariant: an agent's certificate names one node and is not valid for a server; a server's is not
// valid for an agent.
#pragma once

#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/time.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// A private key, and its certificate.
struct TlsIdentity {
  std::string certificate;
  std::string key;
};

/// The identity of a server, and the certificate of the authority whose agents it accepts.
struct ServerTls {
  TlsIdentity identity;
  std::string authority;
};

/// A private key, and the request to certify it.
struct CertificateRequest {
  std::string request;
  std::string key;
};

/// Makes an authority that is valid for 10 years.
[[nodiscard]] Result<TlsIdentity> make_authority(Instant now);

/// Reads DIR/tls/ca.pem and ca.key, or makes them where neither exists. Errors: the files; one
/// without the other.
[[nodiscard]] Result<TlsIdentity> open_authority(const Env& env, const std::string& directory);

/// Issues a certificate for a server that is reached by each of `names` (host names and numbers),
/// and on this machine; valid as long as the authority. Makes a new key each time.
[[nodiscard]] Result<ServerTls> certify_server(const TlsIdentity& authority,
                                               const std::vector<std::string>& names, Instant now);

/// Issues a certificate like that of a server which its holder also shows as a client, for members
/// of etcd and those who call them.
[[nodiscard]] Result<TlsIdentity> certify_member(const TlsIdentity& authority,
                                                 const std::vector<std::string>& names,
                                                 Instant now);

[[nodiscard]] Result<CertificateRequest> request_certificate();
/// Makes the request for an existing key. Errors: kInput: it is not a key.
[[nodiscard]] Result<std::string> request_renewal(const std::string& key);

/// The content of an agent's certificate, whatever the request has in its place.
struct NodeCertificate {
  std::string node;
  std::string request;
};
/// Issues a certificate that is valid for a year. Errors: kInput: no request, or one whose sender
/// does not hold the key.
[[nodiscard]] Result<std::string> certify_node(const TlsIdentity& authority,
                                               const NodeCertificate& asked, Instant now);

/// The period in which a certificate is valid, by the time of day.
struct CertificateTerm {
  Instant from;
  Instant until;
};
/// Errors: not a certificate, or not of this key.
[[nodiscard]] Result<CertificateTerm> term_of(const TlsIdentity& identity);

/// Returns the public key of a certificate, as SHA-256 in hexadecimal digits, and when it was
/// issued. The hash is empty where the text is not a certificate.
[[nodiscard]] ShownKey shown_key(const std::string& certificate);

/// The identity of an agent of `directory`, kept in DIR/tls/agent.pem, agent.key, ca.pem.
struct AgentTls {
  TlsIdentity identity;
  std::string authority;
};
[[nodiscard]] Status write_agent_tls(Storage& storage, const std::string& directory,
                                     const AgentTls& tls);
/// Errors: the files; kInput where there are none, because the agent has not joined.
[[nodiscard]] Result<AgentTls> read_agent_tls(Storage& storage, const std::string& directory);

}  // namespace orrery
