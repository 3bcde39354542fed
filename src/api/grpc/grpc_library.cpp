#include "api/grpc/grpc_library.hpp"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

namespace orrery {
namespace {

constexpr int kRoundMs = 1;
constexpr int kRoundsMax = 5'000;

}  // namespace

GrpcLibrary::GrpcLibrary(Lines lines) {
  if (lines == Lines::kHidden) gpr_set_log_function([](gpr_log_func_args*) {});
}

GrpcLibrary::~GrpcLibrary() {
  for (int round = 0; round < kRoundsMax && grpc_is_initialized() != 0; ++round) {
    gpr_sleep_until(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kRoundMs, GPR_TIMESPAN)));
  }
}

}  // namespace orrery
