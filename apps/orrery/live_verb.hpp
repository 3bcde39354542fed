// apps/orrery/live_verb.hpp - nested verbs, on a running cluster.
#pragma once

#include <memory>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/cluster/live_answer.hpp"
#include "verbs/cluster/live_session.hpp"

namespace orrery {

/// The action of a verb on the cluster, with the verb's options.
template <class Asked>
using LiveVerb = Status (*)(const CommandOptions&, LiveSession&, const Asked&);
/// A verb that asks one question of the cluster.
template <class Asked>
using LiveQuestion = Result<LiveAnswer> (*)(const LiveCall&, const Asked&);

/// Makes `act(session)` the action where `added` is the innermost verb of the command line.
template <class Act>
void on_cluster(CLI::App& added, const CommandOptions& options, Verb& chosen, Act act) {
  // Where a verb and its nested verb are both given, the inner one's callback runs first.
  added.callback([&options, &chosen, act = std::move(act)] {
    if (chosen) return;
    chosen = [&options, act]() -> Status {
      Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
      if (!session) return forward_error(session);
      return act(**session);
    };
  });
}

/// Runs a verb on the cluster.
template <class Asked>
void run_live(CLI::App& added, const CommandOptions& options, Verb& chosen,
              std::pair<std::shared_ptr<Asked>, LiveVerb<Asked>> what) {
  on_cluster(added, options, chosen, [&options, what = std::move(what)](LiveSession& session) {
    return what.second(options, session, *what.first);
  });
}

/// Asks a question of the cluster and prints the answer.
template <class Asked>
void ask_live(CLI::App& added, const CommandOptions& options, Verb& chosen,
              std::pair<std::shared_ptr<Asked>, LiveQuestion<Asked>> what) {
  on_cluster(added, options, chosen, [&options, what = std::move(what)](LiveSession& session) {
    return print_live(options, what.second(live_call(options, session), *what.first));
  });
}

}  // namespace orrery
