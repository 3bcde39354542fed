// orrery-train: one rank of the reference trainer (runtime/training/trainer_rank.hpp).
//
// Started by Orrery it finds its peers by the launch contract (ORRERY_*); by itself it is a job of
// one rank. SIGTERM ends it after the step, saved.
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/option_hooks.hpp"
#include "base/format/checksum.hpp"
#include "base/system/real_env.hpp"
#include "base/text/terminal_text.hpp"
#include "runtime/checkpoint/checkpoint_audit.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/ranks/planned_layout.hpp"
#include "runtime/ranks/rank_memory.hpp"
#include "runtime/trainer/generate.hpp"
#include "runtime/training/trainer_rank.hpp"
#include "runtime/training/training_text.hpp"
#include "sentencepiece/piece_training.hpp"
#include "sentencepiece/training_tokenizer.hpp"

namespace orrery {
namespace {

/// Whether SIGTERM is pending: it stays blocked until this is called.
bool asked_to_end() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGTERM) == 1;
}

/// What plans it can follow, for `orrery plan --runtime`.
constexpr std::string_view kAbilities = R"(apiVersion: orrery/v1
kind: Runtime
name: orrery-train
context_max: 1
expert_max: 1
stages: even
zero: [0, 1]
sequence_parallel: ["off", "on"]
recompute: [none, full]
recompute_extent: all
offload: [none]
)";

struct Options {
  std::string spec;
  bool abilities = false;
  std::string verify;
  std::int64_t train_tokenizer = 0;  ///< tokens; 0: no
  std::string out;
  std::string export_file;
  bool generate = false;
  std::string weights;
  std::string prompt = "#include <";
  GenerateOptions text{.tokens = 400, .temperature = 0.8, .top_k = 40};
};

int complain(const Error& error) {
  fmt::print(stderr, "orrery-train: {}\n", terminal_text(error.text(), Newlines::kKept));
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::uint32_t> number(const char* name, std::uint32_t absent) {
  const std::string text = variable(name);
  if (text.empty()) return absent;
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) {
    return input_error({}, fmt::format("{}={}: expected a whole number", name, text));
  }
  return value;
}

/// Where a node keeps tokens when a spec does not say: the user's cache, or else what is of the
/// user alone among the files that do not stay.
std::string cache_directory(const TrainingSpec& spec) {
  if (!spec.data.cache.empty()) return spec.data.cache;
  const std::string cache = variable("XDG_CACHE_HOME");
  if (cache.starts_with('/')) return cache + "/orrery/tokens";
  const std::string home = variable("HOME");
  if (home.starts_with('/')) return home + "/.cache/orrery/tokens";
  std::error_code failed;
  const std::filesystem::path passing = std::filesystem::temp_directory_path(failed);
  return failed ? "" : passing / fmt::format("orrery-tokens-{}", ::geteuid());
}

/// Opens the tokenizer of the spec, and has the spec name it by its identity.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(TrainingSpec& spec) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = open_training_tokenizer(spec);
  if (tokenizer) spec.data.tokenizer_identity = (*tokenizer)->identity();
  return tokenizer;
}

/// The number of a host by its name.
Result<std::string> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); failed != 0) {
    return environment_error(fmt::format("{}: {}", host, ::gai_strerror(failed)));
  }
  std::array<char, NI_MAXHOST> text{};
  const int failed = ::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(),
                                   nullptr, 0, NI_NUMERICHOST);
  ::freeaddrinfo(found);
  if (failed != 0) return environment_error(fmt::format("{}: {}", host, ::gai_strerror(failed)));
  return std::string(text.data());
}

