#include "node/devices/device_filter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <vector>

namespace orrery {
namespace {

using Program = std::vector<bpf_insn>;

constexpr std::uint8_t kContext = BPF_REG_1;  ///< bpf_cgroup_dev_ctx, at the start of a program
constexpr std::uint8_t kAnswer = BPF_REG_0;   ///< 1 allows, 0 denies
constexpr std::uint8_t kKind = BPF_REG_2;
constexpr std::uint8_t kMajor = BPF_REG_3;
constexpr std::uint8_t kMinor = BPF_REG_4;

struct Operands {
  std::uint8_t target = 0;
  std::uint8_t source = 0;
  std::int16_t offset = 0;
  std::uint32_t value = 0;
};

bpf_insn instruction(int code, const Operands& operands) {
  bpf_insn made{};
  made.code = static_cast<std::uint8_t>(code);
  made.dst_reg = operands.target & 0xf;
  made.src_reg = operands.source & 0xf;
  made.off = operands.offset;
  made.imm = static_cast<std::int32_t>(operands.value);
  return made;
}

bpf_insn load(std::uint8_t target, std::size_t offset) {
  return instruction(
      BPF_LDX | BPF_MEM | BPF_W,
      {.target = target, .source = kContext, .offset = static_cast<std::int16_t>(offset)});
}

/// Skips `distance` instructions where the register is not `value`. 32-bit compare.
bpf_insn skip_unless(std::uint8_t reg, std::uint32_t value, std::int16_t distance) {
  return instruction(BPF_JMP32 | BPF_JNE | BPF_K,
                     {.target = reg, .offset = distance, .value = value});
}

void answer(Program& program, std::uint32_t value) {
  program.push_back(instruction(BPF_ALU64 | BPF_MOV | BPF_K, {.target = kAnswer, .value = value}));
  program.push_back(instruction(BPF_JMP | BPF_EXIT, {}));
}

Program filter_of(std::span<const DeviceNumber> denied) {
  constexpr std::uint32_t kKindMask = 0xffff;  // of bpf_cgroup_dev_ctx::access_type
  Program program{load(kKind, offsetof(bpf_cgroup_dev_ctx, access_type)),
                  instruction(BPF_ALU64 | BPF_AND | BPF_K, {.target = kKind, .value = kKindMask}),
                  load(kMajor, offsetof(bpf_cgroup_dev_ctx, major)),
                  load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor))};
  for (const DeviceNumber& each : denied) {
    const bool character = each.kind == DeviceNumber::Kind::kCharacter;
    // Each of these jumps past the two instructions of the answer.
    program.push_back(skip_unless(kKind, character ? BPF_DEVCG_DEV_CHAR : BPF_DEVCG_DEV_BLOCK, 4));
    program.push_back(skip_unless(kMajor, each.major, 3));
    program.push_back(skip_unless(kMinor, each.minor, 2));
    answer(program, 0);
  }
  answer(program, 1);
  return program;
}

long call_bpf(int command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

tl::unexpected<Error> refused(const char* what, const std::string& group) {
  return environment_error(fmt::format("devices are not denied: the kernel does not {} {}: {}",
                                       what, group, std::generic_category().message(errno)));
}

std::uint64_t address_of(const void* what) { return reinterpret_cast<std::uintptr_t>(what); }

}  // namespace

std::string DeviceNumber::text() const {
  return fmt::format("{} {}:{}", kind == Kind::kCharacter ? 'c' : 'b', major, minor);
}

Result<DeviceNumber> device_number_at(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return environment_error(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  }
  const bool character = S_ISCHR(status.st_mode);
  if (!character && !S_ISBLK(status.st_mode)) {
    return environment_error(fmt::format("{}: not a device file", path));
  }
  return DeviceNumber{character ? DeviceNumber::Kind::kCharacter : DeviceNumber::Kind::kBlock,
                      ::major(status.st_rdev), ::minor(status.st_rdev)};
}

Result<FileDescriptor> attach_device_filter(const std::string& group,
                                            std::span<const DeviceNumber> denied,
                                            const FileDescriptor& before) {
  const Program program = filter_of(denied);
  static constexpr char kLicence[] = "Apache-2.0";
  bpf_attr load_it{};
  load_it.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load_it.insns = address_of(program.data());
  load_it.insn_cnt = static_cast<std::uint32_t>(program.size());
  load_it.license = address_of(kLicence);
  FileDescriptor loaded(static_cast<int>(call_bpf(BPF_PROG_LOAD, load_it)));
  if (!loaded.valid()) return refused("load a filter of devices for", group);
  const FileDescriptor directory(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return refused("open", group);
  // Programs of one group all have to allow a device, so the new one comes before the old one goes.
  bpf_attr attach{};
  attach.target_fd = static_cast<std::uint32_t>(directory.get());
  attach.attach_bpf_fd = static_cast<std::uint32_t>(loaded.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  if (call_bpf(BPF_PROG_ATTACH, attach) != 0) return refused("filter the devices of", group);
  if (!before.valid()) return loaded;
  bpf_attr detach{};
  detach.target_fd = static_cast<std::uint32_t>(directory.get());
  detach.attach_bpf_fd = static_cast<std::uint32_t>(before.get());
  detach.attach_type = BPF_CGROUP_DEVICE;
  if (call_bpf(BPF_PROG_DETACH, detach) != 0) return refused("lift a filter of devices of", group);
  return loaded;
}

}  // namespace orrery
