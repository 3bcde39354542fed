#include "control/held_situation.hpp"

#include <utility>

namespace orrery {

HeldSituation::HeldSituation(const Situation& of, Shared shared)
    : version_(shared.version),
      policy_(shared.policy),
      fleet_(std::move(shared.fleet)),
      submissions_(std::move(shared.submissions)),
      tenants_(std::move(shared.tenants)),
      waiting_(of.waiting.begin(), of.waiting.end()),
      running_(of.running.begin(), of.running.end()),
      running_changes_(of.running_changes.begin(), of.running_changes.end()),
      usage_(*of.usage),
      risk_(of.node_risk.begin(), of.node_risk.end()),
      slots_(of.reserved.begin(), of.reserved.end()),
      closures_(of.closures.begin(), of.closures.end()),
      situation_(of) {
  situation_.fleet = fleet_->view();
  situation_.waiting = waiting_;
  situation_.running = running_;
  situation_.running_changes = running_changes_;
  situation_.usage = &usage_;
  if (of.power != nullptr) situation_.power = &power_.emplace(*of.power);
  if (of.caps != nullptr) situation_.caps = &caps_.emplace(*of.caps);
  if (of.plans != nullptr) situation_.plans = &plans_.emplace(*of.plans);
  situation_.node_risk = risk_;
  situation_.reserved = slots_;
  situation_.closures = closures_;
}

}  // namespace orrery
