#include "api/agents/certificate_check.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <memory>

namespace orrery {
namespace {

template <auto kFree>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

std::string complaint_of(long verified) {
  switch (verified) {
    case X509_V_OK:
      return {};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "is not valid yet: is the clock of this machine, or of the controller's, wrong?";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "has expired, or the clock of this machine is wrong: a controller makes a new one "
             "when it starts";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "was made by another authority than this cluster's: is it the controller of another "
             "cluster?";
    default:
      return X509_verify_cert_error_string(verified);
  }
}

}  // namespace

std::string certificate_complaint(const std::string& address, const std::string& authority) {
  const std::unique_ptr<SSL_CTX, FreedBy<&SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  const std::unique_ptr<BIO, FreedBy<&BIO_free_all>> pem(
      BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size())));
  const std::unique_ptr<X509, FreedBy<&X509_free>> root(
      PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
  if (context == nullptr || root == nullptr) return {};
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root.get());
  // The handshake goes on to its end, so that the verdict can be read.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const std::unique_ptr<BIO, FreedBy<&BIO_free_all>> stream(BIO_new_ssl_connect(context.get()));
  if (stream == nullptr) return {};
  BIO_set_conn_hostname(stream.get(), address.c_str());
  const bool connected = BIO_do_handshake(stream.get()) == 1;
  ERR_clear_error();
  SSL* tls = nullptr;
  BIO_get_ssl(stream.get(), &tls);
  return connected && tls != nullptr ? complaint_of(SSL_get_verify_result(tls)) : std::string();
}

}  // namespace orrery
