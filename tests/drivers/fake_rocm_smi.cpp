// A library with the entry points of ROCm SMI before release 6, for tests: one MI300X.
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 2;

}  // namespace

extern "C" {

int rsmi_init(std::uint64_t) { return kSuccess; }
int rsmi_shut_down() { return kSuccess; }

int rsmi_status_string(int, const char** words) {
  *words = "Not Supported";
  return kSuccess;
}

int rsmi_version_str_get(int, char* text, std::uint32_t size) {
  return std::snprintf(text, size, "6.2.4") > 0 ? kSuccess : kNotSupported;
}

int rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = 1;
  return kSuccess;
}

int rsmi_dev_name_get(std::uint32_t, char* text, std::size_t size) {
  return std::snprintf(text, size, "AMD Instinct MI300X") > 0 ? kSuccess : kNotSupported;
}

int rsmi_dev_unique_id_get(std::uint32_t, std::uint64_t* number) {
  *number = 0xabc;
  return kSuccess;
}

int rsmi_dev_pci_id_get(std::uint32_t, std::uint64_t* packed) {
  *packed = std::uint64_t{1} << 32 | 0x0c << 8 | 0x02 << 3;
  return kSuccess;
}

int rsmi_dev_memory_total_get(std::uint32_t, int, std::uint64_t* bytes) {
  *bytes = 206141652992;
  return kSuccess;
}

int rsmi_dev_memory_usage_get(std::uint32_t, int, std::uint64_t* bytes) {
  *bytes = 4096;
  return kSuccess;
}

int rsmi_dev_power_ave_get(std::uint32_t, std::uint32_t, std::uint64_t* microwatts) {
  *microwatts = 141'000'000;
  return kSuccess;
}

int rsmi_dev_temp_metric_get(std::uint32_t, std::uint32_t sensor, int, std::int64_t* millidegrees) {
  if (sensor != 0) return kNotSupported;  // it has only an edge sensor
  *millidegrees = 43'500;
  return kSuccess;
}

int rsmi_dev_power_cap_default_get(std::uint32_t, std::uint64_t* microwatts) {
  *microwatts = 750'000'000;
  return kSuccess;
}

int rsmi_dev_power_cap_range_get(std::uint32_t, std::uint32_t, std::uint64_t* most,
                                 std::uint64_t* least) {
  *most = 750'000'000;
  *least = 300'000'000;
  return kSuccess;
}

/// Accepts the cap of half the clock, 324.5 W, and lower ones.
int rsmi_dev_power_cap_set(std::uint32_t, std::uint32_t, std::uint64_t microwatts) {
  return microwatts <= 324'500'000 ? kSuccess : kNotSupported;
}

int rsmi_dev_busy_percent_get(std::uint32_t, std::uint32_t* percent) {
  *percent = 20;
  return kSuccess;
}

}  // extern "C"
