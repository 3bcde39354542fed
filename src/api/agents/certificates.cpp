#include "api/agents/certificates.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>
#include <optional>

#include "api/access/token_book.hpp"

namespace orrery {
namespace {

constexpr std::size_t kFileMax = 64 << 10;
constexpr const char* kAuthorityName = "Orrery cluster authority";
constexpr const char* kServerName = "orreryd";
constexpr long kVersion3 = 2;
constexpr int kSerialBits = 127;
constexpr int kStrengthMin = 112;  ///< bits of security
constexpr Duration kDay = Duration::hours(24);
constexpr std::int64_t kAuthorityDays = 3'650;
constexpr std::int64_t kNodeDays = 365;
/// How much clocks of nodes may lag.
constexpr Duration kSkew = Duration::hours(1);

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* of) const {
    kFree(of);
  }
};
using Bytes = std::unique_ptr<BIO, Freed<&BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<&X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;
using Request = std::unique_ptr<X509_REQ, Freed<&X509_REQ_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<&X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<&BN_free>>;

/// Makes an error of the library itself: no memory, no entropy.
tl::unexpected<Error> failure(std::string_view what) {
  return environment_error(fmt::format("OpenSSL cannot {}", what));
}

/// Returns what `write` puts into a buffer, as text.
template <class Write>
std::string pem_of(Write write) {
  const Bytes bytes(BIO_new(BIO_s_mem()));
  if (!bytes || write(bytes.get()) != 1) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(bytes.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

Bytes reading(const std::string& pem) {
  return Bytes(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::string key_text(EVP_PKEY* key) {
  return pem_of([key](BIO* to) {
    return PEM_write_bio_PKCS8PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

struct Extending {
  int kind = 0;
  std::string value;
};

/// A certificate before it is signed.
struct Draft {
  std::string name;
  EVP_PKEY* key = nullptr;
  std::int64_t days = 0;
  std::vector<Extending> extensions;
};

struct Issuer {
  X509* certificate = nullptr;  ///< nullptr: the draft signs itself
  EVP_PKEY* key = nullptr;
};

bool set_serial(X509* certificate) {
  const Number number(BN_new());
  return number != nullptr && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, 0) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_names(X509* certificate, X509* issuer, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* text = reinterpret_cast<const unsigned char*>(name.data());
  if (X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, text,
                                 static_cast<int>(name.size()), -1, 0) != 1) {
    return false;
  }
  return X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1;
}

bool set_times(X509* certificate, const Draft& draft, Instant now) {
  const auto seconds = [](Instant at) {
    return static_cast<std::time_t>((at - Instant()).count_ns() / Duration::seconds(1).count_ns());
  };
  return ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(now - kSkew)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(now + kDay * draft.days)) !=
             nullptr;
}

bool extend(X509* certificate, X509* issuer, const std::vector<Extending>& extensions) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const Extending& each : extensions) {
    const Extension made(X509V3_EXT_conf_nid(nullptr, &context, each.kind, each.value.c_str()));
    if (!made || X509_add_ext(certificate, made.get(), -1) != 1) return false;
  }
  return true;
}

Result<std::string> sign(const Draft& draft, const Issuer& by, Instant now) {
  const Certificate made(X509_new());
  if (!made) return failure("make a certificate");
  X509* issuer = by.certificate == nullptr ? made.get() : by.certificate;
  const bool good =
      X509_set_version(made.get(), kVersion3) == 1 && set_serial(made.get()) &&
      set_names(made.get(), issuer, draft.name) && set_times(made.get(), draft, now) &&
      X509_set_pubkey(made.get(), draft.key) == 1 && extend(made.get(), issuer, draft.extensions) &&
      X509_sign(made.get(), by.key, EVP_sha256()) > 0;
  if (!good) return failure(fmt::format("certify \"{}\"", draft.name));
  return pem_of([&](BIO* to) { return PEM_write_bio_X509(to, made.get()); });
}

Key make_key() { return Key(EVP_EC_gen("P-256")); }

struct ReadIdentity {
  Certificate certificate;
  Key key;
};

Result<ReadIdentity> read(const TlsIdentity& identity) {
  ReadIdentity found{
      Certificate(
          PEM_read_bio_X509(reading(identity.certificate).get(), nullptr, nullptr, nullptr)),
      Key(PEM_read_bio_PrivateKey(reading(identity.key).get(), nullptr, nullptr, nullptr))};
  if (!found.certificate || !found.key ||
      X509_check_private_key(found.certificate.get(), found.key.get()) != 1) {
    return environment_error("a certificate and its key are none, or not of one another");
  }
  return found;
}

Result<std::string> request_text(EVP_PKEY* key) {
  const Request request(X509_REQ_new());
  if (!request || X509_REQ_set_pubkey(request.get(), key) != 1 ||
      X509_REQ_sign(request.get(), key, EVP_sha256()) <= 0) {
    return failure("make a request for a certificate");
  }
  return pem_of([&](BIO* to) { return PEM_write_bio_X509_REQ(to, request.get()); });
}

std::optional<Instant> instant_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return Instant() + Duration::seconds(::timegm(&parts));
}

bool is_number(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

/// Allows only characters of host names: the text is parsed by OpenSSL.
bool is_host_name(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
             std::string::npos;
}

Result<std::string> alternative_names(const std::vector<std::string>& names) {
  std::string text = "DNS:localhost,IP:127.0.0.1,IP:::1";
  for (const std::string& name : names) {
    if (is_number(name)) {
      text += ",IP:" + name;
    } else if (is_host_name(name)) {
      text += ",DNS:" + name;
    } else {
      return input_error({}, fmt::format("\"{}\" is no host name and no number of one", name));
    }
  }
  return text;
}

Status put(Storage& storage, const std::string& path, const std::string& text) {
  StorageStatus done = storage.write_file(path, text);
  if (!done) return forward_error(done);
  return {};
}

}  // namespace

Result<TlsIdentity> make_authority(Instant now) {
  const Key key = make_key();
  if (!key) return failure("make a key");
  Result<std::string> certificate =
      sign({.name = kAuthorityName,
            .key = key.get(),
            .days = kAuthorityDays,
            .extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                           {NID_key_usage, "critical,keyCertSign"},
                           {NID_subject_key_identifier, "hash"}}},
           {nullptr, key.get()}, now);
  if (!certificate) return forward_error(certificate);
  return TlsIdentity{*std::move(certificate), key_text(key.get())};
}

namespace {

/// Error: a file holds no certificate or no key, or they do not belong together.
Status check_authority(const std::string& place, const TlsIdentity& identity) {
  const auto refuse = [&](std::string_view what) {
    return environment_error(
        fmt::format("{}; put tls/ca.pem and tls/ca.key back from a copy", what));
  };
  const Certificate certificate(
      PEM_read_bio_X509(reading(identity.certificate).get(), nullptr, nullptr, nullptr));
  if (!certificate) return refuse(place + "ca.pem:1: expected a certificate");
  const Key key(PEM_read_bio_PrivateKey(reading(identity.key).get(), nullptr, nullptr, nullptr));
  if (!key) return refuse(place + "ca.key:1: expected a private key");
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return {};
  return refuse(fmt::format("{0}ca.pem:1: expected the certificate of {0}ca.key:1", place));
}

}  // namespace

Result<TlsIdentity> open_authority(const Env& env, const std::string& directory) {
  const std::string place = directory + "/tls/";
  StorageResult<std::string> certificate = env.storage.read_file(place + "ca.pem", kFileMax);
  StorageResult<std::string> key = env.storage.read_file(place + "ca.key", kFileMax);
  if (certificate && key) {
    TlsIdentity identity{*std::move(certificate), *std::move(key)};
    if (Status good = check_authority(place, identity); !good) return forward_error(good);
    return identity;
  }
  for (auto* file : {&certificate, &key}) {
    if (!*file && file->error().failure != StorageFailure::kNotFound) return forward_error(*file);
  }
  // The certificate is written last, so a key alone is the trace of an unfinished start.
  if (certificate) {
    return environment_error(fmt::format("{}ca.pem is there without ca.key, its key", place));
  }
  Result<TlsIdentity> made = make_authority(env.clock.now_wall());
  if (!made) return made;
  StorageStatus directories = env.storage.make_directories(directory + "/tls");
  if (!directories) return forward_error(directories);
  if (Status kept = put(env.storage, place + "ca.key", made->key); !kept)
    return forward_error(kept);
  if (Status kept = put(env.storage, place + "ca.pem", made->certificate); !kept) {
    return forward_error(kept);
  }
  return made;
}

namespace {

/// What a certificate that is valid for names may be used for, in the syntax of OpenSSL.
struct NamedUse {
  const std::vector<std::string>& names;
  const char* use;
};

Result<TlsIdentity> certify_names(const TlsIdentity& authority, const NamedUse& named,
                                  Instant now) {
  const Result<ReadIdentity> by = read(authority);
  if (!by) return tl::unexpected(by.error());
  const Result<std::string> alternatives = alternative_names(named.names);
  if (!alternatives) return tl::unexpected(alternatives.error());
  const Key key = make_key();
  if (!key) return failure("make a key");
  Result<std::string> certificate =
      sign({.name = kServerName,
            .key = key.get(),
            .days = kAuthorityDays,
            .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                           {NID_key_usage, "critical,digitalSignature"},
                           {NID_ext_key_usage, named.use},
                           {NID_subject_alt_name, *alternatives}}},
           {by->certificate.get(), by->key.get()}, now);
  if (!certificate) return forward_error(certificate);
  return TlsIdentity{*std::move(certificate), key_text(key.get())};
}

}  // namespace

