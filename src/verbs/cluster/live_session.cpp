#include "verbs/cluster/live_session.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "api/cluster_directory.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/terminal_text.hpp"

namespace orrery {

std::string answer_text(const google::protobuf::Message& answer, AnswerLayout layout) {
  google::protobuf::util::JsonPrintOptions print;
  print.add_whitespace = layout == AnswerLayout::kIndented;
  print.always_print_primitive_fields = true;
  print.preserve_proto_field_names = true;
  std::string text;
  // It fails only on messages that cannot be decoded, and this one was.
  (void)google::protobuf::util::MessageToJsonString(answer, &text, print);
  return terminal_json(text);
}

std::string cluster_directory(const CommandOptions& options) {
  std::error_code failed;
  return cluster_directory(ClusterSearch{.asked = options.cluster_directory,
                                         .current = std::filesystem::current_path(failed).string(),
                                         .home = options.home});
}

Result<std::unique_ptr<LiveSession>> LiveSession::open(const CommandOptions& options,
                                                       Duration patience) {
  RealStorage storage;
  Result<ClusterAddress> cluster = read_cluster_address(storage, cluster_directory(options));
  if (!cluster) return forward_error(cluster);
  ClientOptions client = client_options(*cluster);
  client.retry = Duration::from_seconds(options.retry_s);
  client.patience = patience;
  client.on_retry = [controller = one_line(cluster->text()), message = options.message] {
    if (message) message(fmt::format("orrery: cannot reach {}, retrying ...\n", controller));
  };
  return std::make_unique<LiveSession>(std::move(client));
}

std::unique_ptr<Client> LiveSession::client_of(const std::string& controller) const {
  constexpr Duration kPatience = Duration::seconds(3);
  ClientOptions one = options_;
  one.addresses = {controller};
  one.retry = Duration();
  one.patience = std::min(one.patience, kPatience);
  return std::make_unique<Client>(std::move(one));
}

Result<std::uint64_t> job_id(const std::string& text) {
  std::uint64_t id = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failed == std::errc() && end == text.data() + text.size()) return id;
  return input_error(
      {}, fmt::format("job \"{}\": expected the number of a job, as listed by `orrery jobs --all`",
                      text));
}

Json answer_json(const google::protobuf::Message& answer) {
  return Json::parse(answer_text(answer, AnswerLayout::kLine));
}

}  // namespace orrery
