#include "api/token_book.hpp"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/field_reader.hpp"
#include "base/field_writer.hpp"
#include "base/name_check.hpp"
#include "base/nearest_name.hpp"
#include "base/utf8.hpp"

namespace orrery {

inline std::array<EnumWord<Role>, 5> enum_words(Role) {
  return {{{"nobody", Role::kNobody},
           {"viewer", Role::kViewer},
           {"user", Role::kUser},
           {"operator", Role::kOperator},
           {"admin", Role::kAdmin}}};
}

namespace {

constexpr std::size_t kTokensMax = std::size_t{1} << 20;
constexpr std::size_t kNameMax = 100;
constexpr int kWords = 4;  ///< of 64 bits in a token
constexpr const char* kRoles = "a role of viewer, user, operator, admin";

/// What may stand in a line: no blank ends it, nothing hides in a log.
bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= kNameMax && !text.starts_with('#') &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

/// Takes up "KEY=VALUE". An unknown key may be a limit that a newer program set: the line is
/// refused.
Status set_key(const std::string& word, const SourcePosition& where, Caller& user) {
  constexpr std::string_view kKeys[] = {"run_as"};
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  if (equals == std::string::npos || key != "run_as") {
    return input_error(where, fmt::format("\"{}\": expected run_as=USER{}", printable(word, 60),
                                          did_you_mean(key, kKeys)));
  }
  user.run_as = word.substr(equals + 1);
  return check_posix_user(user.run_as, where);
}

std::string line_of(const std::string& hash, const Caller& user) {
  std::string line = fmt::format("{} {} {}", user.name, role_word(user.role), hash);
  if (!user.tenant.empty()) line += " " + user.tenant;
  if (!user.run_as.empty()) line += " run_as=" + user.run_as;
  return line + "\n";
}

bool is_admin(const std::pair<const std::string, Caller>& user) {
  return user.second.role == Role::kAdmin;
}

}  // namespace

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

std::string_view role_word(Role role) { return word_of(role); }

std::string sha256_text(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

Result<std::unique_ptr<TokenBook>> TokenBook::open(const Env& env, const std::string& directory) {
  auto book = std::make_unique<TokenBook>(env, directory + "/tokens");
  StorageResult<std::string> text = env.storage.read_file(book->path_, kTokensMax);
  if (!text && text.error().failure == StorageFailure::kNotFound) {
    const std::string admin = new_token(env.entropy);
    StorageStatus put = env.storage.write_file(directory + "/token", admin + "\n");
    if (!put) return forward_error(put);
    // Last, so that the token is there when it is.
    if (Status kept = book->keep({{sha256_text(admin), {"owner", Role::kAdmin, ""}}}); !kept) {
      return forward_error(kept);
    }
    return book;
  }
  if (!text) return forward_error(text);
  if (Status read = book->read(*text); !read) return forward_error(read);
  return book;
}

Status TokenBook::read(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    if (Status read = read_line(line, number); !read) return read;
  }
  return {};
}

Status TokenBook::read_line(const std::string& line, int number) {
  const SourcePosition where{path_, number, 1};
  std::istringstream words(line);
  std::string name, role, hash, word;
  words >> name >> role >> hash;
  if (role_named(role) == Role::kNobody || hash.size() != SHA256_DIGEST_LENGTH * 2) {
    return input_error(
        where, fmt::format("expected NAME ROLE SHA256 [TENANT] [KEY=VALUE]..., with {}", kRoles));
  }
  Caller user{.name = name, .role = role_named(role), .tenant = "", .node = ""};
  // The paths of tenants have no '='.
  for (bool first = true; words >> word; first = false) {
    if (first && word.find('=') == std::string::npos) {
      user.tenant = word;
    } else if (Status set = set_key(word, where, user); !set) {
      return set;
    }
  }
  users_[hash] = std::move(user);
  return {};
}

Status TokenBook::keep(Users users) {
  std::string text;
  for (const auto& [hash, user] : users) text += line_of(hash, user);
  if (StorageStatus put = env_.storage.write_file(path_, text); !put) return forward_error(put);
  const std::scoped_lock lock(mutex_);
  users_ = std::move(users);
  return {};
}

TokenBook::Users TokenBook::users() const {
  const std::scoped_lock lock(mutex_);
  return users_;
}

Caller TokenBook::caller(std::string_view token) const {
  const std::string hash = sha256_text(token);
  const std::scoped_lock lock(mutex_);
  const auto found = users_.find(hash);
  return found == users_.end() ? Caller() : found->second;
}

Result<std::string> TokenBook::add(const Caller& user) {
  if (user.role == Role::kNobody) return input_error({}, fmt::format("expected {}", kRoles));
  if (!is_word(user.name)) {
    return input_error({}, fmt::format("\"{}\": expected a name without blanks", user.name));
  }
  if (!user.tenant.empty() && !is_word(user.tenant)) {
    return input_error({}, fmt::format("\"{}\": expected the path of a tenant", user.tenant));
  }
  if (!user.run_as.empty()) {
    if (Status named = check_posix_user(user.run_as, {}); !named) return forward_error(named);
  }
  Users users = this->users();
  for (const auto& [hash, known] : users) {
    if (known.name == user.name) {
      return input_error({}, fmt::format("there is a user \"{}\" already", user.name));
    }
  }
  std::string token = new_token(env_.entropy);
  users[sha256_text(token)] = user;
  if (Status kept = keep(std::move(users)); !kept) return forward_error(kept);
  return token;
}

Status TokenBook::remove(const std::string& name) {
  Users users = this->users();
  std::vector<std::string_view> names;
  names.reserve(users.size());
  for (const auto& [hash, user] : users) names.push_back(user.name);
  const std::string hint = did_you_mean(name, names);
  if (std::erase_if(users, [&name](const auto& each) { return each.second.name == name; }) == 0) {
    return input_error({}, fmt::format("no user \"{}\"{}", name, hint));
  }
  if (std::ranges::none_of(users, is_admin)) {
    return infeasible(fmt::format("\"{}\" is the last admin", name));
  }
  return keep(std::move(users));
}

std::vector<Caller> TokenBook::all() const {
  const Users users = this->users();
  std::vector<Caller> all;
  all.reserve(users.size());
  for (const auto& [hash, user] : users) all.push_back(user);
  std::ranges::sort(all, {}, &Caller::name);
  return all;
}

}  // namespace orrery
