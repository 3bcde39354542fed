// control/services/service_fields.hpp - the fields of services in a snapshot
// (control/codec/field_walk.hpp), for the sources of control/state/snapshot.hpp alone.
#pragma once

#include "control/codec/event_fields.hpp"
#include "control/services/service_table.hpp"

namespace orrery {

template <class Codec, SameStruct<ServiceRevision> S>
void code(Codec& codec, S& revision) {
  auto& [number, replica, texts] = revision;
  codec(number, replica, texts);
}

template <class Codec, SameStruct<ServiceUpdate> S>
void code(Codec& codec, S& update) {
  auto& [to, replicas, former, newest, terms, stage, back, fault] = update;
  codec(to, replicas, former, newest, terms, stage, back, fault);
}

/// Leaves out the replicas that live, which follow from the jobs.
template <class Codec, SameStruct<Service> S>
void code(Codec& codec, S& service) {
  [[maybe_unused]] auto& [id, revision, made, revisions, update, outcome, live] = service;
  codec(id, revision, made, revisions, update, outcome);
}

template <class Codec, SameStruct<ServiceScaling> S>
void code(Codec& codec, S& scaling) {
  auto& [at, before, replicas, why] = scaling;
  codec(at, before, replicas, why);
}

template <class Codec, SameStruct<ReplicaMembership> S>
void code(Codec& codec, S& member) {
  auto& [service, revision] = member;
  codec(service, revision);
}

}  // namespace orrery
