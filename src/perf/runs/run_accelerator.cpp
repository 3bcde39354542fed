#include "perf/runs/run_accelerator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "perf/runs/run_words.hpp"

namespace orrery {
namespace {

/// What the words beside the family say.
struct Qualifiers {
  std::string form;
  std::string memory_kind;
  std::optional<double> gigabytes;
  std::optional<Watts> power;
  std::optional<std::uint32_t> domain;
  std::vector<std::string> rest;
};

// A number of gigabytes or watts; the unit is glued to it or the word behind. Returns how many
// words it took.
std::size_t take_number(const std::vector<std::string>& words, std::size_t at, Qualifiers& out) {
  const std::optional<NumberPrefix> number = number_prefix(words[at]);
  if (!number) return 0;
  const bool glued = !number->rest.empty();
  const std::string_view next = at + 1 < words.size() ? std::string_view(words[at + 1]) : "";
  const std::string_view unit = glued ? number->rest : next;
  if (is_one_of(unit, {"gb", "gib", "g"})) {
    out.gigabytes = number->value;
  } else if (is_one_of(unit, {"w", "watt", "watts"}) && number->value > 0) {
    out.power = Watts(number->value);
  } else {
    return 0;
  }
  return glued ? 1 : 2;
}

bool take_word(const std::string& word, Qualifiers& out) {
  if (word.starts_with("sxm")) {
    out.form = "sxm";
  } else if (is_one_of(word, {"pcie", "nvl", "oam"})) {
    out.form = word;
  } else if (word.starts_with("hbm") || word.starts_with("gddr")) {
    out.memory_kind = word;
  } else if (word.starts_with("nvl")) {
    out.domain = whole_number(std::string_view(word).substr(3));
    return out.domain.has_value();
  } else {
    return false;
  }
  return true;
}

Qualifiers read_qualifiers(const std::vector<std::string>& words) {
  Qualifiers found;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t taken = take_number(words, at, found);
    if (taken == 0 && !take_word(words[at], found)) found.rest.push_back(words[at]);
    at += std::max<std::size_t>(1, taken);
  }
  return found;
}

// Words that tell nothing apart.
bool is_noise(std::string_view word) {
  return is_one_of(word, {"nvidia", "amd",   "intel",    "google", "aws",         "amazon",
                          "cloud",  "tesla", "instinct", "gpu",    "gpus",        "chip",
                          "chips",  "hgx",   "dgx",      "r",      "accelerator", "accelerators",
                          "tensor", "core",  "ai",       "tpu",    "npu",         "superchip"});
}

std::vector<std::string> names_of(const Accelerator& accelerator) {
  std::vector<std::string> names{spaced_name(accelerator.id)};
  for (const std::string& alias : accelerator.aliases) names.push_back(spaced_name(alias));
  return names;
}

const Accelerator* find_spaced(const Catalog& catalog, std::string_view name) {
  for (const Accelerator& accelerator : catalog.all<Accelerator>()) {
    const std::vector<std::string> names = names_of(accelerator);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &accelerator;
  }
  return nullptr;
}

/// The words that name a family, and the row they are an alias of.
struct Family {
  const Accelerator* usual = nullptr;
  std::string name;
  std::size_t first = 0;
  std::size_t count = 0;
};

// The longest run of words that is a name; ties by position.
Family find_family(const Catalog& catalog, const std::vector<std::string>& words) {
  constexpr std::size_t kWordsMax = 8;
  for (std::size_t count = std::min(words.size(), kWordsMax); count > 0; --count) {
    for (std::size_t first = 0; first + count <= words.size(); ++first) {
      std::string name = join_words(words, first, count);
      if (const Accelerator* usual = find_spaced(catalog, name); usual != nullptr) {
        return {usual, std::move(name), first, count};
      }
    }
  }
  return {};
}

std::vector<const Accelerator*> members(const Catalog& catalog, const Family& family) {
  std::vector<const Accelerator*> found{family.usual};
  for (const Accelerator& accelerator : catalog.all<Accelerator>()) {
    if (&accelerator == family.usual || accelerator.vendor != family.usual->vendor) continue;
    for (const std::string& name : names_of(accelerator)) {
      if (!name.starts_with(family.name + " ")) continue;
      found.push_back(&accelerator);
      break;
    }
  }
  return found;
}

bool has_form(const Accelerator& accelerator, std::string_view form) {
  const std::vector<std::string> words = split_words(accelerator.name);
  const bool bridged = std::find(words.begin(), words.end(), "nvl") != words.end();
  if (form == "nvl") return bridged;
  if (form == "sxm") return accelerator.form_factor.starts_with("sxm");
  return accelerator.form_factor == form && !bridged;
}

// Relative distance of the marketed size from so many decimal or binary gigabytes.
double memory_distance(const Accelerator& accelerator, double gigabytes) {
  const double bytes = accelerator.memory.value();
  return std::min(std::abs(bytes / (gigabytes * 1e9) - 1),
                  std::abs(bytes / (gigabytes * 1073741824.0) - 1));
}

/// Narrows a family down; a wish that no member meets is noted and dropped.
class Selection {
 public:
  Selection(std::vector<const Accelerator*> members, std::vector<std::string>& warnings)
      : members_(std::move(members)), warnings_(warnings) {}