/// The newest membership: the epoch, and where the ranks of the gang are.
Status read_membership(Storage& storage, std::uint32_t gang, TrainingSeat& seat) {
  const std::string path = variable("ORRERY_MEMBERSHIP");
  if (path.empty()) return {};
  auto text = storage.read_file(path, 1 << 20);
  if (!text) return forward_error(text);
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto wrong = [&] { return input_error({path, 1, 1}, "expected a membership file"); };
  if (!json.is_object() || !json.contains("epoch") || !json.contains("gangs")) return wrong();
  try {
    seat.epoch = json.at("epoch").get<std::uint32_t>();
    for (const auto& each : json.at("gangs")) {
      if (each.at("gang").get<std::uint32_t>() != gang) continue;
      for (const auto& node : each.at("nodes")) {
        Result<std::string> address = resolve(node.at("address").get<std::string>());
        if (!address) return forward_error(address);
        auto& known = seat.group.addresses;
        if (std::find(known.begin(), known.end(), *address) == known.end()) {
          known.push_back(std::move(*address));
        }
      }
    }
  } catch (const nlohmann::json::exception&) {
    return wrong();
  }
  return {};
}

/// Whether the machine of rank 0 is none of the gang's any more.
bool master_is_gone(Storage& storage, std::uint32_t gang, const std::string& master) {
  TrainingSeat now;
  if (!read_membership(storage, gang, now) || now.epoch == 0) return false;
  const auto& known = now.group.addresses;
  return std::find(known.begin(), known.end(), master) == known.end();
}

/// The spec as this rank's gang is planned, if it is.
Result<TrainingSpec> read_spec(const std::string& path) {
  Result<std::string> bytes = read_file(path, Document::kSizeMax);
  if (!bytes) return forward_error(bytes);
  Result<Document> text = Document::parse(*bytes, path);
  if (!text) return forward_error(text);
  const Result<std::uint32_t> gang = number("ORRERY_GANG", 0);
  const Result<std::uint32_t> world = number("ORRERY_WORLD_SIZE", 1);
  if (!gang) return tl::unexpected(gang.error());
  if (!world) return tl::unexpected(world.error());
  const Result<std::optional<ParallelPlan>> plan = plan_of_gang(variable("ORRERY_PLAN"), *gang);
  if (!plan) return tl::unexpected(plan.error());
  if (*plan && (*plan)->ranks() != *world) {
    return input_error(
        {}, fmt::format("ORRERY_PLAN: a plan for {} ranks (tp {}, pp {}, dp {}), "
                        "but ORRERY_WORLD_SIZE is {}",
                        (*plan)->ranks(), (*plan)->tp, (*plan)->pp, (*plan)->dp, *world));
  }
  Result<TrainingSpec> spec = read_training_spec(*text, *plan);
  if (spec) spec->checksum = checksum(*bytes, 0);
  return spec;
}

/// Returns the bytes of the machine's memory that a process may still have; none: unknown.
std::optional<Bytes> memory_left(Storage& storage) {
  constexpr std::string_view kKey = "MemAvailable:";
  const auto text = storage.read_file("/proc/meminfo", 1 << 16);
  const std::size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = text->find_first_not_of(' ', at + kKey.size());
  std::uint64_t kib = 0;
  std::from_chars(text->data() + begin, text->data() + text->size(), kib);
  return Bytes(static_cast<double>(kib) * 1024);
}

/// Before any rank meets another.
Status check_memory(const TrainingSpec& spec, std::uint32_t world, Storage& storage) {
  const std::uint32_t replicas = std::max(1U, world / spec.layout.ranks());
  const RankMemory needs = rank_memory(spec, std::min(replicas, spec.batch.shards));
  const std::optional<Bytes> left = memory_left(storage);
  if (!left || needs.total() <= *left) return {};
  return input_error(
      spec.model.where,
      fmt::format("model: a rank needs {} ({} of weights and gradients, {} of moments, {} of "
                  "activations, {} for checkpoints), but {} are free on this machine: use more tp, "
                  "pp or zero: 1 in layout, recompute: full, or a smaller batch.micro",
                  print(needs.total()), print(needs.weights + needs.gradients),
                  print(needs.moments), print(needs.activations),
                  print(needs.checkpoint + needs.copies), print(*left)));
}

