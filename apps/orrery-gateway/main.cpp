// orrery-gateway: an OpenAI-compatible gateway to the services of a cluster (gateway/gateway.hpp).
//
// It routes by the table of its controller, by that in a file, or by the last one it has kept. Logs
// go to standard error. SIGTERM and SIGINT end it once its running requests have ended, at most
// --drain later; a second one ends it at once. SIGHUP has it read the file again; one that is wrong
// is named in its log and changes nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/cluster_directory.hpp"
#include "api/grpc/grpc_library.hpp"
#include "apps/option_hooks.hpp"
#include "apps/orrery-gateway/controller_link.hpp"
#include "apps/orrery-gateway/own_address.hpp"
#include "apps/orrery-gateway/table_source.hpp"
#include "apps/word_option.hpp"
#include "base/format/field_writer.hpp"
#include "base/log.hpp"
#include "base/system/daemon_signals.hpp"
#include "base/system/real_env.hpp"
#include "base/text/terminal_text.hpp"
#include "gateway/gateway.hpp"

namespace orrery {
namespace {

struct Options {
  GatewayOptions gateway;
  TableSource::Paths paths;
  std::vector<std::string> tokenizers;  ///< "MODEL=DIRECTORY"
  std::string cluster;  ///< directory with cluster.json; empty: no controller gives tables
  double wait_s = 10;
  double drain_s = 120;
  bool shared_port = false;
};

/// "": the text is no NaN, which every range of an option would take.
std::string is_number(const std::string& text) {
  return std::isnan(std::strtod(text.c_str(), nullptr)) ? "expected a number" : "";
}

int complain(const Error& error) {
  fmt::print(stderr, "orrery-gateway: {}\n", terminal_text(error.text(), Newlines::kKept));
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

class GatewayProgram {
 public:
  GatewayProgram(RealEnv& real, const Options& options)
      : real_(real), options_(options), log_(sink_), tables_(real.env().storage, options.paths) {}

  int run() {
    Result<RouteTable> table = tables_.first();
    if (!table) return complain(table.error());
    Result<std::unique_ptr<Gateway>> gateway = Gateway::start(real_, log_, options_.gateway);
    if (!gateway) return complain(gateway.error());
    gateway_ = *std::move(gateway);
    gateway_->set_table(*std::move(table));
    auto ending = watch_signals(real_.loop(), DaemonSignals::kEnd, [this] { end(); });
    if (!ending) return complain(ending.error());
    auto reloading = watch_signals(real_.loop(), DaemonSignals::kReload, [this] { reload(); });
    if (!reloading) return complain(reloading.error());
    if (!gateway_->picker_address().empty()) {
      log_.info(now(), "picker serves", {{"address", gateway_->picker_address()}});
    }
    log_.info(now(), "gateway serves",
              {{"address", gateway_->address()},
               {"name", options_.gateway.name},
               {"policy", word_of(options_.gateway.router.policy)},
               {"shed", options_.gateway.shed_beyond},
               {"epoch", gateway_->table().epoch},
               {"services", gateway_->table().services.size()}});
    if (Status linked = link(); !linked) return complain(linked.error());
    real_.run();
    log_.info(now(), "ended", {{"calls", gateway_->calls()}});
    return 0;
  }

 private:
  [[nodiscard]] Instant now() const { return real_.env().clock.now_wall(); }

  /// Follows the cluster's controllers, if it was told of any.
  [[nodiscard]] Status link() {
    if (options_.cluster.empty()) return {};
    const Result<ClusterAddress> cluster =
        read_cluster_address(real_.env().storage, options_.cluster);
    if (!cluster) return tl::unexpected(cluster.error());
    const std::string peer_address = own_address(gateway_->report().peer_address, cluster->address);
    if (peer_address.empty()) {
      log_.warning(now(), "other gateways cannot be told where this one is reached",
                   {{"expected", "--peers HOST:PORT"}});
    }
    link_ = std::make_unique<ControllerLink>(
        real_.env(), log_,
        ControllerLink::Options{.client = client_options(*cluster),
                                .report =
                                    [this, peer_address] {
                                      GatewayReport report = gateway_->report();
                                      report.peer_address = peer_address;
                                      return report;
                                    },
                                .on_table = [this](RouteTable table) { take(std::move(table)); }});
    link_->start();
    return {};
  }

  /// Routes by a table from now on, and after the next start.
  void take(RouteTable table) {
    if (Status kept = tables_.keep(table); !kept) {
      log_.warning(now(), "the table is not kept", {{"why", kept.error().text()}});
    }
    gateway_->set_table(std::move(table));
  }

  void reload() {
    if (!tables_.has_file()) return;
    Result<RouteTable> table = tables_.read_file_again();
    if (!table) {
      log_.error(now(), "the table stays as it was", {{"why", table.error().text()}});
      return;
    }
    log_.info(now(), "table", {{"epoch", table->epoch}, {"services", table->services.size()}});
    take(*std::move(table));
  }

  void end() {
    if (ending_) {
      real_.stop();
      return;
    }
    ending_ = true;
    log_.info(now(), "ends", {{"calls", gateway_->calls()}});
    gateway_->stop([this] { real_.stop(); });
    real_.loop().call_after(Duration::from_seconds(options_.drain_s), [this] { real_.stop(); });
  }

  RealEnv& real_;
  const Options& options_;
  DescriptorLogSink sink_;
  Log log_;
  TableSource tables_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<ControllerLink> link_;
  bool ending_ = false;
};

Status open_tokenizers(const std::vector<std::string>& texts, GatewayOptions& options) {
  for (const std::string& text : texts) {
    const std::size_t sign = text.find('=');
    if (sign == 0 || sign == text.npos) {
      return input_error({}, fmt::format("--tokenizer {}: expected MODEL=DIRECTORY", text));
    }
    auto opened = PromptTokenizer::open(text.substr(sign + 1));
    if (!opened) return forward_error(opened);
    options.tokenizers[text.substr(0, sign)] = *std::move(opened);
  }
  return {};
}

int serve(Options options) {
  if (Status opened = open_tokenizers(options.tokenizers, options.gateway); !opened) {
    return complain(opened.error());
  }
  options.gateway.wait = Duration::from_seconds(options.wait_s);
  if (options.shared_port) options.gateway.server.sharing = PortSharing::kShared;
  // The kept table is of use to this boot alone, and the loop waits for no disk.
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create({}, Durability::kUntilBoot);
  if (!real) return complain(real.error());
  return GatewayProgram(**real, options).run();
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--listen", options.gateway.server.address,
                 "HOST:PORT for clients, the address in numbers")
      ->capture_default_str();
  app.add_flag("--shared-port", options.shared_port,
               "let several gateways of this machine listen at the same port");
  app.add_option(
      "--dir", options.cluster,
      "directory of the cluster whose controllers give the table: with cluster.json, the "
      "authority's certificate and a token of an operator");
  app.add_option("--table", options.paths.table,
                 "file with the route table, JSON or YAML; SIGHUP has it read again")
      ->check(CLI::ExistingFile);
  app.add_option("--state", options.paths.state,
                 "file in which the last table is kept for the next start");
  app.add_option("--name", options.gateway.name,
                 "name of this gateway, which no other one of the cluster has")
      ->capture_default_str();
  app.add_option("--peers", options.gateway.peer_address,
                 "HOST:PORT at which the other gateways of the cluster tell this one, by UDP, what "
                 "they have sent to replicas, the address in numbers (default: any port of the "
                 "address of --listen)");
  app.add_option("--url", options.gateway.url,
                 "URL by which clients reach it, without /v1 (default: by --listen)");
  add_word_option(
      app, "--policy", options.gateway.router.policy,
      "how a replica is chosen: by latencies, cached prompts and dollars (cost), by cached "
      "prompts alone (prefix), or without regard to caches");
  app.add_option(
         "--tokenizer", options.tokenizers,
         "MODEL=DIRECTORY with the tokenizer.json of a model, or MODEL=bytes: prompts of this "
         "model are compared with what its replicas' engines tell of their KV caches")
      ->allow_extra_args(false);
  app.add_option("--shed", options.gateway.shed_beyond,
                 "an interactive request that would wait this many times what slo.ttft_p99 of its "
                 "service allows is refused by chance, the later the more often; 0: none is")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6))
      ->check(is_number);
  app.add_option("--wait", options.wait_s,
                 "seconds for which a request waits for a service without replicas")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e9))
      ->check(is_number);
  app.add_option("--otlp", options.gateway.otlp,
                 "http://HOST:PORT of a receiver of OpenTelemetry traces (OTLP over HTTP)");
  app.add_option("--picker", options.gateway.picker.address,
                 "HOST:PORT at which Envoy finds an endpoint picker of the Gateway API Inference "
                 "Extension; plain gRPC, for a private network");
  app.add_option("--picker-tenant", options.gateway.picker.tenant,
                 "requests that come by the picker need no key, where Envoy has checked who sends "
                 "them: they may call the services of this tenant and those below");
  app.add_option("--drain", options.drain_s, "seconds for which SIGTERM lets running requests end")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  CLI::App app(
      "The gateway gives the models of a cluster's services to clients of OpenAI's API.\n"
      "Clients show a key as \"Authorization: Bearer KEY\".",
      "orrery-gateway");
  orrery::Options options;
  options.gateway.server.address = "127.0.0.1:8080";
  orrery::add_options(app, options);
  app.set_version_flag("--version", std::string("orrery-gateway ") + ORRERY_VERSION);
  if (const auto status = orrery::parse_options(app, count, arguments)) return *status;
  orrery::block_signals(orrery::DaemonSignals::kEnd);
  orrery::block_signals(orrery::DaemonSignals::kReload);
  const orrery::GrpcLibrary library(orrery::GrpcLibrary::Lines::kHidden);
  return orrery::serve(std::move(options));
}
