#include "perf/runs/run_cluster.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text/nearest_name.hpp"
#include "perf/runs/run_words.hpp"

namespace orrery {
namespace {

constexpr double kBytesPerGigabit = 1e9 / 8;

// ------------------------------------------------------------- pieces of the text
/// Words between two commas, semicolons or parentheses: "4x omni-path 100 gb/s per node".
struct Segment {
  std::vector<std::string> words;  ///< with '-', '/', '.' and '_' inside
  std::vector<std::string> exact;  ///< the same in their own case, for Gb/s and GB/s

  [[nodiscard]] bool mentions(std::initializer_list<std::string_view> parts) const {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
        return word.find(part) != std::string::npos;
      });
    });
  }
};

std::vector<std::string> split_exact(std::string_view text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    at = end;
  }
  return words;
}

std::vector<Segment> split_segments(std::string_view text) {
  std::string plain(text);
  for (std::size_t at = plain.find("(s)"); at != std::string::npos; at = plain.find("(s)", at)) {
    plain.replace(at, 3, "s");
  }
  std::vector<Segment> segments;
  std::size_t begin = 0;
  while (begin <= plain.size()) {
    const std::size_t end = std::min(plain.find_first_of(",;()[]", begin), plain.size());
    Segment segment;
    segment.exact = split_exact(std::string_view(plain).substr(begin, end - begin));
    for (const std::string& word : segment.exact) segment.words.push_back(lower_case(word));
    if (!segment.words.empty()) segments.push_back(std::move(segment));
    begin = end + 1;
  }
  return segments;
}

// "8x", or "8" before "x": a factor, and where the words behind it begin.
struct Factor {
  std::uint32_t value = 1;
  std::string_view rest;  ///< of the same word: "8xHDR200" leaves "hdr200"
  std::size_t next = 0;
};

std::optional<Factor> read_factor(const std::vector<std::string>& words, std::size_t at) {
  const std::optional<NumberPrefix> number = number_prefix(words[at]);
  if (!number) return std::nullopt;
  const std::optional<std::uint32_t> value = whole_count(number->value);
  if (!value) return std::nullopt;
  if (number->rest.starts_with('x')) return Factor{*value, number->rest.substr(1), at + 1};
  const bool apart = number->rest.empty() && at + 1 < words.size() && words[at + 1] == "x";
  if (apart) return Factor{*value, {}, at + 2};
  return std::nullopt;
}

// ------------------------------------------------------------- slices of a torus
// "v5e-256" -> 256.
std::optional<std::uint32_t> slice_name_size(std::string_view word) {
  if (word.starts_with("tpu")) word.remove_prefix(std::min<std::size_t>(word.size(), 3));
  if (word.starts_with('-')) word.remove_prefix(1);
  const std::size_t dash = word.rfind('-');
  const bool named = word.starts_with('v') || word.starts_with('7');
  if (!named || dash == std::string_view::npos) return std::nullopt;
  return whole_number(word.substr(dash + 1));
}

class ClusterReader {
 public:
  ClusterReader(std::string_view text, std::uint64_t count, const Accelerator& accelerator)
      : segments_(split_segments(text)), count_(count), accelerator_(accelerator) {
    for (const std::string& word : split_words(text)) {
      if (word.starts_with("nvl")) read_domain(word);
      words_.push_back(word);
    }
  }

  ClusterFacts read() {
    for (const Segment& segment : segments_) read_slices(segment);
    read_node_size();
    for (const Segment& segment : segments_) read_bandwidth(segment);
    facts_.fabric = name_fabric();
    return std::move(facts_);
  }

 private:
  [[nodiscard]] bool has(std::string_view word) const {
    return std::find(words_.begin(), words_.end(), word) != words_.end();
  }

  [[nodiscard]] bool has_prefix(std::string_view prefix) const {
    return std::any_of(words_.begin(), words_.end(),
                       [&](const std::string& word) { return word.starts_with(prefix); });
  }

