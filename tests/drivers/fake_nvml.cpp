// A library with the entry points of NVML, for tests: two H100s, whose readings and failures the
// test sets through fake_nvml(). Built again without some of them, as an old or foreign library.
#include "tests/drivers/fake_nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <filesystem>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;

/// What a handle points to.
std::array<char, FakeNvml::kDevices> devices;

unsigned number_of(const void* handle) {
  return static_cast<unsigned>(static_cast<const char*>(handle) - devices.data());
}

int write(char* text, unsigned size, const char* format, unsigned number) {
  return std::snprintf(text, size, format, number) >= 0 ? kSuccess : kInvalidArgument;
}

}  // namespace

extern "C" {

FakeNvml* fake_nvml() {
  static FakeNvml state;
  return &state;
}

#ifndef FAKE_NVML_FOREIGN
int nvmlInit_v2() {
  fake_nvml()->open += fake_nvml()->init == kSuccess ? 1 : 0;
  return fake_nvml()->init;
}
#endif

int nvmlShutdown() {
  --fake_nvml()->open;
  return kSuccess;
}

const char* nvmlErrorString(int answer) {
  if (answer == FakeNvml::kNoPermission) return "Insufficient Permissions";
  return answer == FakeNvml::kDriverNotLoaded ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return write(text, size, "550.%u", 54);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = FakeNvml::kDevices;
  return fake_nvml()->count;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= FakeNvml::kDevices) return kInvalidArgument;
  *device = &devices[index];
  return kSuccess;
}

int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  return write(text, size, fake_nvml()->names[number_of(device)], 0);
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return write(text, size, "GPU-%u", number_of(device));
}

int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) {
  *minor = 4 + number_of(device);
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 85520809984;
  total_free_used[1] = 84520809984;
  total_free_used[2] = 1000000000;
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 300'500 + 1'000 * number_of(device);
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* device, unsigned, unsigned* degrees) {
  *degrees = 60 + number_of(device);
  return kSuccess;
}

int nvmlDeviceGetUtilizationRates(void*, unsigned* gpu_memory) {
  gpu_memory[0] = 75;
  gpu_memory[1] = 10;
  return fake_nvml()->utilization;
}

int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long* errors) {
  *errors = 3;
  return kSuccess;
}

int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return kSuccess;
}

int nvmlDeviceGetPowerManagementLimitConstraints(void*, unsigned* least, unsigned* most) {
  *least = 200'000;
  *most = 700'000;
  return kSuccess;
}

int nvmlDeviceSetPowerManagementLimit(void* device, unsigned milliwatts) {
  // Tests without shared memory set the refusal by such a file beside this library.
  Dl_info own{};
  (void)::dladdr(reinterpret_cast<const void*>(&fake_nvml), &own);
  const auto refusal = std::filesystem::path(own.dli_fname).parent_path() / "refuses-limits";
  if (std::filesystem::exists(refusal)) return FakeNvml::kNoPermission;
  if (fake_nvml()->limit == kSuccess) fake_nvml()->limit_mw[number_of(device)] = milliwatts;
  return fake_nvml()->limit;
}

int nvmlDeviceGetMaxClockInfo(void*, int clock, unsigned* megahertz) {
  *megahertz = clock == 1 ? 1980 : 2619;
  return kSuccess;
}

int nvmlDeviceSetGpuLockedClocks(void* device, unsigned, unsigned megahertz) {
  if (fake_nvml()->lock == kSuccess) fake_nvml()->lock_mhz[number_of(device)] = megahertz;
  return fake_nvml()->lock;
}

int nvmlDeviceResetGpuLockedClocks(void* device) {
  return nvmlDeviceSetGpuLockedClocks(device, 0, 0);
}

// nvmlDeviceGetPcieReplayCounter is missing: older releases lack it.

int nvmlDeviceGetPciInfo_v3(void* device, FakePciInfo* info) {
  *info = {};
  info->bus = 0x1b + number_of(device);
  return number_of(device) == 0 ? kSuccess : FakeNvml::kNotSupported;
}

}  // extern "C"
