#include "node/steps/step_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace orrery {
namespace {

/// Writes all bytes, unless no reader is left. Returns errno of a failure, or 0.
int write_all(int sink, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(sink, bytes.data(), bytes.size());
    if (wrote >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno == EAGAIN) {
      pollfd room{sink, POLLOUT, 0};
      (void)::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno == EPIPE ? 0 : errno;
    }
  }
  return 0;
}

tl::unexpected<Error> cannot_write(const std::string& what, int code) {
  return environment_error(
      fmt::format("cannot write {}: {}", what, std::generic_category().message(code)));
}

}  // namespace

StepOutputs::StepOutputs(const SrunOptions& options, SrunFileFacts facts, std::uint32_t last)
    : options_(options), facts_(std::move(facts)), label_width_(fmt::format("{}", last).size()) {}

Status StepOutputs::write(const TaskPlace& place, std::uint32_t descriptor,
                          std::string_view bytes) {
  constexpr std::size_t kLineMax = std::size_t{64} << 10;
  if (options_.lines == SrunOptions::Lines::kAsTheyCome &&
      options_.label == SrunOptions::Label::kNo) {
    return put(place, descriptor, bytes);
  }
  std::string& begun = begun_[{place.task, descriptor}];
  begun += bytes;
  const std::size_t end = begun.rfind('\n');
  const std::size_t ready =
      end == begun.npos ? (begun.size() < kLineMax ? 0 : begun.size()) : end + 1;
  if (ready == 0) return {};
  const std::string lines = begun.substr(0, ready);
  begun.erase(0, ready);
  return put(place, descriptor, lines);
}

Status StepOutputs::finish(const TaskPlace& place) {
  for (const std::uint32_t descriptor : {1u, 2u}) {
    const auto begun = begun_.find({place.task, descriptor});
    if (begun == begun_.end() || begun->second.empty()) continue;
    const std::string rest = std::exchange(begun->second, "");
    if (Status put_out = put(place, descriptor, rest); !put_out) return put_out;
  }
  return {};
}

Status StepOutputs::put(const TaskPlace& place, std::uint32_t descriptor, std::string_view bytes) {
  const Result<Sink> to = sink(place, descriptor);
  if (!to) return tl::unexpected(to.error());
  std::string labelled;
  const bool labels = options_.label == SrunOptions::Label::kYes;
  while (labels && !bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    labelled += fmt::format("{:0>{}}: {}\n", place.task, label_width_, bytes.substr(0, end));
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
  }
  const int failed = write_all(to->descriptor, labels ? labelled : bytes);
  if (failed != 0) return cannot_write(to->name, failed);
  return {};
}

Result<StepOutputs::Sink> StepOutputs::sink(const TaskPlace& place, std::uint32_t descriptor) {
  const bool own = descriptor == 1 || options_.errors.empty();
  const std::string& pattern = own ? options_.output : options_.errors;
  if (pattern.empty() || pattern == "all") {
    return Sink{static_cast<int>(descriptor),
                descriptor == 1 ? "standard output" : "standard error"};
  }
  SrunFileFacts facts = facts_;
  facts.task = place.task;
  facts.node = place.node;
  facts.host = place.host;
  const std::string path = pattern == "none" ? "/dev/null" : srun_file(pattern, facts);
  const auto known = files_.find(path);
  if (known != files_.end()) return Sink{known->second.get(), path};
  const int mode = options_.files == SrunOptions::Files::kAppend ? O_APPEND : O_TRUNC;
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666));
  if (!file.valid()) return cannot_write(path, errno);
  const int number = file.get();
  files_.emplace(path, std::move(file));
  return Sink{number, path};
}

}  // namespace orrery
