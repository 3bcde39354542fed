#include "twin/replicas/replica_clients.hpp"

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr Duration kAskAgain = Duration::milliseconds(700);

}  // namespace

Replica& ReplicaClients::draw_replica() {
  return *replicas_[context_.rng().below(replicas_.size())];
}

void ReplicaClients::submit(std::uint32_t accelerators) {
  const std::string name = fmt::format("job-{}", requests_.size());
  requests_.push_back(
      {name,
       fmt::format("apiVersion: orrery/v1\nkind: Batch\nname: {}\nroles: [{{accelerators: {}}}]\n"
                   "launch: {{command: [sh, -c, \"exit 0\"]}}\n",
                   name, accelerators),
       {}});
  ask(requests_.size() - 1);
}

void ReplicaClients::ask(std::size_t n) {
  if (requests_[n].job) return;
  Replica& to = draw_replica();
  context_.transmit([this, n, &to] {
    to.receive([this, n, &to](ReplicaLeader* leader) {
      if (leader == nullptr) return;
      const Request& request = requests_[n];
      leader->submit(
          request.text, "request-" + request.name,
          [this, n, &to](const Result<std::vector<JobId>>& jobs) { answer(n, to, jobs); });
    });
  });
  context_.time().after(kAskAgain, [this, n] { ask(n); });
}

void ReplicaClients::answer(std::size_t n, Replica& from, const Result<std::vector<JobId>>& jobs) {
  from.speak();
  Request& request = requests_[n];
  if (!jobs) return context_.wrong(request.name + " is refused: " + jobs.error().text());
  const JobId job = jobs->front();
  promises_.acknowledged(request.name, job);
  if (request.job || context_.chance(context_.rules().network.loss)) return;
  request.job = job;
  ++answered_;
}

void ReplicaClients::cancel() {
  if (requests_.empty()) return;
  const Request& request = requests_[context_.rng().below(requests_.size())];
  if (!request.job) return;
  Replica& to = draw_replica();
  context_.transmit([&to, job = *request.job] {
    to.receive([&to, job](ReplicaLeader* leader) {
      if (leader != nullptr) leader->cancel(job, [&to](const Answer&) { to.speak(); });
    });
  });
}

void ReplicaClients::read() {
  for (const std::unique_ptr<Replica>& each : replicas_) {
    Replica& to = *each;
    context_.transmit([this, &to, known = promises_.jobs_acknowledged()] {
      to.receive([this, &to, known](ReplicaLeader* leader) {
        if (leader == nullptr) return;
        leader->read([this, &to, leader, known] {
          to.speak();
          ++reads_;
          promises_.was_read(known, leader->state());
        });
      });
    });
  }
}

}  // namespace orrery
