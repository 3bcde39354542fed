#include "api/access/shared_files.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/format/little_endian.hpp"

namespace orrery {
namespace {

/// The key of the cluster's authority.
constexpr std::string_view kAuthority = "tls/ca.key";
/// The files of the cluster, by their places in a controller's directory.
constexpr std::array<std::string_view, 7> kFiles{"agents",     "joins", "steps.key", kAuthority,
                                                 "tls/ca.pem", "token", "tokens"};
/// Names of the texts: "secret.tokens" and so on.
constexpr std::string_view kSecretText = "secret.";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kFileMax = std::size_t{4} << 20;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* octets(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char each : bytes) {
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(each));
  }
  return text;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// Returns empty where the text is not hexadecimal.
std::string from_hex(std::string_view text) {
  std::string bytes;
  if (text.size() % 2 != 0) return bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = digit_of(text[at]);
    const int low = digit_of(text[at + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

std::string user_name(::uid_t user) {
  std::array<char, 4096> buffer{};
  ::passwd entry{};
  ::passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::to_string(user);
  }
  return entry.pw_name;
}

/// Error: others than this user and root own, read or write the key.
Status check_owners(const std::string& path) {
  constexpr ::mode_t kPermissions = 07777;
  struct ::stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    return input_error({path, 0, 0}, fmt::format("its owner and mode cannot be read: {}",
                                                 std::generic_category().message(errno)));
  }
  const ::uid_t own = ::geteuid();
  if (found.st_uid != own && found.st_uid != 0) {
    return input_error(
        {path, 0, 0}, fmt::format("its owner is the user {}, who can read the cluster's secrets in "
                                  "the log; expected the controller's: `chown {} {}`",
                                  user_name(found.st_uid), user_name(own), path));
  }
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return input_error({path, 0, 0},
                     fmt::format("its mode is {:o}, so that others can read the cluster's secrets "
                                 "in the log: `chmod 600 {}`",
                                 found.st_mode & kPermissions, path));
}

}  // namespace

std::string seal(const std::string& key, const std::string& name, std::string_view bytes,
                 Entropy& entropy) {
  std::string sealed(kNonceBytes + bytes.size() + kTagBytes, '\0');
  std::array<char, 2 * sizeof(std::uint64_t)> random{};
  store_little_endian(entropy.draw(), random.data());
  store_little_endian(entropy.draw(), random.data() + sizeof(std::uint64_t));
  std::copy_n(random.data(), kNonceBytes, sealed.data());
  unsigned char* const out = octets(sealed);
  const Context context(EVP_CIPHER_CTX_new());
  int count = 0;
  bool good = context != nullptr &&
              EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, octets(key), out) == 1;
  good = good && EVP_EncryptUpdate(context.get(), nullptr, &count, octets(name),
                                   static_cast<int>(name.size())) == 1;
  good = good && EVP_EncryptUpdate(context.get(), out + kNonceBytes, &count, octets(bytes),
                                   static_cast<int>(bytes.size())) == 1;
  good = good && EVP_EncryptFinal_ex(context.get(), out + kNonceBytes + count, &count) == 1;
  good = good && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                                     out + kNonceBytes + bytes.size()) == 1;
  ORRERY_ASSERT(good, "OpenSSL has AES-256-GCM");
  return to_hex(sealed);
}

Result<std::string> unseal(const std::string& key, const std::string& name,
                           std::string_view sealed) {
  std::string bytes = from_hex(sealed);
  if (bytes.size() < kNonceBytes + kTagBytes) {
    return environment_error(fmt::format("{}: not a sealed text", name));
  }
  unsigned char* const in = octets(bytes);
  const std::size_t size = bytes.size() - kNonceBytes - kTagBytes;
  std::string opened(size, '\0');
  const Context context(EVP_CIPHER_CTX_new());
  int count = 0;
  bool good = context != nullptr &&
              EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, octets(key), in) == 1;
  good = good && EVP_DecryptUpdate(context.get(), nullptr, &count, octets(name),
                                   static_cast<int>(name.size())) == 1;
  good = good && EVP_DecryptUpdate(context.get(), octets(opened), &count, in + kNonceBytes,
                                   static_cast<int>(size)) == 1;
  good = good && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes,
                                     in + kNonceBytes + size) == 1;
  good = good && EVP_DecryptFinal_ex(context.get(), octets(opened) + count, &count) == 1;
  if (!good) {
    return environment_error(
        fmt::format("{}: cluster.key does not open this text of the log: it is not the key of the "
                    "other controllers, or the text is damaged",
                    name));
  }
  return opened;
}

