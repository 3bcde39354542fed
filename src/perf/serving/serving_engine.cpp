#include "perf/serving/serving_engine.hpp"

#include <algorithm>
#include <cctype>

namespace orrery {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// TensorRT-LLM: in-flight batching became the default runtime's with 0.12; the PyTorch backend came
// with 1.0, its overlapped scheduler and wide expert parallelism with 1.1.
void tensorrt_llm(const std::string& name, const EngineText& text, EngineProfile& profile) {
  const std::optional<double> release = release_number(text.version);
  if (has(name, "static")) {
    profile.queued = false;
    profile.keys = {"tensorrt-llm-static"};
  } else if (has(name, "triton")) {
    profile.requests = 500;
    profile.keys = {"tensorrt-llm-triton", "tensorrt-llm-0"};
  } else if (release && *release < 1) {
    profile.keys = {"tensorrt-llm-0"};
  } else if (release && *release < 1.01) {
    profile.keys = {text.served ? "tensorrt-llm-1.1" : "tensorrt-llm-1.0"};
  } else if (release || text.served) {
    profile.keys = {text.served ? "tensorrt-llm-served" : "tensorrt-llm-1.1", "tensorrt-llm-1.1"};
  } else {
    profile.keys = {"tensorrt-llm-unknown"};
  }
  profile.keys.emplace_back("tensorrt-llm");
}

// vLLM: the V1 engine is the default from 0.8. An unstated release behind a server is a current
// one, and submitters to MLPerf run builds of their own with its kernels.
void vllm(const std::string& name, const EngineText& text, EngineProfile& profile) {
  std::optional<double> release = release_number(text.version);
  if (text.version.starts_with("MLPerf")) release = release_number(text.name);
  if (has(name, "fork")) profile.keys.emplace_back("vllm-2023");
  if (has(name, "tpu")) profile.keys.emplace_back("vllm-tpu");
  const bool current = has(lower(text.version), "nightly") || (release && *release >= 0.08) ||
                       (!release && text.served) || profile.mlperf;
  if (!current && !release) profile.keys.emplace_back("vllm-unknown");
  profile.keys.emplace_back(current ? "vllm-1" : "vllm-0");
  profile.keys.emplace_back("vllm");
}

}  // namespace

std::optional<double> release_number(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) == 0) ++at;
  if (at == text.size()) return std::nullopt;
  double result = 0;
  double unit = 1;
  for (int part = 0; part < 3 && at < text.size(); ++part, unit /= 100) {
    double number = 0;
    std::size_t digits = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
      number = number * 10 + (text[at] - '0');
      ++at;
      ++digits;
    }
    if (digits == 0) break;
    result += unit * number;
    if (at >= text.size() || text[at] != '.') break;
    ++at;
  }
  return result;
}

EngineProfile engine_profile(const EngineText& text) {
  const std::string name = lower(text.name);
  EngineProfile profile;
  profile.mlperf = text.version.starts_with("MLPerf");
  if (has(name, "tensorrt-llm") || has(name, "trtllm") || has(name, "trt-llm")) {
    tensorrt_llm(name, text, profile);
  } else if (has(name, "tensorrt")) {
    profile.keys = {"tensorrt-mlperf", "tensorrt-llm"};
  } else if (has(name, "vllm")) {
    vllm(name, text, profile);
  } else if (has(name, "sglang")) {
    profile.keys = {"sglang"};
  } else if (has(name, "atom")) {
    profile.keys = {"atom", "sglang"};
  } else if (has(name, "deepspeed")) {
    profile.keys = {"deepspeed"};
  } else if (has(name, "habana") || has(name, "synapse")) {
    profile.keys = {"habana"};
  } else if (has(name, "neuron")) {
    profile.keys = {"neuronx"};
  } else if (has(name, "jetstream") || has(name, "maxtext")) {
    profile.keys = {"jetstream"};
  }
  std::vector<std::string> keys;
  for (const std::string& key : profile.keys) {
    keys.push_back(key + "." + std::string(text.vendor));
    keys.push_back(key);
  }
  keys.push_back("any." + std::string(text.vendor));
  keys.emplace_back("any");
  profile.keys = std::move(keys);
  return profile;
}

}  // namespace orrery