  template <class Predicate>
  void keep(std::string_view wish, Predicate wanted) {
    std::vector<const Accelerator*> kept;
    for (const Accelerator* member : members_) {
      if (wanted(*member)) kept.push_back(member);
    }
    if (kept.empty()) {
      warnings_.push_back(fmt::format("the catalog has no {} with \"{}\"; {} is taken",
                                      members_.front()->name, printable(wish, 40),
                                      members_.front()->id));
    } else {
      members_ = std::move(kept);
    }
  }

  // The first of the nearest: the usual row, where it is one of them.
  void keep_nearest(double gigabytes) {
    members_ = {*std::min_element(
        members_.begin(), members_.end(), [&](const Accelerator* a, const Accelerator* b) {
          return memory_distance(*a, gigabytes) < memory_distance(*b, gigabytes);
        })};
  }

  [[nodiscard]] const Accelerator* front() const { return members_.front(); }

 private:
  std::vector<const Accelerator*> members_;
  std::vector<std::string>& warnings_;
};

const Accelerator* select(Selection selection, const Qualifiers& wishes) {
  constexpr double kMemoryTolerance = 0.06;
  if (!wishes.form.empty()) {
    selection.keep(wishes.form,
                   [&](const Accelerator& each) { return has_form(each, wishes.form); });
  }
  if (!wishes.memory_kind.empty()) {
    selection.keep(wishes.memory_kind, [&](const Accelerator& each) {
      return lower_case(each.memory_type) == wishes.memory_kind;
    });
  }
  if (wishes.gigabytes && *wishes.gigabytes > 0) {
    selection.keep(fmt::format("{:g} GB", *wishes.gigabytes), [&](const Accelerator& each) {
      return memory_distance(each, *wishes.gigabytes) <= kMemoryTolerance;
    });
    selection.keep_nearest(*wishes.gigabytes);
  }
  return selection.front();
}

}  // namespace

Result<AcceleratorText> read_accelerator_text(std::string_view text, const Catalog& catalog,
                                              const SourcePosition& where) {
  AcceleratorText found;
  const Qualifiers wishes = read_qualifiers(split_words(text));
  found.power_limit = wishes.power;
  found.scale_up_domain = wishes.domain;
  found.accelerator = catalog.find<Accelerator>(text);
  if (found.accelerator == nullptr) found.accelerator = find_spaced(catalog, spaced_name(text));
  if (found.accelerator != nullptr) return found;

  const Family family = find_family(catalog, wishes.rest);
  if (family.usual == nullptr) {
    Result<const Accelerator*> unknown = catalog.require<Accelerator>(text, where);
    unknown.error().message = fmt::format("\"accel\": {}", unknown.error().message);
    return forward_error(unknown);
  }
  found.accelerator = select(Selection(members(catalog, family), found.warnings), wishes);
  for (std::size_t i = 0; i < wishes.rest.size(); ++i) {
    const bool named = i >= family.first && i < family.first + family.count;
    if (named || is_noise(wishes.rest[i])) continue;
    found.warnings.push_back(fmt::format("\"{}\" in the accelerator's name is not understood",
                                         printable(wishes.rest[i], 40)));
  }
  return found;
}

}  // namespace orrery