Result<ServerTls> certify_server(const TlsIdentity& authority,
                                 const std::vector<std::string>& names, Instant now) {
  Result<TlsIdentity> identity = certify_names(authority, {names, "serverAuth"}, now);
  if (!identity) return forward_error(identity);
  return ServerTls{*std::move(identity), authority.certificate};
}

Result<TlsIdentity> certify_member(const TlsIdentity& authority,
                                   const std::vector<std::string>& names, Instant now) {
  return certify_names(authority, {names, "serverAuth,clientAuth"}, now);
}

Result<CertificateRequest> request_certificate() {
  const Key key = make_key();
  if (!key) return failure("make a key");
  Result<std::string> request = request_text(key.get());
  if (!request) return forward_error(request);
  return CertificateRequest{*std::move(request), key_text(key.get())};
}

Result<std::string> request_renewal(const std::string& key) {
  const Key read(PEM_read_bio_PrivateKey(reading(key).get(), nullptr, nullptr, nullptr));
  if (!read) return input_error({}, "expected a private key as PEM");
  return request_text(read.get());
}

Result<std::string> certify_node(const TlsIdentity& authority, const NodeCertificate& asked,
                                 Instant now) {
  const Result<ReadIdentity> by = read(authority);
  if (!by) return tl::unexpected(by.error());
  const Request request(
      PEM_read_bio_X509_REQ(reading(asked.request).get(), nullptr, nullptr, nullptr));
  EVP_PKEY* key = request ? X509_REQ_get0_pubkey(request.get()) : nullptr;
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1 ||
      EVP_PKEY_get_security_bits(key) < kStrengthMin) {
    return input_error({}, "expected a request for a certificate, signed with its own strong key");
  }
  return sign({.name = asked.node,
               .key = key,
               .days = kNodeDays,
               .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                              {NID_key_usage, "critical,digitalSignature"},
                              {NID_ext_key_usage, "clientAuth"}}},
              {by->certificate.get(), by->key.get()}, now);
}

