// base/system/descriptor_watch.hpp - owns a descriptor of the kernel's events (signals, a timer)
// and passes what it reads from it to a callback.
#pragma once

#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"

namespace orrery {

class DescriptorWatch final : public ReadyHandler {
 public:
  using Handle = std::function<void(std::string_view)>;

  /// Precondition: `descriptor` is non-blocking. The loop outlives the watch.
  [[nodiscard]] static Result<std::unique_ptr<DescriptorWatch>> make(RealLoop& loop,
                                                                     FileDescriptor descriptor,
                                                                     Handle handle) {
    auto made = std::make_unique<DescriptorWatch>(loop, std::move(descriptor), std::move(handle));
    const Result<WatchId> watch = loop.watch(made->get(), EPOLLIN, *made);
    if (!watch) return tl::unexpected(watch.error());
    made->watch_ = *watch;
    return made;
  }
  DescriptorWatch(RealLoop& loop, FileDescriptor descriptor, Handle handle)
      : loop_(loop), descriptor_(std::move(descriptor)), handle_(std::move(handle)) {}
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;
  ~DescriptorWatch() override {
    if (watch_ != WatchId::kNone) loop_.unwatch(watch_);
  }

  [[nodiscard]] int get() const { return descriptor_.get(); }

  void on_ready(std::uint32_t) override {
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(descriptor_.get(), bytes.data(), bytes.size());
    if (got > 0) handle_({bytes.data(), static_cast<std::size_t>(got)});
  }

 private:
  RealLoop& loop_;
  FileDescriptor descriptor_;
  Handle handle_;
  WatchId watch_ = WatchId::kNone;
};

}  // namespace orrery
