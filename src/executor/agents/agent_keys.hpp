// executor/agents/agent_keys.hpp - the certificate key that speaks for each node: DIR/agents, lines
// "NODE holds|issued SECONDS SHA256" with seconds since 1970 and the hash of a public key.
//
// Owned by the controller, on its loop. The key of the newest issued certificate holds the node
// from its first connection on; from then on the previous key is refused for good, and its
// certificate is not renewed. A renewed certificate has the same key. SECONDS is when the newest
// certificate of a key was issued. Each change is durable on return.
// Invariant: a node has at most one key that holds it and one that was issued since.
#pragma once

#include <map>
#include <string>

#include "base/env.hpp"
#include "base/error.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

class AgentKeys {
 public:
  /// Errors: of the file; a line that cannot be parsed, with its number.
  [[nodiscard]] static Result<AgentKeys> open(const Env& env, const std::string& directory);

  /// An agent has joined, but has not connected yet. Errors: of the file.
  [[nodiscard]] Status issue(const std::string& node, const ShownKey& key);
  /// An agent connects. If two certificates have the same second, the greater hash is the newer.
  /// Errors: kInput: a newer key holds the node; of the file.
  [[nodiscard]] Status admit(const std::string& node, const ShownKey& key);
  /// Errors: kInput: another key holds the node.
  [[nodiscard]] Status may_renew(const std::string& node, const std::string& hash) const;

 private:
  struct NodeKeys {
    ShownKey holds;  ///< without a hash: no key holds the node
    ShownKey issued;
  };
  using Keys = std::map<std::string, NodeKeys>;  ///< by node

  AgentKeys(const Env& env, std::string path) : env_(env), path_(std::move(path)) {}
  [[nodiscard]] Status keep(Keys keys);
  [[nodiscard]] Status replaced(const std::string& node) const;

  Env env_;
  std::string path_;
  Keys keys_;
};

}  // namespace orrery
