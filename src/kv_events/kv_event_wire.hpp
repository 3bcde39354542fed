// kv_events/kv_event_wire.hpp - the messages in which vLLM, and SGLang as vLLM does, publish what
// their KV caches have: msgpack of a time and a list of events.
//
// vLLM (vllm/distributed/kv_events.py) wrote arrays, [time, [[type, fields in their order] ..],
// rank], and from PR 42892 on writes maps, {"ts", "events": [{"type", fields by name} ..],
// "data_parallel_rank"}. Both are read, at either level; only the second is written. A hash is a
// whole number or bytes, of which a hash of 64 bits is taken. Fields that are not known are
// skipped. Pure functions; no exceptions. Cost: about 0.1 us a field or token.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "kv_events/kv_event.hpp"

namespace orrery {

/// Reads a message. Passed over are events of blocks in which a plain prompt finds nothing: with an
/// adapter (lora) or other keys (pictures, a cache salt), in another memory than the device's, of
/// attention that is not full, of an unknown type. Errors: no msgpack, more than 8 levels, a field
/// that is missing or has another type, tokens that do not fill their blocks.
[[nodiscard]] Result<KvEventBatch> read_kv_events(std::string_view message);

/// Returns a message that read_kv_events() reads back to the same. Precondition: of stored events,
/// there are as many tokens as the blocks hold.
[[nodiscard]] std::string write_kv_events(const KvEventBatch& batch);

}  // namespace orrery
