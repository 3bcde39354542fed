// drivers/fake_nvml.hpp - state that a test sets in the library of fake_nvml.cpp, which it opens by
// path.
#pragma once

#include <array>

struct FakeNvml {
  static constexpr unsigned kDevices = 2;
  static constexpr int kNotSupported = 3;
  static constexpr int kNoPermission = 4;
  static constexpr int kDriverNotLoaded = 9;

  int open = 0;  ///< successful init calls less shutdowns
  int init = 0;  ///< return code of the calls: 0 is success
  int count = 0;
  int utilization = 0;
  int limit = 0;
  int lock = 0;
  std::array<unsigned, kDevices> limit_mw = {700'000, 700'000};
  std::array<unsigned, kDevices> lock_mhz = {};  ///< 0: clocks are not locked
  std::array<const char*, kDevices> names = {"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"};
};

/// The declaration of NVML.
struct FakePciInfo {
  std::array<char, 16> short_address;
  unsigned domain, bus, device, id, subsystem;
  std::array<char, 32> address;
};