Result<std::unique_ptr<SharedFiles>> SharedFiles::open(const Env& env, const std::string& directory,
                                                       const std::string& state) {
  const std::string path = directory + "/cluster.key";
  StorageResult<std::string> text = env.storage.read_file(path, 4096);
  if (!text && text.error().failure == StorageFailure::kNotFound) {
    return input_error(
        {path, 0, 0},
        "expected the key that controllers of a shared log seal secrets with: copy "
        "it from another controller, or make the first one's with `openssl rand -hex "
        "32`");
  }
  if (!text) return forward_error(text);
  if (Status own = check_owners(path); !own) return forward_error(own);
  while (text->ends_with('\n')) text->pop_back();
  std::string key = from_hex(*text);
  if (key.size() != kKeyBytes) {
    return input_error({path, 1, 1},
                       fmt::format("expected {} hexadecimal digits, found {} characters",
                                   2 * kKeyBytes, text->size()));
  }
  return std::make_unique<SharedFiles>(env, state, std::move(key));
}

bool SharedFiles::is_secret(std::string_view text) { return text.starts_with(kSecretText); }

bool SharedFiles::has_authority(const StoreTexts& texts) {
  return texts.contains(fmt::format("{}tls/ca.pem", kSecretText)) &&
         texts.contains(fmt::format("{}tls/ca.key", kSecretText));
}

Result<std::vector<SharedFiles::Replacement>> SharedFiles::replacements(
    const StoreTexts& texts) const {
  std::vector<Replacement> files;
  for (const std::string_view file : kFiles) {
    const std::string name = fmt::format("{}{}", kSecretText, file);
    const auto found = texts.find(name);
    if (found == texts.end()) continue;
    Result<std::string> bytes = unseal(key_, name, found->second);
    if (!bytes) return forward_error(bytes);
    Replacement next{fmt::format("{}/{}", state_, file), *std::move(bytes), {}};
    StorageResult<std::string> there = storage_.read_file(next.path, kFileMax);
    if (there && *there == next.bytes) continue;
    if (there) next.before = *std::move(there);
    files.push_back(std::move(next));
  }
  return files;
}

StorageResult<std::string> SharedFiles::keep(const Replacement& file) {
  std::string name = file.path + ".before";
  for (int i = 1; storage_.read_file(name, kFileMax); ++i) {
    name = fmt::format("{}.before.{}", file.path, i);
  }
  StorageStatus written = storage_.write_file(name, *file.before);
  if (!written) return tl::unexpected(written.error());
  return name;
}

Result<std::vector<std::string>> SharedFiles::take(const StoreTexts& texts) {
  std::vector<std::string> kept;
  const Result<std::vector<Replacement>> files = replacements(texts);
  if (!files) return tl::unexpected(files.error());
  const bool has_other_authority = std::ranges::any_of(*files, [](const Replacement& file) {
    return file.before && file.path.ends_with(kAuthority);
  });
  for (const Replacement& file : *files) {
    if (has_other_authority && file.before) {
      StorageResult<std::string> name = keep(file);
      if (!name) return forward_error(name);
      kept.push_back(*std::move(name));
    }
    StorageStatus written = storage_.make_directories(file.path.substr(0, file.path.rfind('/')));
    if (written) written = storage_.write_file(file.path, file.bytes);
    if (!written) return forward_error(written);
  }
  return kept;
}

Status SharedFiles::put_missing(const StoreTexts& texts) {
  StoreTexts missing;
  for (const std::string_view file : kFiles) {
    const std::string name = fmt::format("{}{}", kSecretText, file);
    if (texts.contains(name)) continue;
    StorageResult<std::string> bytes =
        storage_.read_file(fmt::format("{}/{}", state_, file), kFileMax);
    if (!bytes && bytes.error().failure == StorageFailure::kNotFound) continue;
    if (!bytes) return forward_error(bytes);
    missing.emplace(name, seal(key_, name, *bytes, env_.entropy));
  }
  if (missing.empty()) return {};
  if (StorageStatus put = put_(missing); !put) return forward_error(put);
  return {};
}

StorageStatus SharedFiles::write_file(const std::string& path, std::string_view bytes) {
  const std::string_view within = std::string_view(path).starts_with(state_ + "/")
                                      ? std::string_view(path).substr(state_.size() + 1)
                                      : std::string_view();
  if (std::ranges::find(kFiles, within) == kFiles.end()) return storage_.write_file(path, bytes);
  if (!put_) {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: only the leading controller changes it", path));
  }
  const std::string name = fmt::format("{}{}", kSecretText, within);
  if (StorageStatus put = put_({{name, seal(key_, name, bytes, env_.entropy)}}); !put) return put;
  return storage_.write_file(path, bytes);
}

}  // namespace orrery