  void read_domain(std::string_view word) {
    const std::optional<std::uint32_t> size = whole_number(word.substr(3));
    if (size) facts_.scale_up_domain = size;
  }

  // ------------------------------------------------------------- slices
  void read_slices(const Segment& segment) {
    const std::vector<std::string>& words = segment.words;
    for (std::size_t at = 0; at < words.size(); ++at) {
      const std::optional<std::uint32_t> plain = whole_number(words[at]);
      if (plain && at + 1 < words.size() && words[at + 1].starts_with("slice")) {
        set_slices(*plain, chips_behind(words, at + 2));
        return;
      }
      const std::optional<Factor> factor = read_factor(words, at);
      if (!factor) continue;
      std::string_view name = factor->rest;
      if (name.empty() && factor->next < words.size()) name = words[factor->next];
      if (const auto size = slice_name_size(name)) {
        set_slices(factor->value, size);
        return;
      }
    }
  }

  static std::optional<std::uint32_t> chips_behind(const std::vector<std::string>& words,
                                                   std::size_t at) {
    for (; at + 1 < words.size(); ++at) {
      if (words[at + 1].starts_with("chip")) return whole_number(words[at]);
    }
    return std::nullopt;
  }

  // Names of v2 to v5p slices count cores, two a chip; what `count_` contradicts is dropped.
  void set_slices(std::uint32_t slices, std::optional<std::uint32_t> size) {
    if (count_ % slices != 0) return;
    const std::uint64_t each = count_ / slices;
    if (size && *size != each && *size != 2 * each) return;
    facts_.slices = slices;
    facts_.slice_accelerators = whole_count(static_cast<double>(each));
  }

  // ------------------------------------------------------------- nodes
  void set_nodes(std::uint64_t nodes) {
    constexpr std::uint64_t kNodeMax = 16;
    if (facts_.node_accelerators || nodes == 0 || count_ % nodes != 0) return;
    const std::uint64_t each = count_ / nodes;
    // As many "nodes" as accelerators: the text counted accelerators.
    if (each < 2 || each > kNodeMax) return;
    facts_.node_accelerators = static_cast<std::uint32_t>(each);
  }

  void read_node_size() {
    if (facts_.slices) return;
    for (const Segment& segment : segments_) read_stated_node_size(segment.words);
    if (!segments_.empty()) read_leading_count(segments_.front().words);
    const bool dgx = has("dgx") || has("hgx");
    if (!dgx || facts_.node_accelerators) return;
    // DGX and HGX boards hold eight; the trays of the rack-scale systems four.
    const std::uint32_t each = accelerator_.form_factor == "superchip-half" ? 4 : 8;
    if (count_ >= each && count_ % each == 0) facts_.node_accelerators = each;
  }

  // "8 GPU/node", "8 GPUs per node", "nodes x8".
  void read_stated_node_size(const std::vector<std::string>& words) {
    constexpr std::uint32_t kNodeMax = 256;
    for (std::size_t at = 0; at + 1 < words.size(); ++at) {
      const std::string& next = words[at + 1];
      std::optional<std::uint32_t> size;
      if (is_one_of(next, {"gpu", "gpus", "chips", "accelerators"})) {
        const bool node =
            at + 3 < words.size() && words[at + 2] == "per" && words[at + 3].starts_with("node");
        if (node) size = whole_number(words[at]);
      } else if (is_one_of(next, {"gpu/node", "gpus/node", "chips/node"})) {
        size = whole_number(words[at]);
      } else if (words[at] == "nodes" && next.starts_with('x')) {
        size = whole_number(std::string_view(next).substr(1));
      }
      if (size && *size <= kNodeMax) facts_.node_accelerators = size;
    }
  }