Result<TrainingSeat> find_seat(const TrainingSpec& spec, Env env) {
  TrainingSeat seat;
  seat.job = variable("ORRERY_JOB").empty() ? spec.name : variable("ORRERY_JOB");
  seat.progress = variable("ORRERY_PROGRESS");
  // Without a scheduler that counts them, each start is an attempt after all before it.
  const Result<Incarnation> before = newest_incarnation(spec.checkpoint.directory);
  if (!before) return tl::unexpected(before.error());
  const Result<std::uint32_t> attempt = number("ORRERY_ATTEMPT", before->attempt + 1);
  const Result<std::uint32_t> rank = number("ORRERY_RANK", 0);
  const Result<std::uint32_t> world = number("ORRERY_WORLD_SIZE", 1);
  const Result<std::uint32_t> gang = number("ORRERY_GANG", 0);
  for (const auto* each : {&attempt, &rank, &world, &gang}) {
    if (!*each) return tl::unexpected(each->error());
  }
  seat.attempt = *attempt;
  seat.group.rank = *rank;
  seat.group.world = *world;
  seat.group.cookie = env.entropy.draw();
  // Jobs of one name in two clusters of a machine have states of their own.
  const std::filesystem::path state = std::filesystem::absolute(spec.checkpoint.directory);
  seat.group.gang = fmt::format("{}/{}/{} of {}", seat.job, seat.attempt, *gang,
                                state.lexically_normal().string());
  const std::string master = variable("ORRERY_MASTER");
  if (master.empty()) return seat;
  const std::size_t colon = master.rfind(':');
  const std::string port = colon == master.npos ? "" : master.substr(colon + 1);
  const auto [end, failed] =
      std::from_chars(port.data(), port.data() + port.size(), seat.group.port);
  if (failed != std::errc() || end != port.data() + port.size()) {
    return input_error({}, fmt::format("ORRERY_MASTER={}: expected HOST:PORT", master));
  }
  for (const auto& [host, to] : {std::pair{master.substr(0, colon), &seat.group.master},
                                 std::pair{variable("ORRERY_ADDRESS"), &seat.group.address}}) {
    Result<std::string> address = resolve(host);
    if (!address) return forward_error(address);
    *to = std::move(*address);
  }
  if (Status read = read_membership(env.storage, *gang, seat); !read) return forward_error(read);
  if (!variable("ORRERY_REHEARSE_FLIP").empty()) {
    const Result<std::uint32_t> step = number("ORRERY_REHEARSE_FLIP", 0);
    if (!step) return tl::unexpected(step.error());
    seat.flip_in = *step;
  }
  seat.group.over = [&storage = env.storage, gang = *gang, master = seat.group.master] {
    return master_is_gone(storage, gang, master);
  };
  return seat;
}

int verify(const std::string& directory) {
  const auto audited = audit_checkpoints(directory);
  if (!audited) return complain(audited.error());
  fmt::print("{}", audit_text(*audited));
  const bool good = std::any_of(audited->begin(), audited->end(),
                                [](const AuditedCheckpoint& each) { return each.good(); });
  return good ? 0 : 1;
}

/// Returns a reader of the newest valid checkpoint.
Result<CheckpointReader> open_newest(const TrainingSpec& spec) {
  Result<FoundCheckpoint> found = open_newest_good(spec.checkpoint.directory);
  if (!found) return forward_error(found);
  if (!found->reader) {
    return environment_error(fmt::format("{}: no valid checkpoint", spec.checkpoint.directory));
  }
  return *std::move(found->reader);
}

/// Writes the newest checkpoint as a safetensors file.
int export_checkpoint(const TrainingSpec& spec, const std::string& path) {
  Result<CheckpointReader> reader = open_newest(spec);
  if (!reader) return complain(reader.error());
  if (Status written = export_safetensors(*reader, path); !written) {
    return complain(written.error());
  }
  fmt::print("{}: {} tensors of step {}\n", path, reader->tensors().size(),
             reader->manifest().id.step);
  return 0;
}