Result<CertificateTerm> term_of(const TlsIdentity& identity) {
  const Result<ReadIdentity> found = read(identity);
  if (!found) return tl::unexpected(found.error());
  const X509* certificate = found->certificate.get();
  const std::optional<Instant> from = instant_of(X509_get0_notBefore(certificate));
  const std::optional<Instant> until = instant_of(X509_get0_notAfter(certificate));
  if (!from || !until) return environment_error("a certificate does not say when it is good");
  return CertificateTerm{*from, *until};
}

ShownKey shown_key(const std::string& certificate) {
  const Certificate read(PEM_read_bio_X509(reading(certificate).get(), nullptr, nullptr, nullptr));
  if (!read) return {};
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(read.get()), &bytes);
  if (size <= 0) return {};
  ShownKey shown{
      sha256_text({reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)}), {}};
  OPENSSL_free(bytes);
  const std::optional<Instant> from = instant_of(X509_get0_notBefore(read.get()));
  if (from) shown.issued = *from + kSkew;
  return shown;
}

Status write_agent_tls(Storage& storage, const std::string& directory, const AgentTls& tls) {
  const std::string place = directory + "/tls";
  StorageStatus made = storage.make_directories(place);
  if (!made) return forward_error(made);
  if (Status kept = put(storage, place + "/ca.pem", tls.authority); !kept) return kept;
  // Between two pairs no pair is stored: a mixed one would be useless, without an error.
  const auto before = storage.read_file(place + "/agent.key", kFileMax);
  if (before && *before != tls.identity.key) (void)storage.remove(place + "/agent.pem");
  if (Status kept = put(storage, place + "/agent.key", tls.identity.key); !kept) return kept;
  return put(storage, place + "/agent.pem", tls.identity.certificate);
}

Result<AgentTls> read_agent_tls(Storage& storage, const std::string& directory) {
  AgentTls tls;
  for (const auto& [name, text] : {std::pair{"agent.pem", &tls.identity.certificate},
                                   {"agent.key", &tls.identity.key},
                                   {"ca.pem", &tls.authority}}) {
    StorageResult<std::string> read = storage.read_file(directory + "/tls/" + name, kFileMax);
    if (!read && read.error().failure == StorageFailure::kNotFound) {
      return input_error(
          {}, fmt::format("{}/tls/{} is not there: this node has not joined", directory, name));
    }
    if (!read) return forward_error(read);
    *text = *std::move(read);
  }
  return tls;
}

}  // namespace orrery
