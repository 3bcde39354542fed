#include "api/access/token_book.hpp"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <tuple>

#include "base/format/field_reader.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/name_check.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

inline std::array<EnumWord<Role>, 6> enum_words(Role) {
  return {{{"nobody", Role::kNobody},
           {"client", Role::kClient},
           {"viewer", Role::kViewer},
           {"user", Role::kUser},
           {"operator", Role::kOperator},
           {"admin", Role::kAdmin}}};
}

namespace {

constexpr std::size_t kTokensMax = std::size_t{1} << 20;
constexpr std::size_t kNameMax = 100;
constexpr int kWords = 4;  ///< of 64 bits in a token
constexpr const char* kRoles = "a role of client, viewer, user, operator, admin";

/// How long a replaced token is remembered after its end, so that its holder gets that reason.
constexpr std::int64_t kReplacedKeptHours = 24 * 30;

/// Whether a text may be a word of a line: printable ASCII without blanks.
bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= kNameMax && !text.starts_with('#') &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

/// A slash ends a user's name in request ids, so that no two users share one.
bool is_user_name(const std::string& text) {
  return is_word(text) && text.find('/') == std::string::npos;
}

/// Changes of operators and admins belong to no tenant, so neither can be confined to one.
Status check_rights(const Caller& user, const SourcePosition& where) {
  if (user.tenant.empty() || user.role < Role::kOperator) return {};
  return input_error(
      where, fmt::format("user \"{}\" has the role {} and the tenant \"{}\": expected no "
                         "tenant, or the role client, viewer or user; nodes and users belong "
                         "to no tenant",
                         user.name, role_word(user.role), user.tenant));
}

Result<Instant> instant_of_key(const std::string& text, const SourcePosition& where) {
  Result<Instant> at = Instant::parse(text);
  if (!at) return input_error(where, at.error().message);
  return at;
}

/// Reads "KEY=VALUE". An unknown key may be a limit that a newer program set: the line is refused.
Status set_key(const std::string& word, const SourcePosition& where, UserToken& token) {
  constexpr std::string_view kKeys[] = {"expires", "replaced", "run_as"};
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "run_as" && equals != std::string::npos) {
    token.user.run_as = value;
    return check_posix_user(value, where);
  }
  if ((key == "expires" || key == "replaced") && equals != std::string::npos) {
    Result<Instant> at = instant_of_key(value, where);
    if (!at) return forward_error(at);
    if (key == "expires") {
      token.expires = *at;
    } else {
      token.replaced = *at;
    }
    return {};
  }
  return input_error(where, fmt::format("\"{}\": expected run_as=USER, expires=TIME or "
                                        "replaced=TIME{}",
                                        printable(word, 60), did_you_mean(key, kKeys)));
}

std::string line_of(const std::string& hash, const UserToken& token) {
  const Caller& user = token.user;
  std::string line = fmt::format("{} {} {}", user.name, role_word(user.role), hash);
  if (!user.tenant.empty()) line += " " + user.tenant;
  if (!user.run_as.empty()) line += " run_as=" + user.run_as;
  if (token.expires < Instant::max()) line += " expires=" + token.expires.text();
  if (token.replaced) line += " replaced=" + token.replaced->text();
  return line + "\n";
}

CallStatus unauthenticated(std::string why) { return {CallCode::kUnauthenticated, std::move(why)}; }

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
    const std::string hash = sha256_text(admin);
    const UserToken owner{
        {.name = "owner", .role = Role::kAdmin, .tenant = "", .node = "", .credential = hash}};
    if (Status kept = book->keep({{hash, owner}}); !kept) return forward_error(kept);
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
    if (Status read = read_line(line, {path_, number, 1}); !read) return read;
  }
  return {};
}

Status TokenBook::read_line(const std::string& line, const SourcePosition& where) {
  std::istringstream words(line);
  std::string name, role, hash, word;
  words >> name >> role >> hash;
  if (role_named(role) == Role::kNobody || hash.size() != SHA256_DIGEST_LENGTH * 2) {
    return input_error(
        where, fmt::format("expected NAME ROLE SHA256 [TENANT] [KEY=VALUE]..., with {}", kRoles));
  }
  UserToken token{
      {.name = name, .role = role_named(role), .tenant = "", .node = "", .credential = hash}};
  // The paths of tenants have no '='.
  for (bool first = true; words >> word; first = false) {
    if (first && word.find('=') == std::string::npos) {
      token.user.tenant = word;
    } else if (Status set = set_key(word, where, token); !set) {
      return set;
    }
  }
  if (Status rights = check_rights(token.user, where); !rights) return rights;
  for (const auto& [other_hash, other] : tokens_) {
    if (other.user.name == name && !other.replaced && !token.replaced) {
      return input_error(where, fmt::format("a second user \"{}\"", name));
    }
  }
  tokens_[hash] = std::move(token);
  return {};
}

Status TokenBook::keep(Tokens tokens) {
  const Instant forgotten = env_.clock.now_wall() - Duration::hours(kReplacedKeptHours);
  std::erase_if(tokens, [&](const auto& each) {
    return each.second.replaced && each.second.expires < forgotten;
  });
  std::string text;
  for (const auto& [hash, token] : tokens) text += line_of(hash, token);
  if (StorageStatus put = env_.storage.write_file(path_, text); !put) return forward_error(put);
  {
    const std::scoped_lock lock(mutex_);
    tokens_ = std::move(tokens);
  }
  if (changed_) changed_();
  return {};
}

