#include "api/agents/join_book.hpp"

#include <fmt/format.h>

#include <sstream>

#include "api/access/token_book.hpp"

namespace orrery {
namespace {

constexpr std::size_t kJoinsMax = std::size_t{4} << 20;
constexpr Duration kJoinLife = Duration::hours(1);

}  // namespace

Result<JoinBook> JoinBook::open(const Env& env, const std::string& directory) {
  JoinBook book(env, directory + "/joins");
  StorageResult<std::string> text = env.storage.read_file(book.path_, kJoinsMax);
  if (!text && text.error().failure == StorageFailure::kNotFound) return book;
  if (!text) return forward_error(text);
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string node, hash;
    std::int64_t expires = 0;
    if (!(words >> node >> expires >> hash)) {
      return input_error({book.path_, number, 1}, "expected NODE EXPIRES SHA256");
    }
    book.joins_[hash] = {node, Instant() + Duration::seconds(expires)};
  }
  return book;
}

Status JoinBook::keep(Joins joins) {
  const Instant now = env_.clock.now_wall();
  std::erase_if(joins, [now](const auto& each) { return each.second.expires <= now; });
  std::string text;
  for (const auto& [hash, join] : joins) {
    const std::int64_t seconds =
        (join.expires - Instant()).count_ns() / Duration::seconds(1).count_ns();
    text += fmt::format("{} {} {}\n", join.node, seconds, hash);
  }
  if (StorageStatus put = env_.storage.write_file(path_, text); !put) return forward_error(put);
  joins_ = std::move(joins);
  return {};
}

Result<std::string> JoinBook::make(const std::string& node) {
  std::string token = new_token(env_.entropy);
  Joins joins = joins_;
  std::erase_if(joins, [&node](const auto& each) { return each.second.node == node; });
  joins[sha256_text(token)] = {node, env_.clock.now_wall() + kJoinLife};
  if (Status kept = keep(std::move(joins)); !kept) return forward_error(kept);
  return token;
}

Result<std::string> JoinBook::node_of(std::string_view token) const {
  const auto found = joins_.find(sha256_text(token));
  if (found != joins_.end() && found->second.expires > env_.clock.now_wall()) {
    return found->second.node;
  }
  return input_error({},
                     "this token lets no node join: it is not known here, was used, or is older "
                     "than an hour; `orrery node token NODE` makes a new one");
}

Status JoinBook::use(std::string_view token) {
  Joins joins = joins_;
  joins.erase(sha256_text(token));
  return keep(std::move(joins));
}

}  // namespace orrery