/// Reads the weights from the file `weights`, or from the newest checkpoint if it is empty.
Status read_weights(const TrainingSpec& spec, const std::string& weights, TrainingState& state) {
  if (!weights.empty()) {
    Result<SafetensorsFile> file = SafetensorsFile::open(weights);
    if (!file) return forward_error(file);
    Status read = state.restore_weights(*file);
    if (!read && read.error().where.file.empty()) read.error().where.file = weights;
    return read;
  }
  Result<CheckpointReader> reader = open_newest(spec);
  if (!reader) return forward_error(reader);
  return state.restore(*reader);
}

/// Generates text from the newest checkpoint, or from the weights of a file.
int generate_text(TrainingSpec& spec, const Options& options) {
  if (options.prompt.empty())
    return complain({ErrorKind::kInput, "--prompt: expected at least one byte", {}});
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(spec);
  if (!tokenizer) return complain(tokenizer.error());
  TrainableTransformer model(spec.model, 1);
  TrainingState state(spec.model, spec.seed);
  if (Status read = read_weights(spec, options.weights, state); !read) {
    return complain(read.error());
  }
  std::vector<std::int32_t> prompt;
  (*tokenizer)->encode(options.prompt, prompt);
  const auto tokens = generate(model, state.parameters(), prompt, options.text);
  fmt::print("{}{}\n", options.prompt, (*tokenizer)->decode(tokens));
  return 0;
}

/// A model of pieces from the text of the spec.
int train_tokenizer(const TrainingSpec& spec, const Options& options) {
  const std::string& path = options.out.empty() ? spec.data.tokenizer : options.out;
  if (path.empty()) {
    return complain({ErrorKind::kInput, "--train-tokenizer: expected --out FILE.model", {}});
  }
  const Result<TextCorpus> corpus =
      TextCorpus::open({.paths = spec.data.paths, .suffixes = spec.data.suffixes});
  if (!corpus) return complain(corpus.error());
  const Result<std::string> model = train_pieces(*corpus, options.train_tokenizer);
  if (!model) return complain(model.error());
  const Result<std::unique_ptr<RealEnv>> real = RealEnv::create();
  if (!real) return complain(real.error());
  if (auto written = (*real)->env().storage.write_file(path, *model); !written) {
    return complain(written.error());
  }
  fmt::print(
      "{}: {} tokens from {} files, {} bytes; data: {{tokenizer: {}}}, model: {{vocab: {}}}"
      "\n",
      path, options.train_tokenizer, corpus->files(), corpus->tokens(), path,
      options.train_tokenizer);
  return 0;
}

/// Who started this process has been told that the machine is at fault, and ends it.
int await_removal(std::uint64_t steps) {
  fmt::print(stderr,
             "orrery-train: the result of this machine in step {} differs from that of the other "
             "ranks; they continue without it\n",
             steps + 1);
  sigset_t asked;
  ::sigemptyset(&asked);
  ::sigaddset(&asked, SIGTERM);
  const timespec patience{30, 0};
  if (!variable("ORRERY_PROGRESS").empty()) (void)::sigtimedwait(&asked, nullptr, &patience);
  return 1;
}

