// verbs/nodes/node_answer.hpp - nodes of a running cluster, and what a verb does to one of them.
//
// Functions of one call of a verb. Errors are those of the controller, where nothing else is said.
#pragma once

#include <functional>
#include <string>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"

namespace orrery {

[[nodiscard]] Result<LiveAnswer> answer_nodes(const LiveCall& call);

/// Returns a message about nodes that fleet.yaml names and the cluster has not; "": there are none.
[[nodiscard]] Result<std::string> unknown_nodes_note(LiveSession& session);
[[nodiscard]] std::string unknown_nodes_text(const v1::Cluster& cluster);

/// Error (kInput): no name.
[[nodiscard]] Result<LiveAnswer> answer_node(const LiveCall& call, const std::string& name);

/// What a person must know before a node is declared switched off.
struct FenceWarning {
  std::string node;
  std::string jobs;  ///< "no job waits for the node"

  /// Returns the question for a person at a terminal: "... [y/N] ".
  [[nodiscard]] std::string question() const;
  /// The error where no person can be asked.
  [[nodiscard]] Error without_terminal() const;
};
[[nodiscard]] FenceWarning fence_warning(const v1::Node& node);
/// Whether a person's answer confirms it: "y", "Y" or "yes". Error (kInput): it does not.
[[nodiscard]] Status confirmed(const std::string& answer);

/// Declares a node switched off. `confirm` is asked first where the node is lost, and its error
/// ends the verb; empty: it is confirmed.
[[nodiscard]] Result<LiveAnswer> fence_node(
    const LiveCall& call, const std::string& name,
    const std::function<Status(const FenceWarning&)>& confirm);

[[nodiscard]] Result<LiveAnswer> burn_in_node(const LiveCall& call, const std::string& name);

/// Makes a token with which an agent joins as the node; the answer says how.
[[nodiscard]] Result<LiveAnswer> make_join_token(const LiveCall& call, const std::string& name);

/// Who joins where: the parts of the command line of an agent.
struct JoinPlace {
  std::string node;
  std::string controllers;  ///< host:port of each, with commas between
  std::string directory;    ///< of the cluster
};
/// Returns the answer of make_join_token(); notes an agent that the new one would replace.
[[nodiscard]] LiveAnswer join_answer(v1::MakeJoinTokenResponse made, const JoinPlace& place);

}  // namespace orrery