TokenBook::Tokens TokenBook::tokens() const {
  const std::scoped_lock lock(mutex_);
  return tokens_;
}

tl::expected<Caller, CallStatus> TokenBook::find(std::string_view hash) const {
  const std::scoped_lock lock(mutex_);
  const auto found = tokens_.find(hash);
  if (found == tokens_.end()) {
    return tl::unexpected(unauthenticated("no token, or none that is known here"));
  }
  const UserToken& token = found->second;
  if (env_.clock.now_wall() < token.expires) return token.user;
  return tl::unexpected(unauthenticated(fmt::format(
      "the token of {} expired on {}{}", token.user.name, token.expires.text(),
      token.replaced
          ? ": a newer one took its place on " + token.replaced->text()
          : "; an admin makes a new one with `orrery user rotate " + token.user.name + "`")));
}

tl::expected<Caller, CallStatus> TokenBook::caller(std::string_view token) const {
  return find(sha256_text(token));
}

tl::expected<Caller, CallStatus> TokenBook::holder(const std::string& credential) const {
  return find(credential);
}

Instant TokenBook::next_expiry() const {
  const Instant now = env_.clock.now_wall();
  const std::scoped_lock lock(mutex_);
  Instant next = Instant::max();
  for (const auto& [hash, token] : tokens_) {
    if (token.expires > now) next = std::min(next, token.expires);
  }
  return next;
}

bool TokenBook::has_admin(const Tokens& tokens) const {
  const Instant now = env_.clock.now_wall();
  return std::ranges::any_of(tokens, [now](const auto& each) {
    const UserToken& token = each.second;
    return token.user.role == Role::kAdmin && !token.replaced && now < token.expires;
  });
}

Result<std::string> TokenBook::add(const Caller& user, Instant expires) {
  if (user.role == Role::kNobody) return input_error({}, fmt::format("expected {}", kRoles));
  if (!is_user_name(user.name)) {
    return input_error(
        {}, fmt::format("\"{}\": expected a name without blanks and slashes", user.name));
  }
  if (!user.tenant.empty() && !is_word(user.tenant)) {
    return input_error({}, fmt::format("\"{}\": expected the path of a tenant", user.tenant));
  }
  if (!user.run_as.empty()) {
    if (Status named = check_posix_user(user.run_as, {}); !named) return forward_error(named);
  }
  if (Status rights = check_rights(user, {}); !rights) return forward_error(rights);
  Tokens tokens = this->tokens();
  for (const auto& [hash, known] : tokens) {
    if (known.user.name == user.name) {
      return input_error({}, fmt::format("there is a user \"{}\" already", user.name));
    }
  }
  std::string token = new_token(env_.entropy);
  UserToken added{user, expires};
  added.user.credential = sha256_text(token);
  tokens[added.user.credential] = added;
  if (Status kept = keep(std::move(tokens)); !kept) return forward_error(kept);
  return token;
}

Result<std::string> TokenBook::rotate(const TokenRotation& rotation) {
  const Instant now = env_.clock.now_wall();
  Tokens tokens = this->tokens();
  std::optional<Caller> user;
  std::vector<std::string_view> names;
  for (auto& [hash, token] : tokens) {
    names.push_back(token.user.name);
    if (token.user.name != rotation.name) continue;
    if (!token.replaced) user = token.user;
    token.replaced = token.replaced.value_or(now);
    token.expires = std::min(token.expires, now + rotation.overlap);
  }
  if (!user) {
    return input_error(
        {}, fmt::format("no user \"{}\"{}", rotation.name, did_you_mean(rotation.name, names)));
  }
  std::string token = new_token(env_.entropy);
  user->credential = sha256_text(token);
  tokens[user->credential] = {*user, rotation.expires};
  if (Status kept = keep(std::move(tokens)); !kept) return forward_error(kept);
  return token;
}

Status TokenBook::remove(const std::string& name) {
  Tokens tokens = this->tokens();
  std::vector<std::string_view> names;
  names.reserve(tokens.size());
  for (const auto& [hash, token] : tokens) names.push_back(token.user.name);
  const std::string hint = did_you_mean(name, names);
  if (std::erase_if(tokens, [&](const auto& each) { return each.second.user.name == name; }) == 0) {
    return input_error({}, fmt::format("no user \"{}\"{}", name, hint));
  }
  if (!has_admin(tokens)) return infeasible(fmt::format("\"{}\" is the last admin", name));
  return keep(std::move(tokens));
}

std::vector<UserToken> TokenBook::all() const {
  const Tokens tokens = this->tokens();
  std::vector<UserToken> all;
  all.reserve(tokens.size());
  for (const auto& [hash, token] : tokens) {
    all.push_back(token);
    all.back().user.credential = hash;
  }
  std::ranges::sort(all, {}, [](const UserToken& token) {
    return std::tuple(token.user.name, token.replaced.value_or(Instant::from_ns(0)), token.expires);
  });
  return all;
}

}  // namespace orrery
