#include "perf/machine/kernel_time.hpp"
#include "base/numbers/math.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

double rate_of(const Accelerator& accelerator, NumberFormat format) {
  const std::optional<FlopsPerSecond> rate = accelerator.rate(format);
  return rate ? rate->value() : 0;
}

// Operand width the product is computed in, in bits: the wider of the two.
int width_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::kFp64:
    case NumberFormat::kFp64Matrix:
    case NumberFormat::kFp32:
    case NumberFormat::kTf32:
    case NumberFormat::kBf16:
    case NumberFormat::kFp16:
      return 16;
    case NumberFormat::kFp8:
    case NumberFormat::kFp6:
    case NumberFormat::kInt8:
      return 8;
    case NumberFormat::kFp4:
    case NumberFormat::kInt4:
      return 4;
  }
  return 16;
}

}  // namespace

double stored_bytes(NumberFormat format) {
  switch (format) {
    case NumberFormat::kFp64:
    case NumberFormat::kFp64Matrix:
      return 8;
    case NumberFormat::kFp32:
    case NumberFormat::kTf32:
      return 4;
    case NumberFormat::kBf16:
    case NumberFormat::kFp16:
      return 2;
    case NumberFormat::kFp8:
    case NumberFormat::kInt8:
      return 1;
    case NumberFormat::kFp6:
      return 0.78;
    case NumberFormat::kFp4:
    case NumberFormat::kInt4:
      return 0.5625;  // an 8-bit scale for 16 elements
  }
  return 2;
}

KernelTime::KernelTime(const Accelerator& accelerator, const ServingConstants& constants)
    : accelerator_(accelerator), constants_(constants) {
  const DeviceConstants& device = constants.device;
  double peak16 = std::max(rate_of(accelerator, NumberFormat::kBf16),
                           rate_of(accelerator, NumberFormat::kFp16));
  if (peak16 == 0) peak16 = rate_of(accelerator, NumberFormat::kFp32);
  rate16_ = peak16 * device.matmul16;
  rate8_ = std::max(rate16_, rate_of(accelerator, NumberFormat::kFp8) * device.matmul8);
  rate8i_ = std::max(rate16_, rate_of(accelerator, NumberFormat::kInt8) * device.matmul8);
  rate4_ = std::max(rate8_, rate_of(accelerator, NumberFormat::kFp4) * device.matmul4);
  bandwidth_ = accelerator.memory_bandwidth.value() * device.stream;
}

double KernelTime::rate(NumberFormat weights, NumberFormat activations) const {
  const int width = std::max(width_of(weights), width_of(activations));
  if (width == 4) return rate4_;
  const double eight = activations == NumberFormat::kInt8 ? rate8i_ : rate8_;
  const double reached = width == 8 ? eight : rate16_;
  return width_of(weights) < width ? reached / constants_.device.dequant : reached;
}

double KernelTime::blend(double compute, double memory) const {
  const double c = compute * constants_.engine.compute;
  const double m = memory * constants_.engine.memory;
  const double larger = std::max(c, m);
  if (larger == 0) return 0;
  const double p = constants_.blend;
  return larger * math::pow(1 + math::pow(std::min(c, m) / larger, p), 1 / p);
}

double KernelTime::matmul(const MatrixProduct& product) const {
  const double rows = product.m + constants_.device.matmul_ramp;
  const double compute =
      2 * rows * product.n * product.k / rate(product.weights, product.activations);
  const double bytes = product.n * product.k * stored_bytes(product.weights) +
                       product.m * product.k * stored_bytes(product.activations) +
                       product.m * product.n * 2;
  return constants_.device.launch + blend(compute, bytes / bandwidth_);
}

double KernelTime::experts(const ExpertProducts& products) const {
  if (products.assignments <= 0) return 0;
  const DeviceConstants& device = constants_.device;
  const double rows = products.assignments + products.touched * device.expert_pad;
  const double compute = 2 * rows * products.weights /
                         (rate(products.format, products.activations) * device.expert_fraction);
  const double bytes = products.touched * products.weights * stored_bytes(products.format);
  return (products.matrices > 2 ? 2 : 1) * 2 * device.launch +
         blend(compute, bytes / (bandwidth_ * device.expert_stream));
}

double KernelTime::attention(const AttentionWork& work) const {
  const DeviceConstants& device = constants_.device;
  double operations = rate16_ / device.matmul16 * device.attention_prefill;
  if (width_of(work.kv) <= 8 && rate8_ > rate16_) operations *= device.attention_narrow;
  if (work.prompt > 0) operations *= work.prompt / (work.prompt + device.attention_ramp);
  const double bytes = work.bytes / (bandwidth_ / device.stream * device.attention_decode);
  return device.attention_launch + blend(work.operations / operations, bytes);
}

double KernelTime::stream(double bytes) const {
  return bytes / bandwidth_ * constants_.engine.memory;
}

// A full mesh gives a pair of devices only the links between them. A bus is shared.
double KernelTime::link_bandwidth(double devices) const {
  const ScaleUp& up = accelerator_.scale_up;
  const DeviceConstants& device = constants_.device;
  if (link_class(accelerator_, devices) == "pcie") {
    const auto& host = accelerator_.host.bandwidth_per_direction;
    const double bus = host ? host->value() : 16e9;
    return bus * device.link_fraction * math::pow(2 / devices, device.link_sharing);
  }
  double links = up.bandwidth_per_direction->value();
  if (up.topology == "full-mesh" && up.domain_max && *up.domain_max > 1) {
    links *= std::min(1.0, (devices - 1) / (*up.domain_max - 1));
  }
  return links * device.link_fraction;
}

/// Those of `devices` that lie in one scale-up domain.
double KernelTime::inside(double devices) const {
  return std::min(devices, constants_.network.domain);
}

double KernelTime::all_reduce(double bytes, double devices) const {
  if (devices <= 1) return 0;
  const double near = inside(devices);
  double seconds = 0;
  if (near > 1) {
    const double wire = 2 * (near - 1) / near * bytes / link_bandwidth(near);
    const double hops = std::sqrt(near / 2);
    seconds += constants_.device.link_latency * hops + wire;
  }
  if (devices > near) {
    const Network& between = constants_.network.between;
    seconds += all_reduce_seconds(between, span_of(between, devices / near, near), bytes / near);
  }
  return constants_.engine.communication * seconds;
}

double KernelTime::all_to_all(double bytes, double devices) const {
  if (devices <= 1) return 0;
  const double near = inside(devices);
  double seconds = 0;
  if (near > 1) {
    const double wire = (near - 1) / devices * bytes / link_bandwidth(near);
    seconds = constants_.device.link_latency + wire;
  }
  if (devices > near) {
    const Network& between = constants_.network.between;
    seconds = std::max(seconds, all_to_all_seconds(between, span_of(between, devices, 1), bytes));
  }
  return constants_.engine.communication * seconds;
}

double KernelTime::send_between_domains(double bytes, double devices) const {
  const ServingNetwork& network = constants_.network;
  return constants_.engine.communication *
         point_to_point_seconds(network.between, std::max(devices, network.domain), bytes);
}

}  // namespace orrery
