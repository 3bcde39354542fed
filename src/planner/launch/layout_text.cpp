#include "planner/launch/layout_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 16> kKeys = {"tp",
                                                    "pp",
                                                    "vpp",
                                                    "dp",
                                                    "cp",
                                                    "ep",
                                                    "zero",
                                                    "micro_batch",
                                                    "mbs",
                                                    "shard",
                                                    "sp",
                                                    "recompute_layers",
                                                    "offload",
                                                    "recompute",
                                                    "sequence_parallel",
                                                    "context_exchange"};
constexpr std::uint32_t kZeroStages = 3;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Status read_number(std::string_view key, std::string_view text, Choice<std::uint32_t>& out) {
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) {
    return input_error({}, fmt::format("layout: {}={}: expected a whole number", key, text));
  }
  const bool may_be_nothing = key == "zero" || key == "shard" || key == "recompute_layers";
  if (value == 0 && !may_be_nothing) {
    return input_error({}, fmt::format("layout: {}=0: expected 1 or more", key));
  }
  if (key == "zero" && value > kZeroStages) {
    return input_error({}, fmt::format("layout: zero={}: expected 0 to 3", value));
  }
  out = value;
  return {};
}

template <WordedEnum T>
Status read_word(std::string_view key, std::string_view text, Choice<T>& out) {
  std::vector<std::string_view> words;
  for (const auto& entry : enum_words(T{})) {
    if (entry.word == text) {
      out = entry.value;
      return {};
    }
    words.push_back(entry.word);
  }
  return input_error({}, fmt::format("layout: {}={}: expected {}{}", key, text, words.front(),
                                     did_you_mean(text, words)));
}

Status set(std::string_view key, std::string_view value, PlanSpace& s) {
  const std::map<std::string_view, Choice<std::uint32_t>*> numbers = {
      {"tp", &s.tp},       {"pp", &s.pp},
      {"vpp", &s.vpp},     {"dp", &s.dp},
      {"cp", &s.cp},       {"ep", &s.ep},
      {"zero", &s.zero},   {"micro_batch", &s.micro_batch},
      {"shard", &s.shard}, {"recompute_layers", &s.recompute_layers}};
  if (const auto at = numbers.find(key); at != numbers.end()) {
    return read_number(key, value, *at->second);
  }
  if (key == "sequence_parallel") return read_word(key, value, s.sequence_parallel);
  if (key == "recompute") return read_word(key, value, s.recompute);
  if (key == "offload") return read_word(key, value, s.offload);
  if (key == "context_exchange") return read_word(key, value, s.context_exchange);
  return input_error({},
                     fmt::format("layout: unknown key \"{}\"{}", key, did_you_mean(key, kKeys)));
}

std::string_view long_name(std::string_view key) {
  if (key == "mbs") return "micro_batch";
  return key == "sp" ? "sequence_parallel" : key;
}

}  // namespace

Status read_layout(std::string_view text, PlanSpace& space) {
  std::vector<std::string_view> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return input_error({}, fmt::format("layout: \"{}\": expected key=value", part));
    }
    const std::string_view key = long_name(trimmed(part.substr(0, equals)));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return input_error({}, fmt::format("layout: {} is given twice", key));
    }
    seen.push_back(key);
    if (Status done = set(key, trimmed(part.substr(equals + 1)), space); !done) return done;
  }
  return {};
}

std::string print_layout(const ParallelPlan& plan) {
  std::string text = fmt::format("tp={},pp={}", plan.tp, plan.pp);
  const auto number = [&](std::string_view key, std::uint32_t value, std::uint32_t nothing) {
    if (value != nothing) text += fmt::format(",{}={}", key, value);
  };
  const auto word = [&](std::string_view key, auto value) {
    if (value != decltype(value){}) text += fmt::format(",{}={}", key, word_of(value));
  };
  number("vpp", plan.vpp, 1);
  text += fmt::format(",dp={}", plan.dp);
  number("cp", plan.cp, 1);
  number("ep", plan.ep, 1);
  number("zero", plan.zero, 0);
  number("shard", plan.shard, 0);
  text += fmt::format(",micro_batch={}", plan.micro_batch);
  word("sequence_parallel", plan.sequence_parallel);
  word("recompute", plan.recompute);
  number("recompute_layers", plan.recompute_layers, 0);
  word("offload", plan.offload);
  word("context_exchange", plan.context_exchange);
  return text;
}

Json layout_json(const ParallelPlan& plan) {
  Json json;
  json["tp"] = plan.tp;
  json["pp"] = plan.pp;
  json["vpp"] = plan.vpp;
  json["dp"] = plan.dp;
  json["cp"] = plan.cp;
  json["ep"] = plan.ep;
  json["zero"] = plan.zero;
  json["shard"] = plan.shard;
  json["micro_batch"] = plan.micro_batch;
  json["sequence_parallel"] = word_of(plan.sequence_parallel);
  json["recompute"] = word_of(plan.recompute);
  json["recompute_layers"] = plan.recompute_layers;
  json["offload"] = word_of(plan.offload);
  json["context_exchange"] = word_of(plan.context_exchange);
  json["layout"] = print_layout(plan);
  return json;
}

}  // namespace orrery
