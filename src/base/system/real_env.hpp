// base/system/real_env.hpp - the Env of a running process on Linux.
//
// main() creates one, lends env() to everything else and runs it; it must outlive every borrower
// and every thread that posts. One thread creates, runs and destroys it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/env.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_loop.hpp"
#include "base/system/real_storage.hpp"
#include "base/system/real_transport.hpp"

namespace orrery {

/// The kernel's generator. Blocks only early in the boot of a machine.
class RealEntropy final : public Entropy {
 public:
  [[nodiscard]] std::uint64_t draw() override;
};

class RealEnv {
 public:
  /// Fails when the process or system is out of descriptors.
  [[nodiscard]] static Result<std::unique_ptr<RealEnv>> create(
      const TransportLimits& limits = {}, Durability durability = Durability::kDurable);
  RealEnv(std::unique_ptr<RealLoop> loop, const TransportLimits& limits, Durability durability)
      : storage_(durability), loop_(std::move(loop)), transport_(*loop_, limits) {}

  [[nodiscard]] Env env() { return Env{clock_, *loop_, entropy_, storage_, transport_, *loop_}; }

  /// For what watches descriptors of its own.
  [[nodiscard]] RealLoop& loop() { return *loop_; }

  /// Runs until stop().
  void run();
  /// Runs until `condition` holds, which it looks at before every round, or until stop().
  void run_until(const std::function<bool()>& condition);
  /// Ends the run after the round in progress; without one, the next run before it begins. Other
  /// threads post a callback that calls it.
  void stop() { stopping_ = true; }

 private:
  RealClock clock_;
  RealEntropy entropy_;
  RealStorage storage_;
  std::unique_ptr<RealLoop> loop_;
  RealTransport transport_;
  bool stopping_ = false;
};

}  // namespace orrery