  // "2xXE9680x8H100", "64xNVIDIA DGX H100", "96 DGX A100", "1 node 8x B200".
  void read_leading_count(const std::vector<std::string>& words) {
    if (const std::optional<Factor> factor = read_factor(words, 0)) {
      if (const auto inner = board_size(factor->rest)) {
        if (!facts_.node_accelerators) facts_.node_accelerators = inner;
      } else {
        set_nodes(factor->value);
      }
      return;
    }
    const std::optional<std::uint32_t> nodes = whole_number(words[0]);
    if (!nodes || words.size() < 2) return;
    const bool counted = is_one_of(words[1], {"node", "nodes", "host", "hosts", "server", "servers",
                                              "machine", "machines", "dgx", "hgx"});
    if (counted) set_nodes(*nodes);
  }

  // The 8 of "xe9680x8h100-sxm-80gb".
  static std::optional<std::uint32_t> board_size(std::string_view word) {
    constexpr double kBoardMax = 16;
    for (std::size_t x = word.find('x'); x != std::string_view::npos; x = word.find('x', x + 1)) {
      const std::optional<NumberPrefix> number = number_prefix(word.substr(x + 1));
      if (x > 0 && number && !number->rest.empty() && number->value <= kBoardMax) {
        return whole_count(number->value);
      }
    }
    return std::nullopt;
  }

  // ------------------------------------------------------------- network
  void read_bandwidth(const Segment& segment) {
    // Links inside the node, and the chips' own torus.
    if (segment.mentions(
            {"nvlink", "nvswitch", "/dir", "ici", "pcie", "xgmi", "infinity", "hbm"})) {
      return;
    }
    double factor = 0;
    for (std::size_t at = 0; at < segment.words.size(); ++at) {
      std::string_view word = segment.words[at];
      if (const std::optional<Factor> read = read_factor(segment.words, at)) {
        factor = read->value;
        word = read->rest;
      }
      const double gigabits = read_rate(segment, at, word);
      if (gigabits <= 0) continue;
      add_rate(segment, gigabits, factor);
      return;
    }
  }

  // Gigabits a second of "1600 Gbps", "200Gb/s", "400 GB/s" or "HDR200"; 0: neither.
  static double read_rate(const Segment& segment, std::size_t at, std::string_view word) {
    if (const double generation = infiniband_rate(word); generation > 0) return generation;
    const std::optional<NumberPrefix> number = number_prefix(word);
    if (!number) return 0;
    std::string_view unit = number->rest;
    std::string_view exact = segment.exact[at];
    if (unit.empty() && at + 1 < segment.words.size()) {
      unit = segment.words[at + 1];
      exact = segment.exact[at + 1];
    }
    unit = unit.substr(0, unit.find("/node"));
    const bool bytes =
        exact.find("GB") != std::string_view::npos || exact.find("TB") != std::string_view::npos;
    const double bits = bytes ? 8 : 1;
    if (is_one_of(unit, {"gb/s", "gbps", "gbit/s", "gbits/s"})) return number->value * bits;
    if (is_one_of(unit, {"tb/s", "tbps", "tbit/s"})) return number->value * bits * 1000;
    return 0;
  }

  static double infiniband_rate(std::string_view word) {
    constexpr std::array<std::pair<std::string_view, double>, 5> kGenerations{
        {{"fdr", 56}, {"edr", 100}, {"hdr", 200}, {"ndr", 400}, {"xdr", 800}}};
    for (const auto& [name, rate] : kGenerations) {
      if (!word.starts_with(name)) continue;
      const std::string_view behind = word.substr(name.size());
      if (behind.empty()) return rate;
      return whole_number(behind).value_or(0);
    }
    return 0;
  }

