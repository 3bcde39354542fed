#include "api/token_book.hpp"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <sstream>

#include "base/field_reader.hpp"
#include "base/field_writer.hpp"

namespace orrery {

inline std::array<EnumWord<Role>, 5> enum_words(Role) {
  return {{{"nobody", Role::kNobody},
           {"viewer", Role::kViewer},
           {"user", Role::kUser},
           {"operator", Role::kOperator},
           {"admin", Role::kAdmin}}};
}

namespace {

constexpr std::size_t kFileMax = std::size_t{1} << 20;
constexpr int kWords = 4;  ///< of 64 bits in a token

std::string new_token(Entropy& entropy) {
  std::string token;
  for (int i = 0; i < kWords; ++i) token += fmt::format("{:016x}", entropy.draw());
  return token;
}

Role role_named(std::string_view word) {
  for (const EnumWord<Role>& each : enum_words(Role())) {
    if (each.word == word) return each.value;
  }
  return Role::kNobody;
}

}  // namespace

std::string sha256_text(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

Result<TokenBook> TokenBook::open(const Env& env, const std::string& directory) {
  const std::string path = directory + "/tokens";
  StorageResult<std::string> text = env.storage.read_file(path, kFileMax);
  if (!text && text.error().failure == StorageFailure::kNotFound) {
    const std::string admin = new_token(env.entropy);
    text = fmt::format("owner admin {}\n", sha256_text(admin));
    StorageStatus put = env.storage.write_file(directory + "/token", admin + "\n");
    if (!put) return forward_error(put);
    // Last, so that the token is there when it is.
    if (put = env.storage.write_file(path, *text); !put) return forward_error(put);
  }
  if (!text) return forward_error(text);
  TokenBook book;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name, role, hash;
    words >> name >> role >> hash;
    if (role_named(role) == Role::kNobody || hash.size() != SHA256_DIGEST_LENGTH * 2) {
      return input_error({path, number, 1},
                         "expected NAME ROLE SHA256, with a role of viewer, user, operator, admin");
    }
    book.by_hash_[hash] = {name, role_named(role)};
  }
  return book;
}

Caller TokenBook::caller(std::string_view token) const {
  const auto found = by_hash_.find(sha256_text(token));
  return found == by_hash_.end() ? Caller() : found->second;
}

}  // namespace orrery
