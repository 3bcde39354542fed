#include "runtime/checkpoint/durable_file.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/assert.hpp"
#include "runtime/checkpoint/prefaulted_memory.hpp"

namespace orrery {
namespace {

// Repeats a system call until no signal interrupts it.
template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Whether a file system or a sandbox refuses this use of a call that it knows.
bool is_refusal(int cause) {
  return cause == EINVAL || cause == EOPNOTSUPP || cause == ENOSYS || cause == EPERM ||
         cause == EACCES;
}

FileDescriptor open_new(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0600;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  return FileDescriptor(retried([&] { return ::open(path.c_str(), kFlags, kOwnerOnly); }));
}

}  // namespace

void DurableFile::RingEnd::operator()(io_uring* ring) const {
  ::io_uring_queue_exit(ring);
  std::default_delete<io_uring>()(ring);
}

Result<DurableFile> DurableFile::create(Options options) {
  ORRERY_ASSERT(options.bytes % PrefaultedMemory::kAlignment == 0, "a file is whole pages");
  FileDescriptor fd = open_new(options.path);
  DurableFile file(std::move(options.path), std::move(fd));
  if (!file.fd_.valid()) {
    auto failed = file.failed_to("create", errno);
    file.path_.clear();
    return failed;
  }
  if (Status room = file.take_room(options.bytes); !room) return forward_error(room);
  if (options.method == WriteMethod::kDirect) file.start_ring();
  return file;
}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      fd_(std::move(other.fd_)),
      ring_(std::move(other.ring_)),
      flights_(other.flights_),
      flying_(std::exchange(other.flying_, 0)),
      method_(other.method_) {}

DurableFile::~DurableFile() {
  // The kernel still reads the caller's memory.
  while (flying_ > 0) static_cast<void>(await_one());
  if (!path_.empty()) ::unlink(path_.c_str());
}

void DurableFile::start_ring() {
  auto ring = std::make_unique<io_uring>();
  if (::io_uring_queue_init(kDepth, ring.get(), 0) != 0) return;
  ring_.reset(ring.release());
  // O_DIRECT only with a ring: single blocks past the cache would be slower than through it. It is
  // not set in open(), because a file system without O_DIRECT creates the file before it refuses.
  if (::fcntl(fd_.get(), F_SETFL, O_DIRECT) == 0) method_ = WriteMethod::kDirect;
}

Status DurableFile::give_up_direct() {
  method_ = WriteMethod::kBuffered;
  if (::fcntl(fd_.get(), F_SETFL, 0) != 0) return failed_to("write past the cache", errno);
  return {};
}

Status DurableFile::take_room(std::uint64_t bytes) const {
  if (bytes == 0) return {};
  const auto size = static_cast<off_t>(bytes);
  if (retried([&] { return ::fallocate(fd_.get(), 0, 0, size); }) == 0) return {};
  if (!is_refusal(errno)) return failed_to("make room for it", errno);
  if (retried([&] { return ::ftruncate(fd_.get(), size); }) == 0) return {};
  return failed_to("make room for it", errno);
}

Status DurableFile::write(std::uint64_t offset, std::string_view block) {
  constexpr std::uint64_t kAlignment = PrefaultedMemory::kAlignment;
  ORRERY_ASSERT(offset % kAlignment == 0 && block.size() % kAlignment == 0 &&
                    reinterpret_cast<std::uintptr_t>(block.data()) % kAlignment == 0,
                "the disk is written in whole pages");
  if (block.empty()) return {};
  if (flying_ == kDepth) {
    if (Status ended = await_one(); !ended) return ended;
  }
  if (method_ == WriteMethod::kBuffered) return write_plainly(offset, block);
  const auto place =
      std::ranges::find_if(flights_, [](const Flight& f) { return f.block.empty(); });
  ORRERY_ASSERT(place != flights_.end(), "one of the places was just freed");
  io_uring_sqe* const entry = ::io_uring_get_sqe(ring_.get());
  ORRERY_ASSERT(entry != nullptr, "no more is submitted than the ring holds");
  ::io_uring_prep_write(entry, fd_.get(), block.data(), static_cast<unsigned>(block.size()),
                        offset);
  ::io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(place - flights_.begin()));
  int submitted = -EINTR;
  while (submitted == -EINTR) submitted = ::io_uring_submit(ring_.get());
  if (submitted != 1) return failed_to("write", submitted < 0 ? -submitted : EIO);
  *place = {offset, block};
  ++flying_;
  return {};
}

Status DurableFile::await_one() {
  io_uring_cqe* ended = nullptr;
  int waited = -EINTR;
  while (waited == -EINTR) waited = ::io_uring_wait_cqe(ring_.get(), &ended);
  ORRERY_ASSERT(waited == 0, "a ring answers what was submitted to it");
  Flight& flight = flights_.at(::io_uring_cqe_get_data64(ended));
  const int result = ended->res;
  ::io_uring_cqe_seen(ring_.get(), ended);
  --flying_;
  const Flight done = std::exchange(flight, {});
  if (result < 0 && !is_refusal(-result)) return failed_to("write", -result);
  const auto written = static_cast<std::size_t>(std::max(result, 0));
  if (written == done.block.size()) return {};
  // A short or refused write: the rest of the block goes through the page cache.
  if (Status given_up = give_up_direct(); !given_up) return given_up;
  return write_plainly(done.offset + written, done.block.substr(written));
}

Status DurableFile::write_plainly(std::uint64_t offset, std::string_view block) {
  while (!block.empty()) {
    const ssize_t wrote = retried([&] {
      return ::pwrite(fd_.get(), block.data(), block.size(), static_cast<off_t>(offset));
    });
    if (wrote <= 0) return failed_to("write", wrote < 0 ? errno : EIO);
    block.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

Status DurableFile::finish() {
  while (flying_ > 0) {
    if (Status ended = await_one(); !ended) return ended;
  }
  if (retried([&] { return ::fdatasync(fd_.get()); }) != 0) {
    return failed_to("make it durable", errno);
  }
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  if (Status synced = sync_names(parent.empty() ? "." : parent.string()); !synced) return synced;
  path_.clear();
  return {};
}

tl::unexpected<Error> DurableFile::failed_to(std::string_view what, int cause) const {
  return environment_error(
      fmt::format("{}: cannot {}: {}", path_, what, std::generic_category().message(cause)));
}

Status sync_names(const std::string& directory) {
  const FileDescriptor fd(
      retried([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  // Where a file system cannot sync a directory, its names count as durable.
  if (fd.valid() && (retried([&] { return ::fsync(fd.get()); }) == 0 || errno == EINVAL)) return {};
  return environment_error(fmt::format("{}: cannot make its names durable: {}", directory,
                                       std::generic_category().message(errno)));
}

}  // namespace orrery