int train(TrainingSpec& spec) {
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create();
  if (!real) return complain(real.error());
  const Env env = (*real)->env();
  Result<TrainingSeat> seat = find_seat(spec, env);
  if (!seat) return complain(seat.error());
  if (Status fits = check_memory(spec, seat->group.world, env.storage); !fits) {
    return complain(fits.error());
  }
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(spec);
  if (!tokenizer) return complain(tokenizer.error());
  const Result<TrainingText> text = open_training_text(spec, **tokenizer, cache_directory(spec));
  if (!text) return complain(text.error());
  fmt::print("{}; kernels {}, products {}\n", text->summary, kernels().isa, gemm_identity());
  std::fflush(stdout);  // to be read while the others are waited for
  auto run = TrainerRank::start(spec, text->stream, env, std::move(*seat));
  if (!run) return complain(run.error());
  Result<TrainingOutcome> outcome = (*run)->run(asked_to_end);
  if (!outcome) return complain(outcome.error());
  if (outcome->end == TrainingOutcome::End::kWrong) return await_removal(outcome->steps);
  const bool done = outcome->end == TrainingOutcome::End::kDone;
  fmt::print("{} after step {}\n", done ? "done" : "stopped on request", outcome->steps);
  return done ? 0 : 128 + SIGTERM;
}

int run(const Options& options) {
  if (options.abilities) {
    fmt::print("{}", kAbilities);
    return 0;
  }
  if (!options.verify.empty()) return verify(options.verify);
  Result<TrainingSpec> spec = read_spec(options.spec);
  if (!spec) return complain(spec.error());
  if (options.train_tokenizer != 0) return train_tokenizer(*spec, options);
  if (!options.export_file.empty()) return export_checkpoint(*spec, options.export_file);
  return options.generate ? generate_text(*spec, options) : train(*spec);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  orrery::Options options;
  CLI::App app(
      "orrery-train, the reference runtime of Orrery, trains a small GPT or Llama on text.\n\n"
      "  orrery-train training.yaml                       one rank, here\n"
      "  orrery submit examples/jobs/train-gpt.yaml       a gang started by Orrery\n"
      "  orrery-train training.yaml --generate            text from the newest checkpoint\n"
      "  orrery-train training.yaml --export gpt.safetensors\n"
      "                                                   a checkpoint for other programs\n"
      "  orrery-train training.yaml --train-tokenizer 4096 --out text.model\n"
      "                                                   a SentencePiece model of its text\n"
      "  orrery-train --verify checkpoints                check the checksums of all checkpoints\n"
      "  orrery-train --abilities >runtime.yaml           for orrery plan --runtime\n",
      "orrery-train");
  app.set_version_flag("--version", ORRERY_VERSION);
  auto* spec = app.add_option("SPEC", options.spec, "training spec (kind: Training)");
  auto* check = app.add_option("--verify", options.verify, "directory of checkpoints to check");
  auto* text =
      app.add_flag("--generate", options.generate, "generate text that continues --prompt");
  app.add_option("--prompt", options.prompt, "start of the generated text")->needs(text);
  app.add_option("--weights", options.weights,
                 "safetensors file with the weights (default: the newest checkpoint)")
      ->needs(text);
  auto* exported = app.add_option("--export", options.export_file,
                                  "safetensors file to write from the newest checkpoint");
  exported->excludes(text)->needs(spec);
  auto* pieces = app.add_option("--train-tokenizer", options.train_tokenizer,
                                "train a tokenizer with this many tokens on the text of SPEC");
  app.add_option("--out", options.out, "file of the tokenizer (default: data.tokenizer)")
      ->needs(pieces);
  pieces->excludes(text)->excludes(exported)->needs(spec);
  app.add_option("--tokens", options.text.tokens, "number of tokens to generate")->needs(text);
  app.add_option("--temperature", options.text.temperature,
                 "sampling temperature; 0 always selects the most likely token")
      ->needs(text);
  spec->excludes(check);
  app.add_flag("--abilities", options.abilities,
               "print the plans that it supports (kind: Runtime)");
  orrery::hook_options(app);
  CLI11_PARSE(app, argc, argv);
  orrery::drop_ignored_option(app);
  if (options.spec.empty() && options.verify.empty() && !options.abilities) {
    fmt::print(stderr, "orrery-train: expected a SPEC or --verify DIRECTORY; see --help\n");
    return 2;
  }
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  (void)::sigprocmask(SIG_BLOCK, &ending, nullptr);
  (void)::signal(SIGPIPE, SIG_IGN);
  return orrery::run(options);
}