  void add_rate(const Segment& segment, double gigabits, double factor) {
    constexpr double kGigabitsMax = 1e6;
    port_gigabits_ = factor > 0 ? gigabits : 0;
    double total = gigabits * std::max(factor, 1.0);
    if (segment.mentions({"bidirectional"})) total /= 2;
    const bool per_device =
        segment.mentions({"/gpu", "/chip"}) ||
        (segment.mentions({"per"}) && segment.mentions({"gpu", "chip", "accelerator"}) &&
         !segment.mentions({"node"}));
    if (per_device) {
      port_gigabits_ = gigabits;
      if (!facts_.node_accelerators) return;
      total = gigabits * *facts_.node_accelerators;
    } else if (factor <= 0 && infiniband_alone(segment)) {
      port_gigabits_ = gigabits;  // "HDR200" names a link, not how many there are
      return;
    }
    if (total > kGigabitsMax || facts_.node_bandwidth) return;
    facts_.node_bandwidth = BytesPerSecond(total * kBytesPerGigabit);
  }

  static bool infiniband_alone(const Segment& segment) {
    const bool named = std::any_of(segment.words.begin(), segment.words.end(),
                                   [](const std::string& w) { return infiniband_rate(w) > 0; });
    return named || segment.mentions({"/port", "/nic", "/link"}) ||
           (segment.mentions({"per"}) && segment.mentions({"port", "nic", "link", "rail"}));
  }

  // Rate of one adapter: as stated, else the node's shared by its accelerators.
  [[nodiscard]] double port_gigabits() const {
    if (port_gigabits_ > 0) return port_gigabits_;
    if (!facts_.node_bandwidth) return 0;
    constexpr double kUsualAdapters = 8;
    return facts_.node_bandwidth->value() / kBytesPerGigabit /
           facts_.node_accelerators.value_or(kUsualAdapters);
  }

  [[nodiscard]] std::string name_fabric() const {
    if (has_prefix("xdr") || has_prefix("x800")) return "ib-xdr";
    if (has_prefix("ndr")) return "ib-ndr";
    if (has_prefix("hdr")) return "ib-hdr";
    if (has("omni") || has("omnipath") || has("opa")) return "omni-path-100";
    if (has_prefix("efa")) return name_efa();
    if (has_prefix("slingshot")) return "slingshot-11";
    if (has_prefix("spectrum")) return "roce-400-spectrum4";
    if (has_prefix("roce")) return name_roce();
    if (has("ib") || has_prefix("infiniband")) return name_infiniband();
    if (has("dcn") || has_prefix("jupiter")) return "google-dcn-jupiter";
    return "";
  }

  [[nodiscard]] std::string name_infiniband() const {
    const double rate = port_gigabits();
    if (rate == 200) return "ib-hdr";
    if (rate == 400) return "ib-ndr";
    if (rate == 800) return "ib-xdr";
    return "";
  }

  [[nodiscard]] std::string name_roce() const {
    const double rate = port_gigabits();
    if (rate >= 800) return "roce-400-spectrum4";
    return rate > 200 ? "roce-400-th5" : "roce-200-th4";
  }

  // As stated, else the generation of the instances that carry the accelerator.
  [[nodiscard]] std::string name_efa() const {
    if (has("efav4") || has_prefix("p6")) return "aws-efa-v4";
    if (has("efav3") || has("p5en") || has("trn2")) return "aws-efa-v3";
    if (has("efav2") || has("p5") || has("p5e") || has("trn1")) return "aws-efa-v2";
    if (accelerator_.architecture.starts_with("blackwell")) return "aws-efa-v4";
    if (accelerator_.architecture == "neuroncore-v3") return "aws-efa-v3";
    return "aws-efa-v2";
  }

  std::vector<Segment> segments_;
  std::vector<std::string> words_;
  std::uint64_t count_;
  const Accelerator& accelerator_;
  ClusterFacts facts_;
  double port_gigabits_ = 0;
};

}  // namespace

ClusterFacts read_cluster_text(std::string_view text, std::uint64_t count,
                               const Accelerator& accelerator) {
  return ClusterReader(text, count, accelerator).read();
}

}  // namespace orrery
