// bench/serving/routers.hpp - the routers that bench_serving compares: orrery-gateway, and peers
// where they are installed.
//
// A RouterProcess is a running process pinned to one core, with a folder of its own for its files;
// it ends with the object. One thread. A peer is configured as its makers advise for a proxy that
// keeps connections; each setting is in its command here.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/free_address.hpp"
#include "base/system/real_env.hpp"
#include "bench/bench_process.hpp"
#include "bench/command_output.hpp"
#include "bench/figure.hpp"
#include "gateway/access_keys.hpp"
#include "serving/routing/route_table.hpp"

namespace orrery {

inline constexpr const char* kServingKey = "key";
inline constexpr int kRouterCore = 0;
inline constexpr int kLoadCore = 1;

/// Returns the output of a command, standard error included; none: it failed.
inline std::optional<std::string> all_output_of(const std::string& command) {
  return command_output(fmt::format("({}) 2>&1", command));
}

inline std::string program_beside_orrery(const char* name) {
  return (std::filesystem::path(ORRERY_PROGRAM).parent_path() / name).string();
}

/// What a router is started with.
struct RouterPlace {
  std::string directory;
  std::string address;               ///< HOST:PORT to listen at
  std::string other_port;            ///< for figures of its own, where it cannot do without
  std::vector<std::string> workers;  ///< HOST:PORT of each replica
};

struct RouterKind {
  std::string name;
  /// Writes the files that it needs and returns its command.
  std::function<std::vector<std::string>(const RouterPlace&)> command;
};

inline std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

inline std::vector<std::string> gateway_command(const RouterPlace& place) {
  RouteTable table{.epoch = 1};
  RoutedService service{.id = 1, .name = "s", .model = "m"};
  std::uint64_t job = 1;
  for (const std::string& worker : place.workers) {
    service.replicas.push_back({.job = job++, .attempt = 1, .endpoint = worker, .slots = 16'384});
  }
  table.services.push_back(std::move(service));
  table.keys.push_back({.sha256 = sha256_hex(kServingKey), .name = "k"});
  const std::string file = place.directory + "/table.json";
  std::ofstream(file) << write_route_table(table);
  return {program_beside_orrery("orrery-gateway"), "--listen", place.address, "--table", file};
}

/// One worker process; kept connections to the replicas, HTTP/1.1, events passed on as they come.
inline std::vector<std::string> nginx_command(const RouterPlace& place) {
  std::string servers;
  for (const std::string& worker : place.workers) servers += fmt::format("server {};", worker);
  std::string paths;
  for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    paths += fmt::format("{}_temp_path {}/{};\n", kind, place.directory, kind);
  }
  const std::string file = place.directory + "/nginx.conf";
  std::ofstream(file) << fmt::format(
      "daemon off;\nworker_processes 1;\nworker_rlimit_nofile 20000;\npid {0}/nginx.pid;\n"
      "error_log stderr error;\nevents {{ worker_connections 20000; }}\n"
      "http {{\naccess_log off;\n{1}keepalive_requests 1000000000;\n"
      "upstream replicas {{ {2} keepalive 1024; keepalive_requests 1000000000; }}\n"
      "server {{ listen {3} backlog=4096; location / {{ proxy_pass http://replicas;\n"
      "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; }} }}\n}}\n",
      place.directory, paths, servers, place.address);
  return {"nginx", "-c", file, "-e", place.directory + "/error.log", "-p", place.directory};
}

/// A router of PyPI whose options are those of SGLang's, which vLLM's began as.
inline std::vector<std::string> launched_router(std::vector<std::string> command,
                                                const RouterPlace& place) {
  for (const std::string& word :
       {std::string("--host"), std::string("127.0.0.1"), std::string("--port"),
        port_of(place.address), std::string("--policy"), std::string("round_robin"),
        std::string("--prometheus-port"), place.other_port, std::string("--worker-urls")}) {
    command.push_back(word);
  }
  for (const std::string& worker : place.workers) command.push_back("http://" + worker);
  return command;
}

/// The peers that are installed; for each other one a line says that it is left out. `python`: a
/// virtual environment (scripts/bench --peers makes it); empty: none of its peers is wanted.
inline std::vector<RouterKind> installed_peers(const std::string& python) {
  std::vector<RouterKind> peers;
  if (const auto version = all_output_of("nginx -v")) {
    const std::string line = version->substr(0, version->find('\n'));
    peers.push_back({"nginx " + line.substr(line.rfind('/') + 1), &nginx_command});
  } else {
    fmt::print(stderr, "bench_serving: NOT MEASURED: nginx: it is not installed\n");
  }
  if (python.empty()) return peers;
  struct Launched {
    const char* package;
    std::vector<std::string> words;  ///< its program and what precedes the options
  };
  for (const Launched& each : {Launched{"vllm-router", {"vllm-router"}},
                               Launched{"sglang-router", {"sglang-router", "launch"}}}) {
    const auto version = all_output_of(
        fmt::format("{}/bin/python -c 'import importlib.metadata as m; print(m.version(\"{}\"))'",
                    python, each.package));
    if (!version) {
      fmt::print(stderr, "bench_serving: NOT MEASURED: {}: {} lacks it\n", each.package, python);
      continue;
    }
    std::vector<std::string> words = each.words;
    words[0] = fmt::format("{}/bin/{}", python, words[0]);
    peers.push_back({fmt::format("{} {}", each.package, version->substr(0, version->find('\n'))),
                     [words](const RouterPlace& place) { return launched_router(words, place); }});
  }
  return peers;
}

class RouterProcess {
 public:
  /// Starts it before these replicas and waits until it answers; the benchmark ends if it does not.
  RouterProcess(const RouterKind& kind, const std::vector<std::string>& workers)
      : name_(kind.name) {
    std::filesystem::create_directories("build/bench");
    std::string directory = "build/bench/router-XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) give_up("no directory for a router");
    directory_ = std::filesystem::absolute(directory);
    RealEntropy entropy;
    RouterPlace place{.directory = directory_, .workers = workers};
    {
      const FreeAddress own = must(FreeAddress::on_loopback(entropy));
      const FreeAddress other = must(FreeAddress::on_loopback(entropy));
      place.address = address_ = own.text();
      place.other_port = port_of(other.text());
    }
    std::vector<std::string> words = {
        "sh",      "-c", "exec \"$@\" >\"$0\" 2>&1", directory_ + "/log",
        "taskset", "-c", fmt::to_string(kRouterCore)};
    for (std::string& word : kind.command(place)) words.push_back(std::move(word));
    process_ = std::make_unique<BenchProcess>(std::move(words));
    await();
  }
  RouterProcess(const RouterProcess&) = delete;
  RouterProcess& operator=(const RouterProcess&) = delete;
  ~RouterProcess() {
    process_.reset();
    std::error_code gone;
    std::filesystem::remove_all(directory_, gone);
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }

 private:
  void await() const {
    const std::string ask = fmt::format(
        "curl -sf -m 5 -o /dev/null -H 'Authorization: Bearer {}' -H 'Content-Type: "
        "application/json' http://{}/v1/chat/completions -d "
        "'{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"a\"}}]}}'",
        kServingKey, address_);
    const std::string wait =
        fmt::format("for try in $(seq 300); do {} && exit 0; sleep 0.1; done; exit 1", ask);
    if (all_output_of(wait)) return;
    give_up(fmt::format("{} does not answer; its log:\n{}", name_,
                        all_output_of(fmt::format("tail -n 20 {}/log", directory_)).value_or("")));
  }

  std::string name_;
  std::string directory_;
  std::string address_;
  std::unique_ptr<BenchProcess> process_;
};

}  // namespace orrery
