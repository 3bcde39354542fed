#include "api/store_service.hpp"

#include "orrery/v1/orrery.pb.h"

namespace orrery {

void add_store_methods(MethodTable& table, Controller& controller) {
  table.add<v1::CompactStoreRequest>(
      "CompactStore", {Role::kAdmin, Effect::kChange, Scope::kCluster},
      [&controller](const v1::CompactStoreRequest&, std::shared_ptr<Call> call) {
        controller.compact([call = std::move(call)](const Result<CompactedLog>& log) {
          if (!log) return call->fail(log.error());
          v1::CompactStoreResponse response;
          response.set_snapshot(log->covers);
          response.set_snapshot_bytes(log->snapshot_bytes);
          response.set_dropped_batches(log->dropped);
          call->reply(response);
        });
      });
}

}  // namespace orrery
